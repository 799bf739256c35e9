# The README's C++ compiles as it stands and runs, with clang++ and g++ and the compiled library, two programs
# header-only; the files and folders that it names exist.
#
#   python3 tests/contract/readme/readme.py
#
# Each block of C++ in the README, and those of examples/README.md after its recipes, becomes snippet.hpp for one of the
# programs in programs.cpp, in this order. A program begins with `// program: NAME`, ends before the next one, and is
# compiled alone. The recipes are compiled by recipes.cpp and not run. The README has at most 200 lines, the seven
# recipes that most trainings begin with have at most 20 each, and the headers that include/millrace/README.md names
# exist.
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import (COMPILED, COMPILERS, ROOT, WARNINGS, RememberedPasses, Report, compiled_library, in_parallel,
                    library_flags)

PROGRAMS = pathlib.Path(__file__).with_name("programs.cpp")
PROGRAM = re.compile(r"^// program: (\w+)\n(.*?)(?=^// program:|\Z)", re.MULTILINE | re.DOTALL)
# With the compiled library a program takes a third of the time. g++ warns of uninitialized values where it optimizes.
HEADER_ONLY = {("first_program", "clang++"): "-O0", ("text", "g++"): "-O2"}
MAX_LINES = 200
# What each shows, by its namespace in recipes.cpp. The README's first program is the first of them once more.
USUAL_RECIPES = {"pictures": "JPEG and cls", "png": "PNG and cls", "masks": "a picture and its mask",
                 "boxes": "a picture and its boxes", "same_geometry": "a pair of pictures",
                 "many_crops": "DINO's ten crops", "mixed_rows": "color jitter and mixup"}
MAX_RECIPE_LINES = 20
RECIPE = re.compile(r'^namespace (\w+) \{\n#include "recipe_(\d+)\.hpp"', re.MULTILINE)
NAMED_FILE = re.compile(r"\b(?:sh ((?:examples|tests|bench)/\S+)|"
                        r"`((?:examples|tests|bench|millrace|subprojects)/[^` ]*)`)")


def programs():
    """[(name, text)]. Blank lines replace the programs before it, so that each line keeps its number."""
    text = PROGRAMS.read_text()
    return [(found[1], "\n" * text.count("\n", 0, found.start(2)) + found[2]) for found in PROGRAM.finditer(text)]


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
        library = [compiled_library(compiler, "-O1")] if mode else []
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


def blocks_of(text):
    return re.findall(r"^```cpp\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def problem_with_recipes(passes, text):
    recipes = blocks_of(text)
    source = pathlib.Path(__file__).parent / "recipes.cpp"
    flags = ["g++", *WARNINGS, "-O0", COMPILED, f"-I{ROOT / 'include'}", *library_flags("--cflags")]
    key = passes.key(flags, source.read_text() + text, ROOT / "include")
    if source.read_text().count('#include "recipe_') != len(recipes):
        return f"there are {len(recipes)} recipes; recipes.cpp includes another number of them"
    if passes.remark(key) is not None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        includes = re.findall(r"^#include <.*?>", "\n".join(recipes), re.MULTILINE)
        (pathlib.Path(folder) / "includes_of_recipes.hpp").write_text("\n".join(sorted(set(includes))) + "\n")
        for number, recipe in enumerate(recipes, 1):
            own = re.sub(r'^#include ".*"$', "", recipe, flags=re.MULTILINE)   # the recipe before it
            (pathlib.Path(folder) / f"recipe_{number}.hpp").write_text(own)
        built = subprocess.run([*flags, f"-I{folder}", "-fsyntax-only", source], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    if built.returncode != 0:
        return built.stdout[-3000:]
    passes.remember(key)
    return None


def problem_with_lengths(first_program, recipes):
    numbers = dict(RECIPE.findall((pathlib.Path(__file__).parent / "recipes.cpp").read_text()))
    lengths = {"the README's first program": first_program.count("\n")}
    for name, shows in USUAL_RECIPES.items():
        number = int(numbers.get(name, 0))
        if not 1 <= number <= len(recipes):
            return f"recipes.cpp has no recipe in a namespace {name}"
        lengths[f"{shows} ({name})"] = recipes[number - 1].count("\n")
    return ", ".join(f"{name}: {lines} lines" for name, lines in lengths.items() if lines > MAX_RECIPE_LINES)


def main():
    report = Report()
    text = (ROOT / "README.md").read_text()
    lines = text.count("\n")
    report.add(f"the README has at most {MAX_LINES} lines", None if lines <= MAX_LINES else f"{lines} lines")
    recipes, _, others = (ROOT / "examples" / "README.md").read_text().partition("\n## If you come from elsewhere\n")
    snippets = blocks_of(text) + blocks_of(others)
    report.add("each block of C++ has its program",
               None if len(snippets) == len(programs()) else f"{len(snippets)} blocks, {len(programs())} programs")
    report.add(f"the seven usual recipes have at most {MAX_RECIPE_LINES} lines each",
               problem_with_lengths(snippets[0], blocks_of(recipes)))
    passes = RememberedPasses()
    jobs = [(program, source, snippet, compiler, passes) for (program, source), snippet in zip(programs(), snippets)
            for compiler in COMPILERS]
    for (program, _, _, compiler, _), problem in in_parallel(problem_with, jobs):
        report.add(f"{program} {compiler}", problem)
    report.add("the recipes of examples/README.md g++", problem_with_recipes(passes, recipes))

    text += recipes + others
    named = {(a or b).rstrip(".,;:)`") for a, b in NAMED_FILE.findall(text)}
    lost = [name for name in sorted(named) if not (ROOT / name).exists() and not (ROOT / "include" / name).exists()]
    report.add(f"all {len(named)} files that it names exist", ", ".join(lost))
    stations = re.findall(r"`([\w/]+\.hpp)`", (ROOT / "include" / "millrace" / "README.md").read_text())
    lost = [name for name in stations if not (ROOT / "include" / "millrace" / name).exists()]
    report.add(f"all {len(stations)} headers on the way of the data exist", ", ".join(lost))
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
