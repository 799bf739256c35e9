# Generates the reference of all public types from the headers, as a site, and checks it: Doxygen must not warn, and
# every public type and function must be documented.
#
#   python3 tests/contract/documentation/documentation.py          # build/documentation/html/index.html
#
# Doxygen reads the headers through doxygen_filter.py, without definitions, because headers declare all public names.
# Types in a namespace `detail` are not public, except a class template basic_x whose public name is `x`.
import pathlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import ROOT, Report

FOLDER = ROOT / "build" / "documentation"
FILTER = pathlib.Path(__file__).resolve().parent / "doxygen_filter.py"
VERSION = re.search(r"version: '([\d.]+)'", (ROOT / "meson.build").read_text())[1]
SETTINGS = f"""
PROJECT_NAME = Millrace
PROJECT_NUMBER = {VERSION}
PROJECT_BRIEF = "Feeds GPU training from WebDataset shards"
INPUT = include/millrace README.md examples/README.md examples/guide
FILE_PATTERNS = *.hpp *.cuh *.md
EXTENSION_MAPPING = cuh=C++
RECURSIVE = YES
EXCLUDE_PATTERNS = *.tpl.hpp */run/engine.hpp */sources/missing_headers.hpp
FILTER_PATTERNS = "*.hpp={sys.executable} {FILTER}" "*.cuh={sys.executable} {FILTER}" "*.md={sys.executable} {FILTER}"
STRIP_FROM_PATH = include
STRIP_FROM_INC_PATH = include
OUTPUT_DIRECTORY = {FOLDER}
EXCLUDE_SYMBOLS = millrace::detail millrace::detail::* std std::*
PREDEFINED = DOXYGEN
EXTRACT_ALL = NO
EXTRACT_STATIC = YES
HIDE_UNDOC_MEMBERS = NO
SORT_MEMBER_DOCS = NO
TOC_INCLUDE_HEADINGS = 2
JAVADOC_AUTOBRIEF = YES
MARKDOWN_SUPPORT = NO
BUILTIN_STL_SUPPORT = YES
DISTRIBUTE_GROUP_DOC = NO
WARNINGS = YES
WARN_IF_UNDOCUMENTED = NO
WARN_IF_DOC_ERROR = YES
WARN_NO_PARAMDOC = NO
QUIET = YES
GENERATE_LATEX = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
HAVE_DOT = NO
SEARCHENGINE = YES
GENERATE_TREEVIEW = YES
DISABLE_INDEX = NO
"""


SOUGHT = ("shards", "lines", "from", "map", "batch", "shuffle", "jpeg")
# These names exist only for compile errors.
DECOYS = re.compile(r"detail::(diagnose::|broken_|no_batches)|\bRejects\b.* at compile time|"
                    r"^(num_workers|buffer_size|batch_size)$", re.MULTILINE)


def is_empty(node):
    return node is None or not "".join(node.itertext()).strip()


def undocumented_types():
    """The public types without documentation in their own comment or their header's."""
    problems = []
    for path in sorted((FOLDER / "xml").glob("*.xml")):
        if not path.name.startswith(("class", "struct")):
            continue
        kind = xml.etree.ElementTree.parse(path).getroot().find("compounddef")
        name = kind.findtext("compoundname")
        # The enclosing type documents nested types.
        public = name.rpartition("::")[0] == "millrace" and "<" not in name
        if public and is_empty(kind.find("briefdescription")) and is_empty(kind.find("detaileddescription")):
            location = kind.find("location")
            problems.append(f"{name} ({location.get('file') if location is not None else '?'})")
    return problems


def undocumented_functions():
    """The public free functions without their own comment. Deduction guides have the name of a type."""
    xml_of = (FOLDER / "xml").glob
    types = {path.stem.rpartition("_1_1")[2] for path in [*xml_of("class*.xml"), *xml_of("struct*.xml")]}
    problems = []
    for path in sorted(xml_of("namespacemillrace.xml")):
        for member in xml.etree.ElementTree.parse(path).getroot().iter("memberdef"):
            name = member.findtext("name")
            if member.get("kind") == "function" and name.replace("_", "__") not in types and is_empty(
                    member.find("briefdescription")) and is_empty(member.find("detaileddescription")):
                location = member.find("location")
                problems.append(f"{name} ({location.get('file')}:{location.get('line')})")
    return problems


def raw_markdown():
    """Comments in which Markdown syntax is displayed unprocessed."""
    problems = []
    for path in sorted((FOLDER / "xml").glob("[cns]*millrace*.xml")):
        for part in xml.etree.ElementTree.parse(path).getroot().iter():
            if part.tag not in ("briefdescription", "detaileddescription"):
                continue
            for listing in [*part.iter("programlisting"), *part.iter("verbatim")]:
                listing.clear()
            if "`" in "".join(part.itertext()):
                problems.append(f"{path.stem}: {''.join(part.itertext()).strip()[:100]}")
    return problems


def missing_and_decoys():
    """Missing functions and pages, and names that exist only for compile errors."""
    members = {path.stem: list(xml.etree.ElementTree.parse(path).getroot().iter("memberdef"))
               for path in (FOLDER / "xml").glob("[cns]*millrace*.xml")}
    functions = {member.findtext("name") for member in members.get("namespacemillrace", ())
                 if member.get("kind") == "function"}
    problems = [f"the page of the namespace has no {name}()" for name in SOUGHT if name not in functions]
    for page, of_page in members.items():
        for member in of_page:
            text = "".join(member.itertext())
            if DECOYS.search(text) or member.get("kind") == "friend" and member.findtext("name").startswith("detail::"):
                problems.append(f"{page}: {member.findtext('name')}")
    main_page = (FOLDER / "html" / "index.html").read_text()
    problems += [f"the main page has no link to {page}" for page in ("readme", "recipes", "namespacemillrace")
              if f'href="{page}.html"' not in main_page]
    stats_page = FOLDER / "html" / "structmillrace_1_1run__stats.html"
    return problems + ([] if stats_page.exists() else ["the type that run.stats() returns has no page"])


def headers_without_example():
    """Headers whose first comment has no example, which is indented by three spaces."""
    problems = []
    for path in sorted([*(ROOT / "include").rglob("*.hpp"), *(ROOT / "include").rglob("*.cuh")]):
        if path.name == "engine.hpp" or path.name.endswith(".tpl.hpp"):   # part of another header
            continue
        comment = path.read_text().partition("#pragma once")[0]
        if not re.search(r"^//    *\S", comment, re.MULTILINE):
            problems.append(str(path.relative_to(ROOT / "include")))
    return problems


def main():
    report = Report()
    if not shutil.which("doxygen"):
        report.skip("documentation", "doxygen is not installed")
        return report.close()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    done = subprocess.run(["doxygen", "-"], input=SETTINGS, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    page = FOLDER / "html" / "index.html"
    report.add("Doxygen has no warnings", done.stdout[:4000] or (
        None if done.returncode == 0 and page.exists() else f"doxygen: exit status {done.returncode}"))
    if page.exists():
        lacking = undocumented_types()
        report.add("every public type is described", lacking and "\n".join(lacking))
        lacking = undocumented_functions()
        report.add("every public function is described", lacking and "\n".join(lacking))
        report.add("no comment displays raw Markdown", "\n".join(raw_markdown()))
        report.add("expected pages and functions exist, and no decoys", "\n".join(missing_and_decoys()))
    lacking = headers_without_example()
    report.add("every public header begins with its example", lacking and "\n".join(lacking))
    print(f"the reference: {page.relative_to(ROOT)}")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
