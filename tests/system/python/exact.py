# Batches in Python are those of the C++ loop: epoch, step, digest and bytes, for every number of threads, kept or not,
# resumed at any batch; columns of each type against NumPy; the errors of columns and of convert=.
#
#   python3 tests/system/python/exact.py
import itertools
import json
import pickle
import re
import subprocess
import tempfile
import warnings

from door import ROOT, Report, enter, flows, line, loop, write_shards
from life import expect

EPOCHS, BATCH, PER_EPOCH = 3, 4, 10


def problem(got, expected):
    if got == expected:
        return None
    at = next((i for i, (a, b) in enumerate(zip(got, expected)) if a != b), min(len(got), len(expected)))
    return f"got {len(got)} batches, expected {len(expected)}; the first difference is batch {at}: {got[at:at + 1]}, " \
           f"expected {expected[at:at + 1]}"


def epochs_of(loader, count):
    return [line(loader, batch) for _ in range(count) for batch in loader]


def same_as_loop(report, module, shards, expected):
    for threads in (0, 1, 2, 5):
        with module.numbers(shards, BATCH, seed=7, threads=threads) as loader:
            assert len(loader) == PER_EPOCH
            report.add(f"{threads} threads deliver the batches of the C++ loop",
                       problem(epochs_of(loader, EPOCHS), expected))


