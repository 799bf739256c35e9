# The runner of the error tests accepts valid cases and refuses each kind of invalid ones.
#
#   python3 tests/contract/errors/runner_test.py
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import COMPILERS, Report
from run_error_tests import all_cases, cases_of, check, write_sources

SENTENCE = '__attribute__((unavailable("toy: a number is needed"))) int wants_a_number(int);\n'
MISTAKE = "#if MISTAKE\nint wrong = wants_a_number(1);   // wrong here\n#endif\nint main() {}\n"
RIGHT = "// error: toy: a number is needed\n" + SENTENCE + MISTAKE
ABOVE = "\n// case: other\n// error: other\nint other = MISTAKE;\n\n"   # absent from the source of the next case
TWO_ERRORS = RIGHT.replace("wrong here", "wrong here\nint too = unknown;")
# Description -> (text of the case, expected message of the runner). g++ prints the sentence of a function twice.
CASES = {
    "one sentence, as expected": (RIGHT, None),
    "another sentence": (RIGHT.replace("// error: toy", "// error: other"), "does not match"),
    "no first line": (SENTENCE + MISTAKE, "first line"),
    "no mistake": (RIGHT.replace("#if MISTAKE", "#if 0"), "has no mistake"),
    "two mistakes, as the second has no name": (RIGHT + RIGHT, "2 of its lines end in"),
    "no line is said to be wrong": (RIGHT.replace("// wrong here", ""), "0 of its lines end in"),
    "a mistake that compiles": (RIGHT.replace("wants_a_number(1)", "1"), "must not compile"),
    "no right version": (RIGHT.replace("#endif", "#else\nint wrong = wants_a_number(1);\n#endif"), "must compile"),
    "an error at another line": (RIGHT.replace(" // wrong here", "").replace("#endif", "#endif  // wrong here"),
                                 "topic.cpp:11 is wrong"),
    "an error in a header": ("// error: toy\n#include \"wrong.hpp\"\n" + MISTAKE, "wrong.hpp:2; "),
    "two errors": (TWO_ERRORS, "2 errors"),
    "two errors, as expected": (TWO_ERRORS.replace("\n", "\n// errors: 2\n", 1), None),
    "a limit that it exceeds": (RIGHT.replace("\n", "\n// lines: 1\n", 1), "1 are allowed"),
    "a limit that only quotations exceed": (RIGHT.replace("\n", "\n// lines: 6\n", 1), None),   # g++: 4 and 6
    "a limit that it keeps": (RIGHT.replace("\n", "\n// lines: 14\n", 1), None),
}

NAMED = "// case: one\n" + RIGHT
# Description -> (text of the file, expected message of the runner).
FILES = {
    "two cases": (NAMED + NAMED.replace("one", "two"), None),
    "no case": (RIGHT, "it has no line `// case: NAME`"),
    "a case without a name": (NAMED.replace("one", ""), "line 1: the name of a case"),
    "a case with another name": (NAMED + "\n// case: the second\n", "got 'the second'"),
    "two cases of one name": (NAMED + NAMED, "topic.cpp:8 has the name of the case at topic.cpp:1"),
    "a mistake above the first case": (RIGHT + NAMED, "line 1 is part of a case"),
}


def main():
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        topic = pathlib.Path(folder, "topic.cpp")
        pathlib.Path(folder, "wrong.hpp").write_text("#if MISTAKE\nstatic_assert(false);\n#endif\n" + SENTENCE)
        for name, (text, expected) in FILES.items():
            topic.write_text(text)
            cases, file_problems = all_cases([topic])
            problem = "\n".join(file_problems.values())
            right = expected in problem if expected else not problem and [case.name for case in cases] == ["one", "two"]
            report.add(f"runner: {name}", None if right else f"expected {expected!r}, the runner says {problem!r}")
        topic.write_text(NAMED + NAMED.replace("one", "two"))
        one, two = cases_of(topic, pathlib.Path(folder))
        joined = write_sources([(one, COMPILERS[0]), (two, COMPILERS[1])])
        right = joined == [one] and one.source.exists() and two.source.exists()
        report.add("runner: only the right versions for g++ are joined", None if right else f"joined: {joined}")
        for name, (text, expected) in CASES.items():
            topic.write_text(f"{ABOVE}// case: case\n{text}")
            case = cases_of(topic, pathlib.Path(folder))[-1]
            case.write()
            problems = []
            # Only the first compiler compiles the right version.
            for compiler in COMPILERS[:1] if expected == "must compile" else COMPILERS:
                problem, _ = check(case, compiler)
                if (problem is None) != (expected is None) or (expected and expected not in problem):
                    problems.append(f"{compiler}: expected {expected!r}, the runner says {problem!r}")
            report.add(f"runner: {name}", "\n".join(problems))
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
