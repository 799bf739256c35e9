# Tests of the tests: bugs that are easy to write are planted one by one, and each has to turn a test program red.
#
#   python3 tests/cuda/planted/planted.py               # all of them
#   python3 tests/cuda/planted/planted.py metrics       # whose name holds this word; passes are not remembered
#   MILLRACE_BRIEF=1 python3 tests/cuda/planted/planted.py          # of each test program every fifth
#
# The table is bugs.py. A planted header lies in build/planted/BUG/include, before include/ on the compiler's path, so
# that the tree itself is never touched. Programs run against the stand-in for the CUDA runtime, whose seeds make the
# device's work late, early and shuffled: no GPU is needed. First each program has to be green as the tree stands.
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from bugs import BUGS
from checks import ROOT, RememberedPasses, Report, in_parallel, launcher, library_flags

INCLUDE, TESTS = ROOT / "include", ROOT / "tests"
FAKE_CUDA = TESTS / "cuda" / "fake"
SCRATCH = ROOT / "build" / "planted"
COMPILER = "clang++"   # without optimisation a third faster than g++
LIMIT_SECONDS = 60
LOCAL_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


class Broken(Exception):
    """Why a row of the table proves nothing."""


def compile_command(source, to, include=()):
    folders = [*include, INCLUDE, FAKE_CUDA / "include", TESTS]
    # doctest is the system's, or what Meson has fetched.
    fetched = [f"-isystem{folder}" for folder in sorted((ROOT / "subprojects").glob("doctest-*/"))]
    return [*launcher(), COMPILER, "-std=c++20", "-O0", "-DMILLRACE_CUDA=1", "-DMILLRACE_FAKE_CUDA=1",
            *(f"-I{folder}" for folder in folders), *fetched, *library_flags("--cflags"), "-c", str(source),
            "-o", str(to)]


def run_or_break(command, what):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Broken(f"{what}\n" + "\n".join(done.stdout.splitlines()[:20]))


def common_objects(sources):
    """What all programs are linked with, compiled once."""
    folder = SCRATCH / "common"
    folder.mkdir(parents=True, exist_ok=True)
    objects = [folder / f"{source.stem}.o" for source in sources]
    for _ in in_parallel(lambda job: run_or_break(compile_command(*job), f"{job[0].name} does not compile"),
                         list(zip(sources, objects))):
        pass
    return objects


def fake_sources():
    return sorted(path for path in FAKE_CUDA.glob("*.cpp") if not path.stem.endswith("_test") and path.stem != "values")


def text_of(source):
    """A file with all that it includes from beside it."""
    found, to_read = {}, [source]
    while to_read:
        path = to_read.pop()
        if path not in found:
            found[path] = path.read_text()
            to_read += [(path.parent / name).resolve() for name in LOCAL_INCLUDE.findall(found[path])]
    return "\n".join(found[path] for path in sorted(found))


def plant(bug, folder):
    """Writes the headers that the bug changes."""
    shutil.rmtree(folder, ignore_errors=True)
    for edit in bug.edits:
        planted = folder / "millrace" / edit.file
        text = (planted if planted.exists() else INCLUDE / "millrace" / edit.file).read_text()
        if text.count(edit.old) != 1:
            raise Broken(f"the text is no longer there, or not once: {edit.file}\n{edit.old}")
        planted.parent.mkdir(parents=True, exist_ok=True)
        planted.write_text(text.replace(edit.old, edit.new))


def outcome_of(program, folder, objects, include=()):
    """('green' | 'check' | 'fault' | 'time-out', what happened where)."""
    folder.mkdir(parents=True, exist_ok=True)
    run_or_break(compile_command(TESTS / program, folder / "test.o", include), "it does not compile")
    run_or_break([COMPILER, folder / "test.o", *objects, "-o", folder / "test", "-pthread", *library_flags("--libs")],
                 "it does not link")
    try:
        done = subprocess.run([folder / "test", "--abort-after=1", "--no-colors=true"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", timeout=LIMIT_SECONDS, cwd=folder)
    except subprocess.TimeoutExpired:
        return "time-out", f"no end within {LIMIT_SECONDS} s"
    cases = re.findall(r"^TEST CASE: +(.*)$", done.stdout, re.MULTILINE)
    where = cases[-1] if cases else done.stdout[-500:]
    if done.returncode == 0:
        return "green", ""
    if done.returncode < 0:
        return "fault", f"{signal.Signals(-done.returncode).name} in: {where}"
    return "check", f"failed: {where}"


def judge(bug, objects):
    """(problem or None, what turned red)."""
    folder = SCRATCH / re.sub(r"\W+", "_", bug.name)
    try:
        plant(bug, folder / "include")
        kind, what = outcome_of(bug.program, folder, objects, [folder / "include"])
    except Broken as problem:
        return str(problem), ""
    if kind == "green":
        return f"nobody notices: {bug.program} stays green", ""
    if kind not in bug.red:
        return f"a {' or '.join(bug.red)} was expected, not a {kind}: {what}", ""
    shutil.rmtree(folder)
    return None, f" ({what})"


def judge_unplanted(program, objects):
    folder = SCRATCH / pathlib.Path(program).stem
    try:
        kind, what = outcome_of(program, folder, objects)
    except Broken as problem:
        return str(problem)
    if kind != "green":
        return f"it has to be green as the tree stands: {what}"
    shutil.rmtree(folder)
    return None


def main(words):
    report = Report()
    bugs = [bug for bug in BUGS if all(word in bug.name for word in words)]
    if os.environ.get("MILLRACE_BRIEF") and not words:
        bugs = [bug for program in sorted({bug.program for bug in BUGS})
                for bug in [bug for bug in BUGS if bug.program == program][::5]]
    if not bugs:
        report.add("planted", "no bug has such a name")
        return report.close()
    passes = RememberedPasses()
    runner = [text_of(source) for source in fake_sources()] + [pathlib.Path(__file__).read_text()]

    def key(program, *planted):
        command = [*compile_command(TESTS / program, "test.o"), *library_flags("--libs"), *runner, *map(repr, planted)]
        return passes.key(command, text_of(TESTS / program), INCLUDE)

    keys = {name: key(name) for name in sorted({bug.program for bug in bugs})} | {bug: key(bug.program, bug)
                                                                                for bug in bugs}
    if words:
        remembered = {}
    else:
        remembered = {what: remark for what, at in keys.items() if (remark := passes.remark(at)) is not None}
    objects = [] if len(remembered) == len(keys) else common_objects([TESTS / "main.cpp", *fake_sources()])
    red_already = set()

    def settle(what):
        if what in remembered:
            return None, remembered[what]
        if isinstance(what, str):
            problem, remark = judge_unplanted(what, objects), ""
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
