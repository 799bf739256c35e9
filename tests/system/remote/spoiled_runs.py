# Complete runs with every server, whose answers are corrupted at random: the digest equals that of the local folder, or
# there is one located error.
#
#   python3 tests/system/remote/spoiled_runs.py              # two runs with each server
#   python3 tests/system/remote/spoiled_runs.py --runs 200   # 200 in all, distributed over the servers
#   python3 tests/system/remote/spoiled_runs.py --seed 17    # that run alone
#
# A seed selects the server (bad_server.py, or nginx, moto and rclone with a proxy that corrupts answers), the number of
# workers (0, 1, 4), the rank and the number of ranks (1, 2, 4), the resume point, if any, indexes and a set index, a
# cache, and the fault of each request. With one of five seeds, some faults are permanent.
# No run may deliver other samples, or need more than 90 s.
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
from bad_server import bad_front, bad_server
from checks import Report
from stores import Unavailable, built, missing_header, moto, rclone
from web import Subject, nginx, write_shards

AT_ONCE = 4
SHARDS = "s-{0..3}.tar"


class Place:
    """A server: how its answers are corrupted, and the name of its folder then."""

    def __init__(self, name, url_of, variables=None, front=None):
        self.name, self.url_of, self.variables, self.front = name, url_of, variables or {}, front


def chosen_by(seed):
    draw = random.Random(f"run {seed}")
    size = draw.choice((1, 2, 4))
    resumed = draw.choice((None, draw.randrange(1, 4)))   # one of four ranks has four batches
    return {"threads": draw.choice((0, 1, 4)), "rank": draw.randrange(size), "size": size, "resumed": resumed,
            "folder": draw.choice(("plain", "indexed")), "cached": draw.random() < 0.3,
            "mood": f"{'worse' if draw.random() < 0.2 else 'any'}={seed}"}


def located(output):
    """Whether an error names its cause and its shard. A notice that a server refuses keys may precede it."""
    lines = [line for line in output.strip().splitlines() if line and "refuses the credentials" not in line]
    return len(lines) == 1 and lines[0].startswith("millrace: ") and "shard " in lines[0]


class Runs:
    """Runs seeds, and stores the digests of local runs."""

    def __init__(self, report, subject, folder, places):
        self.report, self.subject, self.folder, self.places = report, subject, folder, places
        self.expected, self.outcomes, self.lock = {}, collections.Counter(), threading.Lock()

    def local(self, one):
        # The digest depends on the rank and on the resume point.
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

    def add(self, what, problem, place, outcome, output):
        with self.lock:
            self.report.add(what, problem)
            self.outcomes[place, "WRONG" if problem else outcome] += 1
            if outcome == "one error" and not problem:
                print(f"        {output}", flush=True)

    def all(self, seeds):
        for seed in seeds:
            self.local(chosen_by(seed))
        # A front has one mood at a time, so the runs with one place run one after the other.
        dealt = {place: seeds[i::len(self.places)] for i, place in enumerate(self.places)}
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda item: [self.add(*self.run(seed, item[0])) for seed in item[1]], dealt.items()))
        for (place, outcome), count in sorted(self.outcomes.items()):
            print(f"        {place}: {count} {outcome}", flush=True)


def write_both(folder, subject):
    """Shards without indexes, and the same ones with indexes and a set index."""
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
    places = [Place("a bad server", lambda mood: f"{server.url}/{mood}/")]
    try:
        plain = stack.enter_context(nginx(folder, work))[0]
        front = stack.enter_context(bad_front(folder, plain))
        places.append(Place("nginx", lambda _, front=front: front.url + "/", front=front))
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
        places.append(Place(name, lambda _: "s3://bucket/", keys | {"AWS_ENDPOINT_URL_S3": front.url}, front))
    return places


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
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
        if options.seed is None:
            runs.all(list(range(options.runs)))
        else:
            runs.places = [runs.places[options.seed % len(runs.places)]]
            runs.all([options.seed])
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
