# The life of a loader: the end of the interpreter in each state, exceptions, Ctrl-C, fork, kept batches, two threads,
# wrong arguments, errors with all fields that pickle, references in a debug build of Python.
#
#   python3 tests/system/python/life.py
import ctypes
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types

from door import Report, debug_python, endings, enter, flows, loading, start, write_shards

# Programs that end in different states. Each prints "end" as its last act.
ENDINGS = {
    "in the middle of an epoch": "batch = next(iter(loader)); print('end')",
    "with kept tensors": "kept = list(loader); print('end')",
    "with a tensor of a closed loader": "kept = list(loader); loader.close(); del loader; print('end')",
    "with a cycle of a loader and a batch": "class Box: pass\nbox = Box(); box.box, box.loader = box, loader\n"
                                            "box.batch = next(iter(loader)); del loader; print('end')",
    "after an exception in the step": "try:\n    for batch in loader: raise KeyError('step')\nexcept KeyError:\n"
                                      "    print('end')",
    "by sys.exit() in the step": "for batch in loader:\n    print('end')\n    raise SystemExit(0)",
    "by os._exit()": "import os\nnext(iter(loader)); print('end', flush=True); os._exit(0)",
    "before the first loop": "print('end')",
    "after len()": "len(loader); print('end')",
    "with a daemon thread that waits for a batch":
        "import threading, time\nstarted = threading.Event()\nclosed = module.numbers(shards, 4, seed=7, gate_at=30,"
        " gate=folder + '/never', threads=1, notice=ignore)\n"
        "def wait():\n    for batch in closed: started.set()\n"
        "threading.Thread(target=wait, daemon=True).start()\nstarted.wait()\nprint('end', flush=True)\n"
        "class Slow:   # while it sleeps at the end of the interpreter, CPython ends the other thread\n"
        "    def __del__(self, sleep=time.sleep): sleep(0.3)\n"
        "slow = Slow()",
}

# Prints how many references ten rounds of all functions add to those of five rounds.
REFERENCES = """
import gc
import millrace
def round():
    loader = module.numbers(shards, 4, seed=7, threads=1, notice=ignore, convert=False, pad=True)
    for batch in loader:
        batch.values.shape, batch.values.__dlpack__(), batch.values.__dlpack__(max_version=(1, 0)), batch.keys
        for request in dict(stream=0), dict(stream='x'), dict(copy=True), dict(max_version=3), dict(dl_device=(2, 0)), \
                dict(unknown=1):
            try:
                batch.values.__dlpack__(**request)
                raise AssertionError(request)
            except (BufferError, TypeError):
                pass
    loader.report(), loader.description, loader.stats(), len(loader), loader.slots
    state = loader.state_dict()
    loader.close()
    loader.load_state_dict(state)
    next(iter(loader))
    loader.close()
    def failing(column): raise KeyError(column)
    try:
        next(iter(module.numbers(shards, 4, threads=0, notice=ignore, convert=failing)))
        raise AssertionError
    except KeyError:
        pass
    kept = list(module.numbers(shards, 4, wide=20_000, threads=1, notice=ignore, pad=True, convert=False))
    for options in dict(batch='x'), dict(batch=-1), dict(words='x'), dict(words=['a', 3]), dict(gate=3), \\
            dict(throw_at=3), dict(unknown=1), dict(on_damage=3):
        try:
            list(module.numbers(shards, notice=ignore, convert=False, **options))
            raise AssertionError(options)
        except (TypeError, OverflowError, ValueError, millrace.Error):
            pass
def references():
    gc.collect()
    return sys.gettotalrefcount()
for _ in range(5):
    round()
before = references()
for _ in range(10):
    round()
print("added", references() - before)
"""


def references(report, folder, shards):
    """With a debug build of Python, which counts all references, and checks each use of an object."""
    debug = debug_python()
    if debug is None:
        report.skip("references in a debug build of Python", "python3-dbg is not installed")
        return
    program = start("door.flows()", folder, shards) + REFERENCES
    done = subprocess.run([debug, "-W", "ignore", "-X", "dev", "-c", program], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=300)
    added = re.search(r"^added (-?\d+)$", done.stdout, re.M)
    report.add("ten rounds in a debug build of Python leak no reference", None if done.returncode == 0 and added and
               int(added[1]) < 10 else f"{done.returncode}: {done.stdout}{done.stderr[-2000:]}")


