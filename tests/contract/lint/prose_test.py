# Each rule of prose.py detects the violation planted for it, and accepts the same text without it.
#
#   python3 tests/contract/lint/prose_test.py
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import Report
from prose import ALLOWED, Prose

CLEAN = '''// Reads a shard. It returns the records in order. See error.hpp.
//
//   whoever colour That Of What   // an example is no sentence
#pragma once

/// Returns the number of samples. `Of` is a name here.
inline int samples() { throw "is not a valid integer"; }   // the rank waits for no other
'''
PLANTS = {
    "openings": ["// Of the samples, the first.", "// Waits. That is long.",
                 "/// Who waits."],
    "whoever": ["// The lock is for whoever reads."],
    "long_sentences": ["// The reader " + "reads and " * 15 + "ends."],
    "retired_words": ["inline int seats();", "// runs dry", "int lane_plan = 1;"],
    "is_no": ['inline const char* const text = "this is no integer";'],
    "british": ["// The colour of a neighbour."],
}


def findings(text):
    with tempfile.TemporaryDirectory() as folder:
        header = pathlib.Path(folder, "include/millrace/base/one.hpp")
        header.parent.mkdir(parents=True)
        header.write_text(text)
        prose = Prose(folder)
        return {rule: getattr(prose, rule)() for rule in ALLOWED}


def main():
    report = Report()
    clean = findings(CLEAN)
    for rule in ALLOWED:
        problems = [f"found in a text that keeps it: {clean[rule]}"] if clean[rule] else []
        problems += [f"not found: {plant}" for plant in PLANTS[rule] if not findings(CLEAN + plant + "\n")[rule]]
        report.add(f"prose {rule} detects its violation", "\n".join(problems))
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
