# Compares the code of two trees without comments: a change of words leaves the tokens equal but for names and messages.
#
#   python3 tests/contract/lint/same_code.py COMMIT            # this working tree against COMMIT
#   python3 tests/contract/lint/same_code.py COMMIT --table    # and the table of names that changed
#
# Files are paired as git detects renames. Strings that follow one another are one string. A file differs if its tokens
# differ by more than identifiers and strings. Names to read: an old name with several new ones in a file, and a new
# name that the file used for something else. They may be right, since scopes differ; compilers and tests decide.
import argparse
import collections
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import ROOT, Report

KINDS = (".hpp", ".inl", ".cpp", ".cuh", ".cu", ".inc")
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"([^()\\\s]*)\(.*?\)\1"|(?:u8|u|U|L)?"(?:\\.|[^"\\\n])*"|'
                   r"(?<![0-9a-zA-Z])'(?:\\.|[^'\\\n])+'|[A-Za-z_]\w*|\d[\w.']*|\\\n|\s+|[^\w\s]", re.DOTALL)
NAME = re.compile(r"[A-Za-z_]\w*$")


def is_string(token):
    return token.endswith('"')


def tokens(text):
    """(line, token) without comments and spaces; adjacent strings are joined, and so are the paths of includes."""
    result = []
    line = 1
    for match in TOKEN.finditer(text):
        token = match[0]
        if not (token.startswith(("//", "/*")) or token.isspace() or token == "\\\n"):
            if is_string(token) and result and is_string(result[-1][1]) and not token.startswith("R"):
                result[-1] = (result[-1][0], result[-1][1][:-1] + token[token.index('"') + 1:])
            else:
                result.append((line, token))
        line += token.count("\n")
    return result


def git(*arguments):
    return subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, capture_output=True, text=True).stdout


def changed_files(commit):
    """(old path or None, new path or None) of each changed source file."""
    for line in git("diff", "--name-status", "-M50%", commit, "--").splitlines():
        kind, *paths = line.split("\t")
        if paths[-1].endswith(KINDS):
            yield (None if kind == "A" else paths[0]), (None if kind == "D" else paths[-1])


def compare(old, new, names, strings):
    """(the first place where code differs, or None; names to read). Fills the tables of names and strings."""
    before, after = tokens(old), tokens(new)
    unchanged = set()
    renamed = collections.defaultdict(set)
    for (_, a), (line, b) in zip(before, after):
        if a == b:
            unchanged.add(a)
        elif is_string(a) and is_string(b):
            strings[a, b] += 1
        elif NAME.match(a) and NAME.match(b):
            renamed[a].add(b)
            names[a, b] += 1
        else:
            return f"line {line}: {a} became {b}", []
    if len(before) != len(after):
        return f"{len(before)} tokens became {len(after)}", []
    return None, [f"{a} became {', '.join(sorted(b))}" for a, b in renamed.items() if len(b) > 1 or b & unchanged]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("commit")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    report, names, strings = Report(), collections.Counter(), collections.Counter()
    for old, new in changed_files(options.commit):
        if not (old and new):
            report.add(f"{old or new}", "the file was " + ("added" if new else "removed"))
            continue
        problem, to_read = compare(git("show", f"{options.commit}:{old}"), (ROOT / new).read_text(), names, strings)
        report.add(new + (f": to read: {'; '.join(to_read)}" if to_read else ""), problem)
    if options.table:
        for (a, b), count in sorted(names.items()):
            print(f"name    {a} -> {b} ({count})")
        for (a, b), count in sorted(strings.items()):
            print(f"string  {a}\n     -> {b} ({count})")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
