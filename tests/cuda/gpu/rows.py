# Runs all checks that need a GPU, each in its own process with a time limit, and prints a table. pack.sh builds them.
#
#   python3 tests/cuda/gpu/rows.py .gpu --out DIR --budget 560         # all rows, the most important ones first
#   python3 tests/cuda/gpu/rows.py .gpu --out DIR --only "kernels torch"
#   python3 tests/cuda/gpu/rows.py --fake PROGRAM... [--cases 5]      # programs that are linked with the fake runtime
#   python3 tests/cuda/gpu/rows.py .gpu --list
#
# Needs only Python 3.10 and installs nothing. After each row it replaces DIR/rows.json, which is therefore complete at
# any time. DIR/rows.log has the output of all commands, DIR/table.md the table. A process that exceeds its time limit
# is killed after its stacks are written to rows.log. Rows that do not fit into the budget (seconds) are skipped.
#
# A row is PASS, FAIL, HANG or SKIP. The exit status is 0 if the table is complete, whatever the rows say; with --fake
# it is 1 if a row fails. Exit status 77 of a program means that it skipped itself.
import argparse
import contextlib
import dataclasses
import glob
import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import zlib

from runner import Outcome, Runner, all_of, cases, judged, program


@dataclasses.dataclass
class Row:
    name: str
    passes_if: str
    check: object           # a function of (Runner, Row) that returns an Outcome
    seconds: int            # the limit of each process
    on_fake: bool = False   # whether it runs with the fake runtime


