# Runs the example programs, for tests in this folder. The first argument of each test is the folder of the programs.
import pathlib
import subprocess
import sys

PROGRAMS = pathlib.Path(sys.argv.pop(1)).resolve()


def run(name, *arguments, fails=False, stream="stderr"):
    """stdout of a program; or, of a program that must fail, the given stream."""
    done = subprocess.run([PROGRAMS / name, *map(str, arguments)], capture_output=True, text=True, timeout=900,
                          stdin=subprocess.DEVNULL)
    if (done.returncode != 0) != fails:
        raise AssertionError(f"{name} {arguments}: exit status {done.returncode}\n{done.stdout}\n{done.stderr}")
    return getattr(done, stream) if fails else done.stdout
