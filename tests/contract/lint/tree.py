# The files of the tree, as the linter's rules read them.
import functools
import pathlib
import re

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
        """All our source texts: {path relative to the root: text}."""
        texts = {}
        for folder in ("include", "tests", "examples", "bench", ".ci", "subprojects", "."):
            walk = (self.root / folder).glob("*") if folder in (".", "subprojects") else (self.root / folder).rglob("*")
            for path in walk:
                kinds = (".hpp", ".inl", ".cpp", ".cuh", ".cu", ".inc", ".py", ".sh", ".md", ".wrap")
                if path.is_file() and (path.suffix in kinds
                                       or path.name in ("meson.build", "meson_options.txt", "run")):
                    texts[str(path.relative_to(self.root))] = path.read_text()
        return dict(sorted(texts.items()))

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
        return [(path, number, match[1], match[2]) for path, text in self.headers.items()
                for number, line in enumerate(text.splitlines(), 1) if (match := INCLUDE.match(line))]


def folder_of(header):
    """'base', 'stages', 'io/file', ...; '' for an umbrella. Files in impl/ belong to the folder of their header."""
    return header.rpartition("/")[0].removesuffix("/impl")


def allowance_problem(count, allowed, command):
    """The problem of a count that differs from its allowance, which only falls; `command` prints the places."""
    if count == allowed:
        return None
    return f"{allowed} are allowed" + ("" if count > allowed else ": lower the allowance") + f"; {command} prints where"


def numbered(texts):
    for path, text in texts.items():
        for number, line in enumerate(text.splitlines(), 1):
            yield path, number, line
