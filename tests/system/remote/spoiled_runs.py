# Whole runs over every server, whose answers are spoiled at random: the digest is that of the local folder, or there is
# one error that says where.
#
#   python3 tests/system/remote/spoiled_runs.py              # two runs over each server
#   python3 tests/system/remote/spoiled_runs.py --runs 200   # so many in all, dealt out over the servers
#   python3 tests/system/remote/spoiled_runs.py --seed 17    # that run alone
#
# A seed chooses the server (a bad one of our own, and nginx, moto and rclone behind a front that spoils answers), the
# workers (0, 1, 4), the rank and the ranks (1, 2, 4), where the run is resumed, if at all, whether there are indexes
# and a set index, whether there is a cache, and what happens to each request. In one of five seeds some of it cannot
# be healed.
# Never other samples, and never a run of more than 90 s.
import argparse
import collections
import contextlib
import os
import pathlib
import random
import shutil
import sys
import tempfile
import threading

from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from bad_front import bad_front
from bad_server import bad_server
from checks import Report
from stores import Unavailable, built, missing_header, moto, rclone
from web import Subject, nginx, write_shards

AT_ONCE = 4
SHARDS = "s-{0..3}.tar"


class Place:
    """A server: how its answers are spoiled, and the name of its folder then."""

    def __init__(self, name, url_of, variables=None, front=None):
        self.name, self.url_of, self.variables, self.front = name, url_of, variables or {}, front


def chosen_by(seed):
    draw = random.Random(f"run {seed}")
    size = draw.choice((1, 2, 4))
    resumed = draw.choice((None, draw.randrange(1, 4)))   # of a rank of four there are four batches
    return {"threads": draw.choice((0, 1, 4)), "rank": draw.randrange(size), "size": size, "resumed": resumed,
            "folder": draw.choice(("plain", "indexed")), "cached": draw.random() < 0.3,
            "mood": f"{'worse' if draw.random() < 0.2 else 'any'}={seed}"}


def located(said):
    """Whether an error says what happened, and to which shard."""
    lines = [line for line in said.strip().splitlines() if line]
    return len(lines) == 1 and lines[0].startswith("millrace: ") and "shard " in lines[0]


class Runs:
    """Runs seeds, and keeps the digests of local runs."""

    def __init__(self, report, subject, folder, places):
        self.report, self.subject, self.folder, self.places = report, subject, folder, places
        self.expected, self.outcomes, self.lock = {}, collections.Counter(), threading.Lock()

    def local(self, one):
        # The digest of one rank of several is its own, and another one behind a resume.
        key = one["rank"], one["size"], one["resumed"] if one["size"] > 1 else None
        if key not in self.expected:
            self.expected[key] = self.digest(f"{self.folder}/plain/{SHARDS}", {}, 2, *key)
        return self.expected[key]

    def digest(self, pattern, variables, *arguments):
        done = self.subject("digest", pattern, *(a for a in arguments if a is not None), **variables)
        return done.stdout if done.returncode == 0 else f"exit status {done.returncode}: {done.stderr}"

    def run(self, seed, place):
        one = chosen_by(seed)
        expected = self.expected[one["rank"], one["size"], one["resumed"] if one["size"] > 1 else None]
        with tempfile.TemporaryDirectory() as cache:
            variables = place.variables | ({"WEB_CACHE": cache} if one["cached"] else {})
            if place.front:
                place.front.mood = one["mood"]
            done = self.subject("digest", place.url_of(one["mood"]) + one["folder"] + "/" + SHARDS, one["threads"],
                                one["rank"], one["size"], *([one["resumed"]] if one["resumed"] else []), **variables)
        what = f"seed {seed}: {place.name}, {one}"
        if done.returncode == 0:
            problem = None if done.stdout == expected else f"got {done.stdout}, expected {expected}"
        else:
            fine = done.returncode == 1 and located(done.stderr) and one["mood"].startswith("worse")
            problem = None if fine else f"exit status {done.returncode}: {done.stderr}"
        outcome = "equal" if done.returncode == 0 else "one error"
        return what, problem, place.name, outcome, done.stderr.strip()

    def add(self, what, problem, place, outcome, said):
        with self.lock:
            self.report.add(what, problem)
            self.outcomes[place, "WRONG" if problem else outcome] += 1
            if outcome == "one error" and not problem:
                print(f"        {said}", flush=True)

    def all(self, seeds):
        for seed in seeds:
            self.local(chosen_by(seed))
        # A front has one mood at a time, so the runs over one place follow each other.
        dealt = {place: seeds[i::len(self.places)] for i, place in enumerate(self.places)}
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda item: [self.add(*self.run(seed, item[0])) for seed in item[1]], dealt.items()))
        for (place, outcome), count in sorted(self.outcomes.items()):
            print(f"        {place}: {count} {outcome}", flush=True)


def write_both(folder, subject):
    """Shards without anything, and the same ones with indexes and a set index."""
    plain, indexed = folder / "plain", folder / "indexed"
    plain.mkdir()
    write_shards(plain)
    for one in plain.iterdir():
        if one.suffix == ".bin":
            one.unlink()
    shutil.copytree(plain, indexed)
    subject("set", f"{indexed}/{SHARDS}", indexed / "set.millrace-index")


def places(stack, report, folder, work):
    server = stack.enter_context(bad_server(folder))
    found = [Place("a bad server", lambda mood: f"{server.url}/{mood}/")]
    try:
        plain = stack.enter_context(nginx(folder, work))[0]
        front = stack.enter_context(bad_front(folder, plain))
        found.append(Place("nginx", lambda _, front=front: front.url + "/", front=front))
    except Unavailable as reason:
        report.skip("nginx", str(reason))
    for name, opened in (("moto", moto()), ("rclone", rclone(work / "rclone"))):
        try:
            store = stack.enter_context(opened)
        except Unavailable as reason:
            report.skip(name, str(reason))
            continue
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                store.put("bucket", str(file.relative_to(folder)), file.read_bytes())
        front = stack.enter_context(bad_front(folder, store.endpoint))
        keys = {key: value for key, value in store.environment().items() if key.startswith("AWS_")}
        found.append(Place(name, lambda _: "s3://bucket/", keys | {"AWS_ENDPOINT_URL_S3": front.url}, front))
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--seed", type=int)
    chosen = parser.parse_args()
    report = Report()
    if missing := missing_header():
        report.skip("spoiled runs", missing)
        return report.close()
    subject = Subject(built("web_subject"))
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        work, folder = pathlib.Path(folder) / "work", pathlib.Path(folder) / "served"
        for one in (work, folder):
            one.mkdir()
        os.chmod(folder.parent, 0o755)
        write_both(folder, subject)
        runs = Runs(report, subject, folder, places(stack, report, folder, work))
        if chosen.seed is None:
            runs.all(list(range(chosen.runs)))
        else:
            runs.places = [runs.places[chosen.seed % len(runs.places)]]
            runs.all([chosen.seed])
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
