# A web server that misbehaves on command. The first part of a path says how, the rest is a file of its folder:
#
#   /ok/s-0.tar              the correct answer
#   /cut=5000/s-0.tar        the connection is closed 5,000 bytes into each answer that has more
#   /busy=503:2/s-0.tar      the first two requests for the file are answered 503, later ones correctly
#   /any=17/s-0.tar          some requests, selected by the seed 17 and their number, get one of HEALABLE
#
# Each request runs on its own thread. `request_counts` counts requests by path. `spans` has the time of each request,
# the time of its answer, which begins `delay_s` later, and its path.
#
# bad_front() is a proxy that corrupts the answers of another server on command, to test the answers and signatures of
# real servers. `folder` has the same files as the other server, with equal last parts of their paths.
#
#   with bad_front(folder, endpoint) as front: front.url, front.mood = "any=17"
import contextlib
import gzip
import hashlib
import http.client
import http.server
import pathlib
import random
import re
import socket
import struct
import threading
import time
import urllib.parse

# A reader must survive these.
HEALABLE = ["cut=1000", "cut=0", "reset=3000", "stall=2000", "drip=100", "busy=503", "busy=500", "busy=429", "busy=408",
            "shifted", "elsewhere", "lying=700", "short=700", "gzip", "close", "late=0.1", "whole", "whole_range",
            "chunked", "chunked_cut", "nothing", "garbage", "too_much", "no_range", "half", "interim"]

