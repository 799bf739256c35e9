# Messages that lead to a header or a flag.
#
# Each name of sources/missing_headers.hpp leads to the header that it names: a call with only the umbrella included is
# an error at the call that names the header. With that header, the call compiles.
#
#   python3 tests/contract/headers/messages.py
#
# Calls are compiled together, one in each line. Types have no message: the compiler shows the line of their
# declaration, whose comment names the header.
#
# Without -std=c++20, the compiler's output is one #error that names the flag, in at most ten lines. The first umbrella
# is compiled as C++14, C++17, gnu++17 and as g++'s default. All umbrellas and all headers with public names
# (tests/contract/lint/boundary.py) are preprocessed alone: a header's own text follows its includes, and the first of
# them contains the #error.
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lint"))
from boundary import OPT_IN, UMBRELLA
from checks import COMPILED, COMPILERS, ROOT, Report, in_parallel, library_flags

INCLUDE = ROOT / "include"
SOURCE = INCLUDE / "millrace" / "sources" / "missing_headers.hpp"
NEEDS = re.compile(r"struct (needs_\w+) \{.*?#include <(millrace/[\w/]+\.hpp)>", re.DOTALL)
FUNCTION = re.compile(r"^[\w:]+ (\w+)\(([^)]+)\);", re.MULTILINE)
TEMPLATE = re.compile(r"#include <(millrace/[\w/]+\.hpp)>\"\)\)\)\n\w+ (\w+)\(\);")
TYPE = re.compile(r"^(?<!>\n)(?:class|struct) (\w+);\s+// millrace: #include <(millrace/[\w/]+\.hpp)>", re.MULTILINE)
# Headers whose libraries may be absent.
OPTIONAL = {"millrace/adapt/remote.hpp": "curl/curl.h", "millrace/adapt/webp.hpp": "webp/decode.h"}
MAX_LINES = 10
MODES = (("g++", "-std=c++17"), ("g++", ""), ("clang++", "-std=gnu++17"), ("clang++", "-std=c++14"))


def calls(text):
    """(call, name, header) of each declared function."""
    headers = dict(NEEDS.findall(text))
    for name, parameters in FUNCTION.findall(text):
        kinds = [re.sub(r".*::", "", p.strip()) for p in parameters.split(",")]
        arguments = ["{.seed = 7}" if kind == "only_a_seed" else '"a"' for kind in kinds]
        yield f"millrace::{name}({', '.join(arguments)})", name, headers[kinds[0]]
    for header, name in TEMPLATE.findall(text):
        yield f"millrace::{name}()", name, header


def output_of(compiler, text):
    all_errors = "-fmax-errors=0" if compiler == "g++" else "-ferror-limit=0"
    done = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", all_errors, "-fdiagnostics-color=never",
                           COMPILED, f"-I{INCLUDE}", *library_flags("--cflags"), "-x", "c++", "-"],
                          input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def sentence_problem(compiler):
    """Problems with the errors of calls without the headers."""
    each = list(calls(SOURCE.read_text()))
    text = "#include <millrace/millrace.hpp>\n" + "".join(f"void f{i}() {{ {call}; }}\n"
                                                          for i, (call, _, _) in enumerate(each))
    _, output = output_of(compiler, text)
    problems = []
    for i, (call, _, header) in enumerate(each):
        errors = [line for line in output.splitlines() if line.startswith(f"<stdin>:{i + 2}:") and "error:" in line]
        if not errors or not all(f"needs #include <{header}>" in line for line in errors):
            problems.append(f"{call} must name {header}:\n" + "\n".join(errors or ["no error"]))
    return "\n".join(problems)


def right_name_problem(compiler):
    """Problems when each name is used with its header."""
    text = SOURCE.read_text()
    names = {(name, header) for _, name, header in calls(text)}
    names |= {(name, header) for name, header in TYPE.findall(text)}
    headers = sorted({header for _, header in names})
    present = {header for header in headers if header not in OPTIONAL or
               output_of(compiler, f"#include <{OPTIONAL[header]}>\n")[0] == 0}
    lines = ["#include <millrace/millrace.hpp>"] + [f"#include <{header}>" for header in sorted(present)]
    lines += ["template <class T> concept is_complete = requires { sizeof(T); };"]
    types = {name for name, _ in TYPE.findall(text)}
    for name, header in sorted(names):
        if header in present and name in types:
            lines.append(f"static_assert(is_complete<millrace::{name}>);")
    for call, name, header in calls(text):
        if header in present and "seed" in call:
            lines.append(f"auto f{len(lines)}() {{ return {call}; }}")
    code, output = output_of(compiler, "\n".join(lines) + "\n")
    return output if code != 0 else None


def standard_problem(job):
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


def check_standard(report, name, jobs):
    problems = {job[0]: problem for job, problem in in_parallel(standard_problem, jobs) if problem}
    report.add(name, f"{len(problems)} fail: {', '.join(problems)}\n{next(iter(problems.values()))}" if problems
               else None)


def check_standards(report):
    umbrellas = [f"millrace/{path.name}" for path in sorted((INCLUDE / "millrace").glob("*.hpp"))
                 if path.name != "src.hpp"]
    public = umbrellas + [f"millrace/{header}" for header in sorted({*UMBRELLA, *OPT_IN})]
    for compiler, mode in MODES:
        check_standard(report, f"millrace.hpp with {compiler} {mode or 'by default'}",
                       [("millrace/millrace.hpp", compiler, ["-fsyntax-only", *mode.split()])])
    for compiler in COMPILERS:
        check_standard(report, f"{len(public)} public headers alone, {compiler}",
                       [(header, compiler, ["-E", "-std=gnu++17"]) for header in public])


def main():
    report = Report()
    jobs = [(f"{what}, {compiler}", check, compiler) for compiler in COMPILERS
            for what, check in (("a call without its header names it", sentence_problem),
                                ("a name with its header is the right one", right_name_problem))]
    for (name, _, _), problem in in_parallel(lambda job: job[1](job[2]), jobs):
        report.add(f"missing headers: {name}", problem)
    check_standards(report)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
