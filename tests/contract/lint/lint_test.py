# Each rule of lint.py detects the violation planted for it, and accepts the same tree without it. format.py detects a
# file that clang-format would change, and hints.py missing names in strings.
#
#   python3 tests/contract/lint/lint_test.py
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import Report
import format
import hints
from lint import RULES
from tree import Tree

HEADER = "// A header.\n#pragma once\n\n"
VERSION = HEADER + ("#define MILLRACE_VERSION_MAJOR 1\n#define MILLRACE_VERSION_MINOR 2\n"
                    "#define MILLRACE_VERSION_PATCH 3\n#define MILLRACE_ABI_OF(features) v1_2##features\n")

# A small tree that keeps every rule, including near misses.
CLEAN = {
    "meson.build": "project('millrace', 'cpp',\n  version: '1.2.3')\n",
    "CHANGELOG.md": "# Changes\n\n## 1.2.3 (unreleased)\n",
    "include/millrace/millrace.hpp": HEADER + "#include <millrace/work/schedule/dispatcher.hpp>\n",
    "include/millrace/base/version.hpp": VERSION,
    "include/millrace/base/error.hpp": HEADER + "#include <millrace/base/version.hpp>\n#include <string>\n"
    "namespace millrace { inline namespace MILLRACE_ABI {\nstruct place {\n  static constexpr int unknown = 1;\n"
    "  static place make(int n) { return place{}; }\n  int n = 0;\n};\ninline constexpr int limit = 3;\n"
    "inline const char* const name = \"static int x = 0;\";  // thread_local int y;\n"
    "inline point origin() {\n  point at = {.row = 1};\n  at = point{.row = 2};\n  return {.row = 1};\n}\n"
    "inline int twice(int n) { static const int two = 2; return two * n; }\nstruct later;\n}}\n",
    "include/millrace/sync/stats.hpp": HEADER + "#include <chrono>\n#include <sys/stat.h>\n",
    "include/millrace/measure/meters/trace_range.hpp": HEADER + "#include <nvtx3/nvToolsExt.h>\n",
    "include/millrace/stages/map.hpp": HEADER + "#include <millrace/base/error.hpp>\n",
    "include/millrace/device/view.hpp": HEADER + "#include <cuda_runtime_api.h>\n#define LENT 1\n#undef LENT\n",
    "include/millrace/io/tar/read/tar.hpp": HEADER + "#include <archive.h>\n#include <millrace/base/error.hpp>\n",
    "include/millrace/image/jpeg/libjpeg/jpeg.hpp": HEADER + "#include <jpeglib.h>\n",
    "include/millrace/work/schedule/dispatcher.hpp":
        HEADER + "#include <tbb/task_arena.h>\n#include <millrace/io/tar/read/tar.hpp>\n",
    "include/millrace/io/index/choice/names.hpp": HEADER + "#include <millrace/io/tar/read/tar.hpp>\n",
    "include/millrace/train/log.hpp":
        HEADER + "struct log;\n\n#ifndef MILLRACE_COMPILED\n#include <millrace/train/impl/log.inl>\n#endif\n",
    "include/millrace/train/impl/log.inl":
        HEADER + "#include <millrace/train/log.hpp>\nMILLRACE_INLINE log::log() {}\n",
    "include/millrace/train/sums.hpp": HEADER + "struct sums;\n\n#include <millrace/train/sums.tpl.hpp>\n",
    "include/millrace/train/sums.tpl.hpp": HEADER + "#include <millrace/train/sums.hpp>\n"
                                       "template <class T>\nMILLRACE_INLINE sums<T>::sums() {}\n",
    "include/millrace/compiled/runs.hpp": HEADER + "#ifndef MILLRACE_COMPILED\n#error \"...\"\n#endif\n"
                                "#include <millrace/train/impl/log.inl>\n#include <millrace/train/sums.tpl.hpp>\n",
    "include/millrace/device/sum.hpp":
        HEADER + "// Not _mm256_add_ps().\ninline unsigned sum(unsigned a, unsigned b) {\n"
        "  asm(\"bextr %1, %0, %0\" : \"+r\"(a) : \"r\"(b));\n  return validated(a, \"vaddq_u8(\");\n}\n",
    "tests/run.sh": "#!/bin/sh\n# Runs.\n",
    "tests/unit/base/error_test.cpp": "#include <millrace/base/error.hpp>\n",
    "tests/unit/meson.build": "files('base/error_test.cpp')\n",
    "examples/one.cpp": "// One.\n",
}

