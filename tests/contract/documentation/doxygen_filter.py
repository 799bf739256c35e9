# Converts a header for Doxygen: the comment at its beginning documents the file and the type with the file's name.
#
#   python3 doxygen_filter.py include/millrace/run/session.hpp
import os
import pathlib
import re
import sys

SPECIAL = re.compile(r"[\\@#<>&%\"]|::(?=~)|--(?=-)|/(?=\*)")
CODE = re.compile(r"`([^`]+)`")
# Declarations that exist only for compile errors, and friends that are not public, are not part of the reference.
DECOY = re.compile(r"\bdetail::(?:broken_\w+|diagnose::|no_batches\b)|\bunavailable\(|^friend\b.*\bdetail::")


def as_doxygen(comment):
    """Plain text. Lines that are indented by three spaces, or by six and more, are code."""
    lines, code_column = [], None
    for line in comment:
        text = line[2:].rstrip()
        column = len(text) - len(text.lstrip())
        if code_column is not None and text and column < code_column:
            lines.append("@endcode")
            code_column = None
        if code_column is None and (column == 3 or column >= 6):
            lines.append("@code{.cpp}")
            code_column = column
        if code_column is None:
            lines.append(SPECIAL.sub(lambda match: "\\" + match[0], text))
        else:
            lines.append(text[code_column:].replace("*/", "* /").replace("/*", "/ *"))
    if code_column is not None:
        lines.append("@endcode")
    pieces = re.split(r"(@code.*?@endcode)", "\n".join(lines), flags=re.DOTALL)
    return "".join(piece if piece.startswith("@code") else CODE.sub(r"<code>\1</code>", piece) for piece in pieces)


def code_of(line):
    """A line without the content of strings, without comments and without spaces at its ends."""
    return re.sub(r"//.*", "", re.sub(r'"[^"]*"', '""', line)).strip()


def begins_next_line(line):
    """Whether the next line belongs to the declaration, or to the comment, that this line begins or continues."""
    if line.lstrip().startswith("//"):
        return line.strip() != "// clang-format on"
    return line.strip() != "" and not line.startswith("#") and not code_of(line).endswith((";", "{", "}", ":"))


def without_decoys(body):
    lines, kept = iter(body.split("\n")), []
    for line in lines:
        if not DECOY.search(code_of(line)):
            kept.append(line)
            continue
        while kept and begins_next_line(kept[-1]):
            kept.pop()
        depth, code = 0, ""
        while line is not None:
            code = code_of(line)
            depth += len(re.findall(r"[({\[]", code)) - len(re.findall(r"[)}\]]", code))
            line = None if depth <= 0 and code.endswith((";", "}")) else next(lines, None)
    return "\n".join(kept)


def with_public_names(body):
    """Documents `using x = detail::basic_x<>;` as the class that users see."""
    for alias in re.findall(r"^using (\w+) = detail::basic_\1<>;$", body, re.MULTILINE):
        template = re.compile(rf"((?:^///[^\n]*\n)*)^template <[^\n]*>\n(class basic_{alias}\b.*?^\}};\n)",
                              re.MULTILINE | re.DOTALL)
        if match := template.search(body):
            shown = match[1] + match[2].replace(f"basic_{alias}", alias)
            body = body.replace(match[0], "")
            body = re.sub(rf"(?:^///[^\n]*\n)*^using {alias} = [^\n]*\n", lambda _: shown, body, flags=re.MULTILINE)
    return body


def main_page(comment):
    """The main page, and the page of the namespace, which lists all functions."""
    return f"""/** @mainpage Millrace
{comment}

Where to begin:
- @ref readme "the README": installation, how data flows, limits
- @ref recipes "the guide": images, text, resuming, ranks, remote shards, metrics, and a table of every stage
- @ref millrace "all functions and types": sources such as shards() and lines(), stages such as map() and batch(),
  images such as jpeg(), and options
- @ref headers "how a sample passes through the headers"
*/
/** @namespace millrace
@brief All names that a trainer uses: sources, stages, sessions, images, metrics, and their options. */
"""


def filtered(path, text):
    head, mark, body = text.partition("#pragma once")
    comment = as_doxygen([line for line in head.splitlines() if line.startswith("//")])
    body = without_decoys(body)
    body = body.replace(" inline namespace MILLRACE_ABI {", "")
    body = re.sub(r"^\}(\}+  // namespace millrace)", r"\1", body, flags=re.MULTILINE)
    body = re.sub(r"template <[^\n]*>\ninline constexpr bool std::ranges::[^;]*;", "", body)
    # Doxygen misinterprets the body after such a line as an initializer.
    body = re.sub(r"^ +requires [\w:]+\n(?= *\{)", "\n", body, flags=re.MULTILINE)
    body = with_public_names(body)
    types = rf"(?:basic_)?{path.stem}(?:_source|_stage|_of)?"
    head = r"(?:template <[^\n]*>\n(?:  requires [^\n]*\n)?)?(?:class|struct) (?:\[\[\w+\]\] )?"
    body = re.sub(rf"^({head}{types}\b[^;\n]*(?:\{{|$))", lambda match: f"/** {comment} */\n{match[1]}", body,
                  flags=re.MULTILINE)
    # The members document the options.
    body = re.sub(r"^(struct (\w+)_options )", r"/** Options of \2: see the description of each member. */\n\1", body,
                  flags=re.MULTILINE)
    body = re.sub(r"(///<?)(.*)", lambda match: match[1] + CODE.sub(
        r"<code>\1</code>", SPECIAL.sub(r"\\\g<0>", match[2])), body)
    page = main_page(comment) if path.as_posix().endswith("millrace/millrace.hpp") else ""
    return f"/** @file\n{comment} */\n{page}{mark}{body}"


def label_of(path):
    """The label of a document's page, or None for a file that is not part of the reference."""
    folder = "/".join(path.parent.parts[-2:])   # two names, because the clone may be named millrace
    if folder == "examples/guide":
        return f"guide_{path.stem}"
    if path.name != "README.md":
        return None
    return "headers" if folder == "include/millrace" else "recipes" if folder.endswith("examples") else "readme"


def labelled(path, text):
    """A page of Markdown, with a label. Links between documents become references to their labels."""
    def reference(match):
        target = pathlib.Path(os.path.normpath(path.parent / match[2]))
        return f'@ref {label_of(target)} "{match[1]}"' if match[2].endswith(".md") and label_of(target) else match[0]

    title, _, rest = text.partition("\n")
    rest = re.sub(r"\[([^\]]+)\]\(([^()#\s:]+)(?:#[^()]*)?\)", reference, rest)
    return f"{title} {{#{label_of(path)}}}\n{rest}"


if __name__ == "__main__":
    source = pathlib.Path(sys.argv[1])
    as_shown = labelled if source.suffix == ".md" else filtered
    sys.stdout.write(as_shown(source, source.read_text()))
