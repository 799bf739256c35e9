# The rules of the tree that a reader can check line by line; each has a planted violation in lint_test.py.
#
#   python3 tests/contract/lint/lint.py [ROOT]
#
# A rule is a function from a tree to (path, line, problem). Rules search text with blanked comments and strings, not a
# parsed program: they detect oversights, not deliberate violations.
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import ROOT, Report
from layers import cycles, dependencies, folder_size, layer_of, layers, map_of_folders
from tree import Tree, folder_of, numbered
from vectors import vectors

BANNED_EVERYWHERE = {"iostream", "ranges", "random", "regex"}
BANNED_BELOW_LAYER_3 = {"functional", "filesystem", "chrono"}
MAX_LINES = 400
MAX_COLUMNS = 120
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b")
OF_TEMPLATES = ".tpl.hpp"   # definitions of the templates of a header


def banned_headers(tree):
    """<iostream> <ranges> <random> <regex> nowhere; <functional> <filesystem> <chrono> not in layers 0 to 2."""
    for path, number, _, name in tree.includes:
        layer = layer_of(path)
        if name in BANNED_EVERYWHERE or (name in BANNED_BELOW_LAYER_3 and layer is not None and layer < 3):
            yield path, number, f"<{name}> is banned here"


def umbrellas(tree):
    """The top-level headers contain only includes, and none of adapt/."""
    for path, number, line in numbered({path: text for path, text in tree.bare_headers.items() if "/" not in path}):
        allowed = r"\s*#\s*(include|pragma once|ifdef MILLRACE_CUDA|ifndef MILLRACE_COMPILED|error|endif)"
        if line.strip() and not re.match(allowed, line):
            yield path, number, "an umbrella contains only includes"
    for path, number, _, name in tree.includes:
        if "/" not in path and name.startswith("millrace/adapt/"):
            yield path, number, "adapt/ is opt-in: it is in no umbrella"


def pragma_once(tree):
    for path, text in tree.bare_headers.items():
        if text.count("#pragma once") != 1:
            yield path, 1, "it needs one #pragma once"


def opening_comment(tree):
    """Every header, program and script begins with a description."""
    for path, text in tree.named(".hpp", ".inl", ".cuh", ".inc", ".cpp", ".cu", ".py", ".sh").items():
        lines = [line for line in text.splitlines() if not line.startswith("#!")]
        tested = path.startswith("tests/") and path.endswith("pp")
        if not tested and not re.match(r"// \S|# \S|\"\"\"\S", lines[0] if lines else ""):
            yield path, 1, "it opens with no comment"


def length(tree):
    for path, text in tree.named(".hpp", ".inl", ".cuh", ".cpp", ".cu", ".py", ".sh").items():
        count = len(text.splitlines())
        if count > MAX_LINES:
            yield path, count, f"{count} lines; {MAX_LINES} are allowed"


def listed_tests(tree):
    """A meson.build has each unit test. Those of adapt/ are listed by the names of their libraries."""
    builds = "".join(text for path, text in tree.sources.items() if path.endswith("meson.build"))
    for path in tree.named("_test.cpp"):
        name = path.rpartition("/")[2]
        library = f"'{name.removesuffix('_test.cpp')}':" if path.startswith("tests/unit/adapt/") else None
        if f"/{name}'" not in builds and f"'{name}'" not in builds and not (library and library in builds):
            yield path, 1, "no meson.build builds it"


def macros(tree):
    """Only the macros of base/version.hpp remain defined; and headers do not test for installed libraries."""
    for path, number, line in numbered(tree.bare_headers):
        match = re.match(r"\s*#\s*define\s+(\w+)", line)
        if match and not re.match(r"MILLRACE_(VERSION_\w+|ABI(_\w+)?|(ALWAYS_)?INLINE|RARE(_CODE)?|BOTH_SIDES|"
                                  r"FAST_MATH)$", match[1]):
            rest = "\n".join(tree.bare_headers[path].splitlines()[number:])
            for_layers = match[1] in ("MILLRACE_KERNELS", "MILLRACE_WIDE_KERNELS")
            ends = r"include <millrace/simd/for_each_layer\.inc>" if for_layers else rf"undef\s+{match[1]}\b"
            if not re.search(rf"^\s*#\s*{ends}", rest, re.MULTILINE):
                yield path, number, f"the macro {match[1]} remains defined"
        if "__has_include" in line:
            lines = tree.headers[path].splitlines()[number - 1:number + 2]
            if not (re.match(r"#if !__has_include\(<\S+>\)$", lines[0]) and lines[2] == "#endif" and
                    lines[1].startswith('#error "millrace: ')):
                yield path, number, "__has_include: only an #error may use it; the build configures libraries"