def machine_facts(bundle):
    """The machine, for the head of the table."""
    def first(pattern, default="?"):
        paths = sorted(glob.glob(pattern))
        return pathlib.Path(paths[0]).read_text().strip() if paths else default

    facts = {"date": time.strftime("%d %b %Y", time.gmtime()), "kernel": os.uname().release,
             "cores": str(len(os.sched_getaffinity(0))),
             "NUMA nodes": str(len(glob.glob("/sys/devices/system/node/node[0-9]*")) or 1),
             "huge pages": (re.findall(r"\[(\w+)\]", first("/sys/kernel/mm/transparent_hugepage/enabled")) or ["?"])[0]}
    if bundle and (bundle / "COMMIT").exists():
        facts["commit"] = (bundle / "COMMIT").read_text().strip()
    names = {"name": "GPU", "driver_version": "driver", "compute_cap": "compute capability",
             "pcie.link.gen.max": "PCIe generation", "pcie.link.width.max": "PCIe width"}
    if shutil.which("nvidia-smi"):
        done = subprocess.run(["nvidia-smi", f"--query-gpu={','.join(names)}", "--format=csv,noheader"], text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        gpus = [line.split(", ") for line in done.stdout.splitlines() if line.count(", ") == len(names) - 1]
        if done.returncode == 0 and gpus:
            facts |= dict(zip(names.values(), gpus[0])) | {"GPUs": str(len(gpus))}
    return facts


def machine(runner, _row):
    facts = runner.options.facts
    if "GPU" not in facts:
        return Outcome("SKIP", "nvidia-smi reports no GPU")
    return Outcome("PASS", ", ".join(f"{name} {facts[name]}" for name in (
        "GPU", "driver", "PCIe generation", "PCIe width", "cores", "NUMA nodes", "huge pages")))


def architectures(data):
    """The architectures of the machine code (and of the PTX, which the driver would compile) in a program.

    A fat binary is a header of 16 bytes and entries: kind (1: PTX, 2: machine code) and version as u16, size of the
    header as u32, size of the data as u64; the architecture is the u32 at byte 28."""
    found = {1: set(), 2: set()}
    for start in (match.start() for match in re.finditer(re.escape((0xBA55ED50).to_bytes(4, "little")), data)):
        at = start + 16
        end = at + int.from_bytes(data[start + 8:start + 16], "little")
        while at + 32 <= min(end, len(data)):
            kind = int.from_bytes(data[at:at + 2], "little")
            header = int.from_bytes(data[at + 4:at + 8], "little")
            if kind not in found or not 32 <= header <= 4096:
                break
            found[kind].add(int.from_bytes(data[at + 28:at + 32], "little"))
            at += header + int.from_bytes(data[at + 8:at + 16], "little")
    return sorted(found[2]), sorted(found[1])


def code(runner, _row):
    wanted = int(runner.options.facts.get("compute capability", "9.0").replace(".", ""))
    contents = {name: architectures(path.read_bytes()) for name, path in runner.programs.items()}
    contents = {name: lists for name, lists in contents.items() if any(lists)}
    if not contents:
        return Outcome("SKIP", "no program contains code for a GPU")
    details = [f"{name}: machine code {lists[0]}, PTX {lists[1]}" for name, lists in sorted(contents.items())]
    lacking = [name for name, (machine_code, _) in contents.items() if wanted not in machine_code]
    return Outcome("FAIL" if lacking else "PASS",
                   f"no code for sm_{wanted}: {', '.join(lacking)}" if lacking else
                   f"sm_{wanted} in {len(contents)} programs", details)


def torch(runner, row):
    """PyTorch in other processes: the batches on the GPU have the checksums of those on the host."""
    folder = runner.options.bundle / "python" if runner.options.bundle else None
    if not folder or not folder.exists():
        return Outcome("SKIP", "the bundle has no Python module")
    printed = {}
    with tempfile.TemporaryDirectory() as libraries:
        # Python and PyTorch use the C++ library of the machine.
        for path in pathlib.Path(runner.options.libraries[0]).iterdir():
            if not path.name.startswith(("libstdc++", "libgcc_s")):
                os.symlink(path, pathlib.Path(libraries, path.name))
        paths = {"LD_LIBRARY_PATH": libraries, "PYTHONPATH": str(folder)}
        for where, streams in TORCH_STREAMS.items():   # the first one detects a machine without PyTorch or a GPU
            hidden = {} if streams else {"CUDA_VISIBLE_DEVICES": ""}
            status, printed[where] = runner.run([sys.executable, __file__, "--torch", where], row.seconds, **paths,
                                                **hidden)
            if status != 0:
                return judged(status, printed[where])
    batches = printed["host"].split()
    wrong = [where for where, streams in TORCH_STREAMS.items()
             if not batches or printed[where].split() != batches * max(1, streams)]
    if wrong:
        return Outcome("FAIL", f"the batches have other bytes: {', '.join(wrong)}")
    return Outcome("PASS", f"{len(batches)} batches are equal: " + ", ".join(w for w in TORCH_STREAMS if w != "host"))


# The ways in which torch_checksums() receives batches, and the number of streams that read each batch.
TORCH_STREAMS = {"current stream": 1, "from_dlpack": 2, "host": 0}


def torch_checksums(where):
    """The other process of torch(): prints the checksum of each batch, for each stream that reads the batches.

    On a GPU, the streams are busy, so that they read a batch after it was released."""
    try:
        import torch as library
    except ImportError:
        print("skipped: PyTorch is not installed")
        return 77
    on_gpu, by_protocol = where != "host", where == "from_dlpack"
    if on_gpu and not library.cuda.is_available():
        print("skipped: PyTorch with a GPU is not installed")
        return 77
    import flows
    streams = [library.cuda.Stream() for _ in range(TORCH_STREAMS[where])]
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as current:
        for shard in range(3):
            with tarfile.open(f"{folder}/s{shard}.tar", "w") as tar:
                for number in range(14 * shard, 14 * shard + 14):
                    member = tarfile.TarInfo(f"{number:04}.cls")
                    member.size = len(str(number))
                    tar.addfile(member, io.BytesIO(str(number).encode()))
        if on_gpu and not by_protocol:
            current.enter_context(library.cuda.stream(streams[0]))
        loader = flows.numbers(f"{folder}/s{{0..2}}.tar", 4, seed=7, wide=20_000, threads=2,
                               convert=False if by_protocol else None)
        copies = [[] for _ in streams or [None]]
        for _ in range(3):
            for batch in loader:
                if by_protocol:
                    check_protocol(batch[0])
                for stream, to in zip(streams or [None], copies):
                    with library.cuda.stream(stream) if by_protocol else contextlib.nullcontext():
                        tensors = [library.from_dlpack(column) for column in batch] if by_protocol else list(batch)
                        if on_gpu:
                            if not tensors[0].is_cuda:
                                raise SystemExit("the batch is not on the GPU")
                            library.cuda._sleep(20_000_000)
                        to.append([tensor.clone() for tensor in tensors])
                        del tensors
                del batch
        if on_gpu:
            library.cuda.synchronize()
        loader.close()
    for batch in [batch for of_stream in copies for batch in of_stream]:
        checksum = 0
        for column in batch:
            checksum = zlib.crc32(column.cpu().contiguous().view(library.uint8).numpy().tobytes(), checksum)
        print(f"{checksum:08x}")
    return 0


def check_protocol(column):
    """The parts of DLPack's protocol that PyTorch does not call."""
    if column.__dlpack_device__()[0] != 2:
        raise SystemExit(f"the column is on the device {column.__dlpack_device__()}, which is not a GPU")
    try:
        column.__dlpack__(stream=0)
    except BufferError:
        return
    raise SystemExit("stream=0 is ambiguous, and was accepted")


def shapes(runner, row):
    """train_images, which generates its data."""
    if "train_images" not in runner.programs:
        return Outcome("SKIP", "train_images is not in the bundle")
    with tempfile.TemporaryDirectory() as folder:
        command = [runner.programs["train_images"], "--work", folder, "--device", "gpu"]
        status, printed = runner.run(command, row.seconds)
    if "--device gpu: this machine has none" in printed:
        return Outcome("SKIP", "no GPU")
    outcome = judged(status, printed)
    accuracy = re.search(r"^summary: accuracy=([\d.]+)", printed, re.MULTILINE)
    if outcome.status == "PASS":
        good = accuracy and float(accuracy[1]) >= 0.95
        outcome = Outcome("PASS" if good else "FAIL", accuracy[0] if accuracy else "it printed no accuracy")
    return outcome


def sanitizer(tool):
    # The cases provoke errors of the runtime, and check them.
    wrapper = ("compute-sanitizer", "--tool", tool, "--report-api-errors", "no", "--error-exitcode", "9")
    summary = r"(?:ERROR|RACECHECK) SUMMARY: .*"
    kernels = program("gpu_kernels", "-tce=clock*", "-nc", wrapper=wrapper, says=summary, MILLRACE_SLOW_TOOLS="1")
    contract = program("gpu_contract", "-tce=*block*,*busy*,*at once*,*fork*", "-nc", wrapper=wrapper, says=summary,
                       MILLRACE_SLOW_TOOLS="1")

    def check(runner, row):
        if not shutil.which("compute-sanitizer"):
            return Outcome("SKIP", "compute-sanitizer is not installed")
        return all_of(kernels, *([contract] if tool == "memcheck" else []))(runner, row)
    return check


PARTS, CONTRACT, KERNELS = "gpu_rows", "gpu_contract", "gpu_kernels"
# In the order of importance.
ROWS = [
    Row("machine", "a GPU is present", machine, 20),
    Row("code", "each program contains machine code for this GPU", code, 20),
    Row("first launch", "each kernel needs less than 5 ms", program(PARTS, "--only", "first"), 30, True),
    Row("contract", "each case passes: the real runtime behaves as the fake one",
        cases(CONTRACT, "-tce=step path*"), 60, True),
    Row("kernels", "each case passes: bits of the host's loops; metrics lose no value",
        cases(KERNELS, "-tce=clock*"), 60, True),
    Row("step path", "no call waits, by the linker's count of calls", cases(CONTRACT, "-tc=step path*"), 60, True),
    Row("step time", "less than 5 ms after a kernel of 200 ms; five metrics below 1 %; mixing below 0.2 ms",
        cases(KERNELS, "-tc=clock*", together=1), 60),
    Row("hidden waits", "CUPTI reports no wait of the training thread in 200 steps",
        program(PARTS, "--only", "waits"), 30, True),
    Row("destruction", "metrics, batches and sessions may be destroyed while their kernels wait",
        program(PARTS, "--only", "destruction"), 30, True),
    Row("faulting kernel", "the next batch throws an error that names it, and the process ends",
        program(PARTS, "--only", "fault"), 20, True),
    Row("questions", "reported: behavior that the documentation of CUDA leaves open",
        program(PARTS, "--only", "questions"), 20, True),
    Row("contexts", "the process opens its own GPU only", program(PARTS, "--only", "contexts"), 20, True),
    Row("session", "at least 95 % of the rate of plain pinned copies, for batches of 38 MB and more, 3 slots or more",
        program(PARTS, "--only", "session"), 90, True),
    Row("pinned memory", "reported", program(PARTS, "--only", "pinned"), 60, True),
    Row("kernel speed", "at most 1.5 times the time of copying the same number of bytes",
        program(PARTS, "--only", "kernels"), 60, True),
    Row("copies", "at least 90 % of the ceiling while a kernel runs", program("bench_h2d", "--quick"), 60),
    Row("overlap", "idle below 2 % if the step is longer than the load",
        program("bench_overlap", "--quick", "--only", "gpu"), 90),
    Row("graph", "one graph for each slot, 1,000 replays, exact sums", program(PARTS, "--only", "graph"), 30, True),
    Row("torch", "PyTorch receives the bytes of the host: in its current stream, and in two streams by from_dlpack()",
        torch, 60),
    Row("trainer", "the losses before and after agree", program("cuda_trainer", says=r"before: .*"), 60),
    Row("learning", "an accuracy of at least 0.95", shapes, 90),
    Row("one connection", "the cases of sessions pass",
        cases(CONTRACT, "-tc=session*", CUDA_DEVICE_MAX_CONNECTIONS="1"), 60, True),
    Row("eager loading", "the cases of sessions pass",
        cases(CONTRACT, "-tc=session*", CUDA_MODULE_LOADING="EAGER"), 60),
    Row("blocking launches", "the cases without blocked streams pass",
        cases(CONTRACT, "-tc=session*", "-tce=*block*,*busy*,*at once*,*delayed*,*still waits*,*runs ahead*,*each*",
              CUDA_LAUNCH_BLOCKING="1"), 60),
    *(Row(tool, "compute-sanitizer reports no error", sanitizer(tool), 90)
      for tool in ("memcheck", "racecheck", "initcheck", "synccheck")),
]


class Table:
    """The results so far: rows.json, the lines on the terminal, and the table."""

    def __init__(self, rows, options):
        self.options, self.path = options, options.out / "rows.json"
        self.results = [{"row": row.name, "status": "SKIP", "value": "not run", "passes_if": row.passes_if,
                         "seconds": 0, "details": []} for row in rows]
        self.save()

    def add(self, number, outcome, seconds):
        self.results[number] |= {"status": outcome.status, "value": outcome.value, "seconds": round(seconds, 1),
                                 "details": outcome.details}
        self.save()
        row = self.results[number]
        print(f"{row['status']}  {row['row']}: {row['value']} ({row['passes_if']}; {row['seconds']} s)", flush=True)

    def save(self):
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps({"machine": self.options.facts, "rows": self.results}, indent=1) + "\n")
        new.replace(self.path)   # a reader never sees a part

    def close(self):
        facts = self.options.facts
        lines = [", ".join(f"{name}: {value}" for name, value in facts.items()), "",
                 "| check | passes if | result | measured | seconds |", "|---|---|---|---|---|"]
        lines += ["| " + " | ".join(str(row[key]).replace("|", "/").replace("\n", " ") for key in (
            "row", "passes_if", "status", "value", "seconds")) + " |" for row in self.results]
        (self.options.out / "table.md").write_text("\n".join(lines) + "\n")
        print("\n" + "\n".join(lines), flush=True)


