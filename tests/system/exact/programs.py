# Shared by the checks of this folder: compiled programs, killable jobs, repetition counts and seeds.
#
#   reader = compiled("dump_samples", ROOT / "tests/system/exact/dump_samples.cpp")      # build/exact/dump_samples
#   with Job([reader, "a.tar"]) as job: job.kill_after(0.2)                       # it and its children
#   times("MILLRACE_KILLS", 10), seeded(3)                    # a long run sets the first in the environment
import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import ROOT, Broken, linked_program

FOLDER = ROOT / "build" / "exact"


def compiled(name, source, **options):
    return linked_program(FOLDER / name, [source], **({"level": "-O0"} | options))


def times(variable, otherwise):
    return int(os.environ.get(variable, otherwise))


def seeded(number):
    return random.Random(times("MILLRACE_FIRST_SEED", 1) * 1_000_003 + number)


def processes_of(session):
    """{process: its command} of those that have not ended."""
    processes = {}
    for folder in pathlib.Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError):   # it has just ended
            # The program's name in parentheses may contain any characters. State, parent, group, session follow.
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                processes[int(folder.name)] = (folder / "cmdline").read_bytes().split(b"\0")[0].decode()
    return processes


class Job:
    """A command in its own session, so that all processes that it starts can be found."""

    def __init__(self, command, **environment):
        self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        start_new_session=True, env=os.environ | environment)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def kill(self, selected=lambda pid: True):
        """Sends kill -9 to the selected processes of the job, then waits for all of them."""
        end = time.monotonic() + 600
        if selected(self.process.pid):
            self.process.kill()   # first: finding the others needs time
        for pid in processes_of(self.process.pid):
            if selected(pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        while processes_of(self.process.pid):
            if time.monotonic() > end:
                raise Broken("a killed job does not end")
            time.sleep(0.002)
        self.process.wait()
        self.process.stdout.close()

    def ends_within(self, seconds):
        try:
            self.process.wait(seconds)
            return True
        except subprocess.TimeoutExpired:
            return False


def run(command, **environment):
    """The command's output and exit status."""
    done = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=1800, env=os.environ | environment)
    return done.stdout, done.returncode
