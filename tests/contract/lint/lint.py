# The rules of the tree that a reader can check line by line; each has a planted violation in lint_test.py.
#
#   python3 tests/contract/lint/lint.py [ROOT]
#
# A rule is a function from a tree to (path, line, what is wrong). Rules look at text with comments and strings blanked
# out, not at a parsed program: they find what an honest author overlooks.
import functools
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import ROOT, Report

# A room includes rooms of lower floors; on its own floor only those that stand before it in the same chain.
FLOORS = (
    (("simd", "base"),),
    (("measure/values", "measure/meters"),),
    (("item", "item/tensor", "item/column"), ("flow",)),
    (("sync",), ("order",)),
    (("io/file", "io/cache", "io/tar/format", "io/tar/write", "io/tar/read", "io/index/format", "io/index/choice",
      "io/index/read", "io/index/entries", "io/index/set"),
     ("image/jpeg/baseline", "image/jpeg/progressive", "image/jpeg/coding", "image/jpeg/libjpeg", "image/resize",
      "image/color", "image/warp", "image/plan", "image/jpeg", "image/render", "image/picture", "image/png",
      "image/pnm", "image/labels", "image/augment", "image"),
     ("device",)),
    (("stages",),),
    (("work/schedule", "work/segment", "work/batch"),),
    (("read/stage", "read/run", "read/mix"), ("deliver",), ("tune",)),
    (("sources/list", "sources", "sources/prepare"),),
    (("run",),),
    (("report/verdict", "report/simulate", "report", "report/print"), ("train",)),
    (("adapt/remote/store", "adapt/remote/transfer", "adapt/remote", "adapt"),),
    (("compiled", ""),),   # all definitions; the umbrellas
)
EVERYWHERE = "base/version.hpp"   # each header includes it
BANNED_EVERYWHERE = {"iostream", "ranges", "random", "regex"}
BANNED_BELOW_FLOOR_3 = {"functional", "filesystem", "chrono"}
# One dependency per place; a header that is named with a folder and is no system's is a dependency too.
DEPENDENCIES = (
    (re.compile(r"archive(_entry)?\.h$"), ("io/tar",)),
    (re.compile(r"zlib\.h$"), ("io/tar",)),
    (re.compile(r"(jpeglib|jerror|jmorecfg|jconfig|turbojpeg)\.h$"), ("image/jpeg/libjpeg",)),
    (re.compile(r"(tbb|oneapi)/"), ("work",)),
    (re.compile(r"nvtx3/nvToolsExt\.h$"), ("measure/meters/trace_range.hpp",)),
    (re.compile(r"nvtx3/"), ("device/stream_name.hpp",)),
    (re.compile(r"(cuda|cooperative_groups|cub/|thrust)"), ("device", "train")),
    (re.compile(r"(sys|linux|sanitizer)/"), ("",)),
    (re.compile(r".*/"), ()),
)
MAX_LINES = 400
MAX_COLUMNS = 120
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b")
OF_TEMPLATES = ".tpl.hpp"   # definitions of the templates of a header
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
COMMENT_OR_STRING = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^()\\\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-zA-Z])\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL)


class Tree:
    """The files of a tree, read once."""

    def __init__(self, root):
        self.root = pathlib.Path(root)

    @functools.cached_property
    def sources(self):
        """Every text of ours: {path relative to the root: text}."""
        found = {}
        for folder in ("include", "tests", "examples", "bench", ".ci", "subprojects", "."):
            walk = (self.root / folder).glob("*") if folder in (".", "subprojects") else (self.root / folder).rglob("*")
            for path in walk:
                kinds = (".hpp", ".inl", ".cpp", ".cuh", ".cu", ".inc", ".py", ".sh", ".md", ".wrap")
                if path.is_file() and (path.suffix in kinds
                                       or path.name in ("meson.build", "meson_options.txt", "run")):
                    found[str(path.relative_to(self.root))] = path.read_text()
        return dict(sorted(found.items()))

    def named(self, *suffixes):
        return {path: text for path, text in self.sources.items() if path.endswith(suffixes)}

    @functools.cached_property
    def headers(self):
        """The library's own: {path under include/millrace: text}."""
        prefix = "include/millrace/"
        return {path[len(prefix):]: text for path, text in self.named(".hpp", ".inl", ".cuh").items()
                if path.startswith(prefix)}

    @functools.cached_property
    def bare_headers(self):
        """The same without comments and strings; line numbers stay."""
        return {path: COMMENT_OR_STRING.sub(lambda m: "\n" * m[0].count("\n"), text)
                for path, text in self.headers.items()}

    @functools.cached_property
    def includes(self):
        """(header, line, quote, included name) of every #include in the library."""
        return [(path, number, found[1], found[2]) for path, text in self.headers.items()
                for number, line in enumerate(text.splitlines(), 1) if (found := INCLUDE.match(line))]