def run_rows(rows, options, programs):
    table = Table(rows, options)
    with (options.out / "rows.log").open("w", errors="replace") as log:
        runner = Runner(programs, options, log)

        # No exception: a process that starts at this moment would not be killed.
        signal.signal(signal.SIGTERM, lambda *_: runner.stop())
        try:
            for number, row in enumerate(rows):
                started = time.monotonic()
                if options.fake and not row.on_fake:
                    outcome = Outcome("SKIP", "needs a GPU")
                elif runner.remaining() <= 0:
                    outcome = Outcome("SKIP", "the budget is used up")
                else:
                    runner.write(f"\n== {row.name}")
                    try:
                        outcome = row.check(runner, row)
                    except (OSError, ValueError, IndexError) as problem:   # the other rows still run
                        outcome = Outcome("FAIL", f"{type(problem).__name__}: {problem}")
                if runner.stopped:
                    return 128 + signal.SIGTERM
                table.add(number, outcome, time.monotonic() - started)
        finally:
            runner.stop()
            table.close()
    return 1 if options.fake and any(row["status"] in ("FAIL", "HANG") for row in table.results) else 0


def main(arguments=None, known_rows=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("bundle", nargs="*", type=pathlib.Path)
    parser.add_argument("--fake", action="store_true")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("rows"))
    parser.add_argument("--budget", type=float, default=560)
    parser.add_argument("--only", default="", help="words; a row runs if its name contains one of them")
    parser.add_argument("--cases", type=int, default=0, help="only the first N cases of each program")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--torch", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.torch:
        return torch_checksums(options.torch)
    words = options.only.split()
    rows = [row for row in known_rows or ROWS if not words or any(word in row.name for word in words)]
    if options.list:
        print("\n".join(f"{row.name}: {row.passes_if}" for row in rows))
        return 0
    if not options.bundle or not options.fake and len(options.bundle) != 1:
        parser.error("expected the folder that pack.sh wrote, or --fake and programs")
    if options.fake:
        # These rows measure nothing: their limits only guard against hangs, also on a busy machine.
        rows = [dataclasses.replace(row, seconds=10 * row.seconds) for row in rows]
        # One program contains the cases of two.
        paths = {path.name.removeprefix("unit_"): path.resolve() for path in options.bundle}
        aliases = {"cuda_contract": (CONTRACT, KERNELS)}
        programs = {alias: path for name, path in paths.items() for alias in aliases.get(name, (name,))}
        options.bundle = None
    else:
        options.bundle = options.bundle[0].resolve()
        programs = {path.name: path for path in sorted((options.bundle / "bin").iterdir())}
    options.out.mkdir(parents=True, exist_ok=True)
    options.facts = machine_facts(options.bundle)
    with tempfile.TemporaryDirectory() as libraries:
        options.libraries = [libraries]
        if options.bundle and (options.bundle / "lib.tar.xz").exists():
            with tarfile.open(options.bundle / "lib.tar.xz") as compressed:
                compressed.extractall(libraries)
        return run_rows(rows, options, programs)


if __name__ == "__main__":
    sys.exit(main())
