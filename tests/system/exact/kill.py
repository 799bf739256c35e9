# kill -9 at any moment: a run resumes from its last durable resume point, and an index is complete or missing.
#
#   python3 tests/system/exact/kill.py
#   MILLRACE_KILLS=200 MILLRACE_FIRST_SEED=7 python3 tests/system/exact/kill.py        # 200 kills of each kind
#
# The program is durable_run.cpp. After each kill, its log, truncated at its last durable point, must be a prefix of the
# log of an uninterrupted run. At the end, both logs must be identical.
import io
import os
import pathlib
import sys
import tarfile
import tempfile
import time

from programs import ROOT, Broken, Job, compiled, run, seeded, times

sys.path.insert(0, str(ROOT / "tests"))
from checks import Report

MANY = 120   # shards, so that writing their indexes needs some time


def write_shards(folder, shards, samples):
    folder.mkdir()
    number = 0
    for shard in range(shards):
        with tarfile.open(folder / f"s-{shard:04}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
            for number in range(number, number + samples):
                member = tarfile.TarInfo(f"k{number}.n")
                data = str(number).encode()
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
            number += 1
    return folder / "*.tar"


def remove_indexes(data):
    for pattern in ("*.millrace-index", ".*.partial"):
        for path in data.parent.glob(pattern):
            path.unlink()


def index_files(data):
    """Names with inodes: a replaced file has another inode."""
    return {(entry.name, entry.inode()) for entry in os.scandir(data.parent) if entry.name.endswith("-index")}


def wait_for(job, count, goal):
    while count() < goal and not job.ends_within(0):
        pass


class Kills:
    def __init__(self, folder, program):
        self.folder, self.program = folder, program

    def command(self, name, data, *arguments):
        (self.folder / name).mkdir(exist_ok=True)
        return [self.program, self.folder / name, "--data", data, *arguments]

    def must_run(self, *arguments):
        printed, status = run(self.command(*arguments))
        if status != 0:
            raise Broken(f"{arguments}: exit status {status}\n{printed}")

    def log(self, name):
        return (self.folder / name / "log").read_bytes()

    def index_states(self, data):
        printed, status = run([self.program, "--indexes", data])
        if status != 0:
            raise Broken(printed)
        return {state: int(count) for state, count in (line.rsplit(": ", 1) for line in printed.splitlines())}

    def runs(self, report, kill_count):
        """Kills a run while it starts, indexes, delivers and saves; restarts it each time until it completes."""
        data = write_shards(self.folder / "data", 50, 40)
        self.must_run("unbroken", data)
        unbroken = self.log("unbroken")
        started = time.monotonic()
        self.must_run("timed", data, "--step-us", 1000)
        seconds = time.monotonic() - started
        kills = chains = 0
        places = set()
        while kills < kill_count:
            chains += 1
            random, name = seeded(chains), f"run-{chains}"
            remove_indexes(data)
            story, problem = [], None
            while True:
                arguments = ["--step-us", 1000, "--batches-per-save", random.choice((1, 2, 3, 7)),
                             "--threads", random.randrange(4)]
                with Job(self.command(name, data, *arguments)) as job:
                    delay = random.uniform(0, random.choice((0.1, 0.5, 1)) * seconds)
                    if kills >= kill_count or job.ends_within(delay):
                        if not job.ends_within(1800) or job.process.returncode != 0:
                            problem = "the last piece failed: " + job.process.stdout.read()
                        break
                    job.kill()
                kills += 1
                saved = self.folder / name / "saved"
                length = int(saved.read_text().split()[0]) if saved.exists() else 0
                story.append(length)
                places.add(length)
                if (self.folder / name / "log").exists() and not unbroken.startswith(self.log(name)[:length]):
                    problem = f"the log up to byte {length} is not that of the unbroken run"
                    break
            if not problem and self.log(name) != unbroken:
                problem = "the log is not that of the unbroken run"
            report.add(f"a run killed {len(story)} times", problem and f"{problem}; durable at bytes {story}")
        print(f"result: kill runs={chains} kills={kills} durable_points={len(places)}")

    def index_builds(self, report, kill_count):
        """Kills the run while it builds indexes: each index must be complete or missing."""
        data = write_shards(self.folder / "many", MANY, 3)
        self.must_run("expected", data)
        amid, wrong = 0, []
        for kill in range(kill_count):
            remove_indexes(data)
            with Job(self.command(f"build-{kill}", data)) as job:
                wait_for(job, lambda: len(index_files(data)), seeded(kill).randrange(MANY))
                job.kill()
            states = self.index_states(data)
            amid += len(states) > 1
            if any(not state.startswith("good") and state != "missing" for state in states):
                wrong.append(f"kill {kill}: {states}")
        self.must_run("after", data)
        if self.log("after") != self.log("expected"):
            wrong.append("another order after it")
        report.add(f"{kill_count} kills while indexes are built, {amid} of them with some built", "\n".join(wrong))

    def checksums(self, report, kill_count):
        """Kills the run while it writes checksums: each index must be the old or the new one."""
        data = self.folder / "many/*.tar"
        amid, wrong = 0, []
        for kill in range(kill_count):
            remove_indexes(data)
            with Job(self.command(f"closing-{kill}", data, "--epochs", 1)) as job:
                job.process.stdout.readline()
                before = index_files(data)
                wait_for(job, lambda: len(index_files(data) - before), seeded(kill).randrange(MANY))
                job.kill()
            states = self.index_states(data)
            amid += len(states) > 1
            if any(not state.startswith("good") for state in states):
                wrong.append(f"kill {kill}: {states}")
        self.must_run("afterwards", data)
        if self.log("afterwards") != self.log("expected"):
            wrong.append("another order after it")
        states = self.index_states(data)
        if states != {"good, all checksums": MANY}:
            wrong.append(f"a complete run leaves {states}")
        report.add(f"{kill_count} kills while checksums are written, {amid} of them with some written",
                   "\n".join(wrong))


def main():
    report, kill_count = Report(), times("MILLRACE_KILLS", 10)
    with tempfile.TemporaryDirectory(prefix="millrace-kill-") as name:
        try:
            kills = Kills(pathlib.Path(name), compiled("durable_run", ROOT / "tests/system/exact/durable_run.cpp"))
            for kind in (kills.runs, kills.index_builds, kills.checksums):
                kind(report, kill_count)
        except Broken as problem:
            report.add("kill", str(problem))
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
