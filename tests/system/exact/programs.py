# What the checks of this folder share: programs compiled once, killed jobs, and how often and from which seed to try.
#
#   reader = compiled("dump_samples", ROOT / "tests/system/exact/dump_samples.cpp")      # build/exact/dump_samples
#   with Job([reader, "a.tar"]) as job: job.kill_after(0.2)                       # it and all that it started
#   times("MILLRACE_KILLS", 10), seeded(3)                                        # a long run sets the first by hand
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
    return linked_program(FOLDER / name, [source], **options)


def times(variable, otherwise):
    return int(os.environ.get(variable, otherwise))


def seeded(number):
    return random.Random(times("MILLRACE_FIRST_SEED", 1) * 1_000_003 + number)


def processes_of(session):
    """{process: its command} of those that have not ended."""
    found = {}
    for folder in pathlib.Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError):   # it has just ended
            # The name of the program, in parentheses, may hold anything; behind it: state, parent, group, session.
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found[int(folder.name)] = (folder / "cmdline").read_bytes().split(b"\0")[0].decode()
    return found


class Job:
    """A command in a session of its own, so that all that it starts can be found."""

    def __init__(self, command, **environment):
        self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        start_new_session=True, env=os.environ | environment)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def kill(self, chosen=lambda pid: True):
        """kill -9 to what was chosen of the job; then waits for all of it."""
        end = time.monotonic() + 600
        if chosen(self.process.pid):
            self.process.kill()   # at once: to look for the others takes a while
        for pid in processes_of(self.process.pid):
            if chosen(pid):
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
    """What the command printed, and its status."""
    done = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=1800, env=os.environ | environment)
    return done.stdout, done.returncode
