# Batches on a GPU, with the fake CUDA runtime: a tensor's stream waits until the batch has arrived, and the slot is
# reused only after all streams that used its tensors. torch is replaced by an object with its current stream.
#
#   python3 tests/system/python/streams.py
import array
import contextlib
import ctypes
import os
import shutil
import sys
import time
import types

from door import BUILD, HERE, QUICK_COMPILER, ROOT, Report, enter, exclusively, launcher

VALUES = [[n + i for n in range(first, first + 4) for i in range(4)] for first in range(0, 16, 4)]   # of each batch


def load():
    """The module of streams.cpp. It is header-only, because the compiled library has no CUDA. Its headers are those of
    another version, so that clash.py has two versions in one process."""
    import millrace
    other = BUILD / "other" / "include"
    with exclusively(other):
        shutil.rmtree(other, ignore_errors=True)
        shutil.copytree(ROOT / "include", other)
        version = other / "millrace" / "base" / "version.hpp"
        version.write_text(version.read_text().replace("v0_1", "v0_9"))
        os.environ["MILLRACE_INCLUDE"] = str(other)
        compiler, os.environ["CXX"] = os.environ["CXX"], " ".join([*launcher(), QUICK_COMPILER])
        module = millrace.load(HERE / "streams.cpp", compiled=False, cache=BUILD / "cache", flags=[
            "-O0", "-DMILLRACE_CUDA=1", f"-I{ROOT / 'tests' / 'cuda' / 'fake' / 'include'}", "-Wall", "-Wextra"])
        os.environ["CXX"] = compiler
        del os.environ["MILLRACE_INCLUDE"]
    return module


def address_of(capsule):
    """The address in a DLPack capsule, whose first member is `data`."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.c_void_p.from_address(get(capsule, b"dltensor")).value


def eventually(condition):
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.001)
    return condition()


def stays(condition):
    """Whether the condition stays true: the device's threads would change it in this time."""
    return all([condition(), time.sleep(0.02)][0] for _ in range(5))


@contextlib.contextmanager
def loop_of(module, **options):
    """A loop over one epoch on a new device with one slot, so that a batch waits for the release of the one before."""
    module.reset()
    streams = [module.stream() for _ in range(4)]
    loader = module.numbers(stream=streams[0], threads=1, **options)
    yield iter(loader), streams
    loader.close()


def values_at(module, address, stream):
    return array.array("i", module.read(address, 64, stream)).tolist()


def reused_after(report, name, module, used, exported):
    """A batch is exported with each number of `exported`, and the streams `used` have work. Then it is released."""
    with loop_of(module, convert=False) as (loop, (_, first, second, watching)):
        number = {"first": first, "second": second, "legacy": 0, "thread": 2}
        batch = next(loop)
        tensors = [batch.values.__dlpack__(stream=number.get(word, word)) for word in exported]
        blocked = [number[word] for word in used]
        for stream in blocked:
            module.block(stream)
        del tensors, batch
        batch = next(loop)   # its copy waits on the GPU
        tensors = batch.values.__dlpack__(stream=watching)
        seen = []
        for stream in blocked:
            seen.append(stays(lambda: not module.is_done(watching)))
            module.unblock(stream)
        done = eventually(lambda: module.is_done(watching))
        right = values_at(module, address_of(tensors), watching) == VALUES[1]
        report.add(name, None if all(seen) and done and right else f"waited: {seen}, done: {done}, values: {right}")
        del tensors, batch


def arrival(report, module):
    with loop_of(module, convert=False) as (loop, (_, first, _, _)):
        got = []
        for batch in loop:
            capsule = batch.values.__dlpack__(stream=first)
            got.append(values_at(module, address_of(capsule), first))
            device = batch.values.__dlpack_device__()
            del capsule, batch
        report.add("a tensor's stream waits until the batch has arrived", None if got == VALUES and device == (2, 0)
                   else f"{got}, {device}")


def protocol(report, module):
    with loop_of(module, convert=False) as (loop, streams):
        batch = next(loop)
        try:
            batch.values.__dlpack__(stream=0)
            report.add("stream=0 is refused", "no error")
        except BufferError as e:
            report.add("stream=0 is refused", None if "ambiguous" in str(e) else str(e))
        for _ in range(20):
            batch.values.__dlpack__(stream=streams[1])
        report.add("a stream counts once, however often it is named")
        # The receiver synchronizes its stream, which is not the default one.
        module.block(0)
        unused = batch.values.__dlpack__(stream=-1)
        del unused, batch
        batch = next(loop)
        capsule = batch.values.__dlpack__(stream=streams[3])
        report.add("stream=-1 requests no wait", None if eventually(lambda: module.is_done(streams[3])) else "it waits")
        module.unblock(0)
        del capsule, batch


def of_torch(report, module):
    current = types.SimpleNamespace(cuda_stream=0)
    torch = types.ModuleType("torch")
    torch.cuda = types.SimpleNamespace(current_stream=lambda: current, is_initialized=lambda: True)
    torch.utils = types.SimpleNamespace(dlpack=types.SimpleNamespace(from_dlpack=lambda capsule: capsule))
    sys.modules["torch"] = torch
    try:
        with loop_of(module) as (loop, (_, first, second, watching)):
            current.cuda_stream = first
            batch = next(loop)
            arrived = values_at(module, address_of(batch.values), first) == VALUES[0]
            module.block(first)
            del batch
            current.cuda_stream = watching
            batch = next(loop)
            waits = stays(lambda: not module.is_done(watching))
            module.unblock(first)
            done = eventually(lambda: module.is_done(watching))
            report.add("torch's current stream receives the batch, and delays the reuse of its slot", None if (
                arrived and waits and done and values_at(module, address_of(batch.values), watching) == VALUES[1])
                else f"arrived: {arrived}, waits: {waits}, done: {done}")
            del batch
    finally:
        del sys.modules["torch"]


def lifetime(report, module):
    import millrace
    with loop_of(module, convert=False, slots=2, on_kept="error") as (loop, streams):
        first, second = next(loop), next(loop)
        try:
            next(loop)
            problem = "no error"
        except millrace.SetupError as e:
            problem = None if "all slots are leased" in str(e) else str(e)
        report.add("batches on a GPU are not copied: kept ones end in an error", problem)
    capsule = second.values.__dlpack__(stream=streams[1])
    values = values_at(module, address_of(capsule), streams[1])
    report.add("a tensor outlives the loader", None if values == VALUES[1] else str(values))
    del capsule, first, second, loop
    violations, allocations = module.problems()
    report.add("all device memory is freed, without a violation",
               None if not violations and not allocations else f"{allocations} allocations, {violations}")


def main():
    report = Report()
    enter(report)
    module = load()
    arrival(report, module)
    reused_after(report, "a slot is reused after both streams of its tensors", module, ("first", "second"),
                 ("first", "second"))
    reused_after(report, "stream=None is the legacy default stream", module, ("legacy",), (None,))
    reused_after(report, "stream=1 is the legacy default stream", module, ("legacy",), (1,))
    reused_after(report, "stream=2 is the default stream of the thread", module, ("thread",), (2,))
    protocol(report, module)
    of_torch(report, module)
    lifetime(report, module)
    return report.close()


if __name__ == "__main__":
    raise SystemExit(main())
