# The advice in messages: every header, program, flag, option and member of a call in a string must exist.
#
#   python3 tests/contract/lint/hints.py           # fails and prints strings with missing names
#   python3 tests/contract/lint/hints.py list      # all names in strings
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import ROOT, Report

STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
SPLIT = re.compile(r'"\s*\n\s*"')
HEADER = re.compile(r"millrace/[\w/]+\.hpp")
PROGRAM = re.compile(r"examples/([a-z_]+)")
FLAG = re.compile(r"(inspect|repack)(?: | .* )(--[a-z-]+)")
OPTION = re.compile(r"\b(\w+_options)::(\w+)")
CALL = re.compile(r"\b(batch|shuffle|prefetch|to_device|pack|bucket|expand|metrics|take|mix)\(\{\.(\w+)")


def strings(text):
    """The literals of a source. Adjacent literals are joined."""
    code = re.sub(r"^\s*#include.*$|^\s*//.*$", "", text, flags=re.MULTILINE)
    return STRING.findall(SPLIT.sub("", code))


def members(headers, struct):
    """The members of an options struct, of all structs of that name and of their bases."""
    names = set()
    for text in headers:
        for body in re.findall(r"struct " + struct + r"\b[^{;]*\{(.*?)\n\s*\};", text, re.DOTALL):
            names |= set(re.findall(r"\b(\w+)\s*(?:=[^=;]+|\{[^}]*\})?[;,]", body))
    return names


def problems(root):
    """(name, problem or None) for each name in a string of the library."""
    sources = {p: p.read_text() for p in sorted((root / "include/millrace").rglob("*.*"))
               if p.suffix in (".hpp", ".inl")}
    headers = [t for p, t in sources.items() if p.suffix == ".hpp"]
    programs = {p.stem: p.read_text() for p in (root / "examples").glob("*.cpp")}
    for path, text in sources.items():
        for one in strings(text):
            for name in HEADER.findall(one):
                yield name, None if (root / "include" / name).exists() else f"{path.name}: there is no {name}"
            for name in PROGRAM.findall(one):
                yield "examples/" + name, None if name in programs else f"{path.name}: there is no examples/{name}.cpp"
            for program, flag in FLAG.findall(one):
                exists = f'"{flag}"' in programs.get(program, "")
                yield f"{program} {flag}", None if exists else f"{path.name}: {program} has no {flag}"
            for struct, member in OPTION.findall(one):
                exists = member in members(headers, struct)
                yield f"{struct}::{member}", None if exists else f"{path.name}: {struct} has no {member}"
            for call, member in CALL.findall(one):
                exists = member in members(headers, call + "_options")
                yield f"{call}({{.{member}", None if exists else f"{path.name}: {call}_options has no {member}"


def main(arguments):
    names = sorted(set(problems(ROOT)), key=str)
    if arguments == ["list"]:
        for name, _ in names:
            print(name)
        return 0
    report = Report()
    report.add("hints are recognized", None if len(names) > 40 else f"only {len(names)} names in strings")
    for name, problem in names:
        report.add(f"hint {name}", problem)
    return report.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
