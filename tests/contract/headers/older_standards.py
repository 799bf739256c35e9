# The compiler's output without -std=c++20: one #error that names the flag, in at most ten lines.
#
#   python3 tests/contract/headers/older_standards.py
#
# The first umbrella is compiled as C++14, C++17, gnu++17 and as g++'s default. All umbrellas and all headers with
# public names (tests/contract/lint/boundary.py) are preprocessed alone: a header's own text follows its includes, and
# the first of them contains the #error.
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lint"))
from boundary import OPT_IN, UMBRELLA
from checks import COMPILERS, ROOT, Report, in_parallel

INCLUDE = ROOT / "include"
MAX_LINES = 10
MODES = (("g++", "-std=c++17"), ("g++", ""), ("clang++", "-std=gnu++17"), ("clang++", "-std=c++14"))


def problem_with(job):
    header, compiler, flags = job
    result = subprocess.run([compiler, *flags, f"-I{INCLUDE}", "-fdiagnostics-color=never", "-x", "c++", "-", "-o",
                             "/dev/null"], input=f"#include <{header}>\n", stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)
    lines = result.stdout.splitlines()
    output = "\n".join(lines[:MAX_LINES + 5])
    if result.returncode == 0:
        return "it compiles"
    if not any("error: " in line and "Millrace needs C++20" in line and "-std=c++20" in line for line in lines):
        return f"no #error names -std=c++20:\n{output}"
    return f"{len(lines)} lines; {MAX_LINES} are allowed:\n{output}" if len(lines) > MAX_LINES else None


def check(report, name, jobs):
    problems = {job[0]: problem for job, problem in in_parallel(problem_with, jobs) if problem}
    report.add(name, f"{len(problems)} fail: {', '.join(problems)}\n{next(iter(problems.values()))}" if problems
               else None)


def main():
    report = Report()
    umbrellas = [f"millrace/{path.name}" for path in sorted((INCLUDE / "millrace").glob("*.hpp"))
                 if path.name != "src.hpp"]
    public = umbrellas + [f"millrace/{header}" for header in sorted({*UMBRELLA, *OPT_IN})]
    for compiler, mode in MODES:
        check(report, f"millrace.hpp with {compiler} {mode or 'by default'}",
              [("millrace/millrace.hpp", compiler, ["-fsyntax-only", *mode.split()])])
    for compiler in COMPILERS:
        check(report, f"{len(public)} public headers alone, {compiler}",
              [(header, compiler, ["-E", "-std=gnu++17"]) for header in public])
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
