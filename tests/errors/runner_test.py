# The runner of the error tests accepts what is right and refuses each way of being wrong.
#
#   python3 tests/errors/runner_test.py
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from checks import COMPILERS, Report
from run_error_tests import check

SENTENCE = 'template <class T> struct wants_a_number { static_assert(sizeof(T) > 8, "toy: a number is needed"); };\n'
MISTAKE = "#if MISTAKE\nwants_a_number<int> wrong;\n#endif\nint main() {}\n"
RIGHT = "// error: toy: a number is needed\n" + SENTENCE + MISTAKE

# What the file is like -> (its text, what the runner says about it).
CASES = {
    "one sentence, as expected": (RIGHT, None),
    "another sentence": (RIGHT.replace("// error: toy", "// error: other"), "does not match"),
    "no first line": (SENTENCE + MISTAKE, "first line"),
    "a mistake that compiles": (RIGHT.replace("wants_a_number<int> wrong", "int wrong"), "must not compile"),
    "no right version": (RIGHT.replace("#if MISTAKE", "#if 1"), "must compile"),
    "two errors": (RIGHT.replace("wrong;", "wrong;\nwants_a_number<char> too;"), "2 errors"),
    "a limit that it exceeds": (RIGHT.replace("\n", "\n// lines: 1\n", 1), "1 are allowed"),
    "a limit that it keeps": (RIGHT.replace("\n", "\n// lines: 12\n", 1), None),
}


def main():
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "case.cpp")
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
