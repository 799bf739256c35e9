# Joins files of tests into one to compile: what they include is compiled once, and so is what they instantiate alike.
#
#   python3 tests/join.py OUTPUT ROOT FILE...          # tests/meson.build, where -Djoined_tests=true
#
# Each file's code goes into a namespace of its own, as names in it need not differ from another's. The lines that the
# compiler and doctest name are those of the files. A file that includes something below its first line of code is
# refused.
import os
import pathlib
import re
import sys

LOCAL_INCLUDE = re.compile(r'(\s*#\s*include\s*)"([^"]+)"')
BEFORE_CODE = re.compile(r"\s*(//.*|#.*)?$")


def parts_of(path, folder):
    """The lines down to the last #include, as they read in a file of the folder, and those below."""
    def found_from_folder(line):
        beside = (include := LOCAL_INCLUDE.match(line)) and path.parent / include[2]
        return f'{include[1]}"{os.path.relpath(beside, folder)}"' if beside and beside.exists() else line

    lines = path.read_text().splitlines()
    head = max((number for number, line in enumerate(lines, 1) if re.match(r"\s*#\s*include", line)), default=0)
    while head < len(lines) and lines[head].startswith(("#endif", "#else", "#elif")):
        head += 1
    for number, line in enumerate(lines[:head], 1):
        if not BEFORE_CODE.match(line):
            sys.exit(f"{path}:{number}: code above an #include: it cannot be joined")
    return [found_from_folder(line) for line in lines[:head]], lines[head:]


def joined(paths, root, folder):
    heads, bodies = [], []
    for path in paths:
        head, body = parts_of(path, folder)
        name = path.relative_to(root).as_posix()   # the same in every clone
        heads += [f'#line 1 "{name}"', *head]
        bodies += [f"namespace {re.sub(r'[^a-z0-9]', '_', name)} {{", f'#line {len(head) + 1} "{name}"', *body, "}"]
    # For g++ a file that #line names is an included one, and it warns of templates of its anonymous namespace.
    quiet = ["#ifndef __clang__", '#pragma GCC diagnostic ignored "-Wsubobject-linkage"', "#endif"]
    return "\n".join([*quiet, *heads, *bodies, ""])


def main(output, root, *files):
    output, paths = pathlib.Path(output).resolve(), [pathlib.Path(file).resolve() for file in files]
    output.write_text(joined(paths, pathlib.Path(root).resolve(), output.parent))


if __name__ == "__main__":
    main(*sys.argv[1:])
