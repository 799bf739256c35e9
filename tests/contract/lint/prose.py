# Plain language: counts violations in comments and documents. Each rule has an allowance, which only falls.
#
#   python3 tests/contract/lint/prose.py             # the counts; fails if one differs from its allowance
#   python3 tests/contract/lint/prose.py openings    # the violations of a rule
#
# Sentences are those of comments in include/millrace, of README.md files and of examples/guide. Retired words are
# searched in all code, comments and messages except CHANGELOG.md, tests/system/frozen and names inside formats.
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import ROOT, Report
from tree import COMMENT_OR_STRING, Tree, allowance_problem

# The remaining retired words are names inside formats: counts, JSON members, and the tests that read them.
ALLOWED = {"openings": 0, "whoever": 0, "long_sentences": 0, "retired_words": 3, "is_no": 0, "british": 0}
MAX_WORDS = 30
OPENING = re.compile(r"^(Of|What|Who|Whom|Whose|That|Whoever|So many)\b")
RETIRED = re.compile(r"\b(intakes?|pumps?|tally|seats?|stretch(es)?|renormalis\w*|foreign_counts|kept_predictions|"
                     r"lane_plan|planned_source|part_order|source_reading|stretch_cache|copying_delivery|"
                     r"seat_\w+|when_dry|released_elsewhere|ranks_from_launcher|mixing_\w+|own decoder|runs? dry|"
                     r"most_\w+|has_room|room_freed|draw_crop|planned_sample|rows_of_place|crop_draw)\b",
                     re.I)
BRITISH = re.compile(r"\b\w*(colour|neighbour|behaviour|favour|normalis|tokenis|initialis|optimis|recognis|serialis|"
                     r"quantis|synchronis|grey\b|centre\b|catalogue\b)\w*", re.I)


def comments(text):
    """(line, text) of each comment: consecutive lines that begin with // are one, without their indented examples."""
    block, first = [], 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        match = re.match(r"\s*///?<?(.*)$", line)
        trailing = None if match else re.search(r"(?<!:)//[/<]*(.*)$", COMMENT_OR_STRING.sub(
            lambda m: m[0] if m[0].startswith("//") else '""', line))
        if match and not match[1].startswith("   "):
            if not match[1].strip() and block:
                yield first, " ".join(block)
                block = []
            elif match[1].strip():
                first = first if block else number
                block.append(match[1].strip())
        else:
            if block:
                yield first, " ".join(block)
                block = []
            if trailing and trailing[1].strip():
                yield number, trailing[1].strip()


def paragraphs(text):
    """(line, text) of each paragraph and list entry of a document, without tables and code."""
    block, first, in_code = [], 0, False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        starts = re.match(r"\s*([-*]|\d+\.) ", line)
        if line.startswith("```"):
            in_code = not in_code
        if not line.strip() or starts or in_code or line.startswith(("```", "|", "#", ">")):
            if block:
                yield first, " ".join(block)
            block = []
        if line.strip() and not in_code and not line.startswith(("```", "|", "#")):
            first = first if block else number
            block.append(re.sub(r"^\s*([-*>]|\d+\.)? *", "", line))


def sentences(text):
    text = re.sub(r"`[^`]*`|\b[\w:]+\([^)]*\)", "x", text)
    return [s.strip() for s in re.split(r"(?<=[.!?])[*)]*\s+|(?<=\w[:;])\s|\s- ", text) if s.strip()]


class Prose:
    def __init__(self, root):
        self.tree = Tree(root)

    def texts(self):
        for path, text in self.tree.headers.items():
            for line, comment in comments(text):
                yield f"include/millrace/{path}", line, comment
        documents = ["README.md", "examples/README.md", "tests/README.md", "include/millrace/README.md",
                     *(path for path in self.tree.named(".md") if path.startswith("examples/guide/"))]
        for path in documents:
            for line, paragraph in paragraphs(self.tree.sources.get(path, "")):
                yield path, line, paragraph

    def openings(self):
        return [(path, line, s) for path, line, text in self.texts() for s in sentences(text) if OPENING.match(s)]

    def whoever(self):
        return [(path, line, text) for path, line, text in self.texts() if re.search(r"\bwhoever\b", text, re.I)]

    def long_sentences(self):
        return [(path, line, s) for path, line, text in self.texts() for s in sentences(text)
                if len(s.split()) > MAX_WORDS]

    def retired_words(self):
        uses = []
        for path, text in self.tree.sources.items():
            if path == "CHANGELOG.md" or path.startswith("tests/contract/lint/"):
                continue
            for line, content in enumerate(text.splitlines(), 1):
                uses += [(path, line, word[0]) for word in RETIRED.finditer(content)]
        return uses

    def is_no(self):
        """Messages contain the problem, the actual value and the expected value."""
        return [(f"include/millrace/{path}", line, content.strip())
                for path, text in self.tree.headers.items() for line, content in enumerate(text.splitlines(), 1)
                if re.search(r'"[^"]*\b(is|are) no (?!longer)\w', re.sub(r"//.*", "", content))]

    def british(self):
        return [(path, line, word[0]) for path, line, text in self.texts() for word in BRITISH.finditer(text)]


def main(root, rules):
    prose = Prose(root)
    if rules:
        for rule in rules:
            for path, line, what in getattr(prose, rule)():
                print(f"{path}:{line}: {what[:140]}")
        return 0
    report = Report()
    for rule, allowed in ALLOWED.items():
        count = len(getattr(prose, rule)())
        report.add(f"prose {rule}: {count}",
                   allowance_problem(count, allowed, f"python3 tests/contract/lint/prose.py {rule}"))
    return report.close()


if __name__ == "__main__":
    sys.exit(main(ROOT, sys.argv[1:]))
