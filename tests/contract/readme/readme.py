# Checks README.md and the guide (examples/README.md, examples/guide): their C++ compiles, programs run, and all files,
# links and anchors that they name exist.
#
#   python3 tests/contract/readme/readme.py            # run the checks
#   python3 tests/contract/readme/readme.py list       # list the blocks of C++, and the program or recipe of each
#
# A block of C++ has the name of its file and its number there, such as images_2. A block is either compiled and run by
# the program in programs.cpp that begins with `// program: NAME BLOCK` and includes snippet.hpp; or recipes.cpp
# includes it and compiles it; or a test contains its lines (IN_TESTS). Two programs are built header-only, the others
# with the compiled library. g++ compiles half of the programs, clang++ the others, in turn with each commit
# (checks.py); after a change of programs.cpp, both compile all. clang++ 19 compiles the recipes too. README.md has at
# most 200 lines and its first program 16. A file of the guide has at most 300, and each of the seven usual recipes 20.
#
# The messages of mistakes.md are those of the headers and of mistakes.cpp. All Python of the guide compiles, and the
# programs of migration.md run if an interpreter has their packages: one of MILLRACE_BENCH_PYTHON (several are
# separated by colons), of build/peers (bench/peers/peers.py creates them), or this one.
import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

CONTRACT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(CONTRACT.parent), str(CONTRACT / "lint")]
import hints
from checks import (COMPILED, COMPILERS, ROOT, WARNINGS, RememberedPasses, Report, compiled_library, have_changed,
                    in_parallel, is_due, library_flags, linked_program)

PROGRAMS = pathlib.Path(__file__).with_name("programs.cpp")
RECIPES = pathlib.Path(__file__).with_name("recipes.cpp")
MISTAKES = pathlib.Path(__file__).with_name("mistakes.cpp")
PROGRAM = re.compile(r"^// program: (\w+) (\w+)\n(.*?)(?=^// program:|\Z)", re.MULTILINE | re.DOTALL)
# Overload resolution of clang++ 16 and later differs from that of clang++ 14.
NEWEST_COMPILER = "clang++-19"
# The compiled library reduces the compile time to a third. g++ warns of uninitialized values only if it optimizes.
HEADER_ONLY = {("first_program", "clang++"): "-O0", ("text", "g++"): "-O2"}
GUIDE_FOLDER = ROOT / "examples" / "guide"
GUIDE = [ROOT / "examples" / "README.md", *sorted(GUIDE_FOLDER.glob("*.md"))]
DOCUMENTS = [*ROOT.glob("*.md"), *(path for folder in (".github", "include", "examples", "tests", "bench")
                                   for path in sorted((ROOT / folder).rglob("*.md")))]
# A block that needs a GPU is a part of a test with the fake CUDA runtime; feeders.py launches that of feeders.
IN_TESTS = {"gpu_1": ROOT / "tests" / "unit" / "deliver" / "cuda_devices_test.cpp",
            "feeders_1": ROOT / "tests" / "system" / "feeders" / "guide_program.cpp"}
MAX_LINES = 200
MAX_GUIDE_LINES = 300
# The subject of each, by its namespace in recipes.cpp. The README's first program is the first of them again.
USUAL_RECIPES = {"pictures": "JPEG and cls", "png": "PNG and cls", "masks": "an image and its mask",
                 "boxes": "an image and its boxes", "same_geometry": "a pair of images",
                 "many_crops": "DINO's ten crops", "mixed_rows": "color jitter and mixup"}
