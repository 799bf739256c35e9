# What the checks under tests/ share: a report that counts, and compilations whose success is remembered.
#
#   report = Report()
#   report.add("base/error.hpp g++", problem)       # problem: None or "" is a pass; else the text that is printed
#   sys.exit(report.close())                        # prints `N passed, N failed, N skipped`
#
# Only passes are remembered, under a key of everything that can change them: the command, the compiler's version, the
# text of the file and of every header of ours that it reaches, and the versions of the libraries.
import contextlib
import fcntl
import functools
import hashlib
import os
import pathlib
import re
import resource
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMPILERS = ("g++", "clang++")
QUICK_COMPILER = "clang++"   # where either will do: it takes half of g++'s time
WARNINGS = ["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
LIBRARIES = ["tbb", "libjpeg", "libarchive", "zlib"]
OWN_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"](millrace/[^>"]+)[>"]', re.MULTILINE)
JOBS = os.cpu_count() or 2


class Broken(Exception):
    """Why nothing more can be checked."""


class StepFailed(Exception):
    """A leg of tests/run.sh cannot go on; what happened is in its log."""


class Report:
    """Counts what passed, failed and was skipped, and prints one line for each."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def add(self, name, problem=None):
        if problem:
            self.failed += 1
            print(f"FAILED  {name}\n        " + problem.strip().replace("\n", "\n        "), flush=True)
        else:
            self.passed += 1
            print(f"ok      {name}", flush=True)

    def skip(self, name, reason):
        self.skipped += 1
        print(f"skipped {name}: {reason}", flush=True)

    def close(self):
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped", flush=True)
        return 1 if self.failed else 0


def processor_seconds_of_children():
    """Spent by all that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def output_of(command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True).stdout


def launcher():
    """What a compilation into an object file is started through: ccache where there is one."""
    return ["ccache"] if shutil.which("ccache") else []


# Headers then only declare what does not depend on the user's types, which costs a third of the time.
COMPILED = "-DMILLRACE_COMPILED=1"


@contextlib.contextmanager
def one_at_a_time(made):
    """Checks that run beside each other make the file one after the other."""
    made.parent.mkdir(parents=True, exist_ok=True)
    with made.with_name(made.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@functools.lru_cache
def compiled_library(*compiler):
    """The object to link with what this compiler, with these flags, compiles with COMPILED; compiled at most once."""
    from_what = [*compiler, "-std=c++20", COMPILED, f"-I{ROOT / 'include'}", *library_flags("--cflags")]
    source = ROOT / "include" / "millrace" / "compiled.cpp"
    texts = reached_text(source.read_text(), ROOT / "include")
    key = hashlib.sha256(repr((from_what, output_of([compiler[0], "--version"]), sorted(texts.items()))).encode())
    made = ROOT / "build" / "compiled" / f"{key.hexdigest()[:16]}.o"
    with one_at_a_time(made):
        if not made.exists():
            new = made.with_suffix(f".{os.getpid()}.o")
            subprocess.run([*launcher(), *from_what, "-c", source, "-o", new], check=True)
            new.replace(made)
    return made


def linked_program(made, sources, level="-O1", flags=(), libraries=(), planted=None):
    """The program `made`, by QUICK_COMPILER with the compiled library; headers in the folder `planted` come first."""
    include = [*([f"-I{planted}"] if planted else []), f"-I{ROOT / 'include'}", *library_flags("--cflags")]
    if planted:
        sources = [*sources, ROOT / "include" / "millrace" / "compiled.cpp"]

    def succeed(*command):
        done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
        if done.returncode != 0:
            raise Broken(f"{made.name} cannot be built\n" + "\n".join(done.stdout.splitlines()[:20]))

    def compiled(source):
        target = made.with_name(f"{made.name}.{source.stem}.o")
        succeed(*launcher(), QUICK_COMPILER, *WARNINGS, level, COMPILED, *include, *flags, "-c", source, "-o", target)
        return target

    with one_at_a_time(made):
        objects = [target for _, target in in_parallel(compiled, sources)]
        if not planted:
            objects.append(compiled_library(QUICK_COMPILER, "-O1"))
        new = made.with_name(f"{made.name}.{os.getpid()}")   # another check may be running the one that is there
        succeed(QUICK_COMPILER, *objects, "-o", new, *library_flags("--libs"), *libraries, "-pthread")
        new.replace(made)
    return made


@functools.lru_cache
def library_flags(*what):
    """The flags of the libraries that we are built on; their headers count as the system's."""
    flags = output_of(["pkg-config", *what, *LIBRARIES]).split()
    return [("-isystem" + flag[2:] if flag.startswith("-I") else flag) for flag in flags]


def reached_text(text, include):
    """The text of every header of ours that `text` reaches, by name."""
    found, to_read = {}, [text]
    while to_read:
        for name in OWN_INCLUDE.findall(to_read.pop()):
            if name not in found:
                path = include / name
                found[name] = path.read_text() if path.exists() else ""
                to_read.append(found[name])
    return found


class RememberedPasses:
    """Commands that succeeded before on the very same text are not run again."""

    def __init__(self):
        home = os.environ.get("XDG_CACHE_HOME") or (os.path.join(os.environ["HOME"], ".cache")
                                                    if os.environ.get("HOME") else ROOT / "build" / "cache")
        self.folder = pathlib.Path(home) / "millrace" / "checks"
        self.folder.mkdir(parents=True, exist_ok=True)
        month_ago = time.time() - 30 * 86400
        for old in self.folder.iterdir():
            if old.stat().st_mtime < month_ago:
                old.unlink(missing_ok=True)
        self.versions = "".join(output_of([compiler, "--version"]) for compiler in COMPILERS)
        self.versions += output_of(["pkg-config", "--modversion", *LIBRARIES])

    def key(self, command, text, include):
        # Another clone, elsewhere, has the same passes.
        command = [part.replace(str(ROOT), "") for part in command]
        parts = [self.versions, *command, text, *sorted(reached_text(text, include).items())]
        return self.folder / hashlib.sha256(repr(parts).encode()).hexdigest()

    @staticmethod
    def remark(key):
        """What remember() was told, or None where there is nothing to remember."""
        return key.read_text() if key.exists() else None

    @staticmethod
    def remember(key, remark=""):
        key.write_text(remark)


def in_parallel(function, items, jobs=JOBS):
    """Yields (item, result) in order, with as many at work as there are cores, or `jobs`."""
    with ThreadPoolExecutor(jobs) as pool:
        yield from zip(items, pool.map(function, items))