def interrupted(report, module, folder, shards):
    signal.signal(signal.SIGINT, signal.default_int_handler)   # a job in the background of a shell ignores the signal
    gate = f"{folder}/gate"
    loader = module.numbers(shards, 4, seed=7, gate_at=30, gate=gate, threads=1)
    plain = [batch.label.tolist() for batch in module.numbers(shards, 4, seed=7, threads=1)]
    before = [30 in batch for batch in plain].index(True)   # batches before the one with sample 30
    labels, loop, interrupts = [], iter(loader), 0
    main = threading.main_thread().ident

    def interrupt():
        while len(labels) < before or not loader._session.waits.startswith("trainer: waits"):
            time.sleep(0.001)
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    while True:
        try:
            labels.append(next(loop).label.tolist())
        except KeyboardInterrupt:
            interrupts += 1
            open(gate, "w").close()
        except StopIteration:
            break
    thread.join()
    report.add("Ctrl-C ends a wait, and the loop continues with the same batch",
               None if interrupts == 1 and labels == plain else f"{interrupts} interrupts, {labels}, expected {plain}")
    loader.close()


def message_of(kind, call):
    try:
        call()
    except kind as e:
        return str(e)
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    return "no error"


def expect(report, name, kind, call, *words):
    got = message_of(kind, call)
    report.add(name, None if all(word in got for word in words) else got)


def forked(report, module, shards):
    loader = module.numbers(shards, 4, seed=7, wide=20_000, threads=2)
    batch = next(iter(loader))
    loop = iter(loader)
    next(loop)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            told = message_of(RuntimeError, lambda: next(loop))
            del batch
            own = module.numbers(shards, 4, seed=7, threads=1)
            code = 0 if "created before fork()" in told and len(list(own)) == 10 else 3
            own.close()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    report.add("a forked child is refused, and may create a loader", None if status == 0 else f"status {status}")
    report.add("the parent's loader continues", None if len(list(loop)) == 9 else "other batches")
    loader.close()


def kept(report, module, shards):
    import millrace
    loader = module.numbers(shards, 4, seed=7, wide=20_000, threads=1, on_kept="error")
    expect(report, 'on_kept="error" raises when all slots are kept', millrace.SetupError, lambda: list(loader),
           "all slots are leased")
    loader.close()
    loader = module.numbers(shards, 4, seed=7, threads=1, on_kept="error")
    report.add("small columns do not keep slots", None if len(list(loader)) == 10 else "other batches")
    more = module.numbers(shards, 4, seed=7, wide=20_000, threads=1, extra_slots=20, on_kept="error")
    report.add("extra_slots= adds slots", None if len(list(more)) == 10 else "other batches")


def refused(report, module, folder, shards):
    import millrace
    loader = module.numbers(shards, 4, seed=7, threads=1)
    next(iter(loader))
    state = loader.state_dict()
    damaged = dict(state, millrace=state["millrace"].replace("epoch=0", "epoch=1"))
    expect(report, "a damaged resume point is refused when it is loaded", millrace.DataError,
           lambda: loader.load_state_dict(damaged), "checksum")
    report.add("the loader is unchanged then", None if loader.state_dict() == state else str(loader.state_dict()))
    older = iter(loader)
    next(older)
    next(iter(loader))
    expect(report, "an older loop is refused", RuntimeError, lambda: next(older), "a newer loop over this loader")
    expect(report, "pickling a loader is refused", TypeError, lambda: pickle.dumps(loader), "has threads")
    gate = f"{folder}/threads"
    gated = module.numbers(shards, 4, seed=7, gate_at=30, gate=gate, threads=1)
    loop, batches = iter(gated), []
    first = next(loop)
    thread = threading.Thread(target=lambda: batches.extend(loop))
    thread.start()
    while not gated._session.waits.startswith("trainer: waits"):
        time.sleep(0.001)
    expect(report, "a second thread is refused", RuntimeError,
           lambda: loop._next(loop._state), "another thread waits")
    open(gate, "w").close()
    thread.join()
    report.add("the first thread receives all batches", None if len([first, *batches]) == 10 else str(len(batches)))
    worker = types.ModuleType("torch.utils.data")
    worker.get_worker_info = lambda: object()
    sys.modules["torch.utils.data"] = worker
    expect(report, "a worker of a DataLoader is refused", RuntimeError,
           lambda: next(iter(module.numbers(shards, 4, threads=1))), "DataLoader(..., num_workers=0)")
    del sys.modules["torch.utils.data"]
    with module.numbers(shards, 4, threads=1) as loader:
        next(iter(loader))
    report.add("a closed loader starts again", None if len(list(loader)) == 10 else "other batches")


