# Object stores on independent servers: moto, which checks Amazon's signatures, and rclone's server, which is strict
# about them. Tests encoded names, pages of listings, ranges, wrong keys, another region, expired keys, missing objects
# and buckets.
#
#   python3 tests/system/remote/object_stores.py
#
# Skipped if pip can install neither, or if libcurl or libcrypto is missing.
import contextlib
import datetime
import http.client
import http.server
import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from checks import Report
from stores import REGION, Unavailable, built, missing_header, moto, rclone

# File names may contain all of these. A store without folders also has other keys.
NAMES = ["plain.tar", "a b.tar", "a=b.tar", "a+b.tar", "\u00fcn\u00efcode-\u65e5\u672c.tar", "folder/inner.tar",
         "folder/deep er/inner=1.tar", "per%cent%20.tar", "a&b;c.tar", "quote'\".tar", "dollar$,:@!*().tar",
         "q?x=y#z.tar", "tilde~[1]{2}.tar", "less<more>.tar", "dot.s/..x/y.tar", "-minus.tar", "back\\slash.tar"]
KEYS = ["/begins", "a//b.tar", "a/../b.tar", "./a.tar"]
SCOPE = re.compile(r"Credential=([^/]+)/\d+/([^/]+)/")


def error(code, message, more=""):
    return f"<Error><Code>{code}</Code><Message>{message}</Message>{more}</Error>".encode()


class Gate:
    """The requests so far, and the settings."""

    def __init__(self, store, region, keys):
        self.store, self.region, self.keys = store, region, list(keys)
        self.requests, self.endpoint, self.before = [], "", []
        self.signed = 0   # number of requests with a signature

    def answer(self, handler):
        """(status, headers, body), or None if the store must answer."""
        if handler.path == "/keys":
            return 200, {}, self.keys_as_json()
        if handler.path.startswith("/latest/"):
            return self.metadata(handler)
        scope = SCOPE.search(handler.headers.get("Authorization", ""))
        self.signed += "Authorization" in handler.headers
        if self.before:
            return self.before.pop(0)
        if scope and scope[1] == "OLD":
            return 403, {}, error("ExpiredToken", "The provided token has expired.", "<Token-0>secret</Token-0>")
        if self.region and scope and scope[2] != self.region:
            return 400, {"x-amz-bucket-region": self.region}, error(
                "AuthorizationHeaderMalformed", f"the region '{scope[2]}' is wrong; expecting '{self.region}'",
                f"<Region>{self.region}</Region>")
        return None

    def metadata(self, handler):
        """Like an instance's metadata service, version 2."""
        name = handler.path.removeprefix("/latest/")
        if name == "api/token":
            good = handler.command == "PUT" and handler.headers.get("X-aws-ec2-metadata-token-ttl-seconds") == "21600"
            return (200, {}, b"a-token") if good else (400, {}, b"")
        if handler.headers.get("X-aws-ec2-metadata-token") != "a-token":
            return 401, {}, b""
        if name == "meta-data/iam/security-credentials/":
            return 200, {}, b"a role"
        return (200, {}, self.keys_as_json()) if name.endswith("/a%20role") else (404, {}, b"")

    def keys_as_json(self):
        key, secret = self.keys.pop(0) if len(self.keys) > 1 else self.keys[0]
        expires = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
        return json.dumps({"AccessKeyId": key, "SecretAccessKey": secret,
                           "Expiration": expires.strftime("%Y-%m-%dT%H:%M:%SZ")}).encode()


