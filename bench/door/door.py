# Alternates the loop of door.cpp with loops in Python over the same flow: sh bench/run.sh door
#
#   sh bench/run.sh door --rounds 7
#   MILLRACE_BENCH_PYTHON=venv/bin/python3 sh bench/run.sh door          # a Python with PyTorch
#
# The first call compiles the module and its library. Each run is a separate process. Prints the CPU us of a batch of
# two small columns: median (range), and the median of the differences from C++ in each round.
import argparse
import importlib.util
import os
import pathlib
import resource
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROGRAM = ROOT / "build" / "bench" / "bench" / "bench_door"
KINDS = {"tensors of PyTorch": "torch", "arrays of NumPy": "numpy", "objects with __dlpack__": ""}


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def run_one(library, workers, batches):
    """Prints the CPU us of a batch, in a process for this measurement."""
    if library:
        importlib.import_module(library)
    sys.path.insert(0, str(ROOT / "include" / "python"))
    import millrace
    module = millrace.load(HERE / "numbers.cpp", flags=["-O3"], cache=ROOT / "build" / "peers" / "millrace")
    loop = iter(module.numbers(threads=workers, epoch_batches=1 << 40, notice=None,
                               convert=None if library else False))
    for _ in range(1_000):
        x, label = next(loop)
    before, count = cpu_seconds(), 0
    for x, label in loop:
        count += 1
        if count == batches:
            break
    print(1e6 * (cpu_seconds() - before) / batches, flush=True)
    os._exit(0)


def spread(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def main():
    parser = argparse.ArgumentParser(prog="sh bench/run.sh door")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--batches", type=int, default=20_000)
    parser.add_argument("--quick", action="store_true", help="two rounds")
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)   # LIBRARY WORKERS
    a = parser.parse_args()
    if a.run:
        return run_one(a.run[0], int(a.run[1]), a.batches)
    python = os.environ.get("MILLRACE_BENCH_PYTHON", "").split(":")[0] or sys.executable
    rows = {"C++": None} | {f"Python, {kind}": library for kind, library in KINDS.items()}
    for kind, library in KINDS.items():
        if library and subprocess.run([python, "-c", f"import {library}"], stderr=subprocess.DEVNULL).returncode:
            print(f"skipped {kind}: {python} has no {library}")
            del rows[f"Python, {kind}"]
    costs = {}
    for _ in range(2 if a.quick else a.rounds):
        for workers in (0, 1):
            for row, library in rows.items():
                command = [PROGRAM, str(workers), str(a.batches)] if library is None else [
                    python, __file__, "--batches", str(a.batches), "--run", library, str(workers)]
                printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
                costs.setdefault((row, workers), []).append(float(printed.split()[-1]))
    print(f"load {pathlib.Path('/proc/loadavg').read_text().split()[0]}\n")
    print("| CPU us of a batch | no worker | more than C++ | one worker | more than C++ |\n|---|---|---|---|---|")
    for row in rows:
        cells = []
        for workers in (0, 1):
            of_row = costs[row, workers]
            more = [us - plain for us, plain in zip(of_row, costs["C++", workers])]
            cells += [spread(of_row), f"{statistics.median(more):.2f}" if row != "C++" else ""]
        print(f"| {row} | {' | '.join(cells)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