def arguments(report, module, shards):
    for problem, kind, words, positional, options in (
            ("a missing argument", TypeError, ("numbers()", "missing", "'shards'"), (), {}),
            ("an unknown one", TypeError, ("numbers()", "unexpected keyword", "'bacth'"), (shards,), {"bacth": 1}),
            ("two values", TypeError, ("numbers()", "multiple values", "'shards'"), (shards,), {"shards": shards}),
            ("a string for a number", TypeError, ("'batch' must be an integer, not str",), (shards, "4"), {}),
            ("a bool for a number", TypeError, ("'batch' must be an integer, not bool",), (shards, True), {}),
            ("a negative number", OverflowError, ("'batch' is out of range", "-1"), (shards, -1), {}),
            ("a number for a string", TypeError, ("'shards' must be str or a path, not int",), (3,), {}),
            ("a number for a bool", TypeError, ("'pad' must be bool, not int",), (shards,), {"pad": 1}),
            ("a string for a list", TypeError, ("'words' must be a list, not str",), (shards,), {"words": "abc"}),
            ("a string for a float", TypeError, ("'scale' must be a number",), (shards,), {"scale": "x"}),
            ("a float for an option of the session", TypeError, ("'threads' must be an integer",), (shards,),
             {"threads": 1.5}),
            ("a wrong policy", ValueError, ("'on_damage' must be 'fail'",), (shards,), {"on_damage": "skip"}),
            ("a wrong choice", ValueError, ("'on_kept' must be",), (shards,), {"on_kept": "drop"})):
        expect(report, f"an error for {problem}", kind, lambda: module.numbers(*positional, **options), *words)
    expect(report, "an error for a Python callable as a stage", TypeError,
           lambda: module.numbers(shards, transform=len), "'transform' is a Python callable", "mr::map([]")
    import inspect
    text = str(inspect.signature(module.numbers))
    report.add("the signature has names, types and defaults", None if text.startswith(
        "(shards: 'str', batch: 'int' = 4, seed: 'int' = 0,") and "words: 'list[str]' = []" in text and
        "gate: 'str | None' = None" in text and "threads: 'int | None' = None" in text else text)
    doc = module.numbers.__doc__
    report.add("the docstring is that of the flow", None if "Numbered samples." in doc else doc)


def errors(report, module, folder, shards):
    import millrace

    def caught(loader):
        try:
            list(loader)
        except millrace.Error as e:
            return e
        return None

    e = caught(module.numbers(shards, 4, seed=7, throw_at=9, threads=2))
    again = pickle.loads(pickle.dumps(e))
    report.add("a callable that throws is a StageError with location and cause", None if (
        type(e) is millrace.StageError and e.stage and e.key == "0009" and e.shard.endswith("s0.tar") and
        e.position is not None and "sample 9 is unwanted" in str(e.__cause__)) else repr(e))
    report.add("errors pickle with all fields", None if type(again) is type(e) and vars(again) == vars(e) and
               str(again) == str(e) else repr(again))
    truncated = f"{folder}/truncated.tar"
    with open(truncated, "wb") as file, open(f"{folder}/s0.tar", "rb") as complete:
        file.write(complete.read(5000))
    e = caught(module.numbers(truncated, 4, threads=1))
    report.add("a truncated shard is a DataError with its offset", None if isinstance(e, millrace.DataError) and
               e.offset_bytes is not None and e.hint and e.message in str(e) else repr(e))
    e = caught(module.numbers(f"{folder}/none.tar", 4, threads=1))
    report.add("a missing shard is an error that names it",
               None if e is not None and "none.tar" in str(e) else repr(e))
    kinds = {millrace.SetupError: ValueError, millrace.StorageError: OSError,
             millrace.LateDataError: millrace.DataError}
    for kind, base in kinds.items():
        e = kind("text", "message", "hint", "stage", "shard", "key", 7, None)
        same = pickle.loads(pickle.dumps(e))
        report.add(f"{kind.__name__} is a {base.__name__} and pickles", None if isinstance(same, base) and
                   vars(same) == vars(e) and str(same) == "text" else repr(same))