MAX_RECIPE_LINES = 20
MAX_FIRST_PROGRAM_LINES = 16
RECIPE = re.compile(r"^namespace (\w+) \{\n((?:#include .*\n)+)\}", re.MULTILINE)
BLOCK = re.compile(r"^```cpp\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MISTAKE = re.compile(r"^## \d+\. ([^\n]*)\n\n```c\+\+\n(.*?)^```$\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^()\s#]*)(?:#([^()\s]*))?\)")
NAMED_FILE = re.compile(r"\bsh ((?:examples|tests|bench)/\S+)|"
                        r"`((?:examples|tests|bench|include|millrace|subprojects)/[^` ]*)`")


def programs():
    """[(name, block, text)]. Blank lines replace the programs before it, so that each line keeps its number."""
    text = PROGRAMS.read_text()
    return [(match[1], match[2], "\n" * text.count("\n", 0, match.start(3)) + match[3])
            for match in PROGRAM.finditer(text)]


def blocks_of_cpp(paths):
    """{name: text} of all blocks of C++, in the order of the files."""
    return {f"{path.stem if path.parent.name == 'guide' or path.parent == ROOT else 'contents'}_{number}": block
            for path in paths for number, block in enumerate(BLOCK.findall(path.read_text()), 1)}


def recipes():
    """{namespace: names of its blocks} of recipes.cpp."""
    return {namespace: re.findall(r"(\w+)\.hpp", includes) for namespace, includes in RECIPE.findall(
        RECIPES.read_text())}


def problem_with(job):
    program, text, snippet, compiler, passes = job
    level = HEADER_ONLY.get((program, compiler))
    mode = [] if level else [COMPILED]
    flags = [compiler, *WARNINGS, level or "-O0", *mode, f"-I{ROOT / 'include'}", *library_flags("--cflags")]
    key = passes.key(flags, text.lstrip() + snippet, ROOT / "include")
    if passes.remark(key) is not None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "snippet.hpp").write_text("#pragma once\n" + snippet)
        source = pathlib.Path(folder) / PROGRAMS.name
        source.write_text(text)
        library = [compiled_library(compiler)] if mode else []
        built = subprocess.run([*flags, source, *library, "-o", f"{folder}/program",
                                *library_flags("--libs")],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if built.returncode != 0:
            return built.stdout[-3000:]
        ran = subprocess.run([f"{folder}/program"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             cwd=folder, timeout=900, stdin=subprocess.DEVNULL)
        if ran.returncode != 0:
            return f"exit status {ran.returncode}\n{ran.stdout[-3000:]}"
    passes.remember(key)
    return None


def problem_with_recipes(passes, blocks, compiler):
    flags = [compiler, *WARNINGS, "-O0", COMPILED, f"-I{ROOT / 'include'}", *library_flags("--cflags")]
    key = passes.key(flags, RECIPES.read_text() + "".join(f"{name}\n{block}" for name, block in blocks.items()),
                     ROOT / "include")
    if passes.remark(key) is not None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        includes = re.findall(r"^#include <.*?>", "\n".join(blocks.values()), re.MULTILINE)
        needed = {"adapt/remote": "curl/curl.h", "adapt/soxr": "soxr.h"}
        includes = [next((f"#if __has_include(<{header}>)\n{line}\n#endif" for name, header in needed.items()
                          if name in line), line) for line in sorted(set(includes))]
        (pathlib.Path(folder) / "includes_of_recipes.hpp").write_text("\n".join(includes) + "\n")
        for name, block in blocks.items():
            own = re.sub(r'^#include ".*"$', "", block, flags=re.MULTILINE)   # the recipe before it
            (pathlib.Path(folder) / f"{name}.hpp").write_text(own)
        built = subprocess.run([*flags, f"-I{folder}", "-fsyntax-only", RECIPES], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    if built.returncode != 0:
        return built.stdout[-3000:]
    passes.remember(key)
    return None


def normalized(text):
    return " ".join(text.split())


def mistakes():
    """[(title, code, message)] of the guide's mistakes."""
    return MISTAKE.findall((GUIDE_FOLDER / "mistakes.md").read_text())


def problem_with_code(code):
    """Each line of a mistake's code is one of mistakes.cpp or of a case of tests/contract/errors."""
    sources = [MISTAKES, *(ROOT / "tests" / "contract" / "errors").glob("*.cpp")]
    lines = {normalized(line.partition("//")[0]) for source in sources for line in source.read_text().splitlines()}
    return "\n".join(f"not a line of {MISTAKES.name} or of tests/contract/errors: {line}" for line in code.splitlines()
                     if normalized(line.partition("//")[0]) not in lines)


def messages_of_the_library():
    """The messages of the compiler, from the headers, and those that mistakes.cpp prints."""
    headers = [path.read_text() for path in sorted((ROOT / "include").rglob("*.hpp"))]
    compile_time = {normalized(text.encode().decode("unicode_escape")) for header in headers
                    for text in hints.strings(header) if text.startswith("millrace: ")}
    program = linked_program(ROOT / "build" / "readme" / "mistakes", [MISTAKES], level="-O0")
    with tempfile.TemporaryDirectory() as folder:
        ran = subprocess.run([program], stdout=subprocess.PIPE, text=True, cwd=folder, timeout=900, check=True)
        printed = ran.stdout.replace(str(pathlib.Path(folder).resolve()), "/training")
    return compile_time | {normalized(text) for text in re.findall(r"^== \w+\n(.*?)(?=^== |\Z)", printed,
                                                                   re.MULTILINE | re.DOTALL)}


def check_mistakes(report):
    messages = messages_of_the_library()
    for title, code, message in mistakes():
        report.add(f"mistake {title}: its code", problem_with_code(code))
        nearest = difflib.get_close_matches(normalized(message), messages, n=1, cutoff=0)
        report.add(f"mistake {title}: its message",
                   None if normalized(message) in messages else f"the library says: {nearest[0]}")
    report.add("the guide has ten mistakes", None if len(mistakes()) == 10 else f"{len(mistakes())} mistakes")


def python_for(program):
    """An interpreter that has all packages that the program imports, or None."""
    modules = [re.split(r"[ .]", line)[1] for line in program.splitlines() if line.startswith(("import ", "from "))]
    test = f"import importlib.util as u, sys; sys.exit(not all(u.find_spec(m) for m in {modules!r}))"
    named = os.environ.get("MILLRACE_BENCH_PYTHON", "").split(":")
    for python in [*filter(None, named), *sorted((ROOT / "build" / "peers").glob("*/bin/python3")), sys.executable]:
        if subprocess.run([python, "-c", test], stderr=subprocess.DEVNULL).returncode == 0:
            return python
    return None


def check_python(report):
    """Every block of Python compiles. The programs of migration.md run where their packages are installed."""
    for path in GUIDE:
        for number, program in enumerate(PYTHON.findall(path.read_text()), 1):
            name = f"{path.stem}_{number}.py"
            try:
                compile(program, name, "exec")
            except SyntaxError as e:
                report.add(name, f"line {e.lineno}: {e.msg}")
                continue
            python = python_for(program) if path.stem == "migration" else None
            if python is None:
                report.add(f"{name} compiles")
                continue
            with tempfile.TemporaryDirectory() as folder:
                source = pathlib.Path(folder) / name
                source.write_text(program)
                (pathlib.Path(folder) / "data").mkdir()
                ran = subprocess.run([python, MISTAKES.with_name("migration.py"), source, f"{folder}/data"],
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900)
                report.add(f"{name} runs", None if "3 steps" in ran.stdout else ran.stdout[-3000:])


def problem_with_lengths(blocks):
    if (lines := blocks["README_1"].count("\n")) > MAX_FIRST_PROGRAM_LINES:
        return f"the README's first program: {lines} lines, the limit is {MAX_FIRST_PROGRAM_LINES}"
    lengths = {}
    for name, subject in USUAL_RECIPES.items():
        if name not in recipes():
            return f"recipes.cpp has no recipe in a namespace {name}"
        lengths[f"{subject} ({name})"] = blocks[recipes()[name][0]].count("\n")
    return ", ".join(f"{name}: {lines} lines" for name, lines in lengths.items() if lines > MAX_RECIPE_LINES)


def problem_with_blocks(blocks):
    """Each block is checked by one program or recipe, and each of these has its block."""
    checked = [block for _, block, _ in programs()] + [name for names in recipes().values() for name in names]
    checked += IN_TESTS
    problems = [f"{name} differs from its lines in {path.relative_to(ROOT)}" for name, path in IN_TESTS.items()
                if blocks.get(name, "") not in path.read_text()]
    problems += [f"{name}: neither a program nor a recipe" for name in blocks if name not in checked]
    problems += [f"{name}: the block does not exist" for name in checked if name not in blocks]
    problems += [f"{name}: checked twice" for name in blocks if checked.count(name) > 1]
    return "\n".join(problems)


def prose_of(path):
    """A document without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)


def anchors_of(path):
    """The anchors of a document's headings, as GitHub and GitLab derive them."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            for heading in re.findall(r"^#+ (.*)$", prose_of(path), re.MULTILINE)}


def broken_links():
    broken = []
    for path in DOCUMENTS:
        for target, anchor in LINK.findall(prose_of(path)):
            file = (path.parent / target).resolve() if target else path
            if not file.exists() or (anchor and anchor not in anchors_of(file)):
                broken.append(f"{path.relative_to(ROOT)}: {target}{'#' if anchor else ''}{anchor}")
    return "\n".join(broken)


def long_documents():
    limits = {ROOT / "README.md": MAX_LINES, **dict.fromkeys(GUIDE, MAX_GUIDE_LINES)}
    lengths = {path: path.read_text().count("\n") for path in limits}
    return "\n".join(f"{path.relative_to(ROOT)}: {lines} lines, the limit is {limits[path]}"
                     for path, lines in lengths.items() if lines > limits[path])


def main(arguments):
    blocks = blocks_of_cpp([ROOT / "README.md", *GUIDE])
    if arguments == ["list"]:
        checks = {block: f"program {name}" for name, block, _ in programs()}
        checks |= {block: "in a test" for block in IN_TESTS}
        checks |= {block: f"recipe {name}" for name, names in recipes().items() for block in names}
        for name, block in blocks.items():
            print(f"{name}: {block.count(chr(10))} lines, {checks.get(name, 'not checked')}")
        return 0
    report = Report()
    report.add(f"README.md has at most {MAX_LINES} lines, files of the guide {MAX_GUIDE_LINES}", long_documents())
    report.add("each block of C++ has its program or recipe", problem_with_blocks(blocks))
    report.add(f"the seven usual recipes have at most {MAX_RECIPE_LINES} lines each", problem_with_lengths(blocks))
    report.add("all links and anchors of the documents resolve", broken_links())
    passes = RememberedPasses()
    jobs = [(program, source, blocks.get(block, ""), compiler, passes) for program, block, source in programs()
            for compiler in COMPILERS if (program, compiler) in HEADER_ONLY or have_changed(PROGRAMS) or
            is_due(program) == (compiler == COMPILERS[0])]
    for (program, _, _, compiler, _), problem in in_parallel(problem_with, jobs):
        report.add(f"{program} {compiler}", problem)
    compiled = {name: blocks[name] for names in recipes().values() for name in names if name in blocks}
    for compiler in ("g++", NEWEST_COMPILER):
        name = f"the {len(compiled)} recipes of the guide {compiler}"
        if shutil.which(compiler):
            report.add(name, problem_with_recipes(passes, compiled, compiler))
        else:
            report.skip(name, "this compiler is not installed")

    check_mistakes(report)
    check_python(report)

    text = "\n".join(path.read_text() for path in [ROOT / "README.md", *GUIDE])
    named = {(a or b).rstrip(".,;:)`") for a, b in NAMED_FILE.findall(text)}
    lost = [name for name in sorted(named) if not (ROOT / name).exists() and not (ROOT / "include" / name).exists()]
    report.add(f"all {len(named)} files that the README and the guide name exist", ", ".join(lost))
    stations = re.findall(r"`([\w/]+\.hpp)`", (ROOT / "include" / "millrace" / "README.md").read_text())
    lost = [name for name in stations if not (ROOT / "include" / "millrace" / name).exists()]
    report.add(f"all {len(stations)} headers that include/millrace/README.md names exist", ", ".join(lost))
    return report.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
