# Each rule of prose.py detects the violation planted for it, and accepts the same text without it.
# Each row of words.py finds its words where they are prose, and nothing in code; names that are participles are found.
# same_code.py reports changed code, and accepts changed names, comments and messages.
#
#   python3 tests/contract/lint/words_test.py
import collections
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import Report
from prose import ALLOWED, Prose
from same_code import compare
from words import ROWS, Words

CLEAN_PROSE = '''// Reads a shard. It returns the records in order. See error.hpp.
//
//   whoever colour That Of What   // an example is no sentence
#pragma once

/// Returns the number of samples. `Of` is a name here.
inline int samples() { throw "is not a valid integer"; }   // the rank waits for no other
'''
PROSE_PLANTS = {
    "openings": ["// Of the samples, the first.", "// Waits. That is long.",
                 "/// Who waits."],
    "whoever": ["// The lock is for whoever reads."],
    "long_sentences": ["// The reader " + "reads and " * 15 + "ends."],
    "retired_words": ["inline int seats();", "// runs dry", "int lane_plan = 1;"],
    "is_no": ['inline const char* const text = "this is no integer";'],
    "british": ["// The colour of a neighbour."],
}
PLANTS = {
    "behind": "the entry behind it", "beside": "beside the shard", "tell": "it tells the user", "what": "what was read",
    "lie_stand": "where the index lies", "whole": "the whole file", "go_on": "the run goes on",
    "of_its_own": "a thread of its own", "come": "samples come late", "picture": "each picture has a size",
    "figures": "the figures of a run", "border": "at the border", "so_many": "so many bytes",
    "So": "It waits. So it is slow", "take": "it takes a second", "is_no": "there are no errors: it is no error",
    "by_itself": "it stops by itself", "anew": "reads it once more", "look_at": "looks at the header",
    "make": "made of two parts", "give": "gives the size", "hold": "holds the lock"}
NAMES = ("const auto found = 1;", "int whole() const;", "bool told_ = false;", "void f(int kept, std::size_t wanted);",
         "for (auto& seen : all) use(seen);", "auto& [asked, n] = pair;")
NO_NAMES = ("return found(1);", "x.whole = 2;", "if (not told) stop();", "f(kept);", "int unknown = founder;")
CODE = "int behind = 1;   // the next entry\n"
BEFORE = 'int a = f("it is told");   // told\nint b = a;\n'
SAME = 'int size = f("it " "is reported");\n\n// reported\nint b = size;\n'
CHANGED = ('int a = f("it is told");\nint b = a + 1;\n', 'int a = f(1);\nint b = a;\n', 'int a = f("it is told");\n')
TO_READ = ('int b = f("it is told");\nint b = b;\n', 'int size = f("it is told");\nint b = count;\n')


def words_in(name, text):
    folder = tempfile.TemporaryDirectory()
    path = pathlib.Path(folder.name, "include/millrace/base", name)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return Words(folder.name)


def prose_findings(text):
    with tempfile.TemporaryDirectory() as folder:
        header = pathlib.Path(folder, "include/millrace/base/one.hpp")
        header.parent.mkdir(parents=True)
        header.write_text(text)
        prose = Prose(folder)
        return {rule: getattr(prose, rule)() for rule in ALLOWED}


def check_prose(report):
    clean = prose_findings(CLEAN_PROSE)
    for rule in ALLOWED:
        problems = [f"found in a text that keeps it: {clean[rule]}"] if clean[rule] else []
        problems += [f"not found: {plant}" for plant in PROSE_PLANTS[rule]
                     if not prose_findings(CLEAN_PROSE + plant + "\n")[rule]]
        report.add(f"prose {rule} detects its violation", "\n".join(problems))


def main():
    report = Report()
    check_prose(report)
    for row, plant in PLANTS.items():
        places = {"one.hpp": f"// A comment: {plant}.\n", "two.hpp": f'f("a message: {plant}");\n',
                  "three.md": f"A paragraph: {plant}.\n", "four.py": f"# A comment: {plant}.\n"}
        report.add(f"words {row}", "\n".join(f"not found in {name}: {text}" for name, text in places.items()
                                             if not any(words_in(name, text).uses(row))))
    clean = words_in("one.hpp", CODE)
    report.add("words of code are not counted",
               "\n".join(f"{row}: {[str(use[3]) for use in clean.uses(row)]}" for row in ROWS if any(clean.uses(row))))
    report.add("each row has a plant", ", ".join(set(ROWS) ^ set(PLANTS)))
    report.add("names that are participles",
               "\n".join(f"not found: {text}" for text in NAMES if not any(words_in("one.hpp", text).names())))
    report.add("names that are not",
               "\n".join(f"found: {text}" for text in NO_NAMES if any(words_in("one.hpp", text).names())))

    def compared(text):
        return compare(BEFORE, text, collections.Counter(), collections.Counter())

    report.add("same_code accepts names and messages", None if compared(SAME) == (None, []) else "it does not")
    report.add("same_code reports changed code", "\n".join(t for t in CHANGED if not compared(t)[0]))
    report.add("same_code lists names to read", "\n".join(t for t in TO_READ if not compared(t)[1]))
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