def no_memory(report, module, shards):
    """Each allocation of each function of the module fails once. A C++ exception in CPython would end the process."""
    import numpy
    allow = ctypes.CDLL(module.__file__).allocations_that_succeed
    allow.argtypes = [ctypes.c_long]

    def sweep(name, call):
        failures, limit = 0, 2_000
        for count in range(limit):
            allow(count)
            try:
                call()
                break
            except MemoryError:
                failures += 1
            finally:
                allow(-1)
        report.add(f"{name}: MemoryError for each allocation that fails, {failures} of them",
                   None if 0 < failures < limit else f"{failures} failures")

    loader = module.numbers(shards, 4, seed=7, wide=20_000, threads=1, convert=False, extra_slots=3)
    batch = next(iter(loader))
    get, column, state = loader._session.__getattr__, batch.values, loader.state_dict()["millrace"]
    for name in ("position", "waits", "report"):
        sweep(f"_get of {name}", lambda: get(name))
    sweep("__dlpack__", lambda: column.__dlpack__(stream=1, max_version=(1, 0)))
    sweep("_epoch_of", lambda: module._epoch_of(state))
    sweep("the check of the options", lambda: module.numbers(shards, 4, words=["a" * 40]))
    loops = []

    def start():
        loops.append(module.numbers(shards, 4, threads=1, notice=None))
        loops[-1].description

    sweep("the start", start)
    loader.set_epoch(0)
    plain = module.numbers(shards, 4, seed=7, wide=20_000, threads=1, notice=None)
    expected = [batch.label.tolist() for _ in range(2) for batch in plain]
    failures, labels = {}, []
    for _ in range(2):
        loop = iter(loader)
        while True:
            count, batch = 0, None
            while batch is None:
                allow(count)
                try:
                    batch = next(loop, "end")
                except MemoryError:
                    count += 1
                finally:
                    allow(-1)
            if batch == "end":
                break
            failures[count] = failures.get(count, 0) + 1
            labels.append(numpy.from_dlpack(batch.label).tolist())
            del batch   # releases its slot
    report.add(f"_next: MemoryError for each allocation that fails, up to {max(failures, default=0)} for a batch",
               None if min(failures, default=0) > 0 else str(failures))
    report.add("batches that failed for lack of memory are delivered by the next call",
               None if labels == expected else f"{labels}, expected {expected}")
    plain.close()
    loader.close()
    for other in loops:
        other.close()


def notices(report, module, shards):
    received = []
    loader = module.numbers(shards, 4, threads=1, notice=lambda *notice: received.append(notice))
    next(iter(loader))
    loader.close()
    of_start = any(kind == "start" and severity == "info" and "host" in text for kind, severity, text in received)
    report.add("notices reach the function of notice=", None if of_start else str(received))
    text = module.numbers(shards, 4).report()
    same = pickle.loads(pickle.dumps(text))
    page = text._repr_html_()
    report.add("a report has a text, and a page for notebooks", None if str(text) and same == text and
               same.page == text.page and page.startswith('<iframe srcdoc="&lt;!') and "<h" not in page else page[:300])


def main():
    report = Report()
    enter(report)
    module = flows()
    with tempfile.TemporaryDirectory() as folder:
        shards = write_shards(folder)
        arguments(report, module, shards)
        errors(report, module, folder, shards)
        notices(report, module, shards)
        no_memory(report, module, shards)
        kept(report, module, shards)
        refused(report, module, folder, shards)
        forked(report, module, shards)
        interrupted(report, module, folder, shards)
        begin = start(loading(module), folder, shards)
        endings(report, "the interpreter ends", {state: begin + program for state, program in ENDINGS.items()})
        references(report, folder, shards)
    return report.close()


if __name__ == "__main__":
    raise SystemExit(main())