@contextlib.contextmanager
def gate(store, region="", keys=()):
    """A proxy of a server that implements S3. Like Amazon, it refuses requests that are signed for another region or
    with expired keys. It returns keys like a container's agent and an instance, and passes on all other requests."""
    g = Gate(store, region, keys)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_PUT(self):
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            self.do_GET()

        def do_GET(self):
            answer_parts = g.answer(self)
            g.requests.append((self.path, answer_parts[0] if answer_parts else 0))
            if answer_parts is None:
                upstream = http.client.HTTPConnection(urllib.parse.urlsplit(store.endpoint).netloc, timeout=600)
                upstream.putrequest("GET", self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    upstream.putheader(name, value)
                upstream.endheaders()
                got = upstream.getresponse()
                passed = ("content-range", "etag", "last-modified", "content-type")
                answer_parts = got.status, {n: v for n, v in got.getheaders() if n.lower() in passed}, got.read()
            status, headers, body = answer_parts
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    g.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield g
    finally:
        server.shutdown()
        server.server_close()


class Checks:
    """Runs the subject with a store, and counts the results."""

    def __init__(self, report, program, name, store, content):
        self.report, self.program, self.name, self.store, self.content = report, program, name, store, content

    def run(self, *arguments, **environment):
        return subprocess.run([self.program, *arguments], capture_output=True, timeout=900,
                              env=self.store.environment(**environment))

    def expect(self, what, problem):
        self.report.add(f"{self.name}: {what}", problem)

    def lists(self, prefix, scheme="s3", **environment):
        done = self.run("list", f"{scheme}://bucket/{prefix}", **environment)
        got = [urllib.parse.unquote(line) for line in done.stdout.decode().splitlines()]
        expected = sorted((f"{scheme}://bucket/{name}" for name in self.content if name.startswith(prefix)),
                          key=lambda name: name.encode())
        return None if got == expected and done.returncode == 0 else \
            f"got {got}, expected {expected}\n{done.stderr.decode()}"

    def reads(self, name, scheme="s3", **environment):
        done = self.run("get", f"{scheme}://bucket/{name}", **environment)
        return None if done.stdout == self.content[name] and done.returncode == 0 else \
            f"got {done.stdout[:80]}, expected {self.content[name][:80]}\n{done.stderr.decode()}"

    def refuses(self, arguments, status, *parts, **environment):
        done = self.run(*arguments, **environment)
        errors = done.stderr.decode()
        if done.returncode != status or not all(part in errors for part in parts):
            return f"exit status {done.returncode}, expected {status} and {parts}: {errors}"
        secrets = [self.store.keys[1], "wrong-secret", "Signature="]
        return next((f"it prints {secret}: {errors}" for secret in secrets if secret in errors), None)

    def of_both(self):
        for name in self.content:
            self.expect(f"reads {name}", self.reads(name))
        for prefix in ("", "a", "folder/", "folder/deep e", "\u00fc", "per%", "none"):
            self.expect(f"lists {prefix!r}", self.lists(prefix))
        done = self.run("get", "s3://bucket/plain.tar", "2-5")
        self.expect("reads a range", None if done.stdout == self.content["plain.tar"][2:6] else done.stderr.decode())
        self.expect("a missing object",
                    self.refuses(["get", "s3://bucket/none.tar"], 2, "there is no s3://bucket/none.tar"))
        self.expect("a wrong secret", self.refuses(
            ["get", "s3://bucket/plain.tar"], 1, "got status 403 SignatureDoesNotMatch", "with keys of the environment",
            "s3://bucket/plain.tar", AWS_SECRET_ACCESS_KEY="wrong-secret"))
        self.expect("a wrong key id", self.refuses(
            ["get", "s3://bucket/plain.tar"], 1, "got status 403 InvalidAccessKeyId", AWS_ACCESS_KEY_ID="AKIANOBODY"))
        self.expect("keys of Google's kind, by the same signatures", self.reads(
            "a b.tar", "gs", GS_ENDPOINT=self.store.endpoint, GS_ACCESS_KEY_ID=self.store.keys[0],
            GS_SECRET_ACCESS_KEY=self.store.keys[1]))

    def profile(self, folder):
        (folder / "keys").write_text("[train]\naws_access_key_id = {}\naws_secret_access_key = {}\n".format(
            *self.store.keys))
        (folder / "config").write_text(f"[profile train]\nregion = {REGION}\nservices = mine\n[services mine]\ns3 =\n"
                                       f"  endpoint_url = {self.store.endpoint}\n")
        from_files = {"AWS_PROFILE": "train", "AWS_SHARED_CREDENTIALS_FILE": str(folder / "keys"),
                      "AWS_CONFIG_FILE": str(folder / "config"), "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "",
                      "AWS_REGION": "", "AWS_ENDPOINT_URL_S3": ""}
        self.expect("keys, region and endpoint of profile files", self.reads("a b.tar", **from_files))

    def through_gates(self):
        with gate(self.store, region=REGION) as at:
            through = {"AWS_ENDPOINT_URL_S3": at.endpoint, "AWS_REGION": "us-west-2"}
            # The store signs with the host of the request, which the gate passes on.
            self.expect("reads from another region", self.reads("a b.tar", **through))
            self.expect("... at the second try", None if [s for _, s in at.requests] == [400, 0] else str(at.requests))
            self.expect("lists another region", self.lists("a", **through))
        with gate(self.store, keys=[("OLD", "x"), self.store.keys]) as at:
            through = {"AWS_ENDPOINT_URL_S3": at.endpoint, "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "",
                       "AWS_CONTAINER_CREDENTIALS_FULL_URI": at.endpoint + "/keys"}
            self.expect("renews keys that have expired", self.reads("a b.tar", **through))
            self.expect("... once", None if [s for _, s in at.requests] == [200, 403, 200, 0] else str(at.requests))
        none = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_EC2_METADATA_DISABLED": ""}
        with gate(self.store, keys=[self.store.keys]) as at:
            self.expect("keys of an instance", self.reads(
                "a b.tar", AWS_EC2_METADATA_SERVICE_ENDPOINT=at.endpoint, **none))
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            began = time.monotonic()
            self.expect("no keys at all", self.refuses(
                ["get", "s3://bucket/a b.tar"], 1, "keys for s3:// names are missing", **none,
                AWS_EC2_METADATA_SERVICE_ENDPOINT="http://127.0.0.1:%d" % silent.getsockname()[1]))
            seconds = time.monotonic() - began
            self.expect("... within seconds", None if 0.9 < seconds < 120 else f"after {seconds} s")
        with gate(self.store, keys=[("OLD", "x")]) as at:
            self.expect("keys that remain expired", self.refuses(
                ["get", "s3://bucket/a b.tar"], 1, "got status 403 ExpiredToken", "the container's agent",
                AWS_ENDPOINT_URL_S3=at.endpoint, AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="",
                AWS_CONTAINER_CREDENTIALS_FULL_URI=at.endpoint + "/keys"))
        with gate(self.store) as at:
            at.before = [(200, {}, self.content["plain.tar"])]
            self.expect("reads a public bucket", self.reads(
                "plain.tar", AWS_ENDPOINT_URL_S3=at.endpoint, AWS_NO_SIGN_REQUEST="true"))
            self.expect("... without a signature", "it is signed" if at.signed else None)
            at.before = [(503, {}, error("SlowDown", "Please reduce your request rate.")), (500, {}, b"<html>")]
            self.expect("waits for a busy store", self.reads("a b.tar", AWS_ENDPOINT_URL_S3=at.endpoint))
            at.before = [(403, {}, error("RequestTimeTooSkewed", "too large", "<ServerTime>2020-01-01T00:00:00Z"
                                                                             "</ServerTime>"))]
            self.expect("a wrong clock", self.refuses(
                ["get", "s3://bucket/a b.tar"], 1, "RequestTimeTooSkewed", "seconds ahead of the server's",
                "Set this machine's clock", AWS_ENDPOINT_URL_S3=at.endpoint))


def check_store(report, program, name, opened, names, folder):
    try:
        with opened as store:
            content = {one: f"the bytes of {one}".encode() for one in names}
            for one, data in content.items():
                store.put("bucket", one, data)
            checks = Checks(report, program, name, store, content)
            checks.of_both()
            checks.profile(folder)
            checks.through_gates()
            if store.session:
                environment = dict(zip(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
                                       store.session))
                checks.expect("keys with a session token", checks.reads("a b.tar", **environment))
                (folder / "roles").write_text(f"[profile train]\nrole_arn = {store.role}\nsource_profile = base\n"
                                              "[profile base]\naws_access_key_id = {}\naws_secret_access_key = {}\n"
                                              .format(*store.keys))
                as_role = {"AWS_PROFILE": "train", "AWS_CONFIG_FILE": str(folder / "roles"), "AWS_ACCESS_KEY_ID": "",
                           "AWS_SECRET_ACCESS_KEY": "", "AWS_ENDPOINT_URL_STS": store.endpoint}
                checks.expect("keys of a role that a profile assumes", checks.reads("a b.tar", **as_role))
                (folder / "roles").write_text((folder / "roles").read_text().replace(store.keys[1], "wrong-secret"))
                checks.expect("... with a wrong secret", checks.refuses(
                    ["get", "s3://bucket/plain.tar"], 1,
                    'the profile "train" returned no access keys: STS answered status 403', **as_role))
                environment["AWS_SESSION_TOKEN"] = "of another session"
                checks.expect("... which is signed", checks.refuses(
                    ["get", "s3://bucket/plain.tar"], 1, "got status 4", **environment))
            checks.expect("a missing bucket", checks.refuses(
                ["list", "s3://none-such/"], 1, "got status 404 NoSuchBucket", "s3://none-such/"))
    except Unavailable as reason:
        report.skip(name, str(reason))


def main():
    report = Report()
    if missing := missing_header():
        report.skip("object stores", missing)
        return report.close()
    program = built("store_subject")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        check_store(report, program, "moto", moto(), NAMES + KEYS, folder)
        check_store(report, program, "rclone", rclone(folder / "served"), NAMES, folder)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
