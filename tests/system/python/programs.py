# Programs that the tests of the Python door run in other interpreters, and the debug build of Python.
#
#   begin = start(loading(module), folder, shards)
#   endings(report, "the interpreter ends", {"before the first loop": begin + "print('end')"})
import shutil
import subprocess
import sys

from door import HERE

START = """
import sys
sys.path[:0] = [{here!r}, {package!r}]
import door
module = {module}
folder = {folder!r}
shards = {shards!r}
def ignore(*notice): pass   # a slow machine causes reports of stalls
loader = module.numbers(shards, 4, seed=7, wide=20_000, threads=2, notice=ignore)
"""


def loading(module):
    """The expression that loads a compiled module of module.cpp."""
    return f'door.loaded("flows", {module.__file__!r})'


def start(module, folder, shards):
    """The first lines of a program. `module` is the expression of the module of module.cpp."""
    return START.format(here=str(HERE), package=sys.path[0], module=module, folder=folder, shards=shards)


def debug_python():
    """A debug build of Python with its headers, or None."""
    debug = shutil.which("python3-dbg")
    has_headers = "import sysconfig, os; os.stat(sysconfig.get_paths()['include'] + '/Python.h')"
    if debug and subprocess.run([debug, "-c", has_headers], stderr=subprocess.DEVNULL).returncode == 0:
        return debug
    return None


def endings(report, subject, programs):
    """Checks that each program prints `end` last, exits with 0 and prints no error."""
    for state, program in programs.items():
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=300)
        ok = done.returncode == 0 and done.stdout.strip().endswith("end") and not done.stderr
        report.add(f"{subject} {state}", None if ok else f"{done.returncode}: {done.stdout}{done.stderr}")


def has_torchrun(torch):
    """Whether torchrun starts. It does not in PyTorch 1.13 with Python 3.11, nor in Debian 13, which omits libuv."""
    try:
        torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    except RuntimeError:
        return False
    return int(torch.__version__.split(".")[0]) >= 2
