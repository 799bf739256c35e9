# Objects over http://, https://, s3:// and gs://, from a misbehaving server (bad_server.py), nginx, moto and rclone.
#
#   python3 tests/system/remote/web.py            # each misbehavior alone, 12 seeded mixtures, runs, nginx
#   python3 tests/system/remote/web.py --long     # 200 mixtures
#   python3 tests/system/remote/web.py --seed 17  # that mixture alone
#
# Each read must return equal bytes, or one located error for a permanent fault. It must never hang.
# Skipped if libcurl, libcrypto, nginx or openssl is missing, or if pip cannot install a server.
import argparse
import contextlib
import io
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from bad_server import HEALABLE, bad_server
from checks import Report
from object_stores import error, gate
from stores import REGION, Unavailable, built, free_port, missing_header, moto, rclone, running

LIMIT_S = 900         # only guards against hangs
ALL_WAYS = "spwrjt"   # the letters of web_subject.cpp


class Subject:
    """Runs web_subject."""

    def __init__(self, program):
        self.program, self.variables, self.globbed = program, None, False

    def start(self, *arguments, **variables):
        clean = self.variables or {
            name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        return subprocess.Popen([str(part) for part in (self.program, *arguments)], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True,
                                env=clean | {name: str(v) for name, v in variables.items()})

    def __call__(self, *arguments, **variables):
        with self.start(*arguments, **variables) as process:
            try:
                done = subprocess.CompletedProcess(arguments, 0, *process.communicate(timeout=LIMIT_S))
                done.returncode = process.returncode
            except subprocess.TimeoutExpired:
                process.kill()
                done = subprocess.CompletedProcess(arguments, -1, "", f"still running after {LIMIT_S} s")
        return done

    def problem_of_reading(self, url, file, ways=ALL_WAYS, **variables):
        done = self("read", url, file, ways, **variables)
        return None if done.stdout == "equal\n" and done.returncode == 0 else f"{done.stdout}{done.stderr}"

    def problem_of_refusing(self, url, file, *words, status=1, ways="s", **variables):
        done = self("read", url, file, ways, **variables)
        missing = [word for word in words if word not in done.stderr]
        if done.returncode == status and not missing:
            return None
        return f"exit status {done.returncode}, without {missing}: {done.stdout}{done.stderr}"


def add_sample(tar, key, fields):
    for field, data in fields.items():
        member = tarfile.TarInfo(f"{key}.{field}")
        member.size = len(data)
        tar.addfile(member, io.BytesIO(data))


def write_shards(folder):
    """Shards of different lengths, with large first samples."""
    draw = random.Random(1)
    for shard, count in enumerate((40, 1, 90, 80)):
        with tarfile.open(folder / f"s-{shard}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
            for i in range(count):
                add_sample(tar, f"k{shard}-{i}", {"cls": str(shard * 100 + i).encode(),
                                                  "bin": draw.randbytes(draw.randrange(9000))})
    (folder / "big.bin").write_bytes(draw.randbytes(1_500_000))
    (folder / "small.bin").write_bytes(draw.randbytes(700))
    (folder / "empty.bin").write_bytes(b"")


def check_each(report, subject, folder, server):
    """Each fault alone, for the first three requests. Later answers are correct."""
    big = folder / "big.bin"
    for kind in ("ok", *HEALABLE):
        first = kind if "=" in kind else kind + "="
        report.add(f"survives {kind}", subject.problem_of_reading(f"{server.url}/{first}:3/big.bin", big, "sr"))
    for kind in ("ok", "no_etag", "close", "chunked", "whole_range", "late=0.02", "interim", "half", "redirect=ok"):
        report.add(f"accepts {kind}", subject.problem_of_reading(f"{server.url}/{kind}/big.bin", big))
    report.add("the complete object instead of each range",
               subject.problem_of_reading(f"{server.url}/whole/big.bin", big, "s"))
    for name in ("small.bin", "empty.bin"):
        report.add(name, subject.problem_of_reading(f"{server.url}/ok/{name}", folder / name))
    report.add("a space in a name", subject.problem_of_reading(f"{server.url}/ok/a b.bin", folder / "a b.bin"))
    report.add("a redirect is followed once", None if sum(
        path.startswith("/redirect") and path.endswith("big.bin") for path, _ in server.requests) <= len(ALL_WAYS) + 12
        else str(server.request_counts))


def check_refusals(report, subject, folder, server):
    """A permanent fault is one error that describes the server's answer."""
    big = folder / "big.bin"
    url = server.url
    for kind, *words in (
            ("replaced=2", "the object was replaced while it was being read", "/replaced=2/big.bin", "stage remote"),
            ("gone=2", "the object was replaced while it was being read: the server no longer has it"),
            ("busy=503", "the server answered 503 (try again later) (12 attempts in "),
            ("gzip", "the server compressed the bytes (gzip) (12 attempts"),
            ("shifted", "12 attempts"),
            ("cut=0", "the connection broke off after 0 bytes"),
            ("no_range", "the server does not report which range it sent"),
            ("loop", "the server redirects more than 5 times"),
            ("to=ftp", "the server redirects to ftp://127.0.0.1:1/x"),
            ("away=3600", "the server answered 503", "1 attempt"),
            ("login=secret", "got status 401 (who are you?)", "remote_options::headers")):
        # On a busy machine, timeouts of slow answers would consume the correct answers at the beginning.
        report.add(f"refuses {kind}", subject.problem_of_refusing(f"{url}/{kind}/big.bin", big, *words, WEB_STALL=20))
    for kind in ("stall=2000", "silent", "drip=100"):
        report.add(f"refuses {kind}", subject.problem_of_refusing(
            f"{url}/{kind}/big.bin", big, "less than 10000 bytes a second for 0.4 s", WEB_STALL=0.4, WEB_BUDGET=2))
    report.add("a missing object", subject.problem_of_refusing(f"{url}/ok/none.bin", big, "there is no", status=2))
    report.add("a closed port", subject.problem_of_refusing(
        f"http://127.0.0.1:{free_port()}/x", big, "cannot read the object", "4 attempts"))
    report.add("no such host", subject.problem_of_refusing(
        "http://no-such-host.invalid/x", big, "cannot read the object"))
    report.add("another kind of name", subject.problem_of_refusing("ftp://x/y", big, "expected http://, https://"))
    secret = f"http://user:hush@{url[7:]}/busy=403/big.bin?token=hush"
    done = subject("read", secret, big, "s")
    report.add("secrets are not printed", None if "403" in done.stderr and "hush" not in done.stderr else done.stderr)
    report.add("user-defined headers", subject.problem_of_reading(
        f"{url}/login=Bearer/big.bin", big, "s", WEB_HEADER="Authorization: Bearer"))


def check_mixture(report, subject, folder, server, seed):
    ways = "".join(random.Random(seed).sample(ALL_WAYS, 3))
    report.add(f"mixture {seed}: {ways}", subject.problem_of_reading(
        f"{server.url}/any={seed}/big.bin", folder / "big.bin", ways, MILLRACE_TEST_SEED=seed,
        WEB_PARTS=random.Random(seed).choice((65536, 131072, 1048576))))


def check_runs(report, subject, folder, urls, quick):
    """The digest of a run equals that of the local folder."""
    def digest(at, *arguments):
        pattern = "s-*.tar" if subject.globbed else "s-{0..3}.tar"
        done = subject("digest", f"{at}{pattern}", *arguments)
        return done.stdout if done.returncode == 0 else done.stderr
    for threads, rank, size, *resumed in ((0, 0, 1), (1, 0, 1), (4, 0, 1), (4, 0, 1, 7), (4, 0, 2), (4, 1, 2, 3),
                                          (2, 3, 4), (2, 3, 4, 3)):
        if quick and (threads, rank, size, *resumed) not in ((0, 0, 1), (4, 0, 1, 7), (2, 3, 4)):
            continue
        # The digest depends on the rank and on the resume point.
        expected = digest(f"{folder}/", 2, rank, size, *(resumed if size > 1 else ()))
        for name, url in urls.items():
            got = digest(url, threads, rank, size, *resumed)
            report.add(f"run over {name}: {threads} threads, rank {rank} of {size}, resumed at {resumed or 'none'}",
                       None if got == expected and "digest" in got else f"got {got}, expected {expected}")


def check_cache(report, subject, folder, server, work):
    """With a cache, the second run only checks that the shards are unchanged."""
    expected = subject("digest", f"{folder}/s-{{0..3}}.tar", 2, 0, 1).stdout
    for how in ("ok", "any=9"):
        place = work / how
        for again in (False, True):
            with server.lock:
                server.requests.clear()
            done = subject("digest", f"{server.url}/{how}/s-{{0..3}}.tar", 2, 0, 1, WEB_CACHE=place)
            report.add(f"cache, {how}: {'again' if again else 'at first'}",
                       None if done.stdout == expected and expected else done.stdout + done.stderr)
        read = [headers for path, headers in server.requests
                if path.endswith(".tar") and headers.get("Range") != "bytes=0-0"]
        report.add(f"cache, {how}: nothing is read again", None if not read else str(read))


@contextlib.contextmanager
def nginx(folder, work):
    """nginx, without and with TLS."""
    if not shutil.which("nginx") or not shutil.which("openssl"):
        raise Unavailable("nginx or openssl is not installed: apt-get install nginx-light openssl")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", work / "key.pem", "-out",
                    work / "cert.pem", "-days", "2", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost"], check=True, capture_output=True)
    plain, tls = free_port(), free_port()
    paths = "".join(f"{kind}_temp_path {work}/{kind};\n"
                    for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (work / "nginx.conf").write_text(f"""
worker_processes 1; pid {work}/pid; error_log {work}/errors; daemon off; {"user root;" if os.getuid() == 0 else ""}
events {{ worker_connections 256; }}
http {{ access_log off; {paths} root {folder};
  server {{ listen 127.0.0.1:{plain}; }}
  server {{ listen 127.0.0.1:{tls} ssl http2; ssl_certificate {work}/cert.pem; ssl_certificate_key {work}/key.pem; }} }}
""")
    with running([shutil.which("nginx"), "-c", work / "nginx.conf", "-p", work], tls):
        yield f"http://127.0.0.1:{plain}/", f"https://localhost:{tls}/", work / "cert.pem"


def check_nginx(report, subject, folder, work, quick):
    with nginx(folder, work) as (plain, tls, certificate):
        big = folder / "big.bin"
        report.add("nginx", subject.problem_of_reading(plain + "big.bin", big))
        report.add("nginx: TLS", subject.problem_of_reading(tls + "big.bin", big, WEB_CA=certificate))
        report.add("nginx: TLS, HTTP/2", subject.problem_of_reading(
            tls + "big.bin", big, WEB_CA=certificate, WEB_HTTP2=1))
        report.add("nginx: an untrusted certificate", subject.problem_of_refusing(
            tls + "big.bin", big, "certificate", "1 attempt"))
        report.add("nginx: a certificate for another name", subject.problem_of_refusing(
            tls.replace("localhost", "127.0.0.1") + "big.bin", big, "1 attempt", WEB_CA=certificate))
        check_runs(report, subject, folder, {"nginx": plain}, quick)


def check_store(report, subject, folder, name, opened, quick):
    """Reads and runs over s3:// and gs:// names."""
    try:
        with opened as store:
            for file in folder.iterdir():
                store.put("bucket", file.name, file.read_bytes())
            subject.variables = store.environment()
            big = folder / "big.bin"
            report.add(f"{name}: reads", subject.problem_of_reading("s3://bucket/big.bin", big))
            report.add(f"{name}: reads gs://", subject.problem_of_reading(
                "gs://bucket/big.bin", big, "s", WEB_GS=store.endpoint, GS_ACCESS_KEY_ID=store.keys[0],
                GS_SECRET_ACCESS_KEY=store.keys[1]))
            for one in ("small.bin", "empty.bin", "a b.bin"):
                report.add(f"{name}: {one}", subject.problem_of_reading(f"s3://bucket/{one}", folder / one, "s"))
            report.add(f"{name}: none", subject.problem_of_refusing(
                "s3://bucket/none.bin", big, "there is no", status=2))
            report.add(f"{name}: a wrong secret", subject.problem_of_refusing(
                "s3://bucket/big.bin", big, "got status 403 SignatureDoesNotMatch",
                AWS_SECRET_ACCESS_KEY="wrong-secret"))
            with gate(store, region=REGION) as at:
                at.before = [(503, {}, error("SlowDown", "Please reduce your request rate."))]
                report.add(f"{name}: another region, and busy", subject.problem_of_reading(
                    "s3://bucket/big.bin", big, "sr", AWS_ENDPOINT_URL_S3=at.endpoint, AWS_REGION="us-west-2"))
            with gate(store, keys=[("OLD", "x"), store.keys]) as at:
                report.add(f"{name}: keys that have expired are renewed", subject.problem_of_reading(
                    "s3://bucket/big.bin", big, "w", AWS_ENDPOINT_URL_S3=at.endpoint, AWS_ACCESS_KEY_ID="",
                    AWS_SECRET_ACCESS_KEY="", AWS_CONTAINER_CREDENTIALS_FULL_URI=at.endpoint + "/keys"))
            # The agent returns the old keys twice: the new ones arrive two seconds late.
            with gate(store, keys=[("OLD", "x"), ("OLD", "x"), ("OLD", "x"), store.keys]) as at:
                report.add(f"{name}: keys that are renewed late", subject.problem_of_reading(
                    "s3://bucket/big.bin", big, "w", AWS_ENDPOINT_URL_S3=at.endpoint, AWS_ACCESS_KEY_ID="",
                    AWS_SECRET_ACCESS_KEY="", AWS_CONTAINER_CREDENTIALS_FULL_URI=at.endpoint + "/keys"))
            subject.globbed = True
            check_runs(report, subject, folder, {name: "s3://bucket/"}, quick)
    except Unavailable as reason:
        report.skip(name, str(reason))
    finally:
        subject.variables, subject.globbed = None, False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    report = Report()
    if missing := missing_header():
        report.skip("remote objects", missing)
        return report.close()
    subject = Subject(built("web_subject"))
    with tempfile.TemporaryDirectory() as folder:
        work, folder = pathlib.Path(folder) / "work", pathlib.Path(folder) / "served"
        for one in (work, folder):
            one.mkdir()
        os.chmod(folder.parent, 0o755)
        write_shards(folder)
        (folder / "a b.bin").write_bytes(b"blank")
        with bad_server(folder) as server:
            if options.seed is not None:
                check_mixture(report, subject, folder, server, options.seed)
                return report.close()
            check_each(report, subject, folder, server)
            check_refusals(report, subject, folder, server)
            for seed in range(200 if options.long else 12):
                check_mixture(report, subject, folder, server, seed)
            urls = {"a good server": f"{server.url}/ok/", "a bad one": f"{server.url}/any=5/"}
            check_runs(report, subject, folder, urls, not options.long)
            check_cache(report, subject, folder, server, work)
        check_store(report, subject, folder, "moto", moto(), not options.long)
        check_store(report, subject, folder, "rclone", rclone(work / "rclone"), not options.long)
        try:
            check_nginx(report, subject, folder, work, not options.long)
        except Unavailable as reason:
            report.skip("nginx", str(reason))
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
