# Each rule of boundary.py detects the violation planted for it, and accepts a tree without violations.
#
#   python3 tests/contract/lint/boundary_test.py
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from boundary import MAX_REACHED_NAMES, MAX_UMBRELLA_NAMES, RULES, TRANSCODER, Boundary
from checks import Report

HEADER = """namespace millrace { inline namespace MILLRACE_ABI {

struct later;

namespace detail {
struct hidden {
  int number = 0;
};
}  // namespace detail

/// Options of word().
struct word_options {
  int size = 1;
};

template <class T>
  requires(sizeof(T) <= 8)
[[nodiscard]] inline T word(T of, const word_options& o = {}) {
  return of;
}
template <class T>
class shape : other::base<T> {
  T value{};

 public:
  template <detail::known From, class = detail::hidden>
    requires(!std::same_as<From, detail::hidden>) && detail::known<From>
  explicit shape(From from) noexcept(noexcept(detail::value_of(from))) : value(detail::value_of(from)), hidden_{from} {}
  __attribute__((unavailable("write shape{x}"))) shape(detail::hidden, int);
  shape(detail::diagnose::shape_of_a_number);
  typename detail::row_of<T>::type row(int at = detail::first{}(1), detail::known auto more) const;
  bool draws = detail::draws<T>();

 private:
  friend class detail::hidden;
  detail::hidden hidden_;
};
template <class T>
shape(T) -> shape<T>;
template <class T>
bool operator==(const shape<T>&, const shape<T>&) { return true; }
inline constexpr std::size_t most = 7;
using number = int;
int word(detail::allowed);
MORE
}}  // namespace millrace
"""
CLEAN = {
    "include/millrace/base/word.hpp": HEADER,
    "include/millrace/millrace.hpp": "#include <millrace/base/word.hpp>\n",
    "examples/one.cpp": "// One.\nint main() { return millrace::word(0); }\n",
    TRANSCODER + "one.hpp": "// One.\nusing millrace::detail::hidden;\n",
}
IN_SIGNATURES = {r"base/word\.hpp: detail::allowed": "an exception that is used"}
UMBRELLA, OPT_IN = {"base/word.hpp": "word shape most"}, {"base/word.hpp": "number"}
PLANTS = {   # rule: violations, as (files, umbrella, opt_in)
    "unlisted": [({"include/millrace/base/word.hpp": HEADER.replace("MORE", more)}, UMBRELLA, OPT_IN) for more in (
        "struct other {};", "template <class T>\nclass basic_word {};", "inline int other() { return 1; }",
        "template <class T>\nconcept other = true;", "enum class other { a, b };", "using detail::hidden;",
        "inline constexpr int other[] = {1, 2};")],
    "missing": [({}, {"base/word.hpp": "word shape most later"}, OPT_IN),
                ({}, UMBRELLA, {"base/word.hpp": "number hidden"})],
    "private_folders": [({f"include/millrace/work/{name}": HEADER}, UMBRELLA,
                         OPT_IN | {f"work/{name}": "word shape most number"})
                        for name in ("word.hpp", "part/word.hpp")] + [
        ({"include/millrace/README.md": f"| 0 | {row} | words |\n"}, UMBRELLA, OPT_IN)
        for row in ("`base` *", "`work/segment`")],
    "unreached": [({"include/millrace/millrace.hpp": "#pragma once\n"}, UMBRELLA, OPT_IN)],
    "examples": [({"examples/one.cpp": f"// One.\n{line}\n"}, UMBRELLA, OPT_IN)
                 for line in ("mr::detail::hidden h;", "#include <millrace/image/jpeg/baseline/unstuffer.hpp>")],
    "signatures": [({"include/millrace/base/word.hpp": HEADER.replace("MORE", more)}, UMBRELLA, OPT_IN) for more in (
        "inline detail::hidden word(char) { return {}; }", "int word(int size, const std::vector<detail::hidden>& of);",
        "template <class T>\n  requires(sizeof(T) > 8)\nauto word(T) -> detail::hidden;",
        "struct word_options {\n  int size = {};\n  detail::hidden more{};\n};",
        "class shape {\n  int a;\n\n public:\n  int b() const { return 1; }\n  detail::hidden c() const;\n};",
        "struct shape {\n  shape() : a{1} {}\n  class in {\n   public:\n    explicit in(detail::hidden);\n  };\n};",
        "using detail::hidden;", "using number = detail::hidden;", "struct shape : detail::hidden {};",
        "inline constexpr detail::hidden most{};")] + [
            ({"include/millrace/base/word.hpp": HEADER.replace("int word(detail::allowed);", "")}, UMBRELLA, OPT_IN)],
    "too_many": [({}, {"base/word.hpp": "word shape most " + "word " * MAX_UMBRELLA_NAMES}, OPT_IN),
                 ({"include/millrace/base/word.hpp": HEADER.replace("MORE", "\n".join(
                     f"int word_{number};" for number in range(MAX_REACHED_NAMES)))}, UMBRELLA, OPT_IN)],
}


def findings(files, umbrella, opt_in):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (CLEAN | files).items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace("MORE\n", ""))
        boundary = Boundary(folder, umbrella, opt_in, IN_SIGNATURES)
        return {rule: list(getattr(boundary, rule)()) for rule in RULES}


def main():
    report = Report()
    clean = findings({}, UMBRELLA, OPT_IN)
    for rule in RULES:
        problems = [f"found in a tree that keeps it: {clean[rule]}"] if clean[rule] else []
        problems += [f"not found: {plant}" for plant in PLANTS[rule] if not findings(*plant)[rule]]
        report.add(f"boundary {rule} detects its violation", "\n".join(problems))
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