FOLDERS = {path.removeprefix("include/millrace/").rpartition("/")[0].removesuffix("/impl")
           for path in CLEAN if path.startswith("include/")} - {""}
HEADERS = [re.sub(r"^include/millrace/|\.\w+$", "", path) for path in CLEAN
           if re.search(r"^include/millrace/\w+/.*\.hpp$", path) and not path.endswith(".tpl.hpp")]
CLEAN["include/millrace/README.md"] = "| `millrace.hpp` | all |\n" + "".join(
    f"| 0 | `{folder}` | code |\n" for folder in sorted(FOLDERS)) + "".join(
    f"- `{path.rpartition('/')[0]}`: {path.rpartition('/')[2]}\n" for path in HEADERS)


def under(path, line, header=HEADER):
    return {"include/millrace/" + path: header + line + "\n"}


PLANTS = {
    "layers": [under("base/up.hpp", "#include <millrace/work/schedule/dispatcher.hpp>"),
               under("simd/up.hpp", "#include <millrace/base/error.hpp>"),
               under("io/tar/read/side.hpp", "#include <millrace/image/jpeg/libjpeg/jpeg.hpp>"),
               under("run/side.hpp", "#include <millrace/train/log.hpp>"),
               under("device/side.hpp", "#include <millrace/io/tar/read/tar.hpp>"),
               under("run/up.hpp", "#include <millrace/millrace.hpp>"),
               under("io/file/up.hpp", "#include <millrace/io/tar/read/tar.hpp>"),
               under("io/tar/read/up.hpp", "#include <millrace/image/jpeg/libjpeg/jpeg.hpp>"),
               under("order/side.hpp", "#include <millrace/sync/stats.hpp>"),
               under("base/near.hpp", '#include "error.hpp"'),
               under("base/gone.hpp", "#include <millrace/base/gone_too.hpp>"),
               under("attic/old.hpp", "")],
    "cycles": [under("base/one.hpp", "#include <millrace/base/two.hpp>") |
               under("base/two.hpp", "#include <millrace/base/three.hpp>") |
               under("base/three.hpp", "#include <millrace/base/one.hpp>")],
    "folder_size": [{path: text for n in range(30) for path, text in under(f"base/h{n}.hpp", "").items()}],
    "map_of_folders": [{"include/millrace/README.md": CLEAN["include/millrace/README.md"] + row} for row in (
        "| 3 | `attic` | nothing |\n", "| `attic.hpp` | nothing |\n", "- `base`: gone\n")] + [
        {"include/millrace/README.md": "# Folders\n"}],
    "dependencies": [under("run/a.hpp", "#include <archive.h>"), under("io/tar/read/j.hpp", "#include <jpeglib.h>"),
                     under("stages/t.hpp", "#include <tbb/task_arena.h>"),
                     under("sync/c.hpp", "#include <cuda_runtime_api.h>"),
                     under("sync/other.hpp", "#include <nvtx3/nvToolsExt.h>"),
                     under("device/other.hpp", "#include <nvtx3/nvToolsExt.h>"),
                     under("measure/meters/trace_range.hpp", "#include <nvtx3/nvToolsExtCudaRt.h>"),
                     under("run/n.hpp", "#include <nlohmann/json.hpp>")],
    "banned_headers": [under("run/i.hpp", "#include <iostream>"), under("item/f.hpp", "#include <functional>"),
                       under("flow/c.hpp", "#include <chrono>")],
    "umbrellas": [under("text.hpp", "struct text;"), under("text.hpp", "#include <millrace/adapt/torch.hpp>")],
    "pragma_once": [under("base/bare.hpp", "", "// A header.\n"),
                    under("base/bare.hpp", "", "// #pragma once\n")],
    "opening_comment": [under("base/mute.hpp", "", "#pragma once\n"), {"examples/mute.cpp": "int main() {}\n"},
                        {"bench/mute.sh": "#!/bin/sh\nexit\n"}],
    "length": [under("base/long.hpp", "\n".join(["struct x;"] * 400)),
               {"tests/unit/base/long_test.cpp": "int x();\n" * 401}],
    "listed_tests": [{"tests/unit/base/text_test.cpp": ""}, {"tests/unit/adapt/json_test.cpp": ""}],
    "macros": [under("base/m.hpp", "#define MILLRACE_CHECK(x) x"), under("base/m.hpp", "#  define LOCAL 1"),
               under("base/m.hpp", "#undef LATE\n#define LATE"),
               under("base/m.hpp", "#if __has_include(<cuda.h>)\n#endif"),
               under("base/m.hpp", "#if !__has_include(<cuda.h>)\nstruct other;\n#endif")],
    "compiled_parts": [under("train/log.hpp", "#include <millrace/train/impl/log.inl>"), under("compiled/runs.hpp", ""),
                       under("train/impl/log.inl", "inline log::log() {}"),
                       under("train/sums.hpp",
                             "#ifndef MILLRACE_COMPILED\n#include <millrace/train/sums.tpl.hpp>\n#endif"),
                       under("train/sums.tpl.hpp", "MILLRACE_INLINE int zero() {}"),
                       under("train/sums.tpl.hpp", "MILLRACE_RARE int zero() {}"),
                       under("train/log.inl", ""), under("train/impl/log.tpl.hpp", ""),
                       under("train/kernel.hpp", "  MILLRACE_BOTH_SIDES void add(double value) noexcept;")],
    "namespaces": [under("base/n.hpp", "namespace millrace::inline MILLRACE_ABI {"),
                   under("base/n.hpp", "namespace millrace {"), under("base/n.hpp", "namespace millrace::detail {")],
    "assigned_braces": [under("run/b.hpp", line) for line in (
        "    at = {.row = 1};", "  if (first) at[i] = {.row = 1};", "  else p->at = {.row = 1};")],
    "mutable_state": [under("base/s.hpp", line) for line in (
        "inline int counter = 0;", "static std::atomic<int> counter{0};", "int counter = 0;", "std::string name;",
        "thread_local int depth = 0;", "  static int calls = 0;", "  static std::vector<int> seen;",
        "inline const char* name = nullptr;", "extern int shared;", "static int table[4] = {};",
        "inline std::map<int, int> known;")],
    "arithmetic": [under("image/p.hpp", "inline float half(int n) { return static_cast<float>(n) / 2; }"),
                   under("device/v.hpp", "inline auto sum(auto a, auto b) { return _mm256_add_ps(a, b); }")],
    "vectors": [under("image/v.hpp", line) for line in (
        "inline auto twice(auto v) { return _mm256_add_epi8(v, v); }", "inline __m128i zero() { return {}; }",
        "#include <immintrin.h>", "#include <arm_neon.h>",
        "inline auto wide(auto v) { return vmovl_u8(v); }", "inline uint8x16_t same(uint8x16_t v) { return v; }",
        "inline auto most(auto a, auto b) { return vmaxq_s16(a, b); }",
        "inline auto high(auto a, auto b) { return __builtin_ia32_pmulhw256(a, b); }",
        "inline auto pair(auto a, auto b) { return __builtin_shufflevector(a, b, 0, 4); }",
        'inline void keep(auto& v) { asm("" : "+x"(v)); }',
        'inline void add() { asm volatile("add v0.4s, v0.4s, v1.4s" ::: "v0"); }')] + [
        {"include/millrace/image/v_body.inc": "// A body.\ninline auto twice(auto v) { return vaddq_u8(v, v); }\n"},
        under("image/color/unfused.hpp", "int unfused(int value);"), under("simd/words.hpp", "")],
    "standard_error": [under("run/e.hpp", line) for line in (
        'inline void tell() { std::fprintf(stderr, "late"); }', "inline void tell() { std::cerr << 1; }",
        "inline int file() { return STDERR_FILENO; }")],
    "unfinished": [under("base/u.hpp", "// TO" + "DO: later"), {"tests/u.sh": "# FIX" + "ME\n"}],
    "blanks": [under("base/t.hpp", "\tint x();"), under("base/t.hpp", "int x(); "), {"tests/run.sh": "# Runs.\n\n"},
               {"tests/run.sh": "# Runs."}],
    "columns": [under("base/w.hpp", "// " + "w" * 118)],
    "version": [{"meson.build": "project('millrace', 'cpp',\n  version: '1.2.4')\n"},
                {"CHANGELOG.md": "# Changes\n\n## 1.3.0\n"},
                {"include/millrace/base/version.hpp": VERSION.replace("v1_2", "v1_1")}],
}

