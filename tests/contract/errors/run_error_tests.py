# Checks the compiler's output for a user's mistake: one error, at the user's line, with our sentence, in few lines.
#
#   python3 tests/contract/errors/run_error_tests.py [FOLDER]
#
# Each FOLDER/*.cpp (this folder unless given) has the cases of one topic. A case begins with
#
#   // case: NAME              no other case of the folder has this name
#   // error: REGEX            must match the first error line
#   // lines: 12               optional: maximum of lines without quotations; default 20
#   // errors: 5               optional: maximum of errors; default 1
#   // shows: REGEX            optional: must match another line, such as the quotation of a candidate
#
# and ends before the next one. The lines above the first case belong to every case of the file. A case has the mistake
# under `#if MISTAKE`, and `// wrong here` at the end of the line that the error must name. The runner writes each case
# to its own source, build/errors/cases/NAME.cpp, in which every line keeps its number. With MISTAKE=0, the case must
# compile: the faster compiler compiles all cases of g++ joined into one file, and g++ compiles them separately only if
# that fails. With MISTAKE=1 the case must fail alone, with exactly one `error:` line, which names that line and matches
# the REGEX. Repetitions of an error at one place count once. Both compilers compile the cases of TYPICAL and of changed
# files. One compiler compiles each other case, and the other compiler does so at the next commit (checks.py).
#
# TYPICAL lists mistakes of new users; none of them may be removed. Three of their other mistakes compile now and are
# run: a callable with a unique_ptr, rows of a std::vector of varying length, and an array of images
# (tests/unit/run/calls_test.cpp, session_test.cpp and views_test.cpp).
#
# Each compiler reads run/session.hpp once, as a precompiled header for the files that include it, which saves four
# fifths of the time.
import dataclasses
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))
import join
from checks import (COMPILED, COMPILERS, QUICK_COMPILER, ROOT, WARNINGS, RememberedPasses, Report, have_changed,
                    in_parallel, is_due, library_flags)

INCLUDE = ROOT / "include"
FOLDER = ROOT / "build" / "errors"
CASES = FOLDER / "cases"
CASE = "// case:"
MAX_LINES = 20
QUOTED = re.compile(r"\s*\d*\s+\|")   # newer compilers quote the source for each template instantiation
COMMON = "#include <millrace/run/session.hpp>\n"
TYPICAL = """
    column_of_another_type map_returns_void session_without_batch batch_before_map map_accepts_another_type
    map_arguments_swapped column_is_a_string column_is_an_array_of_texts column_of_vectors
    map_creates_an_immovable_item loop_by_value batch_of_a_member_without_ampersand batch_called_batch_size
    session_called_num_workers batch_of_a_number shuffle_after_batch session_by_equals_sign
    from_a_generator_of_values""".split()


@dataclasses.dataclass(frozen=True)
class Case:
    """One mistake, and its source for the compilers."""
    name: str
    file: pathlib.Path     # its file
    common: tuple          # the lines above the first case of the file
    lines: tuple           # its own, after its name
    number: int            # of the first of them in the file
    source: pathlib.Path

    def text(self):
        return "\n".join([*self.common, *self.lines, ""])

    def write(self):
        """Writes the source. Blank lines replace the other cases, so that each line keeps its number."""
        self.source.parent.mkdir(parents=True, exist_ok=True)
        blank = [""] * (self.number - 1 - len(self.common))
        self.source.write_text("\n".join([*self.common, *blank, *self.lines, ""]))

    def head(self):
        """Its first comment lines."""
        code = next((at for at, line in enumerate(self.lines) if not line.startswith("//")), len(self.lines))
        return "\n".join(self.lines[:code])


