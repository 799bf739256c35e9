# An independent reader and Millrace agree on every well-formed shard: keys, fields and bytes, in the same order.
#
#   python3 tests/system/exact/reader.py
#   MILLRACE_SHARDS=1000 MILLRACE_FIRST_SEED=7 python3 tests/system/exact/reader.py      # number of tarfile's shards
#
# The reader uses Python's tarfile and the grouping rules of WebDataset, as written here. It reads Millrace's shards.
# shards() reads the shards that tarfile writes, in all its formats, as a stream and, if uncompressed, with an index.
# join() joins two sets that tarfile writes as a dictionary of their keys does.
# If pip can install the webdataset package (under build/), its own writer and reader are compared, too.
# Millrace differs from the package in two rules: dot files in a folder are not samples, and only A to Z are lowered.
import io
import pathlib
import re
import string
import subprocess
import sys
import tarfile
import tempfile

from programs import FOLDER, ROOT, Broken, compiled, seeded, times

sys.path.insert(0, str(ROOT / "tests"))
from checks import Report

SAMPLE_NAME = re.compile(r"^((?:.*/|)[^.]+)[.]([^/]*)$", re.DOTALL)
METADATA = re.compile(r"__[^/]*__($|/)")
LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def expected_samples(path):
    """[(key, [(field, bytes)])] by WebDataset's rules: members that follow each other with one key are one sample."""
    samples = []
    with tarfile.open(path, "r|*", encoding="utf-8", errors="surrogateescape") as tar:
        for member in tar:
            name = member.name
            if not member.isreg() or METADATA.match(name) or name.rpartition("/")[2].startswith("."):
                continue
            parts = SAMPLE_NAME.match(name)
            if not parts:
                continue
            key, field = (part.encode("utf-8", "surrogateescape") for part in (parts[1], parts[2].translate(LOWER)))
            data = tar.extractfile(member).read()
            if samples and samples[-1][0] == key:
                samples[-1][1].append((field, data))
            else:
                samples.append((key, [(field, data)]))
    return samples


def parsed(lines):
    for line in lines.splitlines():
        key, *words = (bytes.fromhex(word) for word in line.split(" "))
        yield key, list(zip(words[::2], words[1::2]))


def difference(samples, expected):
    if samples == expected:
        return None
    for number, (one, other) in enumerate(zip(samples, expected)):
        if one != other:
            return f"sample {number}: {str(one)[:300]}\ninstead of  {str(other)[:300]}"
    return f"{len(samples)} samples instead of {len(expected)}"


