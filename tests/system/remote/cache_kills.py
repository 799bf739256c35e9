# kill -9 to two ranks that fill one cache, on a disk of 64 MB.
#
#   python3 tests/system/remote/cache_kills.py                # 20 kills
#   python3 tests/system/remote/cache_kills.py --kills 1000
#   python3 tests/system/remote/cache_kills.py --seed 3       # other moments
#
# The ranks of a run read shards of a server through one cache, and are killed at a random moment, together or one
# before the other. After every tenth kill they run to the end: their digests must equal those of the local folder, and
# the cache must be within its limit. The shards are either 40 MB, which fit, so that later runs read none of their
# bytes from the server, or 80 MB, which fill the disk. Needs the right to mount a file system in memory. Without it,
# the limit of the cache replaces the capacity of the disk.
import argparse
import contextlib
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from bad_server import bad_server
from checks import Report
from stores import built, missing_header
from web import Subject, add_sample

DISK_BYTES = 64 << 20
SHARDS = "s-{0..3}.tar"
RANKS = 2
LIMIT_S = 900
SETTINGS = {"WEB_PARTS": 1 << 20, "WEB_MEMORY": 16 << 20, "WEB_STALL": 20, "WEB_BUDGET": 60}


def write_shards(folder, shard_bytes):
    draw = random.Random(shard_bytes)
    for shard in range(4):
        with tarfile.open(folder / f"s-{shard}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
            for i in range(shard_bytes // 25_000):
                add_sample(tar, f"k{shard}-{i}", {"cls": str(i).encode(), "bin": draw.randbytes(24_000)})


@contextlib.contextmanager
def small_disk(folder):
    """A disk of 64 MB, or a folder if it cannot be mounted: (folder, whether it is a disk)."""
    folder.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", folder], capture_output=True).returncode == 0
    try:
        yield folder, mounted
    finally:
        if mounted:
            subprocess.run(["umount", folder], check=True)


def bytes_in(folder):
    total = 0
    for file in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            total += file.stat().st_blocks * 512 if file.is_file() else 0
    return total


class Kills:
    """Ranks that share one data set and one cache."""

    def __init__(self, report, subject, server, folder, cache, limit_bytes):
        self.report, self.subject, self.server = report, subject, server
        self.cache, self.limit_bytes = cache, limit_bytes
        self.url = f"{server.url}/ok/{folder.name}/{SHARDS}"
        self.name = f"{sum(file.stat().st_size for file in folder.glob('*.tar')) / 1e6:.0f} MB"
        self.local = [subject("digest", folder / SHARDS, 2, rank, RANKS).stdout for rank in range(RANKS)]
        self.kills = self.too_late = self.runs = 0
        self.problems = []

    def start(self):
        return [self.subject.start("digest", self.url, 2, rank, RANKS, **SETTINGS, WEB_CACHE=self.cache,
                                   WEB_CACHE_BYTES=self.limit_bytes)
                for rank in range(RANKS)]

    def kill(self, draw):
        ranks = self.start()
        time.sleep(draw.random() * 0.8)
        for rank in draw.sample(ranks, RANKS):
            if rank.poll() is None:
                self.kills += 1
            else:
                self.too_late += 1
            rank.send_signal(signal.SIGKILL)
            time.sleep(draw.choice((0, 0.02)))
        for rank in ranks:
            rank.communicate()

    def run(self):
        """Runs both ranks to the end."""
        self.runs += 1
        for rank, (process, expected) in enumerate(zip(self.start(), self.local)):
            try:
                out, errors = process.communicate(timeout=LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                out, errors = process.communicate()
            if out != expected or not expected:
                self.problems.append(f"rank {rank} after {self.kills} kills: got {out}{errors}, expected {expected}")
        if (used := bytes_in(self.cache)) > self.limit_bytes + (1 << 20):
            self.problems.append(f"after {self.kills} kills: {used} bytes in the cache, expected {self.limit_bytes}")

    def all(self, kills, draw):
        while self.kills < kills:
            before = self.kills
            while self.kills < min(kills, before + 10):
                self.kill(draw)
            self.run()
            if self.kills < kills:   # a full cache is not filled again
                shutil.rmtree(self.cache)
                self.cache.mkdir()
        self.report.add(f"{self.name}: {self.kills} kills and {self.too_late} too late, {self.runs} complete runs "
                        "after them", "; ".join(self.problems))

    def read_again(self):
        with self.server.lock:
            self.server.requests.clear()
        self.run()
        read = [path for path, headers in self.server.requests
                if path.endswith(".tar") and headers.get("Range") != "bytes=0-0"]
        self.report.add(f"{self.name}: no byte of a shard is requested again", str(read) if read else None)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=20, help="in all")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    report = Report()
    if missing := missing_header():
        report.skip("kills of a cache", missing)
        return report.close()
    subject = Subject(built("web_subject"))
    draw = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        served = folder / "served"
        for name, shard_bytes in (("small", 10_000_000), ("large", 20_000_000)):
            (served / name).mkdir(parents=True)
            write_shards(served / name, shard_bytes)
        with bad_server(served) as server, small_disk(folder / "disk") as (disk, mounted):
            for name in ("small", "large"):
                cache = disk / "cache"
                cache.mkdir()
                one = Kills(report, subject, server, served / name, cache,
                            DISK_BYTES if name == "small" or not mounted else 2 * DISK_BYTES)
                one.all(options.kills // 2, draw)
                if name == "small":
                    one.read_again()
                shutil.rmtree(cache)
            if not mounted:
                report.skip("a full disk", "no file system can be mounted")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
