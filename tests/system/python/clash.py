# Several modules in one process: of the same version of the library with different flows, of another version, and next
# to NumPy, and to Pillow, PyTorch, torchvision and OpenCV if they are installed, in both orders of import, with symbols
# that are local or global. The modules first and second are compiled without hidden visibility, as
# torch.utils.cpp_extension does; header-only and with the compiled library. Each library decodes JPEGs meanwhile.
#
#   python3 tests/system/python/clash.py
import base64
import importlib
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile

import streams
from door import BUILD, COMPILED, Report, build_module, enter, flows, loaded, write_shards

NAMES = "flows", "streams", "first", "second"   # of the modules, in the order in which they are loaded
ORDERS, VISIBLE, MODES = ("ours first", "theirs first"), ("local", "global"), ("compiled", "header-only")
# 24 x 16 pixels, 4:2:0, by Pillow.
JPEG = """/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYV
pQYEpRUk//2wBDAQ4ODhMREyYVFSZPNS01T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT0//wAARCAAQ
ABgDASIAAhEBAxEB/8QAFgABAQEAAAAAAAAAAAAAAAAABQAG/8QAGBAAAgMAAAAAAAAAAAAAAAAAAAMFIjH/xAAWAQEBAQAAAAAAAAAAAAAAAA
AEAgb/xAAcEQABAwUAAAAAAAAAAAAAAAAAAgMFBCEiMWH/2gAMAwEAAhEDEQA/AMaiOyokiOyo4iOyokiOypCHQtHJdA0R2VI1yI7KkLS7Y0jU
ljs//9k="""


def pair(name, mode):
    """The path of the module first or second."""
    path = BUILD / f"{name}-{mode}.abi3.so"
    flags = [*([COMPILED] if mode == "compiled" else []), *(["-DSECOND"] if name == "second" else [])]
    build_module(path, "pair.cpp", ["-O0", "-Wall", "-Wextra", *flags])
    return path


def decoded(path):
    """The pixels of a JPEG by each library that the process has imported: Pillow, torchvision, OpenCV."""
    import numpy as np
    images = {}
    if "PIL.Image" in sys.modules:
        images["Pillow"] = np.asarray(sys.modules["PIL.Image"].open(path))
    if "torchvision" in sys.modules:
        images["torchvision"] = sys.modules["torchvision"].io.decode_image(path).permute(1, 2, 0).numpy()
    if "cv2" in sys.modules:
        images["OpenCV"] = sys.modules["cv2"].imread(path)[:, :, ::-1]
    return images


def equal(images, others):
    return images.keys() == others.keys() and all((images[name] == others[name]).all() for name in images)


def one_process(order, visible, shards, jpeg, *paths):
    import numpy as np
    modules = []

    def ours():
        flags = sys.getdlopenflags()
        if visible == "global":
            sys.setdlopenflags(os.RTLD_NOW | os.RTLD_GLOBAL)
        modules.extend(map(loaded, NAMES[:2], paths))
        sys.setdlopenflags(flags)
        modules.extend(map(loaded, NAMES[2:], paths[2:]))

    def theirs():
        for name in ("torch", "torchvision", "cv2", "PIL.Image"):
            try:
                importlib.import_module(name)
            except ImportError:
                pass
        decoded(jpeg)

    for act in (ours, theirs) if order == "ours first" else (theirs, ours):
        act()
    plain, device, first, second = modules
    before = decoded(jpeg)
    device.reset()
    expected = [batch.label.tolist() for batch in plain.numbers(shards, 4, seed=7, threads=1, convert=np.asarray)]
    loaders = [plain.numbers(shards, 4, seed=7, threads=2, convert=np.asarray),
               device.numbers(stream=device.stream(), slots=3, threads=2, convert=False),
               first.numbers(threads=2, convert=np.asarray), second.numbers(threads=2, convert=np.asarray)]
    got = [[], [], [], []]
    for batches in itertools.zip_longest(*loaders):   # all of them run at the same time
        assert equal(decoded(jpeg), before)
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
    for pixels, in first.photos(jpeg, threads=1, convert=np.asarray):
        assert (pixels[0] == pixels[1]).all()   # by libjpeg, and by the library's decoder
        for name, image in decoded(jpeg).items():
            assert abs(image.astype(int) - pixels[0]).max() <= 1, name
    assert np.arange(10) @ np.arange(10) == 285 and equal(decoded(jpeg), before)


def main():
    report = Report()
    enter(report)
    paths = {"flows": flows().__file__, "streams": streams.load().__file__, "second": pair("second", "compiled")}
    firsts = {mode: pair("first", mode) for mode in MODES}
    with tempfile.TemporaryDirectory() as folder:
        shards, jpeg = write_shards(folder), f"{folder}/image.jpg"
        pathlib.Path(jpeg).write_bytes(base64.b64decode(JPEG))
        for order, visible, mode in itertools.product(ORDERS, VISIBLE, MODES):
            of_mode = [(paths | {"first": firsts[mode]})[name] for name in NAMES]
            done = subprocess.run([sys.executable, __file__, order, visible, shards, jpeg, *of_mode],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            report.add(f"four modules next to other libraries, {order}, symbols {visible}, {mode}",
                       None if done.returncode == 0 else f"{done.returncode}: {done.stdout[-2000:]}")
    return report.close()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        enter(None)
        one_process(*sys.argv[1:])
    else:
        raise SystemExit(main())