def cases_of(file, folder=CASES):
    """The cases of a file; the folder is for their sources. Raises ValueError if a case has no name."""
    lines = file.read_text().splitlines()
    starts = [at for at, line in enumerate(lines) if line.startswith(CASE)]
    if not starts:
        raise ValueError(f"it has no line `{CASE} NAME`")
    common = tuple(lines[:starts[0]])
    for number, line in enumerate(common, 1):
        if re.search(r"^// error:|\bMISTAKE\b|// wrong here$", line):
            raise ValueError(f"line {number} is part of a case, but is above the first line `{CASE} NAME`")
    cases = []
    for start, end in zip(starts, [*starts[1:], len(lines)]):
        name = lines[start].removeprefix(CASE).strip()
        if not re.fullmatch(r"\w+", name):
            raise ValueError(f"line {start + 1}: the name of a case has letters, digits and underscores: got {name!r}")
        cases.append(Case(name, file, common, tuple(lines[start + 1:end]), start + 2, folder / f"{name}.cpp"))
    return cases


def all_cases(files):
    """(the cases, {name of a file or a case: the problem with it})."""
    cases, problems = {}, {}
    for file in files:
        try:
            for case in cases_of(file):
                first = cases.setdefault(case.name, case)
                if first is not case:
                    problems[case.name] = (f"{file.name}:{case.number - 1} has the name of the case at "
                                           f"{first.file.name}:{first.number - 1}")
        except ValueError as problem:
            problems[file.name] = str(problem)
    return list(cases.values()), problems


def flags():
    return [*WARNINGS, COMPILED, f"-I{INCLUDE}", *library_flags("--cflags")]


def common_header(compiler):
    return FOLDER / compiler / "common.hpp"


def precompile(compiler):
    """Precompiles the header that the commands include first if the file includes it."""
    header = common_header(compiler)
    header.parent.mkdir(parents=True, exist_ok=True)
    header.write_text(COMMON)
    subprocess.run([compiler, *flags(), "-x", "c++-header", header, "-o", f"{header}.gch"], check=True)


def command_for(compiler, case, mistake):
    return command_for_source(compiler, case.source, mistake, COMMON in case.text())


def command_for_source(compiler, source, mistake, has_common):
    common = ["-include", str(common_header(compiler))] if has_common else []
    return [compiler, *flags(), *common, "-fsyntax-only", "-fdiagnostics-color=never", f"-DMISTAKE={mistake}",
            str(source)]


def diagnostics_of(command):
    """(whether it compiled, the lines of its diagnostics without the compilers' closing count of errors)."""
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = [line for line in result.stdout.splitlines() if not re.match(r"\d+ (error|warning)s? generated\.$", line)]
    return result.returncode == 0, lines


def right_versions_compile(cases):
    """Whether all cases compile without their mistakes, as one file."""
    if not cases:
        return True
    together = FOLDER / "right_versions.cpp"
    together.write_text(join.joined([case.source for case in cases], CASES, FOLDER))
    return diagnostics_of(command_for_source(QUICK_COMPILER, together, 0, True))[0]


def stated(head, name, otherwise):
    """The number in the head of a case."""
    match = re.search(rf"^// {name}: (\d+)$", head, re.MULTILINE)
    return int(match[1]) if match else otherwise


