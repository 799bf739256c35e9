# format.py detects a file that clang-format would change, and accepts a formatted file.
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import Report
import format

RIGHT = "int f(int a) { return a; }\n"
WRONG = "int f( int a ) {return a;}\n"


def main():
    report = Report()
    name = format.formatter()
    if name is None:
        report.skip("format", "clang-format is not installed")
        return report.close()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "include/a.hpp"
        path.parent.mkdir()
        path.write_text(RIGHT)
        listed = format.sources(pathlib.Path(folder))
        report.add("the sources of a tree", None if listed == [path] else f"got {listed}")
        problem = format.problem_of(name, path)
        report.add("a formatted file", problem)
        path.write_text(WRONG)
        problem = format.problem_of(name, path)
        detected = problem and "-int f( int a )" in problem and "+int f(int a)" in problem
        report.add("a file with other spaces", None if detected else f"got {problem}")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
