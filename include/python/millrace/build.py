"""Compiles a flow to a module with g++, once. Neither PyTorch nor a binding library is needed."""
import concurrent.futures
import contextlib
import fcntl
import functools
import hashlib
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import sysconfig

HERE = pathlib.Path(__file__).resolve().parent
LIBRARIES = {"tbb": "libtbb-dev", "jpeg": "libjpeg-dev", "archive": "libarchive-dev", "z": "zlib1g-dev"}
OPTIONAL_PARTS = ("python", "remote", "stores")   # of the compiled library, with more dependencies


def get_include():
    """Returns the folder that contains the headers, for the -I option of a compiler."""
    folders = [pathlib.Path(os.environ["MILLRACE_INCLUDE"])] if "MILLRACE_INCLUDE" in os.environ else []
    folders += [HERE / "include", HERE.parents[1], *(parent / "include" for parent in HERE.parents)]
    for folder in folders:
        if (folder / "millrace" / "millrace.hpp").exists():
            return str(folder)
    raise FileNotFoundError("millrace: the headers are not installed next to the Python package. Set MILLRACE_INCLUDE "
                            "to the folder that contains millrace/millrace.hpp.")


def load(source, name=None, *, flags=(), compiled=True, cache=None, verbose=False):
    """Compiles a flow, unless that is done, and returns its module.

    name: the NAME of PyInit_NAME in the source; None: the only one.
    flags: more options for the compiler, such as "-g" or "-march=native".
    compiled: True: compiles the library once for all flows, in 2 to 3 minutes, and then a flow in seconds. False:
    header-only. Or the path of a compiled library, whose part for Python is not used.
    cache: a folder; None: $MILLRACE_CACHE, or ~/.cache/millrace.
    The environment variable CXX names the compiler; the default is g++.

    Several processes may call this function at the same time: one compiles, the others wait.
    """
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise ImportError("millrace: a free-threaded Python has no limited API and is not supported. Use the usual "
                          "build of Python.")
    source = pathlib.Path(source).resolve()
    name = name or _name_in(source)
    cache = pathlib.Path(cache or os.environ.get("MILLRACE_CACHE") or pathlib.Path.home() / ".cache" / "millrace")
    python = sysconfig.get_paths()["include"]
    command = [*_compiler(), *_OPTIONS, f"-I{get_include()}", f"-I{python}", *flags]
    library = []
    if compiled:
        alike = [flag for flag in flags if flag.startswith(("-D", "-U", "-O"))]
        library = [_compiled_library("python", [f"-I{python}", *alike], cache, verbose),
                   _compiled_library("library", [], cache, verbose) if compiled is True else pathlib.Path(compiled)]
        command.append("-DMILLRACE_COMPILED")
    command += [source, *library, *(f"-l{library}" for library in LIBRARIES)]
    folder = cache / f"{name}-{_hash(*command, _version(_compiler()))}"
    with _locked(folder):
        path = _fresh_module(folder) or _compile(command, folder, name, verbose)
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_file_location(name, str(path), loader=loader))
    loader.exec_module(module)
    return module


_OPTIONS = ["-std=c++20", "-O2", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden", "-Wl,--exclude-libs,ALL"]


def _compiler():
    return shlex.split(os.environ.get("CXX") or "g++")


def _hash(*parts):
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:16]