def kept(report, module, shards, wide):
    loader = module.numbers(shards, BATCH, seed=7, wide=20_000, threads=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        batches, lines = [], []
        for _ in range(EPOCHS):
            for batch in loader:
                batches.append(batch)
                lines.append(line(loader, batch))
    report.add("kept batches are those of the C++ loop", problem(lines, wide))
    report.add("copies of kept batches cause one warning",
               None if [w.category.__name__ for w in caught] == ["KeptBatches"] else str(caught))
    loader.close()
    del loader
    from door import crc
    report.add("kept batches outlive the loader",
               problem([f"{crc(batch):08x}" for batch in batches], [text.split()[3] for text in wide]))


def resumed(report, module, shards, expected):
    for after in (1, 4, 9, 10, 11, 15, 20, 29):
        for before_threads, threads in ((2, 0), (1, 5)):
            first = module.numbers(shards, BATCH, seed=7, threads=before_threads)
            count = 0
            while count < after:
                for _ in first:
                    count += 1
                    if count == after:
                        break
            state = json.loads(json.dumps(first.state_dict()))
            first.close()
            rest = module.numbers(shards, BATCH, seed=7, threads=threads, epochs=EPOCHS)
            rest.load_state_dict(state)
            assert rest.state_dict()["millrace"] == state["millrace"]
            lines = []
            for _ in range(EPOCHS - (after - 1) // PER_EPOCH):
                lines += [line(rest, batch) for batch in rest]
            rest.close()
            report.add(f"resumed after {after} batches, {before_threads} threads, then {threads}",
                       problem(lines, expected[after:]))


def chosen_epochs(report, module, shards, expected):
    def bytes_of(lines):   # a jump to another epoch starts another digest
        return [(text.split()[0], text.split()[1], text.split()[3]) for text in lines]

    loader = module.numbers(shards, BATCH, seed=7, threads=2)
    for epoch in (2, 0, 1, 1):
        loader.set_epoch(epoch)
        report.add(f"set_epoch({epoch})", problem(bytes_of(epochs_of(loader, 1)),
                                                  bytes_of(expected[epoch * PER_EPOCH:(epoch + 1) * PER_EPOCH])))
    loader.close()
    loader = module.numbers(shards, BATCH, seed=7, threads=2)
    lines = [line(loader, next(iter(loader)))]
    for batch in loader:
        lines.append(line(loader, batch))
        break
    lines += epochs_of(loader, 1)
    report.add("break and next(iter()) end an epoch", problem(
        bytes_of(lines), bytes_of(expected[:1] + expected[PER_EPOCH:PER_EPOCH + 1] + expected[2 * PER_EPOCH:])))
    loader.close()


def ranks(report, module, shards):
    complete = [label for batch in module.numbers(shards, 4, seed=7, threads=1) for label in batch.label.tolist()]
    parts = [[label for batch in module.numbers(shards, 2, seed=7, threads=1, rank=rank, world_size=2)
              for label in batch.label.tolist()] for rank in range(2)]
    joined = [label for pair in zip(*parts) for label in pair]
    report.add("two ranks interleave to one", None if joined == complete else f"{joined}, expected {complete}")


def columns(report, module, shards):
    import numpy as np
    loader = module.numbers(shards, BATCH, seed=7, pad=True, threads=1)
    batches = list(loader)
    types = {name: str(getattr(batches[0], name).dtype) for name in batches[0]._fields if name != "keys"}
    report.add("columns have the types of the item", None if types == {
        "values": "float32", "words": "uint16", "words_lengths": "int32", "id": "uint32", "wide_id": "uint64",
        "odd": "bool", "label": "int64", "valid": "uint8"} else str(types))
    bad = []
    for batch in batches:
        for row, valid in enumerate(batch.valid.tolist()):
            label = int(batch.label[row])
            expected = [60_000] * (label % 4)
            length = int(batch.words_lengths[row])
            if valid and not (batch.id[row] == label + 3_000_000_000 and batch.wide_id[row] == label and
                              batch.odd[row] == (label % 2 == 1) and batch.words[row, :length].tolist() == expected and
                              (batch.words[row, length:] == 1).all() and batch.keys[row] == f"{label:04}"):
                bad.append(label)
    report.add("ragged, unsigned and bool columns and keys have the values of the samples", str(bad) if bad else None)
    masked = sum(1 - int(valid) for batch in batches for valid in batch.valid)
    report.add("the last batch is padded with masked rows", None if masked == 2 and len(batches) == 11 else str(masked))
    objects = next(iter(module.numbers(shards, BATCH, convert=False, threads=0)))
    same = np.from_dlpack(objects.values)
    report.add("convert=False returns objects with the DLPack protocol", None if (
        objects.values.shape == same.shape == (4, 8) and objects.values.__dlpack_device__() == (1, 0) and
        "dltensor_versioned" in repr(objects.values.__dlpack__(max_version=(1, 0))) and
        "dltensor_versioned" not in repr(objects.values.__dlpack__())) else repr(objects))
    doubled = next(iter(module.numbers(shards, BATCH, convert=lambda c: np.asarray(c) * 2, threads=0)))
    plain = next(iter(module.numbers(shards, BATCH, threads=0)))
    report.add("convert= receives each column", None if (doubled.label == 2 * plain.label).all() else repr(doubled))


def errors_of_columns(report, module, shards):
    """The errors of a column, and the calls of convert=."""
    column = next(iter(module.numbers(shards, 4, threads=0, convert=False))).values
    for problem, kind, words, request in (
            ("stream=0", BufferError, ("stream=0 is ambiguous",), {"stream": 0}),
            ("a string as stream", TypeError, ("__dlpack__() argument 'stream' must be an integer, not str",),
             {"stream": "x"}),
            ("a copy", BufferError, ("DLPack returns no copies",), {"copy": True}),
            ("another device", BufferError, ("the column is on another device",), {"dl_device": (2, 0)}),
            ("a number as version", TypeError, ("not",), {"max_version": 1}),
            ("an unknown argument", TypeError, ("'unknown'", "__dlpack__()"), {"unknown": 1})):
        expect(report, f"a column refuses {problem}", kind, lambda: column.__dlpack__(**request), *words)
    expect(report, "a column refuses positional arguments", TypeError, lambda: column.__dlpack__(1), "__dlpack__()")
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        expect(report, f"a column cannot be pickled with protocol {protocol}", TypeError,
               lambda: pickle.dumps(column, protocol), "a column cannot be pickled")
    expect(report, "Python creates no column", TypeError, type(column), "cannot create")
    expect(report, "_bind() has a fixed number of arguments", TypeError, lambda: module._bind(1), "seven arguments")
    same = column.__dlpack__(stream=None, max_version=None, dl_device=(1, 0), copy=False)
    report.add("a column accepts its own device", None if '"dltensor"' in repr(same) else repr(same))

    calls = []

    def failing(column):
        calls.append(column)
        if len(calls) == 2:
            raise KeyError("convert")
        return column.shape

    loop = iter(module.numbers(shards, 4, seed=7, threads=1, convert=failing))
    expect(report, "an error of convert= is raised", KeyError, lambda: next(loop), "convert")
    rest = list(loop)
    report.add("the loop continues after the batch of this error", None if len(rest) == 9 and
               rest[0].values == (4, 8) else repr(rest))
    loader = module.numbers(shards, 4, threads=1, convert=lambda column: (loader.stats(), loader.close()))
    batch = next(iter(loader))
    report.add("convert= may use and close the loader", None if batch.values[0]["batches"] == 1 and
               len(batch) == 7 else repr(batch))


def streamed(report, module, folder):
    with open(f"{folder}/numbers.txt", "w") as file:
        file.write("".join(f"{n}\n" for n in range(20)))
    loader = module.stream(f"{folder}/numbers.txt", threads=1)
    try:
        len(loader)
        report.add("the length of a stream's epoch is unknown", "no TypeError")
    except TypeError:
        report.add("the length of a stream's epoch is unknown")
    expected = [list(range(4 * b, 4 * b + 4)) for b in range(5)]
    for epoch in range(2):
        report.add(f"epoch {epoch} of a stream", problem([batch.n.tolist() for batch in loader], expected))
    state = None
    for number, batch in enumerate(loader):
        if number == 2:
            state = loader.state_dict()
            break
    report.add("after break, a stream continues with its next epoch",
               problem([batch.n.tolist() for batch in loader], expected))
    loader.close()
    rest = module.stream(f"{folder}/numbers.txt", threads=0)
    rest.load_state_dict(state)
    report.add("a resumed stream delivers the rest of the epoch",
               problem([batch.n.tolist() for batch in rest], expected[3:]))


def lists(report, module, folder):
    """Against lists of Python: the images of row n of the file, and the sizes of its padded image."""
    batches = list(module.lists(f"{folder}/numbers.txt", 5, threads=1))
    fields = batches[0]._fields
    report.add("the second tensor of a column is named after its content", None if fields == (
        "images", "images_offsets", "largest", "largest_sizes") else str(fields))
    bad = []
    for number, batch in enumerate(batches):
        rows = range(5 * number, 5 * number + 5)
        values = [[[10 * n + i] * 12 for i in range(n % 3)] for n in rows]
        offsets = batch.images_offsets.tolist()
        got = [batch.images[a:b].reshape(b - a, 12).tolist() for a, b in zip(offsets, offsets[1:])]
        if got != values or batch.images.shape != (sum(map(len, values)), 2, 2, 3) or len(offsets) != 6:
            bad.append((offsets, got))
        if batch.largest_sizes.tolist() != [[1, n + 1] for n in rows] or \
                [int(row[0, n].sum()) for row, n in zip(batch.largest, rows)] != [3 * n for n in rows]:
            bad.append(batch.largest_sizes.tolist())
    report.add("lists of images have the offsets of their rows, padded images their sizes",
               str(bad) if bad or len(batches) != 4 else None)


def of_torch(report, module, shards):
    try:
        import torch
    except ImportError:
        report.skip("tensors of PyTorch", "PyTorch is not installed")
        return
    batch = next(iter(module.numbers(shards, BATCH, threads=1)))
    types = [column.dtype for column in batch]
    expected = [torch.float32, torch.int16, torch.int32, torch.int32, torch.int64, torch.bool, torch.int64]
    report.add("tensors of PyTorch", None if types == expected else str(types))
    guide = (ROOT / "examples" / "guide" / "python.md").read_text()
    programs = re.findall(r"^```python\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    names = {}
    exec(next(program for program in programs if "class Batches" in program), names)
    data = names["Batches"](module.numbers(shards, BATCH, seed=7, threads=1))
    labels = [batch.label.tolist() for batch in torch.utils.data.DataLoader(data, batch_size=None, num_workers=0)]
    report.add("the guide's dataset in a DataLoader", problem(labels, [
        batch.label.tolist() for batch in module.numbers(shards, BATCH, seed=7, threads=1)]))


def of_jax(report, module, shards):
    try:
        import jax
    except ImportError:
        report.skip("arrays of JAX", "JAX is not installed")
        return
    import numpy as np
    jax.config.update("jax_enable_x64", True)
    arrays = module.numbers(shards, BATCH, seed=7, wide=20_000, threads=1, convert=jax.dlpack.from_dlpack)
    # If PyTorch is imported, the default is its tensors.
    plain = module.numbers(shards, BATCH, seed=7, wide=20_000, threads=1, convert=np.asarray)
    different = []
    for batches in itertools.zip_longest(arrays, plain):
        for name, one, other in zip(plain._session.names, *batches):
            if not isinstance(one, jax.Array) or one.dtype != other.dtype or (np.asarray(one) != other).any():
                different.append((name, type(one), one.dtype, other.dtype))
    arrays.close(), plain.close()
    report.add("arrays of JAX", str(different) if different else None)


def main():
    report = Report()
    enter(report)
    module, program = flows(), loop()
    with tempfile.TemporaryDirectory() as folder:
        shards = write_shards(folder)

        def lines_of(wide):
            return subprocess.run([program, shards, str(BATCH), str(EPOCHS), "1", str(wide)], check=True, text=True,
                                  stdout=subprocess.PIPE).stdout.splitlines()

        expected = lines_of(8)
        same_as_loop(report, module, shards, expected)
        kept(report, module, shards, lines_of(20_000))
        resumed(report, module, shards, expected)
        chosen_epochs(report, module, shards, expected)
        ranks(report, module, shards)
        columns(report, module, shards)
        errors_of_columns(report, module, shards)
        streamed(report, module, folder)
        lists(report, module, folder)
        of_torch(report, module, shards)
        of_jax(report, module, shards)
    return report.close()


if __name__ == "__main__":
    raise SystemExit(main())
