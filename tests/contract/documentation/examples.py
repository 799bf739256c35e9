# Compiles the examples in the comments of each header, so that users can copy them.
#
#   python3 tests/contract/documentation/examples.py                     # all of them, in two programs
#   python3 tests/contract/documentation/examples.py item/world.hpp     # only one header's
#
# The examples are blocks of comment lines in the headers, indented by three spaces. The declarations that they need
# (types, functions, arguments) are in examples/. A section for a header begins with `// ---- FOLDER/NAME.hpp`, without
# subfolders, or with `// ---- NAME.hpp` in a file whose name begins with the folder, such as examples/image_jpeg.hpp.
# In a section, all blocks replace a line `EXAMPLE`, and the second block replaces `EXAMPLE 2`. Every block is used, or
# the section has the reason: `// block 2 is a table`. Without a section, an example must be the body of a function.
# Programs are compiled, not run. They exclude the definitions of the compiled library (MILLRACE_COMPILED), which saves
# half the time.
import functools
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import COMPILED, ROOT, RememberedPasses, Report, in_parallel, library_flags

INCLUDE = ROOT / "include"
CONTEXTS = pathlib.Path(__file__).resolve().parent / "examples"
# Excluded: they need optional libraries or nvcc, are part of another header, or contain all definitions.
LEFT_OUT = re.compile(r"adapt/(feeders(/feeder_(attempt|client))?|torch|opencv|sentencepiece|json|sndfile|soxr|webp|"
                      r"python.*|remote.*)\.hpp|.*\.cuh|run/engine\.hpp|src\.hpp|compiled/.*|"
                      r"adapt/(feeders/)?(feed_rows|feed_rows_options|feeder_server)\.hpp|"
                      r"device/(cuda|stream_name).*\.hpp")
ALONE = "void example() {\nEXAMPLE\n}\n"
SECTION = re.compile(r"// ---- ((?:\w+/)?\w+\.hpp)")


def blocks_of(header):
    """The indented blocks of a header's comments: [(number of the first line, lines)]. As in Markdown, a block
    follows an empty line: an indented line after text continues an item of a list."""
    blocks, is_block, before = [], False, ""
    for number, line in enumerate((INCLUDE / "millrace" / header).read_text().splitlines(), 1):
        is_block = bool(re.match(r"//   +\S", line)) and (is_block or before == "//")
        if is_block:
            if before == "//":
                blocks.append((number, []))
            blocks[-1][1].append(line[2:])
        before = line
    return blocks


@functools.lru_cache
def sections():
    """The sections of all files of contexts: {FOLDER/NAME.hpp: (the file, [(number of a line, the line)])}."""
    all_sections = {}
    for path in sorted(CONTEXTS.iterdir()):
        lines = []
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if match := SECTION.fullmatch(line):
                folder = "" if "/" in match[1] else path.stem.partition("_")[0] + "/"
                lines = all_sections.setdefault(folder + match[1], (path, []))[1]
            else:
                lines.append((number, line))
    return all_sections


def section_name(header):
    folder = header.partition("/")[0] if "/" in header else "umbrellas"
    return f"{folder}/{pathlib.PurePath(header).name}"


def fragment_of(header):
    """(includes, rest) of the header's part of a program. Raises ValueError for an unused block."""
    blocks, used = blocks_of(header), set()
    context, section = sections().get(section_name(header), (CONTEXTS, list(enumerate(ALONE.splitlines(), 1))))
    includes, lines = [f"#include <millrace/{header}>"], []
    for number, line in section:
        if match := re.match(r"\s*EXAMPLE(?: (\d+))?$", line):
            for block in [int(match[1])] if match[1] else range(1, len(blocks) + 1):
                if block > len(blocks):
                    raise ValueError(f"{context}:{number}: the header has no block {block}")
                used.add(block)
                first, code = blocks[block - 1]
                lines.append(f'#line {first} "include/millrace/{header}"')
                for at, one in enumerate(code):
                    if one.lstrip().startswith("#include"):
                        includes.append(one.strip())
                        lines.append("")
                    else:
                        lines.append(one)
            lines.append(f'#line {number + 1} "{context}"')
        elif match := re.match(r"// block (\d+) is \S", line):
            if int(match[1]) > len(blocks):
                raise ValueError(f"{context}:{number}: the header has no block {match[1]}")
            used.add(int(match[1]))
        elif line.startswith("#include"):
            includes.append(line)
        else:
            lines.append(line)
    if unused := set(range(1, len(blocks) + 1)) - used:
        raise ValueError(f"{context}: block {min(unused)} of the examples of {header} is not used")
    return includes, lines


def program_of(headers):
    includes, bodies = [], []
    for number, header in enumerate(headers):
        header_includes, lines = fragment_of(header)
        includes += header_includes
        bodies += [f"namespace example_of_header_{number} {{", *lines, f"}}  // of {header}"]
    return "\n".join([*dict.fromkeys(includes), "namespace mr = millrace;", *bodies]) + "\n"


def problem_of(headers, remembered):
    command = ["clang++", "-std=c++20", COMPILED, "-fsyntax-only", "-w", "-ferror-limit=0",
               f"-I{INCLUDE}", *library_flags("--cflags"), "-x", "c++", "-"]
    try:
        program = program_of(headers)
    except ValueError as problem:
        return str(problem)
    key = remembered.key(command, program, INCLUDE)
    if remembered.remark(key) is not None:
        return None
    done = subprocess.run(command, input=program, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        return "\n".join(line for line in done.stdout.splitlines() if "error:" in line)[:6000] or done.stdout[:3000]
    remembered.remember(key)
    return None


def problem_with_sections(folders):
    """Sections, or files of them, that no header uses."""
    used = {section_name(header) for headers in folders.values() for header in headers}
    return "\n".join(f"{path.name}: {name}" for name, (path, _) in sections().items() if name not in used) or None


def main(headers):
    report = Report()
    if not shutil.which("clang++"):
        report.skip("examples of the headers", "clang++ is not installed")
        return report.close()
    remembered, folders = RememberedPasses(), {}
    for path in sorted(INCLUDE.rglob("*.hpp")):
        header = str(path.relative_to(INCLUDE / "millrace"))
        if not LEFT_OUT.fullmatch(header) and blocks_of(header):
            folders.setdefault(header.partition("/")[0] if "/" in header else "", []).append(header)
    programs = [[header] for header in headers] or list(folders.values())
    # Folders share most of the headers that they include. Each is compiled separately to find the broken one.
    halves = [] if headers else [programs[::2], programs[1::2]]
    right = [folder for half, problem in in_parallel(lambda half: problem_of(sum(half, []), remembered), halves)
             if not problem for folder in half]
    report.add("each section of examples/ belongs to a header", problem_with_sections(folders))
    for headers, problem in in_parallel(lambda some: some not in right and problem_of(some, remembered), programs):
        folder = headers[0].partition("/")[0] if "/" in headers[0] else "the umbrellas"
        report.add(f"examples of {headers[0] if headers else folder}: {len(headers)}", problem)
    return report.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
