# The requests of a start: the first batch of 1,281 shards that a brace pattern names, from an s3:// server that counts
# requests.
#
#   python3 tests/system/remote/first_batch.py
#
# With a set index: at most 15 requests in 3 round trips if the batch needs few lanes. With one index per shard: one
# request for each, 64 of them in flight. A round trip is a request that begins after the end of another one.
import pathlib
import random
import sys
import tarfile
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from bad_server import bad_server
from checks import Report
from stores import Store, built, missing_header
from web import Subject, add_sample

SHARDS = 1281
PATTERN = f"train-{{0000..{SHARDS - 1}}}.tar"
# Delays of each answer, so that requests of one round trip begin before any of them ends. On a busy machine, a late
# request counts as an additional round trip. Then the next delay is tried.
DELAYS_S = (2, 8, 32)
FLIGHT_DELAYS_S = (0.2, 0.8, 3.2)


def write_shards(folder):
    draw = random.Random(3)
    for shard in range(SHARDS):
        with tarfile.open(folder / f"train-{shard:04}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
            for i in range(70):
                add_sample(tar, f"k{shard}-{i}", {"cls": str(i).encode(), "bin": draw.randbytes(200)})


def round_trips(spans):
    """The longest chain of requests that each began after the end of the previous one."""
    ended, longest = [], 0   # (end, length of the chain up to it)
    for begin, end, _ in sorted(spans):
        length = 1 + max((one for over, one in ended if over <= begin), default=0)
        ended.append((end, length))
        longest = max(longest, length)
    return longest


def at_once(spans):
    changes = sorted([(begin, 1) for begin, _, _ in spans] + [(end, -1) for _, end, _ in spans])
    now = most = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most


class Start:
    """A start with the server, and its requests."""

    def __init__(self, subject, server, *arguments, delay_s):
        with server.lock:
            server.spans.clear()
            server.delay_s = delay_s
        self.done = subject(*arguments, WEB_REQUESTS=64, WEB_HEDGE=0, WEB_STALL=300)
        with server.lock:
            server.delay_s = 0
            self.spans = list(server.spans)

    def count(self, ending):
        return sum(path.endswith(ending) for _, _, path in self.spans)

    def problem(self, expected, max_requests, max_trips):
        requests = f"{len(self.spans)} requests in {round_trips(self.spans)} round trips"
        print(f"        {requests}", flush=True)
        if self.done.returncode != 0 or self.done.stdout != expected:
            return f"got {self.done.stdout}{self.done.stderr}, expected {expected}"
        good = len(self.spans) <= max_requests and round_trips(self.spans) <= max_trips
        return None if good else f"{requests}, expected {max_requests} in {max_trips}"


def check_starts(report, subject, folder, server):
    remote, local = f"s3://good/{PATTERN}", str(folder / PATTERN)
    # Lanes, window, limit of requests: a batch of few shards, and the default lanes, each of which begins in another
    # shard. One set index, and two requests for each shard.
    starts = ((1, 1, 15), (4, 64, 15), (48, 256, 1 + 2 * (48 + 4)))
    expected = {lanes: subject("begin", local, lanes, window).stdout for lanes, window, _ in starts}
    report.add("local runs", None if all("256 samples" in output for output in expected.values()) else str(expected))
    # The local runs have built the indexes. Without a set index:
    for delay_s in FLIGHT_DELAYS_S:
        begun = Start(subject, server, "begin", remote, 1, 1, delay_s=delay_s)
        at_start = [span for span in begun.spans if span[2].endswith(".tar.millrace-index")]
        if at_once(at_start) >= 48:
            break
    report.add("one index per shard: the first batch", None if begun.done.stdout == expected[1] else begun.done.stderr)
    shards = {path for _, _, path in at_start}
    again = len(at_start) - SHARDS   # the indexes of the first shards, of which only the heads were read before
    report.add("one index per shard: one request for each", None if len(shards) == SHARDS and 0 < again <= 8 and
               begun.count("set.millrace-index") == 1 and begun.count(".tar") <= 8 else
               f"{len(shards)} shards, {again} twice, {begun.count('.tar')} for shards")
    most = at_once(at_start)
    print(f"        {most} in flight", flush=True)
    report.add("one index per shard: 64 in flight", None if 48 <= most <= 64 else f"{most}")
    written = subject("set", remote, folder / "set.millrace-index", WEB_REQUESTS=64, WEB_HEDGE=0, WEB_STALL=300)
    report.add("the set index", None if written.stdout == f"{SHARDS} shards\n" else written.stderr)
    for lanes, window, most in starts:
        for delay_s in DELAYS_S:
            problem = Start(subject, server, "begin", remote, lanes, window, delay_s=delay_s).problem(
                expected[lanes], most, 3)
            if not problem:
                break
        report.add(f"a set index, {lanes} lanes, a window of {window}", problem)


def main():
    report = Report()
    if missing := missing_header():
        report.skip("the first batch", missing)
        return report.close()
    subject = Subject(built("web_subject"))
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        write_shards(folder)
        with bad_server(folder) as server:
            subject.variables = Store(server.url, ("anyone", "anything"), put=None).environment()
            check_starts(report, subject, folder, server)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
