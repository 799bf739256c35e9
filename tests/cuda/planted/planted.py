# Tests of the tests: plants easy bugs one by one. At least one test program must fail with each.
#
#   python3 tests/cuda/planted/planted.py               # all of them
#   python3 tests/cuda/planted/planted.py metrics       # whose name contains this word; passes are not cached
#   python3 tests/cuda/planted/planted.py --texts       # only checks that each still applies
#   MILLRACE_BRIEF=1 python3 tests/cuda/planted/planted.py          # one for each test program
#
# The table is bugs.py. Planted headers are stored in build/planted/BUG/include, which precedes include/ on the
# compiler's path, so that the tree itself is never changed. Programs use the fake CUDA runtime, which runs
# the device's work late, early and shuffled, so no GPU is needed. First, each program must pass with the unchanged
# tree, except with one bug for each program, because other legs run the unchanged programs.
import os
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import planting
from bugs import BUGS
from checks import ROOT, RememberedPasses, Report, in_parallel, is_due, library_flags
from planting import INCLUDE, TESTS, Broken, Build, folder_for, plant

FAKE_CUDA = TESTS / "cuda" / "fake"
FAKE_SOURCE = FAKE_CUDA / "fake_cuda.cpp"
WRAPPED_CALLS = TESTS / "cuda" / "contract" / "wrapped_calls.cpp"
# Without optimization, clang++ is a third faster than g++.
BUILD = Build("clang++", ["-O0"], ROOT / "build" / "planted", ("-DMILLRACE_CUDA=1", "-DMILLRACE_FAKE_CUDA=1"),
              (FAKE_CUDA / "include",))
LOCAL_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def text_of(source):
    """A file with its local includes."""
    texts, to_read = {}, [source]
    while to_read:
        path = to_read.pop()
        if path not in texts:
            texts[path] = path.read_text()
            to_read += [(path.parent / name).resolve() for name in LOCAL_INCLUDE.findall(texts[path])]
    return "\n".join(texts[path] for path in sorted(texts))


def judge(bug, objects):
    """(problem or None, description of the failure)."""
    folder = folder_for(BUILD.scratch, bug.name)
    try:
        plant(bug.edits, folder / "include")
        kind, description = BUILD.outcome_of(bug.program, folder, objects, [folder / "include"])
    except Broken as problem:
        return str(problem), ""
    if kind == "green":
        return f"not detected: {bug.program} passes", ""
    if kind not in bug.red:
        return f"a {' or '.join(bug.red)} was expected, not a {kind}: {description}", ""
    shutil.rmtree(folder)
    return None, f" ({description})"


def main(words):
    report = Report()
    if words == ["--texts"]:
        report.add(f"the headers contain the texts of {len(BUGS)} bugs, once each",
                   planting.lost_text(BUILD.scratch, {bug.name: bug.edits for bug in BUGS}))
        return report.close()
    bugs = [bug for bug in BUGS if all(word in bug.name for word in words)]
    brief = os.environ.get("MILLRACE_BRIEF") and not words
    if brief:
        bugs = [bug for bug in {bug.program: bug for bug in BUGS}.values() if is_due(f"planted {bug.program}")]
    if not bugs:
        report.add("planted", "no bug has such a name")
        return report.close()
    passes = RememberedPasses()
    runner = [text_of(source) for source in (FAKE_SOURCE, WRAPPED_CALLS)]
    runner += [pathlib.Path(script).read_text() for script in (__file__, planting.__file__)]

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
    objects = [] if len(remembered) == len(keys) else BUILD.common_objects(
        [TESTS / "main.cpp", FAKE_SOURCE, WRAPPED_CALLS])
    objects += [f"-Wl,--wrap={name}" for name in re.findall(r"^MILLRACE_COUNTED\(\w+, (\w+)", text_of(WRAPPED_CALLS),
                                                            re.MULTILINE)]
    red_already = set()

    def settle(what):
        if what in remembered:
            return None, remembered[what]
        if isinstance(what, str):
            problem, remark = BUILD.check_unplanted(what, objects), ""
        elif what.program in red_already:
            problem, remark = f"{what.program} fails without it", ""
        else:
            problem, remark = judge(what, objects)
        if not problem and not words:
            passes.remember(keys[what], remark)
        return problem, remark

    programs, planted = [what for what in keys if isinstance(what, str)], [what for what in keys if what in BUGS]
    for program, (problem, remark) in in_parallel(settle, programs):
        report.add(f"{program} with the unchanged tree{remark}", problem)
        if problem:
            red_already.add(program)
    for bug, (problem, remark) in in_parallel(settle, planted):
        report.add(f"planted: {bug.name}{remark}", problem)
    return report.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
