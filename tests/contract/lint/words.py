# Counts the words of CONTRIBUTING.md's table in comments, strings and documents, and the names that are participles.
# Each row has an allowance, which only falls.
#
#   python3 tests/contract/lint/words.py                   # the counts; fails where one differs from its allowance
#   python3 tests/contract/lint/words.py behind [PATH]     # each use of a row, below PATH
#   python3 tests/contract/lint/words.py --root FOLDER     # the counts of another tree
#   python3 tests/contract/lint/words.py --files           # the number of uses in each file
import argparse
import collections
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import ROOT, Report
from tree import Tree, allowance_problem

ROWS = {
    "behind": r"\bbehind\b",
    "beside": r"\bbesides?\b",
    "tell": r"\b(tells?|told|telling)\b",
    "what": r"(?<![/\w.])what\b(?![()])",
    "lie_stand": r"\b(lies?|lying|lay|stands?|stood|standing)\b",
    "whole": r"\bwholes?\b",
    "go_on": r"\b(go|goes|going|went|gone) on\b",
    "of_its_own": r"\bof (its|his|her|their|your|my|our|one's) own\b|\bof (yours|mine|ours|theirs)\b",
    "come": r"\b(comes?|came|coming)\b",
    "picture": r"(?<![\w:`.])[Pp]ictures?\b(?![:(<{`.]\w|`)",
    "figures": r"\bfigures?\b",
    "border": r"\bborders?\b",
    "so_many": r"\bso (many|much)\b",
    "So": r"(?:^|(?<=[.!?:] ))So\b(?! far)",
    "take": r"\b(takes?|took|taken|taking)\b",
    "is_no": r"\b(is|are|was|were) no (?!longer|more\b)\w",
    "by_itself": r"\bby (itself|themselves|chance|hand)\b",
    "anew": r"\banew\b|\bonce more\b",
    "look_at": r"\blook(s|ed|ing)? (at|up)\b",
    "make": r"\b(makes?|made|making)\b",
    "give": r"\b(gives?|gave)\b",
    "hold": r"\b(holds?|held|holding)\b",
}
# The uses that remain are names of options, file kinds, formats and stages (take), code in strings, and questions.
ALLOWED = {"behind": 2, "beside": 0, "tell": 2, "what": 20, "lie_stand": 1, "whole": 3, "go_on": 0, "of_its_own": 5,
           "come": 6, "picture": 65, "figures": 16, "border": 8, "so_many": 0, "So": 0, "take": 61, "is_no": 17,
           "by_itself": 0, "anew": 0, "look_at": 3, "make": 29, "give": 5, "hold": 11}
ALLOWED_NAMES = 2
# Words that are names of a kind of thing or of a state in the field: `read`, `used`, `built`, `done` and so on as
# functions or flags are judged by a reader; these are always participles.
NAMES = """asked bought brought caught chosen drawn fallen found foreseen forgotten gained given gone handed heard held
    kept known laid lent made meant noted proven said seen shown spoken stood taken thrown told tried understood wanted
    whole wished""".split()
LITERAL = re.compile(r'R"([^()\\\s]*)\((?P<raw>.*?)\)\1"|"(?P<text>(?:\\.|[^"\\\n])*)"|//(?P<comment>[^\n]*)|'
                     r"/\*(?P<block>.*?)\*/|(?<![0-9a-zA-Z])'(?:\\.|[^'\\\n])+'", re.DOTALL)
PYTHON = re.compile(r'[rbf]{0,2}"""(?P<raw>.*?)"""|[rbf]{0,2}"(?P<text>(?:\\.|[^"\\\n])*)"|#(?P<comment>[^\n]*)|'
                    r"[rbf]{0,2}'(?P<block>(?:\\.|[^'\\\n])*)'", re.DOTALL)
