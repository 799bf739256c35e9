# What a mistake looks like to the compiler's user: one error, with our sentence, in few lines.
#
#   python3 tests/errors/run_error_tests.py [FOLDER]
#
# Each FOLDER/*.cpp (this folder unless given) opens with
#
#   // error: REGEX            what the one error line must say
#   // lines: 12               optional: at most so many lines of diagnostics; 20 unless said
#
# and holds the mistake under `#if MISTAKE`. With MISTAKE=0 it compiles with g++, all of them joined into one file, and
# each alone only where that fails; with MISTAKE=1 it fails, with g++ and with clang++, with exactly one `error:` line,
# which the REGEX matches.
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import join
from checks import COMPILERS, ROOT, WARNINGS, RememberedPasses, Report, in_parallel, library_flags

INCLUDE = ROOT / "include"
FOLDER = ROOT / "build" / "errors"
MAX_LINES = 20


def command_for(compiler, source, mistake):
    return [compiler, *WARNINGS, "-fsyntax-only", "-fdiagnostics-color=never", f"-DMISTAKE={mistake}", f"-I{INCLUDE}",
            *library_flags("--cflags"), str(source)]


def diagnostics_of(command):
    """(whether it compiled, the lines of its diagnostics without the compilers' closing count of errors)."""
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = [line for line in result.stdout.splitlines() if not re.match(r"\d+ (error|warning)s? generated\.$", line)]
    return result.returncode == 0, lines


def right_versions_compile(sources):
    """Whether all do without their mistakes, as one file."""
    if not sources:
        return True
    FOLDER.mkdir(parents=True, exist_ok=True)
    together = FOLDER / "right_versions.cpp"
    together.write_text(join.joined(sources, sources[0].parent, FOLDER))
    return diagnostics_of(command_for(COMPILERS[0], together, 0))[0]


def check(source, compiler, is_right=False):
    """(problem or None, a remark for the name). Of a file that `is_right` it is known that its right version compiles.
    """
    head = source.read_text().splitlines()[:2]
    wanted = re.match(r"// error: (.+)", head[0] if head else "")
    if not wanted:
        return "its first line is not `// error: REGEX`", ""
    limit = re.match(r"// lines: (\d+)", head[1] if len(head) > 1 else "")
    limit = int(limit[1]) if limit else MAX_LINES

    if compiler == COMPILERS[0] and not is_right:
        compiled, lines = diagnostics_of(command_for(compiler, source, 0))
        if not compiled:
            return "without the mistake it must compile:\n" + "\n".join(lines[:MAX_LINES]), ""
    compiled, lines = diagnostics_of(command_for(compiler, source, 1))
    if compiled:
        return "with the mistake it must not compile, but it does", ""
    errors = [line for line in lines if re.search(r"\berror: ", line)]
    said = "\n".join(lines[:2 * MAX_LINES])
    if len(errors) != 1:
        return f"{len(errors)} errors; exactly one is expected:\n{said}", ""
    if not re.search(wanted[1], errors[0]):
        return f"the error does not match {wanted[1]!r}:\n{said}", ""
    if len(lines) > limit:
        return f"{len(lines)} lines of diagnostics; {limit} are allowed:\n{said}", ""
    return None, f" ({len(lines)} lines)"


def main(folder):
    report = Report()
    sources = sorted(folder.glob("*.cpp"))
    if not sources:
        report.add("errors", f"there is no .cpp file in {folder}")
    passes = RememberedPasses()

    # g++ comes last: meanwhile it is found out whether all right versions compile.
    jobs = [(source, compiler) for compiler in reversed(COMPILERS) for source in sources]
    keys = {(source, compiler): passes.key([__file__, pathlib.Path(__file__).read_text(),
                                            *command_for(compiler, source, 0)], source.read_text(), INCLUDE)
            for source, compiler in jobs}
    remarks = {job: remark for job in jobs if (remark := passes.remark(keys[job])) is not None}
    unknown = [source for source in sources if (source, COMPILERS[0]) not in remarks]
    with ThreadPoolExecutor(1) as pool:
        are_right = pool.submit(right_versions_compile, unknown)

        def remembered_check(job):
            if job in remarks:
                return None, remarks[job]
            source, compiler = job
            problem, remark = check(source, compiler, compiler != COMPILERS[0] or are_right.result())
            if not problem:
                passes.remember(keys[job], remark)
            return problem, remark

        for (source, compiler), (problem, remark) in in_parallel(remembered_check, jobs):
            report.add(f"{source.stem} {compiler}{remark}", problem)
    return report.close()


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent))