def compiled_parts(tree):
    """x.hpp ends by including impl/x.inl, unless MILLRACE_COMPILED is set: compiled/ includes every .inl. A file
    x.tpl.hpp has only definitions of templates, and x.hpp always ends by including it. Definitions have
    MILLRACE_INLINE or MILLRACE_RARE. Functions that kernels call are defined in x.hpp."""
    all_parts = "".join(text for path, text in tree.headers.items() if folder_of(path) == "compiled")
    for path, text in tree.headers.items():
        of_templates = path.endswith(OF_TEMPLATES)
        if not of_templates and not path.endswith(".inl"):
            continue
        name = path.rpartition("/")[2].partition(".")[0]
        declares = f"{folder_of(path)}/{name}.hpp"
        if path != f"{folder_of(path)}/{name}.tpl.hpp" and path != f"{folder_of(path)}/impl/{name}.inl":
            yield path, 1, "definitions belong into impl/NAME.inl, or those of templates into NAME.tpl.hpp"
        always, unless = f"\n#include <millrace/{path}>\n", " unless MILLRACE_COMPILED is set"
        ending = f"\n{always}" if of_templates else f"\n#ifndef MILLRACE_COMPILED{always}#endif\n"
        if not tree.headers.get(declares, "").endswith(ending):
            yield declares, 1, f"it does not end by including {path}{'' if of_templates else unless}"
        lines = text.splitlines()
        for number, line in enumerate(lines, 1):
            if of_templates and line.startswith(("MILLRACE_INLINE", "MILLRACE_RARE")) and not re.match(
                    r"template <|  requires|    requires", lines[number - 2]):
                yield path, number, "not a template: it belongs into an .inl that the compiled library has"
        if f"#include <millrace/{path}>\n" not in all_parts:
            yield "compiled/runs.hpp", 1, f"none of compiled/ includes {path}"
    for path, number, line in numbered(tree.bare_headers):
        defines = path.endswith((".inl", OF_TEMPLATES))
        if defines and re.match(r"(\[\[\w+\]\]\s*)?inline\s+(?!namespace|constexpr)", line):
            yield path, number, "write MILLRACE_INLINE: the compiled library defines it once"
        if path.endswith(".hpp") and re.match(r"\s*(?:\[\[\w+\]\]\s*)?MILLRACE_BOTH_SIDES\b[^={]*;$", line):
            yield path, number, "define it here: kernels call it, and the compiled library is not linked to them"


def namespaces(tree):
    """`namespace millrace { inline namespace MILLRACE_ABI {`: tools that index names do not read the shorter way."""
    for path, number, line in numbered(tree.bare_headers):
        if re.search(r"\bnamespace\s+\w+(::\w+)*::inline\b", line):
            yield path, number, "an inline namespace that ctags and IDEs do not see"
        if re.match(r"namespace millrace\b(?! \{ inline namespace MILLRACE_ABI \{)", line):
            yield path, number, "a name outside of the inline namespace MILLRACE_ABI"


def assigned_braces(tree):
    """An assignment names its type, `x = point{.y = 1}`: in a template nvcc 13.0 passes `x = {.y = 1}` to the host's
    compiler as `x = {1}`, so that values go to the wrong members without an error."""
    assignment = re.compile(r"(?:^|[;{}:?()]|\belse|=)\s*\*?\w[\w.\[\]()]*(?:->[\w.\[\]()]+)* = \{\s*\.[a-z]")
    for path, number, line in numbered(tree.bare_headers):
        if assignment.search(line):
            yield path, number, "an assignment from { .member = } without the type: nvcc assigns to the wrong members"


def mutable_state(tree):
    """No mutable globals, no thread_local, no static variables with state."""
    # One declaration at the start of a statement: no parenthesis before the name's end, so no function.
    declaration = re.compile(r"^\s*((?:(?:static|inline|extern|constinit|volatile)\s+)+)([^()=;{]*?)\w+(?:\[[^\]]*\])*"
                             r"\s*(?:=[^=]|;|\{)")
    namespace_scope = re.compile(r"^(?!(?:using|namespace|template|return|class|struct|enum|union|concept|constexpr|"
                                 r"consteval|friend|typedef|static|inline|extern|requires|public|private|const|"
                                 r"__extension__)\b)"
                                 r"[A-Za-z_][\w:<>, *&]*\s[\w]+\s*(?:=[^=].*;|;|\{[^}]*\};)\s*$")
    for path, number, line in numbered(tree.bare_headers):
        if re.search(r"\bthread_local\b", line):
            yield path, number, "thread_local"
        match = declaration.match(line)
        if match and not re.match(r"\s*(inline\s+)?namespace\b", line) and not re.search(
                r"\b(namespace|assert|struct|class|enum|operator|consteval)\b", match[2]):
            fixed = re.search(r"\bconstexpr\b", match[2]) or (
                re.search(r"\bconst\b", match[2]) and not re.search(r"\*(?!\s*const)", match[2]))
            if not fixed:
                yield path, number, "a static variable that can change"
        elif namespace_scope.match(line):
            yield path, number, "a global variable that can change"