# A reader may fail on these, with a located error.
FATAL = ["replaced=0", "gone=0", "login=secret", "to=ftp", "busy=403"]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        began = time.monotonic()
        if self.server.delay_s:
            time.sleep(self.server.delay_s)
        with self.server.lock:
            self.server.spans.append((began, time.monotonic(), self.path))
        self.answer_request()

    def answer_request(self):
        server = self.server
        _, how, name = urllib.parse.unquote(self.path.partition("?")[0]).split("/", 2)
        with server.lock:
            number = server.request_counts[self.path] = server.request_counts.get(self.path, 0) + 1
            server.requests.append((self.path, dict(self.headers)))
        if how.startswith("any="):
            draw = random.Random(f"{how} {number} {self.headers.get('Range')}")
            how = draw.choice(HEALABLE) if draw.random() < 0.35 else "ok"
        if how.startswith("worse="):   # some of them cannot be healed
            draw = random.Random(f"{how} {number} {self.headers.get('Range')}")
            share = draw.random()
            how = draw.choice(FATAL) if share < 0.02 else draw.choice(HEALABLE) if share < 0.35 else "ok"
        kind, _, argument = how.partition("=")
        argument, _, first = argument.partition(":")
        if first and number > int(first):
            kind = "ok"
        path = pathlib.Path(server.folder) / name
        if not path.is_file() or kind == "missing":
            return self.refuse(404, b"no such file", {})
        self.data = path.read_bytes()
        self.etag = '"' + hashlib.md5(self.data).hexdigest() + '"'
        if kind == "replaced" and number > int(argument):
            self.data = bytes(255 - b for b in self.data)
            self.etag = '"another"'
        if kind == "gone" and number > int(argument):
            return self.refuse(404, b"", {})
        if kind == "no_etag":
            self.etag = None
        getattr(self, "answer_" + kind, self.answer_ok)(argument)

    def refuse(self, status, body, headers):
        self.send_response(status)
        for header, value in ({"Content-Length": len(body), "Content-Type": "text/plain"} | headers).items():
            self.send_header(header, str(value))
        self.end_headers()
        self.wfile.write(body)

    def range(self):
        requested = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if not requested:
            return None
        first, end = int(requested[1]), min(int(requested[2]) + 1, len(self.data))
        return None if first >= end else (first, end)

    def head(self, status, length, content_range=None, **headers):
        """Checks the conditions of the request, then sends a head. Returns whether a body may follow."""
        if self.etag and self.headers.get("If-Match", self.etag) != self.etag:
            self.refuse(412, b"", {})
            return False
        self.send_response(status)
        if length is not None:
            self.send_header("Content-Length", str(length))
        if content_range:
            self.send_header("Content-Range", content_range)
        if self.etag:
            self.send_header("ETag", self.etag)
        for header, value in headers.items():
            self.send_header(header.replace("_", "-"), value)
        self.end_headers()
        return True

    def answer(self, length=None, move=0, status=206, **headers):
        """Sends the correct head, or a slightly wrong one. Returns its body."""
        limits = self.range()
        if not limits:
            self.head(416, 0, f"bytes */{len(self.data)}")
            return b""
        first, end = limits
        content_range = f"bytes {first + move}-{end - 1 + move}/{len(self.data) + move}"
        ok = self.head(status, end - first if length is None else length, content_range, **headers)
        return self.data[first:end] if ok else b""

    def break_off(self, reset=False):
        if reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.wfile.flush()
            if not reset:
                self.connection.shutdown(socket.SHUT_RDWR)

    def answer_ok(self, _):
        self.wfile.write(self.answer())

    def answer_cut(self, argument):
        body = self.answer()
        self.wfile.write(body[:int(argument)])
        if len(body) > int(argument):
            self.break_off()

    def answer_reset(self, argument):
        body = self.answer()
        self.wfile.write(body[:int(argument)])
        self.break_off(reset=True)

    def answer_stall(self, argument):
        body = self.answer()
        self.wfile.write(body[:int(argument)])
        if len(body) > int(argument):
            self.server.ended.wait(20)
            self.break_off()

    def answer_silent(self, _):
        self.server.ended.wait(20)
        self.break_off()

    def answer_drip(self, argument):
        body = self.answer()
        for at in range(0, len(body), int(argument)):
            self.wfile.write(body[at:at + int(argument)])
            if self.server.ended.wait(0.05):
                return

    def answer_late(self, argument):
        time.sleep(float(argument))
        self.answer_ok("")

    def answer_busy(self, argument):
        self.refuse(int(argument), b"try again later", {"Retry-After": "0"} if argument == "503" else {})

    def answer_away(self, argument):
        self.refuse(503, b"", {"Retry-After": argument})

    def answer_shifted(self, _):
        self.wfile.write(self.answer(move=1))

    def answer_elsewhere(self, _):
        limits = self.range()
        if not limits or limits[0] == 0:
            return self.answer_ok("")
        first, end = limits
        if self.head(206, end - first, f"bytes 0-{end - first - 1}/{len(self.data)}"):
            self.wfile.write(self.data[:end - first])

    def answer_lying(self, argument):   # declares a longer body
        limits = self.range()
        if not limits:
            return self.answer_ok("")
        self.wfile.write(self.answer(length=limits[1] - limits[0] + int(argument)))
        self.break_off()

    def answer_short(self, argument):   # declares a shorter body than Content-Range
        limits = self.range()
        if not limits:
            return self.answer_ok("")
        length = max(limits[1] - limits[0] - int(argument), 0)
        self.wfile.write(self.answer(length=length)[:length])

    def answer_half(self, _):   # a part of the range, and declares that
        limits = self.range()
        if not limits:
            return self.answer_ok("")
        first, end = limits
        end = first + max((end - first) // 2, 1)
        if self.head(206, end - first, f"bytes {first}-{end - 1}/{len(self.data)}"):
            self.wfile.write(self.data[first:end])

    def answer_gzip(self, _):
        limits = self.range()
        if not limits:
            return self.answer_ok("")
        packed = gzip.compress(self.data[limits[0]:limits[1]])
        if self.head(206, len(packed), f"bytes {limits[0]}-{limits[1] - 1}/{len(self.data)}", Content_Encoding="gzip"):
            self.wfile.write(packed)

    def answer_close(self, _):
        self.wfile.write(self.answer(Connection="close"))
        self.close_connection = True

    def answer_whole(self, _):   # the server does not support ranges
        if self.head(200, len(self.data)):
            with contextlib.suppress(OSError):
                self.wfile.write(self.data)

    def answer_whole_range(self, _):   # like rclone
        self.wfile.write(self.answer(status=200))

    def answer_chunked(self, _, cut=False):
        limits = self.range()
        if not limits:
            return self.answer_ok("")
        first, end = limits
        if not self.head(206, None, f"bytes {first}-{end - 1}/{len(self.data)}", Transfer_Encoding="chunked"):
            return
        for at in range(first, end, 5000):
            part = self.data[at:min(at + 5000, end)]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            if cut:
                return self.break_off()
        self.wfile.write(b"0\r\n\r\n")

    def answer_chunked_cut(self, argument):
        self.answer_chunked(argument, cut=True)

    def answer_nothing(self, _):
        self.break_off()

    def answer_garbage(self, _):
        self.wfile.write(b"\x00\xff nobody knows\r\n\r\n")
        self.break_off()

    def answer_too_much(self, _):   # more bytes than declared
        body = self.answer()
        self.wfile.write(body + b"and more")
        self.break_off()

    def answer_no_range(self, _):   # a part, without declaring which
        limits = self.range()
        if not limits:
            return self.answer_ok("")
        if self.head(206, limits[1] - limits[0]):
            self.wfile.write(self.data[limits[0]:limits[1]])

    def answer_interim(self, _):
        self.wfile.write(b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n")
        self.answer_ok("")

    def answer_redirect(self, argument):
        self.refuse(302, b"", {"Location": f"/{argument}/{self.path.split('/', 2)[2]}"})

    def answer_loop(self, _):
        self.refuse(307, b"", {"Location": self.path})

    def answer_to(self, argument):
        self.refuse(301, b"", {"Location": argument + "://127.0.0.1:1/x"})

    def answer_login(self, argument):
        if self.headers.get("Authorization") != argument:
            return self.refuse(401, b"who are you?", {})
        self.answer_ok("")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):   # clients may disconnect
        pass


@contextlib.contextmanager
def listening(folder, handler):
    """A server that listens until the end of the block."""
    server = Server(("127.0.0.1", 0), handler)
    server.folder, server.lock, server.request_counts, server.requests = folder, threading.Lock(), {}, []
    server.ended, server.spans, server.delay_s = threading.Event(), [], 0
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        server.shutdown()
        server.server_close()


def bad_server(folder):
    """A server of the files of a folder, for a `with` statement."""
    return listening(folder, Handler)


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
    """A server in front of an object store, until the end of the block."""
    with listening(folder, Front) as server:
        server.mood, server.upstream = "any=0", urllib.parse.urlsplit(endpoint).netloc
        yield server
