# The layers of include/millrace: rules for includes, folders and dependencies.
import functools
import re

from tree import folder_of

# A folder includes folders of lower layers; in its own layer only those that precede it in the same chain.
LAYERS = (
    (("simd", "base"),),
    (("measure/values", "measure/meters"),),
    (("item", "item/tensor", "item/column"), ("flow",)),
    (("sync",), ("order",)),
    (("io/file", "io/cache", "io/tar/format", "io/tar/write", "io/tar/read", "io/index/format", "io/index/choice",
      "io/index/read", "io/index/entries", "io/index/set"),
     ("image/values", "image/jpeg/baseline", "image/jpeg/progressive", "image/jpeg/libjpeg", "image/resize",
      "image/color", "image/warp", "image/plan", "image/jpeg", "image/render", "image/picture", "image/png",
      "image/pnm", "image/labels", "image/augment", "image"),
     ("audio",),
     ("device",)),
    (("stages",),),
    (("work/schedule", "work/segment", "work/batch"),),
    (("read/stage", "read/run", "read/mix"), ("deliver",), ("tune",)),
    (("sources/list", "sources", "sources/prepare"),),
    (("run",),),
    (("report/verdict", "report/simulate", "report", "report/print"), ("train",)),
    (("adapt/remote/store", "adapt/remote/transfer", "adapt/remote", "adapt/feeders", "adapt/tensors",
      "adapt/python", "adapt"),),
    (("compiled", ""),),   # all definitions; the umbrellas
)
EVERYWHERE = "base/version.hpp"   # each header includes it
# One dependency per place. A header with a folder in its name that is not the system's is a dependency, too.
DEPENDENCIES = (
    (re.compile(r"archive(_entry)?\.h$"), ("io/tar",)),
    (re.compile(r"zlib\.h$"), ("io/tar",)),
    (re.compile(r"(jpeglib|jerror|jmorecfg|jconfig|turbojpeg)\.h$"), ("image/jpeg/libjpeg",)),
    (re.compile(r"(tbb|oneapi)/"), ("work",)),
    (re.compile(r"nvtx3/nvToolsExt\.h$"), ("measure/meters/trace_range.hpp",)),
    (re.compile(r"nvtx3/"), ("device/stream_name.hpp",)),
    (re.compile(r"(cuda|cooperative_groups|cub/|thrust)"), ("device", "train")),
    (re.compile(r"(sys|linux|netinet|sanitizer)/"), ("",)),
    (re.compile(r".*/"), ()),
)
MAX_FILES = 26   # in a folder


@functools.cache
def standing_of(folder):
    """(layer, chain in that layer, place in the chain) of a folder; None: it is in no layer."""
    for layer, chains in enumerate(LAYERS):
        for number, chain in enumerate(chains):
            if folder in chain:
                return layer, number, chain.index(folder)
    return None


def layer_of(header):
    standing = standing_of(folder_of(header))
    return standing and standing[0]


def layers(tree):
    """A header includes lower layers, its own folder, and of its layer the folders before its own in the chain."""
    for path in tree.headers:
        if layer_of(path) is None:
            yield path, 1, f"the folder {folder_of(path)} is in no layer"
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
        elif layer_of(path) is not None and layer_of(other) is not None:
            here, there = folder_of(path), folder_of(other)
            (layer, chain, place), (other_layer, other_chain, other_place) = standing_of(here), standing_of(there)
            if other_layer > layer or (other_layer, other_chain) == (layer, chain) and other_place > place:
                yield path, number, f"{here} is lower than {there or 'the umbrellas'}"
            elif other_layer == layer and other_chain != chain:
                yield path, number, f"{here} and {there} are in one layer"


def cycles(tree):
    """No header includes itself through others. Definitions end a header: they do not count."""
    def declares(name):
        return name in tree.headers and not re.search(r"\.inl$|\.tpl\.hpp$", name)

    edges, done = {}, set()
    for path, number, _, name in tree.includes:
        other = name.removeprefix("millrace/")
        if declares(path) and declares(other):
            edges.setdefault(path, []).append((number, other))

    def search(header, open_headers):
        for number, other in edges.get(header, []):
            if other in open_headers:
                yield header, number, f"includes {other}, which includes it"
            elif other not in done:
                yield from search(other, [*open_headers, other])
        done.add(header)

    for header in edges:
        if header not in done:
            yield from search(header, [header])


def folder_size(tree):
    """A folder has a limited number of files."""
    counts = {}
    for path in tree.sources:
        folder = path.rpartition("/")[0]
        if path.startswith("include/millrace/") and not folder.endswith("/impl"):
            counts[folder] = counts.get(folder, 0) + 1
    for folder, count in counts.items():
        if count > MAX_FILES:
            yield folder, 1, f"{count} files; {MAX_FILES} are allowed"


def map_of_folders(tree):
    """The README of the headers lists every folder, every umbrella and the headers of each folder, and nothing else."""
    path = "include/millrace/README.md"
    rows = re.findall(r"^\|(?: [\w-]+ \|)? `([\w./]+)`(?: \*)? \|", tree.sources.get(path, ""), re.MULTILINE)
    expected = {folder_of(header) for header in tree.headers} - {""} | {h for h in tree.headers if "/" not in h}
    for name in sorted(expected.symmetric_difference(rows)):
        yield path, 1, f"{name} is {'not in its tables' if name in expected else 'in its tables and does not exist'}"
    lists = re.findall(r"^- `([\w/]+)`: ((?:.*\n)(?:  .*\n)*)", tree.sources.get(path, ""), re.MULTILINE)
    listed = {f"{folder}/{name}" for folder, names in lists for name in re.findall(r"\w+", names)}
    there = {re.sub(r"\.\w+$", "", header) for header in tree.headers
             if "/" in header and not re.search(r"/impl/|\.tpl\.hpp$", header)}
    for name in sorted(there.symmetric_difference(listed)):
        yield path, 1, f"{name} is {'not in its lists' if name in there else 'in its lists and does not exist'}"


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