def arithmetic(tree):
    """Pixels do not depend on -ffast-math: floating-point code for pixels includes precise_begin.inc. Bodies of
    intrinsics follow the program's flags with clang++, so sums, products and quotients of vectors are operators."""
    for path, number, line in numbered(tree.bare_headers):
        match = re.search(r"\b_mm\d*_(?:add|sub|mul|div)_[ps][sd]\b", line)
        if match:
            yield path, number, f"{match[0]} follows -ffast-math: write an operator"
        computes = re.search(r"static_cast<(?:double|float)>|\bconst (?:double|float)\b", line)
        if computes and path.startswith(("image/", "simd/")):
            if not re.search(r"/(?:precise|layer)_begin\.inc>", tree.headers[path]):
                yield path, number, "computes with floating point: include simd/precise_begin.inc"


def standard_error(tree):
    """Users receive all news by the option `notice`: only the functions that print a notice write to stderr. A status
    line has its own file."""
    writes = re.compile(r"\b(stderr|std::c(err|log|out)|STDERR_FILENO|perror)\b")
    for path, number, line in numbered(tree.bare_headers):
        if path not in ("base/impl/notice.inl", "train/status_line.hpp") and writes.search(line):
            yield path, number, "send a notice, or call detail::print_notice()"


def unfinished(tree):
    for path, number, line in numbered(tree.sources):
        if UNFINISHED.search(line):
            yield path, number, "something left open"


def blanks(tree):
    """No tabs, no trailing spaces, and a newline at the end."""
    for path, number, line in numbered(tree.sources):
        if "\t" in line:
            yield path, number, "a tab"
        if line != line.rstrip():
            yield path, number, "a blank at the end of the line"
    for path, text in tree.sources.items():
        if text and (not text.endswith("\n") or text.endswith("\n\n")):
            yield path, len(text.splitlines()), "one end of line belongs at the end of the file"


def columns(tree):
    for path, number, line in numbered(tree.sources):
        if len(line) > MAX_COLUMNS and not path.endswith(".md"):
            yield path, number, f"{len(line)} columns; {MAX_COLUMNS} are allowed"


def version(tree):
    """meson.build, base/version.hpp and CHANGELOG.md have the same version."""
    def search(path, pattern):
        match = re.search(pattern, tree.sources.get(path, ""), re.MULTILINE)
        return match[1] if match else None
    header = "include/millrace/base/version.hpp"
    numbers = [search(header, rf"^#define MILLRACE_VERSION_{part} (\d+)$") for part in ("MAJOR", "MINOR", "PATCH")]
    copies = {"meson.build": search("meson.build", r"^\s*version: '([^']+)'"), header: ".".join(map(str, numbers)),
              "CHANGELOG.md": search("CHANGELOG.md", r"^## (\d+\.\d+\.\d+)")}
    if len(set(copies.values())) != 1:
        yield "CHANGELOG.md", 1, f"the copies of the version differ: {copies}"
    namespace = search(header, r"^#define MILLRACE_ABI_OF\(features\) (v\d+_\d+)##features$")
    if namespace != f"v{numbers[0]}_{numbers[1]}":
        yield header, 1, f"the namespace {namespace} is not that of version {copies[header]}"


RULES = {rule.__name__: rule for rule in (
    layers, cycles, folder_size, map_of_folders, dependencies, banned_headers, umbrellas, pragma_once, opening_comment,
    length, listed_tests, macros, compiled_parts, namespaces, assigned_braces, mutable_state, arithmetic, vectors,
    standard_error, unfinished, blanks, columns, version)}


def main(root):
    report, tree = Report(), Tree(root)
    for name, rule in RULES.items():
        report.add(f"rule {name}", "\n".join(f"{path}:{line}: {what}" for path, line, what in rule(tree)))
    return report.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ROOT))
