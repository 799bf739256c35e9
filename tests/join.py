# Joins test files into one, so that their common headers and instantiations are compiled once.
#
#   python3 tests/join.py OUTPUT ROOT FILE...          # tests/meson.build, with -Djoined_tests=true
#
# Each file's code is placed in its own namespace, so that files may use equal names. The compiler and doctest report
# the lines of the original files. A file with an #include after its first line of code is refused.
import os
import pathlib
import re
import sys

LOCAL_INCLUDE = re.compile(r'(\s*#\s*include\s*)"([^"]+)"')
BEFORE_CODE = re.compile(r"\s*(//.*|#.*)?$")


def parts_of(path, folder):
    """The lines up to the last #include, adapted to a file in the folder, and the remaining lines."""
    def adapted(line):
        local = (include := LOCAL_INCLUDE.match(line)) and path.parent / include[2]
        return f'{include[1]}"{os.path.relpath(local, folder)}"' if local and local.exists() else line

    lines = path.read_text().splitlines()
    head = max((number for number, line in enumerate(lines, 1) if re.match(r"\s*#\s*include", line)), default=0)
    while head < len(lines) and lines[head].startswith(("#endif", "#else", "#elif")):
        head += 1
    for number, line in enumerate(lines[:head], 1):
        if not BEFORE_CODE.match(line):
            sys.exit(f"{path}:{number}: code above an #include: it cannot be joined")
    return [adapted(line) for line in lines[:head]], lines[head:]


def joined(paths, root, folder):
    heads, bodies = [], []
    for path in paths:
        head, body = parts_of(path, folder)
        name = path.relative_to(root).as_posix()   # the same in every clone
        heads += [f'#line 1 "{name}"', *head]
        bodies += [f"namespace {re.sub(r'[^a-z0-9]', '_', name)} {{", f'#line {len(head) + 1} "{name}"', *body, "}"]
    # g++ treats a file that #line names as included, and warns of templates of its anonymous namespace.
    quiet = ["#ifndef __clang__", '#pragma GCC diagnostic ignored "-Wsubobject-linkage"', "#endif"]
    return "\n".join([*quiet, *heads, *bodies, ""])


def main(output, root, *files):
    output, paths = pathlib.Path(output).resolve(), [pathlib.Path(file).resolve() for file in files]
    output.write_text(joined(paths, pathlib.Path(root).resolve(), output.parent))


if __name__ == "__main__":
    main(*sys.argv[1:])
