# The planter accepts a bug whose test fails as expected, and refuses each invalid row.
#
#   python3 tests/cuda/planted/planted_test.py
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from bugs import bug
from checks import ROOT, Report, in_parallel
from planted import BUILD, judge
from planting import TESTS, Edit

HEADER, OLD = "base/random.hpp", "#pragma once\n"
TEST = """#include <millrace/base/random.hpp>
#include <doctest/doctest.h>
#include <csignal>
#ifndef PLANTED
#define PLANTED true
#endif
TEST_CASE("toy") { CHECK(PLANTED); }
"""


def toy(new, old=OLD, red=("check",), header=HEADER):
    return bug(f"toy {header} {new}", "", Edit(header, old, new), red=red)


# Description -> (row, expected message of the planter).
CASES = {
    "a failed check, as expected": (toy(OLD + "#define PLANTED false\n"), None),
    "a header without its ending": (toy("#define PLANTED false\nclass rng {\n", "class rng {\n", header="base/random"),
                                    None),
    "a fault, as expected": (toy(OLD + "#define PLANTED std::raise(SIGSEGV)\n", red=("check", "fault")), None),
    "a fault that was not expected": (toy(OLD + "#define PLANTED std::raise(SIGSEGV) + 1\n"), "not a fault: SIGSEGV"),
    "a bug without effect": (toy(OLD + "#define PLANTED !false\n"), "not detected"),
    "a bug that does not compile": (toy(OLD + "#define PLANTED no such name\n"), "does not compile"),
    "a missing text": (toy("", old="#pragma twice\n"), "must contain the text once"),
    "a text that occurs more than once": (toy("", old="\n"), "must contain the text once"),
}


def main():
    report = Report()
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
        objects = BUILD.common_objects([TESTS / "main.cpp"])
        test = pathlib.Path(folder, "toy_test.cpp")
        test.write_text(TEST)
        report.add("planter: a program that passes", BUILD.check_unplanted(str(test), objects))
        red = pathlib.Path(folder, "red_test.cpp")
        red.write_text(TEST.replace("CHECK(", "CHECK(!"))
        problem = BUILD.check_unplanted(str(red), objects) or ""
        report.add("planter: a program that fails before", None if "must pass" in problem else problem or "ok?")

        jobs = [(row._replace(program=str(test)), objects) for row, _ in CASES.values()]
        for (name, (_, expected)), (_, (problem, _)) in zip(CASES.items(), in_parallel(lambda job: judge(*job), jobs)):
            right = problem is None if expected is None else expected in (problem or "")
            report.add(f"planter: {name}", None if right else f"expected {expected!r}, the planter says {problem!r}")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
