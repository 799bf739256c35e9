# The style of the sources in include/, examples/ and bench/: clang-format 19 with .clang-format changes no file.
#
#   python3 tests/contract/lint/format.py          # fails, and prints the first change of each file
#   python3 tests/contract/lint/format.py fix      # formats the files
#
# Other versions of clang-format format some code differently, and are not used.
import difflib
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import ROOT, Report, in_parallel

VERSION = 19
FOLDERS = ("include", "examples", "bench")
KINDS = (".hpp", ".inl", ".inc", ".cpp", ".cu", ".cuh")


def formatter():
    """The name of clang-format 19, or None."""
    for name in f"clang-format-{VERSION}", "clang-format":
        if shutil.which(name):
            version = subprocess.run([name, "--version"], capture_output=True, text=True, check=True).stdout
            if f"version {VERSION}." in version:
                return name
    return None


def sources(root):
    return sorted(p for folder in FOLDERS for p in (root / folder).rglob("*") if p.suffix in KINDS and p.is_file())


def formatted(name, path):
    return subprocess.run([name, f"--style=file:{ROOT / '.clang-format'}", path], capture_output=True, text=True,
                          check=True).stdout


def problem_of(name, path):
    """The first lines that clang-format changes in a file, or None."""
    before, after = path.read_text().splitlines(), formatted(name, path).splitlines()
    if before == after:
        return None
    changes = list(difflib.unified_diff(before, after, lineterm="", n=0))[2:10]
    return "\n".join(["`python3 tests/contract/lint/format.py fix` formats it:"] + changes)


def main(arguments):
    name = formatter()
    report = Report()
    if name is None:
        report.skip("format", f"clang-format {VERSION} is not installed: install the package clang-format-{VERSION}")
        return report.close()
    paths = sources(ROOT)
    if arguments == ["fix"]:
        for path, text in in_parallel(lambda path: formatted(name, path), paths):
            if path.read_text() != text:
                path.write_text(text)
        return 0
    for path, problem in in_parallel(lambda path: problem_of(name, path), paths):
        if problem:
            report.add(str(path.relative_to(ROOT)), problem)
    if report.failed == 0:
        report.add(f"the format of {len(paths)} files")
    return report.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