def check(case, compiler, is_right=False):
    """(problem or None, a remark for the name) of a written source. With `is_right`, its right version is known to
    compile."""
    source, head = case.source, case.head()
    expected = re.match(r"// error: (.+)", head)
    if not expected:
        return "its first line is not `// error: REGEX`", ""
    if not any(re.match(r"#if !?MISTAKE$", line) for line in case.lines):
        return "it has no mistake: expected a line `#if MISTAKE`", ""
    wrong_lines = [number for number, line in enumerate(case.lines, case.number) if line.endswith("// wrong here")]
    if len(wrong_lines) != 1:
        return f"{len(wrong_lines)} of its lines end in `// wrong here`; exactly one is expected", ""
    limit = stated(head, "lines", MAX_LINES)
    max_errors = stated(head, "errors", 1)

    if compiler == COMPILERS[0] and not is_right:
        compiled, lines = diagnostics_of(command_for(compiler, case, 0))
        if not compiled:
            return "without the mistake it must compile:\n" + "\n".join(lines[:MAX_LINES]), ""
    compiled, lines = diagnostics_of(command_for(compiler, case, 1))
    if compiled:
        return "with the mistake it must not compile, but it does", ""
    output = "\n".join(lines[:2 * MAX_LINES]).replace(str(source), str(case.file))
    errors = [match.groups() for line in lines if (match := re.match(r"(.*?):(\d+):(\d+): error: (.*)", line))]
    if not errors:
        return f"no error names a place:\n{output}", ""
    file, number, _, text_of_error = errors[0]
    if (pathlib.Path(file), int(number)) != (source, wrong_lines[0]):
        named = case.file if pathlib.Path(file) == source else file
        return f"the error names {named}:{number}; {case.file.name}:{wrong_lines[0]} is wrong:\n{output}", ""
    # clang repeats the sentence with two descriptions of its subject.
    different = {(*place, sentence.split(" is unavailable: ")[-1]) for *place, sentence in errors}
    if len(different) > max_errors:
        return f"{len(different)} errors; {max_errors} at most are expected:\n{output}", ""
    if not any(re.search(expected[1], sentence) for *place, sentence in errors if place == list(errors[0][:3])):
        return f"the error does not match {expected[1]!r}:\n{output}", ""
    shown = re.search(r"^// shows: (.+)$", head, re.MULTILINE)
    if shown and not any(re.search(shown[1], line) for line in lines):
        return f"no line matches {shown[1]!r}:\n{output}", ""
    line_count = sum(not QUOTED.match(line) for line in lines)
    if line_count > limit:
        return f"{line_count} lines of diagnostics without quotations; {limit} are allowed:\n{output}", ""
    return None, f" ({line_count} lines)"


def write_sources(jobs):
    """Writes the sources of all jobs. Returns the cases whose right versions g++ must compile."""
    for case in {case for case, _ in jobs}:
        case.write()
    return [case for case, compiler in jobs if compiler == COMPILERS[0]]


def main(folder):
    report = Report()
    files = sorted(folder.glob("*.cpp"))
    if not files:
        report.add("errors", f"there is no .cpp file in {folder}")
    cases, problems = all_cases(files)
    for name, problem in problems.items():
        report.add(name, problem)
    if folder == HERE:
        report.add("typical mistakes", ", ".join(f"{name} is missing" for name in TYPICAL
                                                 if name not in {case.name for case in cases}))
    passes = RememberedPasses()

    # g++ is last, because all right versions are checked meanwhile.
    jobs = [(case, compiler) for compiler in reversed(COMPILERS) for case in cases if folder != HERE or
            case.name in TYPICAL or have_changed(case.file) or is_due(case.name) == (compiler == COMPILERS[0])]
    keys = {(case, compiler): passes.key([__file__, pathlib.Path(__file__).read_text(),
                                          *command_for(compiler, case, 0)], case.text(), INCLUDE)
            for case, compiler in jobs}
    remarks = {job: remark for job in jobs if (remark := passes.remark(keys[job])) is not None}
    unknown = [job for job in jobs if job not in remarks]
    for compiler in {compiler for _, compiler in unknown}:
        precompile(compiler)
    with ThreadPoolExecutor(1) as pool:
        are_right = pool.submit(right_versions_compile, write_sources(unknown))

        def remembered_check(job):
            if job in remarks:
                return None, remarks[job]
            case, compiler = job
            problem, remark = check(case, compiler, compiler != COMPILERS[0] or are_right.result())
            if not problem:
                passes.remember(keys[job], remark)
            return problem, remark

        for (case, compiler), (problem, remark) in in_parallel(remembered_check, jobs):
            report.add(f"{case.name} {compiler}{remark}", problem)
    return report.close()


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else HERE))
