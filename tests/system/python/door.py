# Parts of the tests of the Python door: the interpreter with NumPy, the module, the C++ loop, data, digests of batches;
# programs that other interpreters run, and the debug build of Python.
#
#   begin = start(loading(module), folder, shards)
#   endings(report, "the interpreter ends", {"before the first loop": begin + "print('end')"})
#
# MILLRACE_PYTHON names the interpreter; otherwise it is this one or the system's, if it has NumPy and Python.h.
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import (COMPILED, LAZY_COLLECTION, QUICK_COMPILER, ROOT, Report, compiled_library,   # noqa: F401
                    compiled_object, exclusively, launcher, library_flags)

HERE = pathlib.Path(__file__).resolve().parent
BUILD = ROOT / "build" / "python"
PART = ROOT / "include" / "millrace" / "compiled" / "python.cpp"
PROBE = ("import numpy, pathlib, sysconfig, sys;"
         "sys.exit(not (pathlib.Path(sysconfig.get_paths()['include']) / 'Python.h').exists())")
SHARDS, SAMPLES_PER_SHARD = 3, 14
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


def enter(report):
    """Continues in an interpreter with NumPy and Python.h, or ends after one skipped check."""
    sys.path.insert(0, str(ROOT / "include" / "python"))
    os.environ["CXX"] = " ".join([*launcher(), "g++"])
    if os.environ.get("MILLRACE_DOOR"):
        return
    choices = [os.environ["MILLRACE_PYTHON"]] if "MILLRACE_PYTHON" in os.environ else [sys.executable,
                                                                                     "/usr/bin/python3"]
    for python in choices:
        if subprocess.run([python, "-c", PROBE], stderr=subprocess.DEVNULL).returncode == 0:
            os.environ["MILLRACE_DOOR"] = python
            os.execv(python, [python, *sys.argv])
    report.skip("the Python door", "no Python has both NumPy and Python.h (python3-numpy, python3-dev)")
    sys.exit(report.close())


def library():
    """The object of the compiled library, which modules and programs of both compilers link."""
    return compiled_library("g++")


def load(source):
    """The module of millrace.load(), in the folder that all tests share."""
    import millrace
    return millrace.load(source, compiled=library(), cache=BUILD / "cache",
                         flags=["-O0", LAZY_COLLECTION, "-Wall", "-Wextra", "-Wpedantic", "-Werror"])


def flows():
    """The module of module.cpp."""
    return load(HERE / "module.cpp")


def photos():
    """The module of the example."""
    return load(ROOT / "examples" / "python" / "flow.cpp")


def python_object(source, flags, include=sysconfig.get_paths()["include"]):
    """An object of a module, compiled without millrace.load()."""
    return compiled_object(source, "g++", *flags, f"-isystem{include}")


def build_module(path, source, flags, include=sysconfig.get_paths()["include"]):
    """A module without millrace.load(), of objects that are compiled at most once. The mode is that of `flags`."""
    objects = [python_object(HERE / source, flags, include)]
    if COMPILED in flags:
        shared = [flag for flag in flags if not flag.startswith(("-W", "-DSECOND"))]
        objects += [python_object(PART, shared, include), library()]
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["g++", *(flag for flag in flags if flag.startswith("-fsanitize")), "-shared", *objects, "-o", path,
                    *library_flags("--libs")], check=True)


def loaded(name, path):
    """The module of that name in a file that is compiled."""
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_file_location(name, loader.path, loader=loader))
    loader.exec_module(module)
    return module


def loop():
    """The program of loop.cpp."""
    program = BUILD / "loop"
    BUILD.mkdir(parents=True, exist_ok=True)
    loop_object = compiled_object(HERE / "loop.cpp", QUICK_COMPILER, "-O0", COMPILED)
    with exclusively(program):
        subprocess.run([QUICK_COMPILER, loop_object, library(), "-o", program, *library_flags("--libs")], check=True)
    return program


def write_shards(folder):
    """Numbered samples in three shards. Returns their pattern."""
    number = 0
    for shard in range(SHARDS):
        with tarfile.open(f"{folder}/s{shard}.tar", "w") as tar:
            for _ in range(SAMPLES_PER_SHARD):
                member = tarfile.TarInfo(f"{number:04}.cls")
                member.size = len(str(number))
                tar.addfile(member, io.BytesIO(str(number).encode()))
                number += 1
    return f"{folder}/s{{0..{SHARDS - 1}}}.tar"


def crc(batch):
    value = 0
    for name, column in zip(batch._fields, batch):
        if name not in ("keys", "valid"):
            value = zlib.crc32(column.tobytes(), value)
    return value


def line(loader, batch):
    """The line that loop.cpp prints for a batch."""
    session = loader._session
    epoch, step = session.at
    return f"{epoch} {step} {session.stats['digest']} {crc(batch):08x}"


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
