# Chromium without a window, controlled through two pipes: no port, no driver, one process for many pages.
#
#   with Browser() as browser:
#       browser.open("file:///tmp/report.html", width=768, scheme="dark")
#       browser.run("document.documentElement.scrollWidth")      # the awaited value of the expression
#       browser.screenshot(pathlib.Path("report.png"))           # all of the page
#
# Source: Chrome DevTools Protocol, over file descriptors 3 and 4 (--remote-debugging-pipe): JSON and a zero byte.
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def program():
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    def __init__(self, patience_s=600):
        self.patience_s, self.number, self.unread, self.session = patience_s, 0, b"", None
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs, self.to = os.pipe()
        self.answers, theirs_too = os.pipe()
        # Through the shell, because the two may have any numbers here and must be 3 and 4 there.
        command = f'exec "$0" "$@" 3<&{theirs} 4>&{theirs_too}'
        self.process = subprocess.Popen(
            ["bash", "-c", command, program(), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--remote-debugging-pipe", f"--user-data-dir={self.profile.name}"],
            pass_fds=(theirs, theirs_too), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs)
        os.close(theirs_too)

    def __enter__(self):
        try:
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for pipe in (self.to, self.answers):
            os.close(pipe)   # without which it ends alone
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.profile.cleanup()

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        unsent = json.dumps(message).encode() + b"\0"
        while unsent:
            unsent = unsent[os.write(self.to, unsent):]
        until = time.monotonic() + self.patience_s
        while True:
            answer = self.message(until)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def message(self, until):
        while b"\0" not in self.unread:
            if not select.select([self.answers], [], [], max(0, until - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self.answers, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has ended")
            self.unread += piece
        text, _, self.unread = self.unread.partition(b"\0")
        return json.loads(text)

    def open(self, address, width=1440, height=900, scheme="light"):
        """Ends when the page is there."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.resize(width, height)
        self.call("Page.navigate", url=address)
        self.wait_for("document.readyState == 'complete' && location.href != 'about:blank'")

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def run(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait_for(self, expression):
        until = time.monotonic() + self.patience_s
        while not self.run(expression):
            if time.monotonic() > until:
                raise TimeoutError(f"never true: {expression}")
            time.sleep(0.1)

    def screenshot(self, path):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        page_box = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=page_box)
        path.write_bytes(base64.b64decode(shot["data"]))
