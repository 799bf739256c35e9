# Files of tokens that other programs write, and joins, against readers that are not ours: the layouts of llm.c and
# Megatron by struct, NumPy, megatron-core and pandas where Python has them.
#
#   python3 tests/unit/sources/source_oracles.py PROGRAM     # source_cases
import io
import pathlib
import random
import struct
import subprocess
import sys
import tarfile
import tempfile

CODES = {"u1": 1, "i1": 2, "i2": 3, "i4": 4, "i8": 5, "u2": 8}   # DType of Megatron's indexed_dataset.py
FORMATS = {"u1": "B", "i1": "b", "u2": "H", "i2": "h", "u4": "I", "i4": "i", "u8": "Q", "i8": "q"}


def run(program, *arguments):
    """The lines that the program prints, as lists of words."""
    done = subprocess.run([program, *map(str, arguments)], check=True, capture_output=True, text=True)
    return [line.split() for line in done.stdout.splitlines()]


def packed(kind, values):
    return struct.pack(f"<{len(values)}{FORMATS[kind]}", *values)


def random_ids(count, most=100):
    return [random.randint(0, most) for _ in range(count)]


def windows(files, length, stride):
    return [[str(i) for i in ids[at:at + length]] for ids in files for at in range(0, len(ids) - length + 1, stride)]


def check_windows(program, subject, named):
    """`named`: the ids of each file."""
    for length, stride in ((7, 7), (9, 8), (3, 5)):
        assert run(program, "windows", length, stride, *named) == windows(named.values(), length, stride), subject
    print(f"{subject}: {len(named)} files, all windows equal")


def write_megatron(path, kind, documents):
    """Documents are lists of sequences. The layout is that of _IndexWriter in Megatron's indexed_dataset.py."""
    sequences = [sequence for document in documents for sequence in document]
    path.with_suffix(".bin").write_bytes(b"".join(packed(kind, s) for s in sequences))
    size, offsets, bounds = struct.calcsize(FORMATS[kind]), [], [0]
    for sequence in sequences:
        offsets.append(offsets[-1] + size * length if offsets else 0)
        length = len(sequence)
    for document in documents:
        bounds.append(bounds[-1] + len(document))
    path.with_suffix(".idx").write_bytes(
        b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, CODES[kind], len(sequences), len(bounds)) +
        packed("i4", [len(s) for s in sequences]) + packed("i8", offsets) + packed("i8", bounds))


def check_documents(program, subject, named):
    for name, documents in named.items():
        expected = [[str(i) for sequence in d for i in sequence] for d in documents]
        assert run(program, "documents", name.with_suffix(".bin")) == [d for d in expected if d], f"{subject}: {name}"
    print(f"{subject}: {len(named)} corpora, all documents equal")


def random_documents():
    return [[random_ids(random.randint(0 if sequences > 1 else 1, 30)) for _ in range(sequences)]
            for sequences in (1, 2, 1, 3, 0, 1, 1)]


def check_structs(program, folder):
    """Files by the layouts that llm.c and Megatron document."""
    files = {}
    for magic, kind in ((20240520, "u2"), (20240801, "u4")):
        for count in (60, 61, 2_000):
            path, ids = folder / f"llm-{kind}-{count}.bin", random_ids(count, 50_256 if kind == "u2" else 128_000)
            header = packed("u4", [magic, 1, count, *[0] * 253])   # write_datafile() of llm.c's data_common.py
            path.write_bytes(header + packed(kind, ids))
            files[path] = ids
    check_windows(program, "layout of llm.c", files)
    flat = {}
    for name, kind in (("train.bin", "u2"), ("a.u32", "u4"), ("a.i64", "i8"), ("a.u8", "u1"), ("a.i16", "i2")):
        flat[folder / name] = random_ids(100)
        (folder / name).write_bytes(packed(kind, flat[folder / name]))
    check_windows(program, "flat files", flat)
    corpora = {folder / f"megatron-{kind}": random_documents() for kind in CODES}
    for path, documents in corpora.items():
        write_megatron(path, path.name[-2:], documents)
    check_documents(program, "layout of Megatron", corpora)
    check_windows(program, "Megatron as windows", {
        path.with_suffix(".bin"): [i for document in documents for sequence in document for i in sequence]
        for path, documents in corpora.items()})


def check_numpy(program, folder):
    try:
        import numpy
    except ImportError:
        print("skipped: NumPy: this Python has no numpy")
        return
    files = {}
    for kind in FORMATS:
        for shape in ((100,), (12, 9), (0,)):
            path = folder / f"{kind}-{len(shape)}-{shape[0]}.npy"
            ids = numpy.random.default_rng(5).integers(0, 100, shape)
            numpy.save(path, ids.astype(kind))
            files[path] = ids.ravel().tolist()
    check_windows(program, f"NumPy {numpy.__version__}", files)


def check_megatron(program, folder):
    try:
        import numpy
        import torch
        from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
    except ImportError as e:
        print(f"skipped: megatron-core: {e}")
        return
    corpora = {folder / f"core-{kind}": random_documents() for kind in CODES}
    for path, documents in corpora.items():
        builder = IndexedDatasetBuilder(str(path.with_suffix(".bin")), dtype=numpy.dtype(path.name[-2:]).type)
        for document in documents:
            for sequence in document:
                builder.add_item(torch.tensor(sequence, dtype=torch.int64))
            builder.end_document()
        builder.finalize(str(path.with_suffix(".idx")))
    check_documents(program, "megatron-core", corpora)


def write_shards(folder, name, rows, per_shard):
    """Rows of (key, {field: text})."""
    for shard, first in enumerate(range(0, len(rows), per_shard)):
        with tarfile.open(folder / f"{name}-{shard:03}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
            for key, fields in rows[first:first + per_shard]:
                for field, text in fields.items():
                    member = tarfile.TarInfo(f"{key}.{field}")
                    member.size = len(text)
                    tar.addfile(member, io.BytesIO(text.encode()))


def check_joins(program, folder):
    try:
        import pandas
    except ImportError:
        pandas = None
        print("skipped: pandas: this Python has no pandas; a loop joins instead")
    left = {f"k{n}": n for n in random.sample(range(1_000), 200)}
    right = {f"k{n}": 5_000 + n for n in random.sample(range(1_000), 600)}
    write_shards(folder, "a", [(key, {"n": str(n)}) for key, n in left.items()], 37)
    write_shards(folder, "b", [(key, {"emb": str(n)}) for key, n in right.items()], 101)
    if pandas is not None:
        first = pandas.DataFrame({"key": left.keys(), "n": left.values()})
        second = pandas.DataFrame({"key": right.keys(), "emb": right.values()})
    for missing, how in (("skip", "inner"), ("partial", "left")):
        if pandas is not None:
            table = first.merge(second, on="key", how=how).fillna(-1).astype({"emb": int})
            expected = [[key, str(n), str(emb)] for key, n, emb in table.itertuples(index=False)]
        else:
            expected = [[key, str(n), str(right.get(key, -1))] for key, n in left.items()
                        if how == "left" or key in right]
        assert run(program, "join", missing, folder / "a-*.tar", folder / "b-*.tar") == expected, missing
    print(f"joins by {'pandas ' + pandas.__version__ if pandas else 'a loop'}: 2, all rows equal")


def main(program):
    random.seed(2026)
    with tempfile.TemporaryDirectory() as name:
        for check in (check_structs, check_numpy, check_megatron, check_joins):
            folder = pathlib.Path(name) / check.__name__
            folder.mkdir()
            check(program, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
