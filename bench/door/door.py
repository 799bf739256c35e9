# Alternates the loops of door.cpp with loops in Python over the same flows: sh bench/run.sh door
#
#   sh bench/run.sh door --rounds 7 --pairs 30
#   MILLRACE_BENCH_PYTHON=venv/bin/python3 sh bench/run.sh door          # a Python with PyTorch
#
# The first call compiles the modules and their library. Prints the CPU us of a batch of two small columns, each run in
# a separate process: median (range), and the median of the differences from C++ in each round. Then the CPU time of
# photographs of set M in Python as a share of that in C++: two processes deliver 10 batches each in turn, in the order
# C++, Python, Python, C++, reversed in every second pair.
import argparse
import importlib
import os
import pathlib
import resource
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DATA = pathlib.Path(os.environ.get("MILLRACE_BENCH_DATA", ROOT / "build" / "bench" / "data"))
PROGRAM = ROOT / "build" / "bench" / "bench" / "bench_door"
KINDS = {"tensors of PyTorch": "torch", "arrays of NumPy": "numpy", "objects with __dlpack__": ""}


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def load(source):
    sys.path.insert(0, str(ROOT / "include" / "python"))
    import millrace
    return millrace.load(source, flags=["-O3"], cache=ROOT / "build" / "peers" / "millrace")


def run_one(library, workers, batches):
    """Prints the CPU us of a batch, in a process for this measurement."""
    if library:
        importlib.import_module(library)
    loop = iter(load(HERE / "numbers.cpp").numbers(threads=workers, epoch_batches=1 << 40, notice=None,
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


def answer_photos(library):
    """As answer_photos() of door.cpp."""
    module = importlib.import_module(library)
    as_array = module.asarray if library == "numpy" else module.Tensor.numpy
    shards = sorted(map(str, (DATA / "photo-set-M").glob("*.tar")))
    loader = load(HERE.parent / "peers" / "photos.cpp").u8(shards, batch=256, threads=2, notice=None)
    batches = (pixels for _ in iter(int, 1) for pixels, label in loader)
    before, total = cpu_seconds(), 0
    for line in sys.stdin:
        for _ in range(int(line)):
            total += int(as_array(next(batches)).reshape(-1)[::4096].sum())
        now = cpu_seconds()
        print(now - before, total % 10, flush=True)
        before = now
    os._exit(0)


def compare_photos(python, library, pairs):
    commands = {"C++": [PROGRAM, "M"], "Python": [python, __file__, "--photos", library]}
    loops = {}

    def seconds(name, batches):
        print(batches, file=loops[name].stdin, flush=True)
        return float(loops[name].stdout.readline().split()[0])

    for name, command in commands.items():
        loops[name] = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        seconds(name, 12)
    ratios = []
    for pair in range(pairs):
        order = ("C++", "Python") if pair % 2 == 0 else ("Python", "C++")
        spent = {"C++": 0.0, "Python": 0.0}
        for name in (*order, *reversed(order)):
            spent[name] += seconds(name, 10)
        ratios.append(spent["Python"] / spent["C++"])
    for loop in loops.values():
        loop.stdin.close()
        loop.wait()
    print(f"\nCPU time of photographs, Python / C++: {statistics.median(ratios):.3f} ({min(ratios):.3f} to "
          f"{max(ratios):.3f}) in {pairs} pairs")


def spread(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def main():
    parser = argparse.ArgumentParser(prog="sh bench/run.sh door")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--batches", type=int, default=20_000)
    parser.add_argument("--pairs", type=int, default=30, help="of photographs")
    parser.add_argument("--quick", action="store_true", help="two rounds and four pairs")
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)   # LIBRARY WORKERS
    parser.add_argument("--photos", help=argparse.SUPPRESS)         # LIBRARY
    a = parser.parse_args()
    if a.photos:
        return answer_photos(a.photos)
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
    libraries = [library for library in rows.values() if library]
    pairs = 4 if a.quick else a.pairs
    if libraries and pairs:
        compare_photos(python, libraries[0], pairs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
