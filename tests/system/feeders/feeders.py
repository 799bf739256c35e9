# One trainer and feeders on the loopback interface. Feeders are killed, stopped and slow, and answers are damaged: the
# batches, their order and their resume points are those of a trainer without feeders.
#
#   python3 tests/system/feeders/feeders.py               # 1,000 batches, 50 resumed runs, rates
#   python3 tests/system/feeders/feeders.py --quick       # 300 batches, 5 resumed runs
#
# Answers of three hosts pass through a proxy that flips bits, changes lengths, cuts and resets connections, and answers
# 503 or 429. One host is a feeder of another seed, and one is an old server.
# Skipped if libcurl, libcrypto or libmicrohttpd is missing.
import argparse
import contextlib
import http.server
import os
import pathlib
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import ROOT, Report, linked_program

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = ROOT / "build" / "feeders"
LIMIT_SECONDS = 600   # only guards against hangs


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def is_missing(header):
    done = subprocess.run(["g++", "-E", "-x", "c++", "-"], input=f"#include <{header}>\n", text=True,
                          capture_output=True)
    return done.returncode != 0


class Feeder:
    """A feeder process that starts again after it was killed."""

    def __init__(self, program, sleep_us, threads=2, seed=7):
        self.port, self.kills = free_port(), 0
        self.command = [program, "feed", f"127.0.0.1:{self.port}", "--threads", str(threads)]
        self.environment = os.environ | {"FEEDERS_SLEEP_US": str(sleep_us), "FEEDERS_SEED": str(seed)}
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, env=self.environment, stderr=subprocess.DEVNULL)

    def wait_until_listening(self):
        limit = time.monotonic() + 60
        while time.monotonic() < limit:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.02)
        raise SystemExit("a feeder does not listen")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.kills += 1
        self.start()

    def close(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()


class Proxy:
    """Passes connections on to a feeder, and damages some answers."""

    def __init__(self, port, seed):
        self.target, self.random, self.damaged = port, random.Random(seed), 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=[client], daemon=True).start()

    def serve(self, client):
        with contextlib.suppress(OSError), client, socket.create_connection(("127.0.0.1", self.target)) as feeder:
            while data := client.recv(65536):
                feeder.sendall(data)
                if not self.answer(client, feeder, b"/rows/" in data):
                    return

    def answer(self, client, feeder, has_rows):
        head = b""
        while b"\r\n\r\n" not in head:
            more = feeder.recv(65536)
            if not more:
                return False
            head += more
        head, _, body = head.partition(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", head, re.IGNORECASE)[1])
        while len(body) < length:
            more = feeder.recv(65536)
            if not more:
                return False
            body += more
        kind = self.random.choice(("bit", "length", "cut", "reset", "503", "429", "slow")) if (
            has_rows and b" 200 " in head and self.random.random() < 0.2) else ""
        self.damaged += kind != ""
        if kind == "bit":
            at = self.random.randrange(len(body))
            body = body[:at] + bytes([body[at] ^ 1 << self.random.randrange(8)]) + body[at + 1:]
        elif kind == "length":
            body = body[:1] + struct.pack("<I", self.random.randrange(2**32)) + body[5:]
        elif kind == "cut":
            client.sendall(head + b"\r\n\r\n" + body[:len(body) // 2])
            return False
        elif kind == "reset":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        elif kind in ("503", "429"):
            head, body = f"HTTP/1.1 {kind} no\r\nContent-Length: 0".encode(), b""
        elif kind == "slow":
            time.sleep(0.2)
        client.sendall(head + b"\r\n\r\n" + body)
        return True


class NoFeeder(http.server.BaseHTTPRequestHandler):
    """An old server that knows another protocol."""

    def do_GET(self):
        self.send_response(409)
        body = b"protocol=0\nlibrary=millrace 0.0.1\n"
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def train(program, hosts=(), sleep_us=1000, seconds=LIMIT_SECONDS, **options):
    """(lines of batches, messages)"""
    arguments = [str(part) for name, value in options.items() for part in (f"--{name}", value)]
    done = subprocess.run([program, "train", "--hosts", ",".join(hosts), *arguments], capture_output=True, text=True,
                          timeout=seconds, env=os.environ | {"FEEDERS_SLEEP_US": str(sleep_us)})
    if done.returncode != 0:
        raise SystemExit(f"the trainer failed: {done.stderr}")
    return done.stdout.splitlines(), done.stderr


def host(port):
    return f"127.0.0.1:{port}"


def rows_of_feeders(messages):
    count = re.search(r"count (\d+) rows from the row storage$", messages, re.MULTILINE)
    return int(count[1]) if count else 0


def torment(feeders, ends):
    """Kills a feeder each second, and stops another one for 0.3 s."""
    rounds = 0
    while not ends.wait(0.7):
        feeders[rounds % len(feeders)].kill()
        other = feeders[(rounds + 1) % len(feeders)].process
        other.send_signal(signal.SIGSTOP)
        ends.wait(0.3)
        other.send_signal(signal.SIGCONT)
        rounds += 1


def check_hostile(report, program, expected, batches):
    with contextlib.ExitStack() as stack:
        feeders = [Feeder(program, 1000) for _ in range(3)]
        other_seed = Feeder(program, 1000, seed=8)
        for f in (*feeders, other_seed):
            stack.callback(f.close)
            f.wait_until_listening()
        proxies = [Proxy(f.port, 5 + n) for n, f in enumerate(feeders)]
        old = http.server.ThreadingHTTPServer(("127.0.0.1", 0), NoFeeder)
        threading.Thread(target=old.serve_forever, daemon=True).start()
        stack.callback(old.shutdown)
        ends = threading.Event()
        killer = threading.Thread(target=torment, args=[feeders, ends])
        killer.start()
        try:
            hosts = [*(host(f.port) for f in feeders[1:]), *(host(p.port) for p in proxies), host(other_seed.port),
                     host(old.server_address[1])]
            got, messages = train(program, hosts, batches=batches, sleep_us=4000)
        finally:
            ends.set()
            killer.join()
        kills, damaged = sum(f.kills for f in feeders), sum(p.damaged for p in proxies)
        print(f"{kills} kills, {damaged} damaged answers, {rows_of_feeders(messages)} rows of feeders")
        report.add("the same batches with hostile feeders", None if got == expected else messages)
        report.add("feeders computed rows", None if rows_of_feeders(messages) > 0 else messages)
        report.add("feeders were killed and answers damaged", None if kills > 0 and damaged > 0 else messages)
        report.add("a feeder of another seed is refused with both texts", None if (
            'seed=8' in messages and 'seed=7' in messages) else messages)
        report.add("an old server is refused", None if "refuses the run" in messages else messages)


def check_resumed(report, program, expected, count):
    choose = random.Random(11)
    feeders = [Feeder(program, 200) for _ in range(3)]
    try:
        for f in feeders:
            f.wait_until_listening()
        problem = None
        for _ in range(count):
            after = choose.randrange(1, len(expected) - 1)
            resume = expected[after - 1].split(" ", 3)[3]
            hosts = [host(f.port) for f in feeders[:choose.randrange(4)]]
            rest = min(len(expected) - after, 40)
            got, messages = train(program, hosts, batches=rest, sleep_us=200, resume=resume,
                                  threads=choose.randrange(4))
            if got != expected[after:after + rest]:
                problem = f"resumed after batch {after} with {len(hosts)} feeders: {messages}"
        report.add(f"{count} runs resume at random batches with another number of feeders", problem)
    finally:
        for f in feeders:
            f.close()


def rate(messages):
    return float(re.search(r"rows_per_second=([\d.]+)", messages)[1])


def check_rate(report, program):
    """A callable that sleeps 10 ms needs no core."""
    alone = rate(train(program, batches=60, sleep_us=10_000)[1])
    feeders = [Feeder(program, 10_000, threads=4) for _ in range(3)]
    try:
        for f in feeders:
            f.wait_until_listening()
        together = rate(train(program, [host(f.port) for f in feeders], batches=300, sleep_us=10_000)[1])
    finally:
        for f in feeders:
            f.close()
    total = alone + 3 * 4 * 100
    print(f"2 local workers: {alone:.0f} rows/s; with 3 feeders of 4 workers: {together:.0f}; sum: {total:.0f}; "
          f"{together / total:.2f} of it")
    report.add("rate at least 0.85 of the sum", None if together >= 0.85 * total else f"{together} of {total}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="fewer batches and resumed runs, no rates")
    options = parser.parse_args()
    report = Report()
    missing = [header for header in ("curl/curl.h", "openssl/evp.h", "microhttpd.h") if is_missing(header)]
    if missing:
        report.skip("feeders", f"{', '.join(missing)} not found: apt-get install libcurl4-openssl-dev "
                               "libssl-dev libmicrohttpd-dev")
        return report.close()
    FOLDER.mkdir(parents=True, exist_ok=True)
    compiled = ROOT / "include" / "millrace" / "compiled"
    program = linked_program(FOLDER / "feeders_subject", [HERE / "feeders_subject.cpp", compiled / "remote.cpp",
                                                          compiled / "stores.cpp"],
                             libraries=["-lcurl", "-lcrypto", "-lmicrohttpd"])
    batches = 300 if options.quick else 1000
    expected, _ = train(program, batches=batches, sleep_us=100)
    report.add("a run without feeders", None if len(expected) == batches else f"{len(expected)} batches")
    check_hostile(report, program, expected, batches)
    check_resumed(report, program, expected, 5 if options.quick else 50)
    if not options.quick:
        check_rate(report, program)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
