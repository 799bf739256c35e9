# A server before another one that speaks S3: it refuses what is signed for another region, or with keys that have
# expired, as Amazon does, gives keys as a container's agent does, and passes on all else.
#
#   with gate(store, region="eu-central-1") as at: at.endpoint, at.asked, at.signed
import contextlib
import datetime
import http.client
import http.server
import json
import re
import threading
import urllib.parse

SCOPE = re.compile(r"Credential=([^/]+)/\d+/([^/]+)/")


def error(code, message, more=""):
    return f"<Error><Code>{code}</Code><Message>{message}</Message>{more}</Error>".encode()


class Gate:
    """What it has been asked, and what it does."""

    def __init__(self, store, region, keys):
        self.store, self.region, self.keys = store, region, list(keys)
        self.asked, self.endpoint, self.before = [], "", []
        self.signed = 0   # so many of them had a signature

    def answer(self, handler):
        """(status, headers, body), or None: the store behind answers."""
        if handler.path == "/keys":
            key, secret = self.keys.pop(0) if len(self.keys) > 1 else self.keys[0]
            expires = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
            return 200, {}, json.dumps({"AccessKeyId": key, "SecretAccessKey": secret,
                                        "Expiration": expires.strftime("%Y-%m-%dT%H:%M:%SZ")}).encode()
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


@contextlib.contextmanager
def gate(store, region="", keys=()):
    g = Gate(store, region, keys)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            made = g.answer(self)
            g.asked.append((self.path, made[0] if made else 0))
            if made is None:
                behind = http.client.HTTPConnection(urllib.parse.urlsplit(store.endpoint).netloc, timeout=30)
                behind.putrequest("GET", self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    behind.putheader(name, value)
                behind.endheaders()
                got = behind.getresponse()
                made = got.status, {}, got.read()
            status, headers, body = made
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
