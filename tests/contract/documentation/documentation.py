# Makes the reference of all public types from the headers, as a site, and checks it: Doxygen has nothing to warn of,
# and no public type or function is without a word.
#
#   python3 tests/contract/documentation/documentation.py          # build/documentation/html/index.html
#
# Doxygen reads the headers through doxygen_filter.py, and no definitions: the headers declare all that is public. Types
# in a namespace `detail` are not public, but for a class template basic_x of which `x` is the public name.
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
DECOYS = ("num_workers", "buffer_size", "batch_size")   # exist only for the sentence that names the right option


def is_empty(node):
    return node is None or not "".join(node.itertext()).strip()


def types_without_a_word():
    """The public types that neither their own comment nor their header's describes."""
    found = []
    for path in sorted((FOLDER / "xml").glob("*.xml")):
        if not path.name.startswith(("class", "struct")):
            continue
        kind = xml.etree.ElementTree.parse(path).getroot().find("compounddef")
        name = kind.findtext("compoundname")
        # What is within a type is told of there.
        public = name.rpartition("::")[0] == "millrace" and "<" not in name
        if public and is_empty(kind.find("briefdescription")) and is_empty(kind.find("detaileddescription")):
            location = kind.find("location")
            found.append(f"{name} ({location.get('file') if location is not None else '?'})")
    return found


def functions_without_a_word():
    """The public free functions without a comment of their own. Deduction guides bear the name of a type."""
    xml_of = (FOLDER / "xml").glob
    types = {path.stem.rpartition("_1_1")[2] for path in [*xml_of("class*.xml"), *xml_of("struct*.xml")]}
    found = []
    for path in sorted(xml_of("namespacemillrace.xml")):
        for member in xml.etree.ElementTree.parse(path).getroot().iter("memberdef"):
            name = member.findtext("name")
            if member.get("kind") == "function" and name.replace("_", "__") not in types and is_empty(
                    member.find("briefdescription")) and is_empty(member.find("detaileddescription")):
                location = member.find("location")
                found.append(f"{name} ({location.get('file')}:{location.get('line')})")
    return found


def raw_marks():
    """Comments in which marks of Markdown are shown as they are written."""
    found = []
    for path in sorted((FOLDER / "xml").glob("[cns]*millrace*.xml")):
        for part in xml.etree.ElementTree.parse(path).getroot().iter():
            if part.tag not in ("briefdescription", "detaileddescription"):
                continue
            for listing in [*part.iter("programlisting"), *part.iter("verbatim")]:
                listing.clear()
            if "`" in "".join(part.itertext()):
                found.append(f"{path.stem}: {''.join(part.itertext()).strip()[:100]}")
    return found


def not_as_expected():
    """What a reader looks for and does not find, and what is there for the sake of a compile error."""
    members = {path.stem: [(member.findtext("name"), member.get("kind")) for member in xml.etree.ElementTree.parse(
        path).getroot().iter("memberdef")] for path in (FOLDER / "xml").glob("[cns]*millrace*.xml")}
    functions = {name for name, kind in members.get("namespacemillrace", ()) if kind == "function"}
    found = [f"the page of the namespace has no {name}()" for name in SOUGHT if name not in functions]
    found += [f"{page}: {name}" for page, names in members.items() for name, _ in names
              if name in DECOYS]
    main_page = (FOLDER / "html" / "index.html").read_text()
    found += [f"the main page has no link to {page}" for page in ("readme", "recipes", "namespacemillrace")
              if f'href="{page}.html"' not in main_page]
    received = FOLDER / "html" / "structmillrace_1_1run__stats.html"
    return found + ([] if received.exists() else ["what run.stats() returns has no page"])


def headers_without_example():
    """An example is indented by three blanks within the comment that a header begins with."""
    found = []
    for path in sorted([*(ROOT / "include").rglob("*.hpp"), *(ROOT / "include").rglob("*.cuh")]):
        if path.name == "engine.hpp" or path.name.endswith(".tpl.hpp"):   # the inside of another header
            continue
        comment = path.read_text().partition("#pragma once")[0]
        if not re.search(r"^//    *\S", comment, re.MULTILINE):
            found.append(str(path.relative_to(ROOT / "include")))
    return found


def main():
    report = Report()
    if not shutil.which("doxygen"):
        report.skip("documentation", "there is no doxygen")
        return report.close()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    done = subprocess.run(["doxygen", "-"], input=SETTINGS, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    page = FOLDER / "html" / "index.html"
    report.add("Doxygen has nothing to warn of", done.stdout[:4000] or (
        None if done.returncode == 0 and page.exists() else f"doxygen: exit status {done.returncode}"))
    if page.exists():
        lacking = types_without_a_word()
        report.add("every public type is described", lacking and "\n".join(lacking))
        lacking = functions_without_a_word()
        report.add("every public function is described", lacking and "\n".join(lacking))
        report.add("no comment shows a raw mark of Markdown", "\n".join(raw_marks()))
        report.add("what readers look for is there, and no decoy", "\n".join(not_as_expected()))
    lacking = headers_without_example()
    report.add("every public header begins with its example", lacking and "\n".join(lacking))
    print(f"the reference: {page.relative_to(ROOT)}")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
