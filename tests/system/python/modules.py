# Compiles the modules and programs that the tests of the Python door share: the longest first, one per core at a time.
#
#   python3 tests/system/python/modules.py                 # all
#   python3 tests/system/python/modules.py recipes loop    # some of them
import subprocess
import sys

import clash
import door
import recipes
import streams
from checks import in_parallel


def debug():
    """The module of module.cpp for the debug build of Python, if it is installed."""
    python = door.debug_python()
    if python:
        program = f"import sys; sys.path[:0] = {[str(door.HERE), sys.path[0]]!r}; import door; door.flows()"
        subprocess.run([python, "-c", program], check=True)


MODULES = {"library": door.library, "first": lambda: clash.pair("first", "header-only"), "streams": streams.load,
           "flows": door.flows, "debug": debug, "recipes": recipes.load, "loop": door.loop,
           "pair": lambda: [clash.pair(name, "compiled") for name in ("first", "second")],
           "photos": door.photos}


def compile_one(name):
    """Returns the output of a failed compilation, or None."""
    done = subprocess.run([sys.executable, __file__, "--one", name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    return None if done.returncode == 0 else done.stdout[-4000:]


def main(names):
    report = door.Report()
    door.enter(report)
    if names[:1] == ["--one"]:
        MODULES[names[1]]()
        return 0
    for name, problem in in_parallel(compile_one, names or MODULES):
        report.add(f"{name} compiles", problem)
    return report.close()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
