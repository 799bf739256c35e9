# A proxy that corrupts the answers of another server on command, as bad_server.py does, to test the answers and
# signatures of real servers.
#
#   with bad_front(folder, endpoint) as front: front.url, front.mood = "any=17"
#
# `folder` has the same files as the other server, with equal last parts of their paths.
import contextlib
import http.client
import pathlib
import threading
import urllib.parse

from bad_server import FATAL, HEALABLE, Handler, Server
import random


class Front(Handler):
    """Passes on the answer of the other server, or a corrupted one."""

    def answer_request(self):
        server = self.server
        with server.lock:
            number = server.request_counts[self.path] = server.request_counts.get(self.path, 0) + 1
        choice = random.Random(f"{server.mood} {self.path} {number} {self.headers.get('Range')}")
        share = choice.random()
        kinds = FATAL if share < 0.02 and server.mood.startswith("worse") else HEALABLE if share < 0.35 else ["ok"]
        kind, _, argument = choice.choice(kinds).partition("=")
        status, headers, body = self.upstream()
        path = pathlib.Path(server.folder) / urllib.parse.unquote(self.path.partition("?")[0]).lstrip("/")
        parts = path.relative_to(server.folder).parts
        files = [pathlib.Path(server.folder, *parts[i:]) for i in range(len(parts))]
        file = next((one for one in files if one.is_file()), None)
        if kind == "ok" or status not in (200, 206) or not file or "Range" not in self.headers:
            return self.pass_on(status, headers, body)
        self.data = file.read_bytes()
        self.etag = headers.get("ETag")
        if kind == "replaced":
            self.data, self.etag = bytes(255 - b for b in self.data), '"another"'
        if kind == "gone":
            return self.refuse(404, b"", {})
        return getattr(self, "answer_" + kind, self.answer_ok)(argument)

    def upstream(self):
        """The answer of the other server to the same request with the same signature."""
        connection = http.client.HTTPConnection(self.server.upstream, timeout=600)
        connection.putrequest("GET", self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        got = connection.getresponse()
        return got.status, got.headers, got.read()   # names of headers may have any case

    def pass_on(self, status, headers, body):
        self.send_response(status)
        for name in ("Content-Range", "ETag", "Last-Modified", "Content-Type", "x-amz-bucket-region"):
            if headers[name]:
                self.send_header(name, headers[name])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextlib.contextmanager
def bad_front(folder, endpoint):
    """A server that listens until the end of the block."""
    server = Server(("127.0.0.1", 0), Front)
    server.folder, server.lock, server.request_counts, server.requests = folder, threading.Lock(), {}, []
    server.ended, server.spans, server.delay_s = threading.Event(), [], 0
    server.mood, server.upstream = "any=0", urllib.parse.urlsplit(endpoint).netloc
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        server.shutdown()
        server.server_close()
