# Parts of the tests of the Python door: the interpreter with NumPy, the module, the C++ loop, data, digests of batches.
#
# MILLRACE_PYTHON names the interpreter; otherwise it is this one or the system's, if it has NumPy and Python.h.
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import subprocess
import sys
import sysconfig
import tarfile
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import (COMPILED, ROOT, Report, compiled_library, exclusively, launcher,   # noqa: F401
                    library_flags)

HERE = pathlib.Path(__file__).resolve().parent
BUILD = ROOT / "build" / "python"
PART = ROOT / "include" / "millrace" / "compiled" / "python.cpp"
PROBE = ("import numpy, pathlib, sysconfig, sys;"
         "sys.exit(not (pathlib.Path(sysconfig.get_paths()['include']) / 'Python.h').exists())")
SHARDS, SAMPLES_PER_SHARD = 3, 14


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


def flows():
    """The module of module.cpp."""
    import millrace
    return millrace.load(HERE / "module.cpp", compiled=compiled_library("g++"), cache=BUILD / "cache",
                         flags=["-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror"])


def compiled_object(source, target, flags, include=sysconfig.get_paths()["include"]):
    """Compiles a source of a module without millrace.load()."""
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([*launcher(), "g++", "-std=c++20", "-fPIC", *flags, f"-I{ROOT / 'include'}", f"-I{include}",
                    *library_flags("--cflags"), "-c", source, "-o", target], check=True)
    return target


def build_module(path, source, flags, include=sysconfig.get_paths()["include"]):
    """A module without millrace.load(). The mode is that of `flags`."""
    objects = [compiled_object(HERE / source, path.with_suffix(".o"), flags, include)]
    if COMPILED in flags:
        objects += [compiled_object(PART, path.with_suffix(".part.o"), flags, include), compiled_library("g++")]
    subprocess.run(["g++", *(flag for flag in flags if flag.startswith("-fsanitize")), "-shared", *objects, "-o", path,
                    *library_flags("--libs")], check=True)


def loaded(path):
    """A compiled module of module.cpp."""
    loader = importlib.machinery.ExtensionFileLoader("flows", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_file_location("flows", path, loader=loader))
    loader.exec_module(module)
    return module


def loop():
    """The program of loop.cpp."""
    program = BUILD / "loop"
    BUILD.mkdir(parents=True, exist_ok=True)
    subprocess.run([*launcher(), "g++", "-std=c++20", "-O1", COMPILED, f"-I{ROOT / 'include'}",
                    *library_flags("--cflags"), "-c", HERE / "loop.cpp", "-o", f"{program}.o"], check=True)
    subprocess.run(["g++", f"{program}.o", compiled_library("g++"), "-o", program,
                    *library_flags("--libs")], check=True)
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
    return f"{session.epoch} {session.step} {session.stats['digest']} {crc(batch):08x}"