def _content_hash(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


@functools.lru_cache(maxsize=None)
def _headers_hash(folder):
    """A hash of all headers. Costs about 50 ms."""
    root = pathlib.Path(folder) / "millrace"
    return _hash(*(f"{path.relative_to(root)} {_content_hash(path)}" for path in sorted(root.rglob("*"))
                   if path.is_file()))


def _version(compiler):
    try:
        return subprocess.run([*compiler, "-dumpfullversion", "-dumpmachine"], stdout=subprocess.PIPE, text=True).stdout
    except FileNotFoundError:
        raise RuntimeError(f"millrace: the compiler {compiler[0]} is not installed: apt-get install g++") from None


def _name_in(source):
    names = re.findall(r"\bPyInit_(\w+)\s*\(", source.read_text())
    if len(set(names)) != 1:
        raise ValueError(f"millrace: {source.name} must define one function PyInit_NAME: got {len(set(names))}. Pass "
                         "name=.")
    return names[0]


@contextlib.contextmanager
def _locked(folder):
    """Only one process is in this context. The kernel releases the lock of a process that was killed."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(command, subject, verbose):
    command = [str(word) for word in command]
    if verbose:
        print(shlex.join(command), file=sys.stderr, flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode == 0:
        return
    missing = re.search(r"millrace: .* is not installed: apt-get install [^\n\"]*", done.stdout)
    library = re.search(r"cannot find -l(\w+)", done.stdout)
    if missing:
        raise RuntimeError(missing[0])
    if library and library[1] in LIBRARIES:
        raise RuntimeError(f"millrace: lib{library[1]} is not installed: apt-get install {LIBRARIES[library[1]]}")
    raise RuntimeError(f"millrace: {subject} does not compile:\n{done.stdout}")


def _compiled_library(name, more_options, cache, verbose):
    """The code that does not depend on a flow, compiled once: the library, or its part for Python."""
    include, compiler = get_include(), _compiler()
    options = ["-std=c++20", "-O3", "-DNDEBUG", "-fPIC", "-fvisibility=hidden", "-DMILLRACE_COMPILED", f"-I{include}",
               *more_options]
    folder = cache / f"{name}-{_hash(*compiler, *options, _version(compiler), _headers_hash(include))}"
    library = folder / "libmillrace-compiled.a"
    parts = [path for path in sorted(pathlib.Path(include, "millrace", "compiled").glob("*.cpp"))
             if (path.stem == name if name in OPTIONAL_PARTS else path.stem not in OPTIONAL_PARTS)]
    with _locked(folder):
        if library.exists():
            return library
        if name not in OPTIONAL_PARTS:
            print("millrace: compiling the library, once: 2 to 3 minutes", file=sys.stderr, flush=True)

        def compile_part(part):
            _run([*compiler, *options, "-c", part, "-o", folder / f"{part.stem}.o"], "the library", verbose)

        with concurrent.futures.ThreadPoolExecutor(min(len(parts), len(os.sched_getaffinity(0)))) as pool:
            list(pool.map(compile_part, parts))
        _run(["ar", "rcs", folder / "new.a", *(folder / f"{part.stem}.o" for part in parts)], "the library", verbose)
        (folder / "new.a").rename(library)
    return library


def _fresh_module(folder):
    """The compiled module, or None if a file that it was compiled from has changed."""
    try:
        record = json.loads((folder / "files.json").read_text())
        module = folder / record["module"]
        if record["headers"] == _headers_hash(get_include()) and module.exists() and \
                all(_content_hash(path) == content for path, content in record["files"].items()):
            return module
    except (OSError, ValueError, KeyError):
        pass
    return None


def _user_files(rule, include):
    """The files in the output of -MMD, except the headers of the library and of Python."""
    words = re.findall(r"(?:\\.|[^\s\\])+", rule.replace("\\\n", " ").partition(": ")[2])
    paths = sorted({re.sub(r"\\([ #])", r"\1", word).replace("$$", "$") for word in words})
    others = (f"{include}/millrace/", f"{sysconfig.get_paths()['include']}/")
    return [path for path in paths if not path.startswith(others)]


def _compile(command, folder, name, verbose):
    depends, output = folder / "depends", folder / "new.so"
    unknown = ["-fno-gnu-unique"] if "clang" not in str(_compiler()) else []   # g++: modules share no statics
    _run([*command, *unknown, "-MMD", "-MF", depends, "-o", output], f"the flow {name}", verbose)
    include = get_include()
    files = {path: _content_hash(path) for path in _user_files(depends.read_text(), include)}
    # dlopen() identifies files by path.
    module = folder / f"{name}-{_hash(*files.values(), _headers_hash(include))}.abi3.so"
    output.rename(module)
    record = {"module": module.name, "headers": _headers_hash(include), "files": files}
    (folder / "files.json").write_text(json.dumps(record))
    return module
