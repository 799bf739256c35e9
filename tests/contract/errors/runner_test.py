# The runner of the error tests accepts what is right and refuses each way of being wrong.
#
#   python3 tests/contract/errors/runner_test.py
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import COMPILERS, Report
from run_error_tests import check

SENTENCE = '__attribute__((unavailable("toy: a number is needed"))) int wants_a_number(int);\n'
MISTAKE = "#if MISTAKE\nint wrong = wants_a_number(1);   // wrong here\n#endif\nint main() {}\n"
RIGHT = "// error: toy: a number is needed\n" + SENTENCE + MISTAKE
TWO_ERRORS = RIGHT.replace("wrong here", "wrong here\nint too = unknown;")
# What the file is like -> (its text, what the runner says about it). (g++ says the sentence of a function twice.)
CASES = {
    "one sentence, as expected": (RIGHT, None),
    "another sentence": (RIGHT.replace("// error: toy", "// error: other"), "does not match"),
    "no first line": (SENTENCE + MISTAKE, "first line"),
    "no line is said to be wrong": (RIGHT.replace("// wrong here", ""), "0 of its lines end in"),
    "a mistake that compiles": (RIGHT.replace("wants_a_number(1)", "1"), "must not compile"),
    "no right version": (RIGHT.replace("#if MISTAKE", "#if 1"), "must compile"),
    "an error at another line": (RIGHT.replace(" // wrong here", "").replace("#endif", "#endif  // wrong here"),
                                 "case.cpp:5 is wrong"),
    "an error in a header": ("// error: toy\n#include \"wrong.hpp\"\n" + MISTAKE, "wrong.hpp:2; "),
    "two errors": (TWO_ERRORS, "2 errors"),
    "two errors, as expected": (TWO_ERRORS.replace("\n", "\n// errors: 2\n", 1), None),
    "a limit that it exceeds": (RIGHT.replace("\n", "\n// lines: 1\n", 1), "1 are allowed"),
    "a limit that quotations alone exceed": (RIGHT.replace("\n", "\n// lines: 6\n", 1), None),   # g++: 4 and 6
    "a limit that it keeps": (RIGHT.replace("\n", "\n// lines: 14\n", 1), None),
}


def main():
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "case.cpp")
        pathlib.Path(folder, "wrong.hpp").write_text("#if MISTAKE\nstatic_assert(false);\n#endif\n" + SENTENCE)
        for name, (text, expected) in CASES.items():
            source.write_text(text)
            problems = []
            # The right version is compiled by the first one alone.
            for compiler in COMPILERS[:1] if expected == "must compile" else COMPILERS:
                problem, _ = check(source, compiler)
                if (problem is None) != (expected is None) or (expected and expected not in problem):
                    problems.append(f"{compiler}: expected {expected!r}, the runner says {problem!r}")
            report.add(f"runner: {name}", "\n".join(problems))
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