def folder_of(header):
    """'base', 'stages', 'io/file', ...; '' for an umbrella. What is in impl/ belongs to the folder of its header."""
    return header.rpartition("/")[0].removesuffix("/impl")


@functools.cache
def standing_of(folder):
    """(floor, chain on that floor, place in the chain) of a room; None: there is no such room."""
    for floor, chains in enumerate(FLOORS):
        for number, chain in enumerate(chains):
            if folder in chain:
                return floor, number, chain.index(folder)
    return None


def floor_of(header):
    standing = standing_of(folder_of(header))
    return standing and standing[0]


def numbered(texts):
    for path, text in texts.items():
        for number, line in enumerate(text.splitlines(), 1):
            yield path, number, line


def floors(tree):
    """Include lower floors, your own room, and of your floor the rooms before yours in its chain."""
    for path in tree.headers:
        if floor_of(path) is None:
            yield path, 1, f"the folder {folder_of(path)} is on no floor"
    for path, number, quote, name in tree.includes:
        if quote == '"':
            yield path, number, f'write <millrace/...>, not "{name}"'
        if not name.startswith("millrace/"):
            continue
        other = name[len("millrace/"):]
        if other == EVERYWHERE:
            continue
        if other not in tree.headers and f"include/{name}" not in tree.sources:
            yield path, number, f"there is no {name}"
        elif floor_of(path) is not None and floor_of(other) is not None:
            here, there = folder_of(path), folder_of(other)
            (floor, chain, place), (other_floor, other_chain, other_place) = standing_of(here), standing_of(there)
            if other_floor > floor or (other_floor, other_chain) == (floor, chain) and other_place > place:
                yield path, number, f"{here} is lower than {there or 'the umbrellas'}"
            elif other_floor == floor and other_chain != chain:
                yield path, number, f"{here} and {there} are on one floor"


def map_of_folders(tree):
    """The README of the headers lists every folder and every umbrella, and nothing else."""
    path = "include/millrace/README.md"
    rows = re.findall(r"^\|(?: [\w-]+ \|)? `([\w./]+)`(?: \*)? \|", tree.sources.get(path, ""), re.MULTILINE)
    wanted = {folder_of(header) for header in tree.headers} - {""} | {h for h in tree.headers if "/" not in h}
    for name in sorted(wanted.symmetric_difference(rows)):
        yield path, 1, f"{name} is {'not in its tables' if name in wanted else 'in its tables and does not exist'}"


def dependencies(tree):
    """One dependency per place."""
    for path, number, _, name in tree.includes:
        if name.startswith("millrace/") or folder_of(path).startswith("adapt"):
            continue
        for pattern, places in DEPENDENCIES:
            if pattern.match(name):
                if not any((path if place.endswith(".hpp") else folder_of(path)).startswith(place)
                           for place in places):
                    where = " or ".join(places) if places else "no folder but adapt"
                    yield path, number, f"<{name}> belongs in {where}"
                break


def banned_headers(tree):
    """<iostream> <ranges> <random> <regex> nowhere; <functional> <filesystem> <chrono> not on floors 0 to 2."""
    for path, number, _, name in tree.includes:
        floor = floor_of(path)
        if name in BANNED_EVERYWHERE or (name in BANNED_BELOW_FLOOR_3 and floor is not None and floor < 3):
            yield path, number, f"<{name}> is banned here"


def umbrellas(tree):
    """The headers beside the folders hold includes only, and none of adapt/."""
    for path, number, line in numbered({path: text for path, text in tree.bare_headers.items() if "/" not in path}):
        allowed = r"\s*#\s*(include|pragma once|ifdef MILLRACE_CUDA|ifndef MILLRACE_COMPILED|error|endif)"
        if line.strip() and not re.match(allowed, line):
            yield path, number, "an umbrella holds includes only"
    for path, number, _, name in tree.includes:
        if "/" not in path and name.startswith("millrace/adapt/"):
            yield path, number, "adapt/ is opt-in: it is in no umbrella"


def pragma_once(tree):
    for path, text in tree.bare_headers.items():
        if text.count("#pragma once") != 1:
            yield path, 1, "it needs one #pragma once"