EXCLUDED = ("tests/contract/lint/", "tests/system/frozen/", "bench/history.md")
DECLARED = re.compile(r"(?:(?:[\w>\])]|\bauto)[&*]{0,2}\s+[&*]{0,2}|\bauto&{1,2}\s|[(,\[]\s*)(?P<name>%s)_?"
                      r"\s*(?=[={;,)\]:([])" % "|".join(NAMES))
KEYWORD = re.compile(r"\b(return|throw|not|else|co_return|case|and|or|new|delete|if|while)\s+$")


def spans(path, text):
    """(offset, text) of all comments, strings and paragraphs of a file."""
    if path.endswith(".md"):
        code = False
        offset = 0
        for line in text.splitlines(keepends=True):
            if line.lstrip().startswith("```"):
                code = not code
            elif not code:
                yield offset, re.sub(r"`[^`]*`", lambda m: " " * len(m[0]), line)
            offset += len(line)
        return
    pattern = PYTHON if path.endswith((".py", ".sh", "meson.build", ".txt", "run")) else LITERAL
    for match in pattern.finditer(text):
        for name in ("raw", "text", "comment", "block"):
            if match[name] is not None:
                yield match.start(name), re.sub(r"`[^`\n]*`", lambda m: " " * len(m[0]), match[name])


def declares(text):
    """(offset, name) of declarations whose name is a participle: variables, parameters, members and functions."""
    bare = LITERAL.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    for match in DECLARED.finditer(bare):
        before = bare[max(0, match.start("name") - 40):match.start("name")]
        after = bare[match.end():match.end() + 12].lstrip()
        binding = re.search(r"auto[&*\s]*(const)?[&\s]*\[[\w\s,]*$", before)
        typed = re.search(r"(?:[\w>]|\bauto)\s*[&*]*\s+[&*]*$|[\w>][&*]+\s?$|\bauto&{0,2}\s$", before)
        if binding or (typed and not KEYWORD.search(before) and not after.startswith("==")):
            yield match.start("name"), match["name"]


class Words:
    def __init__(self, root):
        self.sources = {path: text for path, text in Tree(root).sources.items() if not path.startswith(EXCLUDED)}
        self.spans = {path: list(spans(path, text)) for path, text in self.sources.items()}   # all rows read them

    def uses(self, row, below=""):
        pattern = re.compile(ROWS[row], re.I if row not in ("So",) else 0)
        for path, text in self.sources.items():
            if path.startswith(below):
                for offset, content in self.spans[path]:
                    for word in pattern.finditer(content):
                        yield path, text.count("\n", 0, offset + word.start()) + 1, content, word

    def names(self, below=""):
        for path, text in self.sources.items():
            if path.startswith(below) and path.endswith((".hpp", ".inl", ".cuh", ".cpp", ".cu")):
                for offset, name in declares(text):
                    yield path, text.count("\n", 0, offset) + 1, name


def show(words, row, below):
    if row == "names":
        for path, line, name in words.names(below):
            print(f"{path}:{line}: {name}")
        return
    for path, line, content, word in words.uses(row, below):
        shown = content[max(0, word.start() - 60):word.end() + 40].replace("\n", " ")
        print(f"{path}:{line}: {shown.strip()}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("row", nargs="?", choices=[*ROWS, "names"])
    parser.add_argument("below", nargs="?", default="")
    parser.add_argument("--root", default=ROOT)
    parser.add_argument("--files", action="store_true")
    options = parser.parse_args()
    words = Words(options.root)
    if options.row:
        show(words, options.row, options.below)
        return 0
    if options.files:
        counts = collections.Counter()
        for row in ROWS:
            counts.update(use[0] for use in words.uses(row))
        counts.update(path for path, _, _ in words.names())
        for path, count in counts.most_common():
            print(f"{count:5} {path}")
        return 0
    report = Report()
    for row, allowed in [*ALLOWED.items(), ("names", ALLOWED_NAMES)]:
        count = sum(1 for _ in (words.names() if row == "names" else words.uses(row)))
        report.add(f"words {row}: {count}",
                   allowance_problem(count, allowed, f"python3 tests/contract/lint/words.py {row}"))
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
