# Millrace in Python: the flow of photos.cpp, which millrace.load() compiles, with tensors of PyTorch.
#
# door.py compile: compiles the module and its library, once. The library of build/bench may have another configuration.
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "include" / "python"))
import torch   # noqa: E402
import millrace   # noqa: E402

photos = millrace.load(pathlib.Path(__file__).with_name("photos.cpp"), flags=["-O3"],
                       cache=ROOT / "build" / "peers" / "millrace")
if sys.argv[1:] == ["compile"]:
    sys.exit()

import counted   # noqa: E402

s = counted.settings()


def batches():
    loader = getattr(photos, s.elements)(counted.tars(s), batch=s.batch, threads=s.workers, notice=None)
    while True:
        for pixels, label in loader:
            yield pixels.numpy(), label.numpy()


counted.run(s, batches(), {"PyTorch": torch.__version__})
