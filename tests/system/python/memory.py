# The memory of batches and loaders: views, threads that destroy tensors, many batches, many loaders, two at the same
# time; and the end of the interpreter without the package's function for it.
#
#   python3 tests/system/python/memory.py
import ctypes
import gc
import itertools
import os
import pathlib
import sys
import tempfile
import threading
import time
import warnings

from door import Report, endings, enter, flows, line, loading, start, write_shards

# Programs that end without close(), because the program has unregistered the function that calls it.
ENDINGS = {
    "with a running loader": "next(iter(loader)); print('end')",
    "with a loader that is never destroyed":
        "import ctypes\nbatch = next(iter(loader))\nctypes.pythonapi.Py_IncRef(ctypes.py_object(loader._session))\n"
        "ctypes.pythonapi.Py_IncRef(ctypes.py_object(loader))\nprint('end')",
    "with a daemon thread that receives batches":
        "import threading\nstarted = threading.Event()\n"
        "def receive():\n    while True:\n        for batch in loader: started.set()\n"
        "threading.Thread(target=receive, daemon=True).start()\nstarted.wait()\nprint('end', flush=True)",
}
UNREGISTER = "import atexit, millrace\natexit.unregister(millrace.loader._close_all)\n"


class Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks",
                                                     "fsmblks", "uordblks", "fordblks", "keepcost")]


def allocated():
    """Bytes in use: those of malloc(), and Python's small objects, of at most 512 bytes."""
    gc.collect()
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = Mallinfo
    info = mallinfo()
    return info.uordblks + info.hblkhd + 512 * sys.getallocatedblocks()


def session_threads():
    """The threads of sessions. oneTBB keeps up to 31 other ones for the sessions of the process."""
    names = [pathlib.Path("/proc/self/task", thread, "comm").read_text() for thread in os.listdir("/proc/self/task")]
    return sum(name.startswith("millrace-") for name in names)


def warned(act):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        act()
    return [warning.category.__name__ for warning in caught]


def views(report, module, shards):
    def keep(part):
        with module.numbers(shards, 4, seed=7, wide=20_000, threads=1) as loader:
            kept = []
            for batch in loader:
                kept.append(part(batch))
            return kept

    report.add("a view keeps the slot of its batch",
               None if warned(lambda: keep(lambda batch: batch.values[1:2])) == ["KeptBatches"] else "no warning")
    report.add("a copy of a view keeps no slot",
               None if warned(lambda: keep(lambda batch: batch.values[1:2].copy())) == [] else "a warning")


def other_threads(report, module, shards):
    with module.numbers(shards, 4, seed=7, wide=20_000, threads=1, on_kept="error") as loader:
        count = 0
        for _ in range(3):
            for batch in loader:
                owner = [batch]
                del batch
                thread = threading.Thread(target=owner.clear)
                thread.start()
                thread.join()
                count += 1
    report.add("another thread may destroy tensors", None if count == 30 else f"{count} batches")


def two(report, module, shards):
    with module.numbers(shards, 4, seed=7, threads=1) as a, module.numbers(shards, 4, seed=7, threads=2) as b:
        pairs = [(line(a, one), line(b, other)) for _ in range(2) for one, other in
                 itertools.zip_longest(a, b)]
    report.add("two loaders deliver equal batches at the same time",
               None if len(pairs) == 20 and all(one == other for one, other in pairs) else str(pairs))


def many(report, module, shards):
    with module.numbers(shards, 4, seed=7, threads=1, notice=None) as loader:
        sizes = []
        for epoch in range(300):
            for _ in loader:
                pass
            if epoch in (99, 199, 299):
                sizes.append(allocated())
    growth = [later - earlier for earlier, later in zip(sizes, sizes[1:])]
    report.add("2,000 batches need no more memory than 1,000", None if min(growth) < 50_000 else f"{growth} bytes")
    sizes = []
    for number in range(90):
        with module.numbers(shards, 4, seed=7, threads=2, notice=None) as loader:
            next(iter(loader))
        if number in (29, 59, 89):
            sizes.append(allocated())
    growth = [later - earlier for earlier, later in zip(sizes, sizes[1:])]
    report.add("60 loaders need no more memory than 30", None if min(growth) < 60_000 else f"{growth} bytes")
    loader = module.numbers(shards, 4, seed=7, threads=2, notice=None)
    next(iter(loader))
    running = session_threads()
    loader.close()
    deadline = time.monotonic() + 60
    while session_threads() and time.monotonic() < deadline:
        time.sleep(0.01)   # the kernel removes a thread after it was joined
    report.add("closed loaders have no threads",
               None if running > 0 and session_threads() == 0 else f"{running}, then {session_threads()}")


def main():
    report = Report()
    enter(report)
    module = flows()
    with tempfile.TemporaryDirectory() as folder:
        shards = write_shards(folder)
        views(report, module, shards)
        other_threads(report, module, shards)
        two(report, module, shards)
        many(report, module, shards)
        begin = start(loading(module), folder, shards) + UNREGISTER
        endings(report, "without the function for the end, the interpreter ends",
                {state: begin + program for state, program in ENDINGS.items()})
    return report.close()


if __name__ == "__main__":
    raise SystemExit(main())
