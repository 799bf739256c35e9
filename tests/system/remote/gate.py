# A proxy of a server that implements S3. Like Amazon, it refuses requests that are signed for another region or with
# expired keys. It returns keys like a container's agent and an instance, and passes on all other requests.
#
#   with gate(store, region="eu-central-1") as at: at.endpoint, at.requests, at.signed
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