FORMATTED = "int f(int a) { return a; }\n"
UNFORMATTED = "int f( int a ) {return a;}\n"
HINT_OPTIONS = """struct batch_options {
  std::size_t size = 1;   ///< rows
  bool drop_last{true}, keys = false;
};
"""
HINTS = [("a header", '"Include millrace/shards.hpp"', '"Include millrace/shard.hpp"'),
         ("a program", '"Run examples/inspect"', '"Run examples/inspector"'),
         ("a flag", '"by inspect --keys"', '"by inspect --names"'),
         ("a flag over two lines", '"by examples/inspect "\n    "--keys"', '"by examples/inspect "\n    "--names"'),
         ("an option", '"raise batch_options::size"', '"raise batch_options::rows"'),
         ("a second member of a line", '"set batch_options::keys"', '"set batch_options::key"'),
         ("a member of a call", '"use batch({.drop_last = false})"', '"use batch({.drop = false})"')]


def findings(files):
    """The problems that each rule reports in a tree of these files."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            target = pathlib.Path(folder, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        tree = Tree(folder)
        return {name: [str(problem) for problem in rule(tree)] for name, rule in RULES.items()}


def hint_problems(string):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "include/millrace").mkdir(parents=True)
        (root / "examples").mkdir()
        (root / "include/millrace/shards.hpp").write_text(HINT_OPTIONS)
        (root / "include/millrace/a.inl").write_text(f"// not \"millrace/none.hpp\"\nfail({string});\n")
        (root / "examples/inspect.cpp").write_text('args.flag("--keys");\n')
        return [problem for _, problem in hints.problems(root)]


def check_format(report):
    name = format.formatter()
    if name is None:
        return report.skip("format", "clang-format is not installed")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "include/a.hpp"
        path.parent.mkdir()
        path.write_text(FORMATTED)
        listed = format.sources(pathlib.Path(folder))
        report.add("the sources of a tree", None if listed == [path] else f"got {listed}")
        problem = format.problem_of(name, path)
        report.add("a formatted file", problem)
        path.write_text(UNFORMATTED)
        problem = format.problem_of(name, path)
        detected = problem and "-int f( int a )" in problem and "+int f(int a)" in problem
        report.add("a file with other spaces", None if detected else f"got {problem}")


def check_hints(report):
    for name, right, wrong in HINTS:
        problems = hint_problems(right)
        report.add(f"{name} that exists", None if problems and not any(problems) else f"got {problems}")
        problems = hint_problems(wrong)
        report.add(f"{name} that does not", None if any(problems) else f"got {problems}")


def main():
    report = Report()
    clean = findings(CLEAN)
    for name in RULES:
        problems = clean[name] and [f"found in a tree that keeps it: {clean[name]}"]
        for plant in PLANTS.get(name, ()):
            if not findings(CLEAN | plant)[name]:
                problems.append(f"not found: {plant}")
        if name not in PLANTS:
            problems.append("nothing is planted for it")
        report.add(f"rule {name} detects its violation", "\n".join(problems))
    check_format(report)
    check_hints(report)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
