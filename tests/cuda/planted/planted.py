# Tests of the tests: bugs that are easy to write are planted one by one, and each has to turn a test program red.
#
#   python3 tests/cuda/planted/planted.py               # all of them
#   python3 tests/cuda/planted/planted.py metrics       # whose name holds this word; passes are not remembered
#   MILLRACE_BRIEF=1 python3 tests/cuda/planted/planted.py          # one for each test program
#
# The table is bugs.py. A planted header lies in build/planted/BUG/include, before include/ on the compiler's path, so
# that the tree itself is never touched. Programs run against the stand-in for the CUDA runtime, whose seeds make the
# device's work late, early and shuffled: no GPU is needed. First each program has to be green as the tree stands, but
# not where one is planted for each: other legs run the programs as they are.
import os
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import planting
from bugs import BUGS
from checks import ROOT, RememberedPasses, Report, in_parallel, library_flags
from planting import INCLUDE, TESTS, Broken, Build, folder_for, plant

FAKE_CUDA = TESTS / "cuda" / "fake"
FAKE_SOURCE = FAKE_CUDA / "fake_cuda.cpp"
# Without optimisation clang++ is a third faster than g++.
BUILD = Build("clang++", ["-O0"], ROOT / "build" / "planted", ("-DMILLRACE_CUDA=1", "-DMILLRACE_FAKE_CUDA=1"),
              (FAKE_CUDA / "include",))
LOCAL_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def text_of(source):
    """A file with all that it includes from beside it."""
    found, to_read = {}, [source]
    while to_read:
        path = to_read.pop()
        if path not in found:
            found[path] = path.read_text()
            to_read += [(path.parent / name).resolve() for name in LOCAL_INCLUDE.findall(found[path])]
    return "\n".join(found[path] for path in sorted(found))


def judge(bug, objects):
    """(problem or None, what turned red)."""
    folder = folder_for(BUILD.scratch, bug.name)
    try:
        plant(bug.edits, folder / "include")
        kind, what = BUILD.outcome_of(bug.program, folder, objects, [folder / "include"])
    except Broken as problem:
        return str(problem), ""
    if kind == "green":
        return f"nobody notices: {bug.program} stays green", ""
    if kind not in bug.red:
        return f"a {' or '.join(bug.red)} was expected, not a {kind}: {what}", ""
    shutil.rmtree(folder)
    return None, f" ({what})"


def main(words):
    report = Report()
    bugs = [bug for bug in BUGS if all(word in bug.name for word in words)]
    brief = os.environ.get("MILLRACE_BRIEF") and not words
    if brief:
        bugs = list({bug.program: bug for bug in BUGS}.values())
    if not bugs:
        report.add("planted", "no bug has such a name")
        return report.close()
    passes = RememberedPasses()
    runner = [text_of(FAKE_SOURCE)] + [pathlib.Path(script).read_text() for script in (__file__, planting.__file__)]

    def key(program, *planted):
        command = [*BUILD.compile_command(TESTS / program, "test.o"), *library_flags("--libs"), *runner,
                   *map(repr, planted)]
        return passes.key(command, text_of(TESTS / program), INCLUDE)

    keys = {} if brief else {name: key(name) for name in sorted({bug.program for bug in bugs})}
    keys |= {bug: key(bug.program, bug) for bug in bugs}
    if words:
        remembered = {}
    else:
        remembered = {what: remark for what, at in keys.items() if (remark := passes.remark(at)) is not None}
    objects = [] if len(remembered) == len(keys) else BUILD.common_objects([TESTS / "main.cpp", FAKE_SOURCE])
    red_already = set()

    def settle(what):
        if what in remembered:
            return None, remembered[what]
        if isinstance(what, str):
            problem, remark = BUILD.check_unplanted(what, objects), ""
        elif what.program in red_already:
            problem, remark = f"{what.program} is red without it", ""
        else:
            problem, remark = judge(what, objects)
        if not problem and not words:
            passes.remember(keys[what], remark)
        return problem, remark

    programs, planted = [what for what in keys if isinstance(what, str)], [what for what in keys if what in BUGS]
    for program, (problem, remark) in in_parallel(settle, programs):
        report.add(f"{program} as the tree stands{remark}", problem)
        if problem:
            red_already.add(program)
    for bug, (problem, remark) in in_parallel(settle, planted):
        report.add(f"planted: {bug.name}{remark}", problem)
    return report.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