def opening_comment(tree):
    """Every header, program and script says first what it is."""
    for path, text in tree.named(".hpp", ".inl", ".cuh", ".inc", ".cpp", ".cu", ".py", ".sh").items():
        lines = [line for line in text.splitlines() if not line.startswith("#!")]
        tested = path.startswith("tests/") and path.endswith("pp")
        if not tested and not re.match(r"// \S|# \S", lines[0] if lines else ""):
            yield path, 1, "it opens with no comment"


def length(tree):
    for path, text in tree.named(".hpp", ".inl", ".cuh", ".cpp", ".cu", ".py", ".sh").items():
        count = len(text.splitlines())
        if count > MAX_LINES:
            yield path, count, f"{count} lines; {MAX_LINES} are allowed"


def macros(tree):
    """None is left behind but those of base/version.hpp; and no guessing from what is installed."""
    for path, number, line in numbered(tree.bare_headers):
        found = re.match(r"\s*#\s*define\s+(\w+)", line)
        if found and not re.match(r"MILLRACE_(VERSION_\w+|ABI(_\w+)?|INLINE|BOTH_SIDES|FAST_MATH)$", found[1]):
            rest = "\n".join(tree.bare_headers[path].splitlines()[number:])
            if not re.search(rf"^\s*#\s*undef\s+{found[1]}\b", rest, re.MULTILINE):
                yield path, number, f"the macro {found[1]} is left behind"
        if "__has_include" in line:
            lines = tree.headers[path].splitlines()[number - 1:number + 2]
            if not (re.match(r"#if !__has_include\(<\S+>\)$", lines[0]) and lines[2] == "#endif" and
                    lines[1].startswith('#error "millrace: ')):
                yield path, number, "__has_include: the build says what is there; only an #error may ask"


def compiled_parts(tree):
    """x.hpp ends by including impl/x.inl, unless MILLRACE_COMPILED is set: compiled/ includes every .inl. A file
    x.tpl.hpp has definitions of templates alone, and x.hpp ends by including it always. Definitions have
    MILLRACE_INLINE. What kernels call is defined in x.hpp."""
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
            if of_templates and line.startswith("MILLRACE_INLINE") and not re.match(
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
    """An assignment names its type, `x = point{.y = 1}`: in a template nvcc 13.0 gives `x = {.y = 1}` to the host's
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
        found = declaration.match(line)
        if found and not re.match(r"\s*(inline\s+)?namespace\b", line) and not re.search(
                r"\b(namespace|assert|struct|class|enum|operator|consteval)\b", found[2]):
            fixed = re.search(r"\bconstexpr\b", found[2]) or (
                re.search(r"\bconst\b", found[2]) and not re.search(r"\*(?!\s*const)", found[2]))
            if not fixed:
                yield path, number, "a static variable that can change"
        elif namespace_scope.match(line):
            yield path, number, "a global variable that can change"


def arithmetic(tree):
    """Pixels do not depend on -ffast-math: what computes them with floating point includes precise_begin.inc. Bodies of
    intrinsics follow the program's flags with clang++, so sums, products and quotients of vectors are operators."""
    for path, number, line in numbered(tree.bare_headers):
        found = re.search(r"\b_mm\d*_(?:add|sub|mul|div)_[ps][sd]\b", line)
        if found:
            yield path, number, f"{found[0]} follows -ffast-math: write an operator"
        computes = re.search(r"static_cast<(?:double|float)>|\bconst (?:double|float)\b", line)
        if computes and path.startswith(("image/", "simd/")):
            if not re.search(r"/(?:precise|avx2)_begin\.inc>", tree.headers[path]):
                yield path, number, "computes with floating point: include base/precise_begin.inc"


def unfinished(tree):
    for path, number, line in numbered(tree.sources):
        if UNFINISHED.search(line):
            yield path, number, "something left open"


def blanks(tree):
    """No tabs, no blanks at the end of a line, and an end to the last line."""
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
    """meson.build, base/version.hpp and CHANGELOG.md say the same."""
    def search(path, pattern):
        found = re.search(pattern, tree.sources.get(path, ""), re.MULTILINE)
        return found[1] if found else None
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
    floors, map_of_folders, dependencies, banned_headers, umbrellas, pragma_once, opening_comment, length, macros,
    compiled_parts,
    namespaces, assigned_braces, mutable_state, arithmetic, unfinished, blanks, columns, version)}


def main(root):
    report, tree = Report(), Tree(root)
    for name, rule in RULES.items():
        report.add(f"rule {name}", "\n".join(f"{path}:{line}: {what}" for path, line, what in rule(tree)))
    return report.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ROOT))
