# examples/mpi_train writes the same bytes for each number of ranks, whether or not it was killed and resumed.
#
#   python3 tests/system/exact/mpi.py
#   MILLRACE_KILLS=100 MILLRACE_FIRST_SEED=7 python3 tests/system/exact/mpi.py      # 100 kills
#
# Every second kill -9 ends the complete job with mpirun. The others end one rank, and mpirun must end the rest. Each
# restart uses another number of ranks. Skipped if Open MPI or its compiler flags are missing.
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time

from programs import ROOT, Broken, Job, compiled, processes_of, run, seeded, times

sys.path.insert(0, str(ROOT / "tests"))
from checks import Report

AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
RANKS = (4, 1, 2, 12, 3, 6)


def mpi_flags(*what):
    done = subprocess.run(["pkg-config", *what, "ompi-c"], capture_output=True, text=True)
    return done.stdout.replace("-I", "-isystem").split() if done.returncode == 0 else None


class Training:
    def __init__(self, folder):
        self.folder = folder
        self.program = compiled("mpi_train", ROOT / "examples/mpi_train.cpp", level="-O1",
                                flags=["-DOMPI_SKIP_MPICXX=1", *mpi_flags("--cflags")], libraries=mpi_flags("--libs"))
        make_shapes = compiled("make_shapes", ROOT / "examples/make_shapes.cpp")
        run([make_shapes, folder / "data", "--samples", 960, "--shards", 8])
        # Files that a killed job leaves are removed with the folder.
        self.environment = AS_ROOT | {"TMPDIR": str(folder), "OMPI_MCA_btl_vader_backing_directory": str(folder)}

    def command(self, ranks, model, *arguments):
        launcher = ["mpirun", "--oversubscribe", "-n", ranks] if ranks > 1 else []
        return [*launcher, self.program, "--model", model, "--data", self.folder / "data/train-{000..007}.tar",
                "--epochs", 3, "--save-every", 2, *arguments]

    def run(self, ranks, name, *arguments):
        model = self.folder / name
        printed, status = run(self.command(ranks, model, *arguments), **self.environment)
        if status != 0:
            raise Broken(f"{ranks} ranks: exit status {status}\n{printed}")
        return model.read_bytes()

    def steps(self, model):
        """The number of updates, which the file's header contains."""
        return struct.unpack_from("<5Q", model.read_bytes())[4] if model.exists() else 0

    def killed_and_resumed(self, random, max_kills):
        """Runs from start to end with kills at random steps; returns (bytes, kills, log of the steps)."""
        model = self.folder / "killed.bin"
        model.unlink(missing_ok=True)
        story, turn = [], random.randrange(len(RANKS))
        while len(story) < max_kills:
            ranks = RANKS[(turn + len(story)) % len(RANKS)]
            before = self.steps(model)
            goal = before + random.choice((0, 2, 6, 10, 20))   # 0: while it starts
            with Job(self.command(ranks, model), **self.environment) as job:
                while self.steps(model) < goal and not job.ends_within(0.005):
                    pass
                if job.ends_within(random.uniform(0, 0.6 if goal == before else 0.1)):
                    break
                own = [pid for pid, command in processes_of(job.process.pid).items() if command == str(self.program)]
                alone = {random.choice(own)} if own and len(story) % 2 == 1 else None
                job.kill(lambda pid: alone is None or pid in alone)
            story.append(f"{ranks} ranks, steps {before} to {self.steps(model)}")
        return self.run(RANKS[(turn + len(story)) % len(RANKS)], model.name), len(story), "; ".join(story)


def main():
    report = Report()
    packages = {"libopenmpi-dev": mpi_flags("--cflags"), "openmpi-bin": shutil.which("mpirun")}
    missing = [name for name, there in packages.items() if not there]
    if missing:
        report.skip("mpi_train", f"Open MPI is missing: install {' and '.join(missing)}")
        return report.close()
    with tempfile.TemporaryDirectory(prefix="millrace-mpi-") as name:
        try:
            training = Training(pathlib.Path(name))
            unbroken = training.run(1, "1.bin")
            for ranks in (2, 4, 12):
                report.add(f"{ranks} ranks end with the bytes of one", None if training.run(ranks, f"{ranks}.bin")
                           == unbroken else "another model")
            report.add("another seed ends differently", None if training.run(1, "seed.bin", "--seed", 2) != unbroken
                       else "the same model")
            _, status = run(training.command(5, training.folder / "5.bin"), **training.environment)
            report.add("5 ranks are refused", None if status != 0 else "they are not")
            kill_count, kills, chains, started = times("MILLRACE_KILLS", 4), 0, 0, time.monotonic()
            while kills < kill_count:
                chains += 1
                final, new_kills, story = training.killed_and_resumed(seeded(chains), kill_count - kills)
                kills += new_kills
                report.add(f"killed and resumed: {story}", None if final == unbroken else "another model")
            print(f"{kills} kills in {chains} trainings, {time.monotonic() - started:.0f} s")
        except Broken as problem:
            report.add("mpi_train", str(problem))
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
