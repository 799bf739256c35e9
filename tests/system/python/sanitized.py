# The module with AddressSanitizer, in a debug build of Python: no leak, no invalid access.
#
#   python3 tests/system/python/sanitized.py              # compiles the module: minutes
#
# Only the module is compiled with AddressSanitizer, so that leaks of other libraries are not counted. Python's objects
# are allocated by malloc(), so that a leak of one of them that refers to the module is detected, too. The library is
# compiled without the sanitizer. Therefore nothing may poison memory.
import os
import pathlib
import re
import subprocess
import tempfile

from door import BUILD, COMPILED, Report, build_module, debug_python, enter, start, write_shards
from life import ENDINGS, REFERENCES

SANITIZE = "-fsanitize=address"
LEAK = re.compile(r"^(?:Direct|Indirect) leak of .*?(?:\n\n|\Z)", re.M | re.S)
MODULE = "::python::new_module("   # the definition of the module exists until the end of the process
FORK = """
import os
batch = next(iter(loader))
child = os.fork()
if child == 0:
    del batch, loader
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
PLANTED = {   # programs that must be detected
    "a DLPack capsule that no one releases":
        "import ctypes\nbatch = next(iter(module.numbers(shards, 4, threads=0, convert=False)))\n"
        "capsule = batch.values.__dlpack__()\nctypes.pythonapi.Py_IncRef(ctypes.py_object(capsule))\n"
        "del capsule, batch",
    "a use of a tensor after its last owner":
        "import ctypes\nbatch = next(iter(module.numbers(shards, 4, threads=0)))\n"
        "address, size = batch.values.ctypes.data, batch.values.nbytes\ndel batch\n"
        "ctypes.string_at(address, size)",
}


def compiled_module(python):
    """The path of the module for that Python. millrace.load() would load it into this process."""
    path = BUILD / "sanitized.so"
    include = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_paths()['include'])"],
                             stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    build_module(path, "module.cpp", ["-O1", "-g1", SANITIZE, "-fvisibility=hidden", "-fno-gnu-unique", COMPILED],
                 include)
    return str(path)


def main():
    report = Report()
    enter(report)
    debug = debug_python()
    if debug is None:
        report.skip("AddressSanitizer", "python3-dbg is not installed")
        return report.close()
    sanitizer = subprocess.run(["g++", "-print-file-name=libasan.so"], stdout=subprocess.PIPE, text=True).stdout.strip()
    if not pathlib.Path(sanitizer).is_absolute():
        report.skip("AddressSanitizer", "g++ has no libasan.so")
        return report.close()
    path = compiled_module(debug)

    with tempfile.TemporaryDirectory() as folder:
        begin = start(f'door.loaded("flows", {path!r})', folder, write_shards(folder))
        environment = dict(os.environ, LD_PRELOAD=sanitizer, PYTHONMALLOC="malloc",
                           ASAN_OPTIONS="detect_leaks=1:exitcode=0:allow_user_poisoning=0:malloc_context_size=40")
        narrow = ["setarch", "-R"] if subprocess.run(["setarch", "-R", "true"],
                                                     stderr=subprocess.DEVNULL).returncode == 0 else []

        def problem_of(program):
            done = subprocess.run([*narrow, debug, "-W", "ignore", "-X", "dev", "-c", begin + program],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=900,
                                  env=environment)
            leaks = [text for text in LEAK.findall(done.stderr) if "millrace::" in text and MODULE not in text]
            errors = re.findall(r"^==\d+==ERROR: AddressSanitizer.*", done.stderr, re.M)
            if done.returncode != 0 or errors or leaks:
                return f"exit status {done.returncode}, {len(leaks)} leaks\n{''.join(leaks[:3])}\n" \
                       f"{''.join(errors)}\n{done.stdout[-500:]}{done.stderr[-3000:] if not leaks else ''}"
            return None

        report.add("all functions, fifteen times", problem_of(REFERENCES))
        report.add("a forked child drops a batch and a loader", problem_of(FORK))
        for state, program in ENDINGS.items():
            if "thread" not in state:   # of which CPython leaks its stack
                report.add(f"the interpreter ends {state}", problem_of(program))
        for name, program in PLANTED.items():
            report.add(f"{name} is detected", None if problem_of(program) else "not detected")
    return report.close()


if __name__ == "__main__":
    raise SystemExit(main())
