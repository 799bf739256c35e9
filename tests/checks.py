# Shared by the checks in tests/: a report that counts, and a cache of successful compilations.
#
#   report = Report()
#   report.add("base/error.hpp g++", problem)       # problem: None or "" is a pass; else the text that is printed
#   sys.exit(report.close())                        # prints `N passed, N failed, N skipped`
#
# Only passes are cached. The key contains everything that can change them: the command, the compiler's version, the
# text of the file and of all our headers that it includes, and the versions of the libraries.
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
import zlib
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMPILERS = ("g++", "clang++")
QUICK_COMPILER = "clang++"   # if either is sufficient: it needs half of g++'s time
WARNINGS = ["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
LIBRARIES = ["tbb", "libjpeg", "libarchive", "zlib"]
OWN_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"](millrace/[^>"]+)[>"]', re.MULTILINE)
JOBS = os.cpu_count() or 2


class Broken(Exception):
    """The reason why no further check is possible."""


class StepFailed(Exception):
    """A leg of tests/run.sh cannot continue. Its log has the reason."""


class Report:
    """Counts passed, failed and skipped checks, and prints one line for each."""

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
    """Processor time of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def output_of(command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True).stdout


def launcher():
    """The prefix of commands that compile object files: ccache if it is installed."""
    return ["ccache"] if shutil.which("ccache") else []


@functools.lru_cache
def history():
    """(a number whose last bit alternates with each commit, files that the last 8 commits and the working tree
    changed). A shallow clone has a random bit for each commit, a copy without git one for each state of include/."""
    def git(*arguments):
        return output_of(["git", "-C", ROOT, *arguments])

    try:
        changed = git("diff", "--name-only", "HEAD")
        if git("rev-parse", "--is-shallow-repository").strip() == "true":
            return int(git("rev-parse", "HEAD"), 16), frozenset(changed.split())
        changed += git("log", "-8", "--format=", "--name-only")
        return int(git("rev-list", "--count", "HEAD")), frozenset(changed.split())
    except (OSError, ValueError, subprocess.CalledProcessError):
        sizes = sorted((str(path), path.stat().st_size) for path in (ROOT / "include").rglob("*.*"))
        return zlib.crc32(repr([(path.removeprefix(str(ROOT)), size) for path, size in sizes]).encode()), frozenset()


def have_changed(*paths):
    """Whether one of the files or folders did. True with MILLRACE_CHECKS=all."""
    if os.environ.get("MILLRACE_CHECKS") == "all":
        return True
    names = [str(pathlib.Path(path).relative_to(ROOT)) for path in paths]
    return any(file == name or file.startswith(f"{name}/") for name in names for file in history()[1])


def is_turn(number):
    """Whether the checks with this number are due: 0 and 1, in turn with each commit."""
    return have_changed() or history()[0] % 2 == number


def is_due(name, *paths):
    """Whether a check of many similar ones is due: those of changed files or folders, and half of the others."""
    return have_changed(*paths) or is_turn(zlib.crc32(name.encode()) % 2)


# With it, headers only declare code that does not depend on the user's types: a third of the compile time.
COMPILED = "-DMILLRACE_COMPILED=1"


@contextlib.contextmanager
def exclusively(target):
    """Excludes concurrent checks that create the same file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_name(target.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


# g++ collects garbage above 1 GB only, which saves a sixth of the time.
LAZY_COLLECTION = "--param=ggc-min-heapsize=1000000"


@functools.lru_cache
def compiled_library(compiler):
    """The object of the compiled library, for programs and shared libraries; compiled at most once for a compiler."""
    level = "-O1" if compiler == QUICK_COMPILER else "-O0"   # programs of long loops link that of clang++
    return compiled_object(ROOT / "include" / "millrace" / "compiled.cpp", compiler, level, COMPILED)


def compiled_object(source, compiler, *flags):
    """The object of a source, compiled at most once for these flags and these texts of the headers."""
    from_what = [compiler, *([LAZY_COLLECTION] if compiler == "g++" else []), "-fPIC", "-std=c++20", *flags,
                 f"-I{ROOT / 'include'}", *library_flags("--cflags")]
    text = source.read_text()
    text += "".join((source.parent / name).read_text() for name in re.findall(r'^#include "(\w+\.hpp)"', text, re.M))
    texts = text, sorted(reached_text(text, ROOT / "include").items())
    key = hashlib.sha256(repr((from_what, output_of([compiler, "--version"]), texts)).encode())
    target = ROOT / "build" / "compiled" / f"{source.stem}-{key.hexdigest()[:16]}.o"
    with exclusively(target):
        if not target.exists():
            new = target.with_suffix(f".{os.getpid()}.o")
            subprocess.run([*launcher(), *from_what, "-c", source, "-o", new], check=True)
            new.replace(target)
    return target


def linked_program(program, sources, level="-O1", flags=(), libraries=(), planted=None):
    """Builds `program` with QUICK_COMPILER and the compiled library; headers in the folder `planted` are preferred."""
    include = [*([f"-I{planted}"] if planted else []), f"-I{ROOT / 'include'}", *library_flags("--cflags")]
    if planted:
        sources = [*sources, ROOT / "include" / "millrace" / "compiled.cpp"]

    def succeed(*command):
        done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
        if done.returncode != 0:
            raise Broken(f"{program.name} cannot be built\n" + "\n".join(done.stdout.splitlines()[:20]))

    def compiled(source):
        target = program.with_name(f"{program.name}.{source.stem}.o")
        succeed(*launcher(), QUICK_COMPILER, *WARNINGS, level, COMPILED, *include, *flags, "-c", source, "-o", target)
        return target

    with exclusively(program):
        objects = [target for _, target in in_parallel(compiled, sources)]
        if not planted:
            objects.append(compiled_library(QUICK_COMPILER))
        new = program.with_name(f"{program.name}.{os.getpid()}")   # another check may be running the existing one
        succeed(QUICK_COMPILER, *objects, "-o", new, *library_flags("--libs"), *libraries, "-pthread")
        new.replace(program)
    return program


@functools.lru_cache
def library_flags(*what):
    """The flags of the required libraries, whose headers count as system headers."""
    flags = output_of(["pkg-config", *what, *LIBRARIES]).split()
    return [("-isystem" + flag[2:] if flag.startswith("-I") else flag) for flag in flags]


def reached_text(text, include):
    """The texts of all our headers that `text` includes, by name."""
    texts, to_read = {}, [text]
    while to_read:
        for name in OWN_INCLUDE.findall(to_read.pop()):
            if name not in texts:
                path = include / name
                texts[name] = path.read_text() if path.exists() else ""
                to_read.append(texts[name])
    return texts


class RememberedPasses:
    """A cache of successful commands, which are not run again on the same text."""

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
        # Clones in other folders share the passes.
        command = [part.replace(str(ROOT), "") for part in command]
        parts = [self.versions, *command, text, *sorted(reached_text(text, include).items())]
        return self.folder / hashlib.sha256(repr(parts).encode()).hexdigest()

    @staticmethod
    def remark(key):
        """The remark of remember(), or None."""
        return key.read_text() if key.exists() else None

    @staticmethod
    def remember(key, remark=""):
        key.write_text(remark)


def in_parallel(function, items, jobs=JOBS):
    """Yields (item, result) in order, with `jobs` at a time."""
    with ThreadPoolExecutor(jobs) as pool:
        yield from zip(items, pool.map(function, items))
