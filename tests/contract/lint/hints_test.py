# hints.py detects missing names in generated trees.
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import Report
import hints

OPTIONS = """struct batch_options {
  std::size_t size = 1;   ///< rows
  bool drop_last{true}, keys = false;
};
"""
CASES = [("a header", '"Include millrace/shards.hpp"', '"Include millrace/shard.hpp"'),
         ("a program", '"Run examples/inspect"', '"Run examples/inspector"'),
         ("a flag", '"by inspect --keys"', '"by inspect --names"'),
         ("a flag over two lines", '"by examples/inspect "\n    "--keys"', '"by examples/inspect "\n    "--names"'),
         ("an option", '"raise batch_options::size"', '"raise batch_options::rows"'),
         ("a second member of a line", '"set batch_options::keys"', '"set batch_options::key"'),
         ("a member of a call", '"use batch({.drop_last = false})"', '"use batch({.drop = false})"')]


def problems_of(string):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "include/millrace").mkdir(parents=True)
        (root / "examples").mkdir()
        (root / "include/millrace/shards.hpp").write_text(OPTIONS)
        (root / "include/millrace/a.inl").write_text(f"// not \"millrace/none.hpp\"\nfail({string});\n")
        (root / "examples/inspect.cpp").write_text('args.flag("--keys");\n')
        return [problem for _, problem in hints.problems(root)]


def main():
    report = Report()
    for name, right, wrong in CASES:
        problems = problems_of(right)
        report.add(f"{name} that exists", None if problems and not any(problems) else f"got {problems}")
        problems = problems_of(wrong)
        report.add(f"{name} that does not", None if any(problems) else f"got {problems}")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