class Reader:
    def __init__(self, program, report):
        self.program, self.report = program, report

    def read(self, how, shards, command=None):
        done = subprocess.run([str(part) for part in [*(command or [self.program, "read", how]), *shards]],
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise Broken(f"{how}: {done.stderr[-1000:]}")
        return list(parsed(done.stdout))

    def compare(self, name, shards, also=()):
        """`also`: additional readers as (name, command)."""
        expected = [sample for shard in shards for sample in expected_samples(shard)]
        plain = all(path.suffix == ".tar" for path in shards)
        problems = [] if expected else ["no sample is in them"]
        for how, command in [("stream", None), *([("index", None)] if plain else []), *also]:
            try:
                problem = difference(self.read(how, shards, command), expected)
            except Broken as broken:
                problem = str(broken)
            if problem:
                problems.append(f"{how}: {problem}")
        self.report.add(f"{name}: {len(expected)} samples in {len(shards)} shards", "\n".join(problems))


def add_file(tar, name, data, **more):
    member = tarfile.TarInfo(name)
    member.size = len(data)
    for key, value in more.items():
        setattr(member, key, value)
    tar.addfile(member, io.BytesIO(data))


def write_by_tarfile(path, form, random):
    """Any well-formed shard: all kinds of sample names, and members between samples."""
    compression = path.name.partition(".tar")[2].removeprefix(".")
    with tarfile.open(path, f"w:{compression}", format=form, encoding="utf-8") as tar:
        tags = ["", "a/", "./", "deep/er.dir/", "é/流/", "__in__side/", "UP/"]
        if form != tarfile.USTAR_FORMAT:
            tags += ["l" * 300 + "/", "long/" * 60, "ü" * 120 + "/"]
        else:
            tags += ["u" * 140 + "/"]
        for number in range(random.randrange(1, 40)):
            key = random.choice(tags) + random.choice([str(number), f"n {number}", f"K{number}é"])
            if random.random() < 0.3:
                junk = random.choice(["README", ".hidden.jpg", "d/.x.jpg", "__meta__/a.json", "v1.0/none"])
                add_file(tar, junk, b"junk")
            if random.random() < 0.2:
                link = tarfile.TarInfo(f"{number}.link.jpg")
                link.type = random.choice([tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE])
                link.linkname = "README"
                tar.addfile(link)
            names = random.sample(["jpg", "CLS", "seg.PNG", "json", "x", "é", ""], random.randrange(1, 5))
            for name in names:
                size = random.choice([0, 1, 511, 512, 513, random.randrange(4000), random.randrange(100_000)])
                more = {"mtime": 1.5e9 + random.random()} if random.random() < 0.5 else {"mtime": 1_500_000_000}
                if random.random() < 0.2:
                    more["pax_headers"] = {"comment": "é" * random.randrange(400)}
                add_file(tar, f"{key}.{name}", random.randbytes(size), **more)


def write_parallel(folder, random):
    """Two sets with common keys, in different orders and shards: [files of the first], [files of the second]."""
    keys = [f"{random.choice(['', 'a/', 'é/'])}{number}" for number in range(200)]
    others = random.sample(keys, 170) + [f"only/{number}" for number in range(20)]
    random.shuffle(others)
    files = []
    for name, count, own in ("first", 60, keys), ("second", 37, others):
        files.append([folder / f"{name}-{number}.tar" for number in range(-(-len(own) // count))])
        for number, path in enumerate(files[-1]):
            with tarfile.open(path, "w:", encoding="utf-8") as tar:
                for key in own[number * count:(number + 1) * count]:
                    for field in random.sample(["txt", "json", "npy"], random.randrange(1, 4)):
                        add_file(tar, f"{key}.{field}", random.randbytes(random.choice([0, 7, 3000, 70_000])))
    return files


def compare_join(reader, folder):
    first, second = write_parallel(folder, seeded(1))
    partners = {key: fields for shard in second for key, fields in expected_samples(shard)}
    for missing in ("skip", "partial"):
        expected = [(key, fields + [(b"b." + name, data) for name, data in partners.get(key, [])])
                    for shard in first for key, fields in expected_samples(shard)
                    if missing == "partial" or key in partners]
        samples = reader.read("join", [], [reader.program, "join", missing, *first, "with", *second])
        reader.report.add(f"join of two sets by key, {missing}: {len(expected)} samples",
                          difference(samples, expected) or "")


def package_python():
    """A Python with the webdataset package, or the reason why it is missing."""
    venv = FOLDER / "venv"
    python = venv / "bin" / "python"
    for command in ([python, "-c", "import webdataset"], [sys.executable, "-m", "venv", "--clear", venv],
                    [python, "-m", "pip", "install", "-q", "--retries", "1", "--timeout", "15", "webdataset"],
                    [python, "-c", "import webdataset"]):
        try:
            done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=900)
        except (OSError, subprocess.TimeoutExpired) as problem:
            done = subprocess.CompletedProcess(command, 1, "", str(problem))
        if command[-1] == "import webdataset" and done.returncode == 0:
            return python, None
        if done.returncode != 0 and command[-1] != "import webdataset":
            break
    return None, (done.stderr or done.stdout).strip().rpartition("\n")[2]


def main():
    report, written = Report(), 0
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with tempfile.TemporaryDirectory(prefix="millrace-reader-") as name:
        folder = pathlib.Path(name)
        try:
            reader = Reader(compiled("samples", ROOT / "tests/system/exact/samples.cpp"), report)
            python, why_none = package_python()
            also = [("webdataset", [python, ROOT / "tests/system/exact/wds.py", "read"])] if python else []

            (folder / "ours").mkdir()
            subprocess.run([reader.program, "write", folder / "ours", str(times("MILLRACE_FIRST_SEED", 1))], check=True)
            reader.compare("shard_writer", sorted(folder.glob("ours/own-*.tar")), also)
            for shard in sorted(folder.glob("ours/hand-*.tar")):
                reader.compare(shard.stem, [shard], also)
            make_shapes = compiled("make_shapes", ROOT / "examples/make_shapes.cpp")
            pack_folder = compiled("pack_folder", ROOT / "examples/pack_folder.cpp")
            subprocess.run([make_shapes, folder / "shapes", "--samples", "400"], check=True, **quiet)
            shapes = sorted(folder.glob("shapes/*.tar"))
            reader.compare("make_shapes", shapes, also)
            for shard in shapes[:2]:
                for key, fields in expected_samples(shard):
                    path = folder / "photos" / dict(fields)[b"cls"].decode() / f"{key.decode()}.é.jpg"
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(dict(fields)[b"jpg"])
            (folder / "packed").mkdir()
            subprocess.run([pack_folder, folder / "photos", folder / "packed/p-%03d.tar", "--max-samples", "30"],
                           check=True, **quiet)
            reader.compare("pack_folder", sorted(folder.glob("packed/*.tar")), also)

            for form in ("USTAR", "PAX", "GNU"):
                for ending in (".tar", ".tar.gz", ".tar.xz", ".tar.bz2"):
                    shards = []
                    for number in range(times("MILLRACE_SHARDS", 60) // (4 if ending == ".tar" else 30)):
                        shards.append(folder / f"{form}-{number}{ending}")
                        write_by_tarfile(shards[-1], getattr(tarfile, f"{form}_FORMAT"), seeded(written))
                        written += 1
                    if shards:
                        reader.compare(f"tarfile, {form}{ending}", shards)

            compare_join(reader, folder)

            # Python's readers accept shards with an incomplete end marker.
            shard_bytes = min(folder.glob("ours/own-*.tar")).read_bytes()
            for missing in (1, 511, 512, 513, 1023, 1024):
                path = folder / f"unmarked-{missing}.tar"
                path.write_bytes(shard_bytes[:-missing])
                reader.compare(f"shard_writer, {missing} bytes of the end marker missing", [path], also)

            if python:
                (folder / "wds").mkdir()
                subprocess.run([python, ROOT / "tests/system/exact/wds.py", "write", folder / "wds", "1"], check=True)
                reader.compare("the webdataset package", sorted(folder.glob("wds/*.tar")), also)
            else:
                report.skip("the webdataset package", f"pip cannot install it: {why_none}")
        except (Broken, subprocess.CalledProcessError) as problem:
            report.add("reader", str(problem))
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
