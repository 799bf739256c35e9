# A program that does not build is one failure of its leg. The other programs are built, and their tests run.
#
#   python3 tests/system/leg_test.py
#
# A project of three programs replaces ours: one builds, one lacks its library, and one compiled before but no longer
# does, so that an outdated program exists.
#
# The messages of .ci/setup.sh if it cannot install packages: the test replaces the commands that it calls.
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from checks import ROOT, Report

PROJECT = """
project('millrace', 'cpp')
test('unit_good', executable('unit_good', 'good.cpp'))
test('unit_lacks_library', executable('unit_lacks_library', 'good.cpp', link_args: LIBRARY))
test('unit_was_good', executable('unit_was_good', 'was_good.cpp'))
test('by_python', import('python').find_installation('python3'), args: ['-c', 'pass'])
"""
RUN_A_LEG = """
import sys
sys.path.insert(0, "tests")
from checks import StepFailed
from leg import Leg
leg = Leg("toy")
try:
    is_selected = SELECTED
    units = leg.build([], is_selected)
    leg.run_tests(**({"tests": units} if is_selected else {}))
except StepFailed as problem:
    print(f"broke off: {problem}")
print("counts", leg.passed, leg.failed, leg.skipped)
leg.count("a script", "FAILED  a check\\n        its reason\\n0 passed, 1 failed, 0 skipped\\n")
print("failures:", *leg.failures, sep="|")
"""
GOOD = "int main() { return 0; }\n"
# doctest's output for a failed assertion, far above the end.
FAILS = r"""#include <cstdio>
int main() {
  std::puts("x_test.cpp:7:\nTEST CASE:  one is two\n\nx_test.cpp:9: ERROR: CHECK( 1 == 2 ) is NOT correct!\n"
            "  values: CHECK( 1 == 2 )\n");
  for (int line = 0; line < 200; ++line) std::puts("more");
  return 1;
}
"""
NOT_INSTALLED = "exit 1"


def outcome_of(**commands):
    """Status and output of install_packages with these commands, without a terminal."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in commands.items():
            command = pathlib.Path(folder) / name
            command.write_text(f"#!/bin/sh\n{text}\n")
            command.chmod(0o755)
        done = subprocess.run(["sh", "-c", '. "$1/.ci/setup.sh"; sleep() { :; }; install_packages build', "sh", ROOT],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env=os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"})
    return done.returncode, done.stdout


def expect_refusal(report, name, outcome, words, without):
    status, text = outcome
    good = status != 0 and all(word in text for word in words) and not any(word in text for word in without)
    report.add(name, None if good else f"exit status {status}: {text}")


def check_setup(report):
    user = {"id": "echo 1000", "dpkg-query": NOT_INSTALLED, "apt-get": "exit 100"}
    expect_refusal(report, "the message names a sudo that needs a password, and no mirror",
                   outcome_of(**user, sudo='echo "sudo: a password is required" >&2; exit 1'),
                   ["sudo needs a password", "apt-get install g++"], ["mirror", "one more attempt"])
    expect_refusal(report, "a working sudo is used, and the message names a failing mirror", outcome_of(
        **user, sudo='[ "$1" != -n ] || shift; exec "$@"'), ["package mirror"], ["password"])


def main():
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        for name in (".ci/setup.sh", "tests/leg.py", "tests/checks.py"):
            (root / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, root / name)

        def leg_of(library="[]", was_good=GOOD, is_selected="None"):
            (root / "meson.build").write_text(PROJECT.replace("LIBRARY", library))
            (root / "good.cpp").write_text(GOOD)
            (root / "was_good.cpp").write_text(was_good)
            program = RUN_A_LEG.replace("SELECTED", is_selected)
            done = subprocess.run([sys.executable, "-c", program], cwd=root, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
            return done.stdout

        def expect(name, printed, *parts, without=()):
            wrong = [f"it does not say {part!r}" for part in parts if part not in printed]
            wrong += [f"it says {part!r}" for part in without if part in printed]
            report.add(name, "; ".join(wrong) + f":\n{printed}" if wrong else None)

        expect("all programs build", leg_of(), "counts 4 0 0", without=["FAILED unit"])
        broken = ["FAILED unit_lacks_library does not build", "-lno_such_library",
                  "FAILED unit_was_good does not build", "broken on purpose",
                  "unit_lacks_library is not run", "unit_was_good is not run", "counts 2 2 0"]
        printed = leg_of("'-lno_such_library'", "#error broken on purpose\n")
        expect("two that do not build are two failures, and the others run", printed, *broken, without=["broke off"])
        expect("no outdated program runs", str([path.name for path in (root / "build" / "toy").iterdir()]),
               "'unit_good'", without=["'unit_was_good'", "'unit_lacks_library'"])
        expect("the failures are collected for the end of the run", printed.rpartition("failures:")[2],
               "|  FAILED unit_lacks_library does not build", "|  FAILED a check|    its reason")
        printed = leg_of("[]", "#error broken on purpose\n", "lambda name: 'was' in name")
        expect("none of the selected programs builds", printed, "FAILED unit_was_good does not build", "counts 0 1 0",
               without=["broke off"])
        expect("after the repair, all run again", leg_of(), "counts 4 0 0", without=["FAILED unit"])
        expect("a failed assertion is printed with its test case", leg_of(was_good=FAILS), "TEST CASE:  one is two",
               "x_test.cpp:9: ERROR: CHECK( 1 == 2 ) is NOT correct!", "values: CHECK( 1 == 2 )", "counts 3 1 0")
    check_setup(report)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
