# Several modules in one process: of the same version of the library with different flows, of another version, and next
# to NumPy, Pillow and PyTorch, in both orders of import, with symbols that are local or global. The modules first and
# second are compiled without hidden visibility, as torch.utils.cpp_extension does.
#
#   python3 tests/system/python/clash.py
import importlib.machinery
import importlib.util
import io
import itertools
import os
import subprocess
import sys
import sysconfig
import tempfile

import streams
from door import (BUILD, COMPILED, HERE, ROOT, Report, compiled_library, enter, flows, launcher, library_flags,
                  write_shards)

ORDERS, VISIBLE = ("ours first", "theirs first"), ("local", "global")


def build():
    """The modules first and second."""
    for name, flags in {"first": [], "second": ["-DSECOND"]}.items():
        module = BUILD / f"{name}.abi3.so"
        subprocess.run([*launcher(), "g++", "-std=c++20", "-O0", "-fPIC", "-Wall", "-Wextra", *flags, COMPILED,
                        f"-I{ROOT / 'include'}", f"-I{sysconfig.get_paths()['include']}", *library_flags("--cflags"),
                        "-c", HERE / "pair.cpp", "-o", f"{module}.o"], check=True)
        subprocess.run(["g++", "-shared", f"{module}.o", compiled_library("g++"), "-o", module,
                        *library_flags("--libs")], check=True)


def module_of(name):
    loader = importlib.machinery.ExtensionFileLoader(name, str(BUILD / f"{name}.abi3.so"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_file_location(name, loader.path, loader=loader))
    loader.exec_module(module)
    return module


def pictures():
    """Pixels that Pillow encodes and decodes with its libjpeg."""
    import numpy as np
    try:
        from PIL import Image
    except ImportError:
        return b""
    file = io.BytesIO()
    Image.fromarray(np.arange(3 * 32 * 32, dtype=np.uint8).reshape(32, 32, 3)).save(file, "JPEG")
    return Image.open(file).tobytes()


def one_process(order, visible, shards):
    import numpy as np
    modules = []

    def ours():
        flags = sys.getdlopenflags()
        if visible == "global":
            sys.setdlopenflags(os.RTLD_NOW | os.RTLD_GLOBAL)
        modules.extend([flows(), streams.load()])
        sys.setdlopenflags(flags)
        modules.extend([module_of("first"), module_of("second")])

    def theirs():
        try:
            import torch
            assert torch.arange(4).sum() == 6
        except ImportError:
            pass
        pictures()

    for act in (ours, theirs) if order == "ours first" else (theirs, ours):
        act()
    plain, device, first, second = modules
    before = pictures()
    device.reset()
    expected = [batch.label.tolist() for batch in plain.numbers(shards, 4, seed=7, threads=1, convert=np.asarray)]
    loaders = [plain.numbers(shards, 4, seed=7, threads=2, convert=np.asarray),
               device.numbers(stream=device.stream(), slots=3, threads=2, convert=False),
               first.numbers(threads=2, convert=np.asarray), second.numbers(threads=2, convert=np.asarray)]
    got = [[], [], [], []]
    for batches in itertools.zip_longest(*loaders):   # all of them run at the same time
        assert pictures() == before
        for labels, batch in zip(got, batches):
            if batch is not None:
                labels.append(batch.label.shape[0] if labels is got[1] else batch.label.tolist())
                if labels is got[3]:
                    assert batch.values.tolist() == [[6, 6, 7]] * 4
    assert got == [expected, [4] * 4, [[0, 1, 2, 3], [4, 5, 6, 7]], [[100, 101, 102, 103], [104, 105, 106, 107]]], got
    assert (first.__name__, second.__name__, list(loaders[2]._session.names)) == ("first", "second", ["label"])
    try:
        first.numbers(word="x")
    except TypeError as e:
        assert "numbers() got an unexpected keyword argument 'word'" in str(e), e
    for loader in loaders:
        loader.close()
    assert (np.arange(10) @ np.arange(10), pictures()) == (285, before)


def main():
    report = Report()
    enter(report)
    flows(), streams.load(), build()
    with tempfile.TemporaryDirectory() as folder:
        shards = write_shards(folder)
        for order, visible in itertools.product(ORDERS, VISIBLE):
            done = subprocess.run([sys.executable, __file__, order, visible, shards], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
            report.add(f"four modules next to other libraries, {order}, symbols {visible}",
                       None if done.returncode == 0 else f"{done.returncode}: {done.stdout[-2000:]}")
    return report.close()


if __name__ == "__main__":
    if len(sys.argv) == 4:
        enter(None)
        one_process(*sys.argv[1:])
    else:
        raise SystemExit(main())
