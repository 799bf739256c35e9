# Images per CPU second of Millrace and of other loaders, which alternate on the same photographs: sh bench/run.sh peers
#
#   sh bench/run.sh peers --quick                         # one round, set M, u8
#   sh bench/run.sh peers --only tf.data --set M          # that row and the first one, Millrace in C++
#   sh bench/run.sh peers --json result.json --seconds 4
#
# pip installs each loader once into a virtual environment under build/peers. The photographs are packed in the format
# that suits the loader best. All deliver the same: batches of 256, a random crop resized to 224 x 224, flipped at
# random, u8 or normalized f16, by two workers. A loader that cannot be installed, fails, or delivers other pixels is
# skipped with the reason. counted.py measures, contenders.py lists the loaders; each loader's program is written for
# speed as its users would. Prints the tables of bench/README.md and the result in README.md.
import argparse
import datetime
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

from contenders import CONTENDERS

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ENVIRONMENTS = ROOT / "build" / "peers" / "env"
DATA = pathlib.Path(os.environ.get("MILLRACE_BENCH_DATA", ROOT / "build" / "bench" / "data"))
PROGRAM = ROOT / "build" / "bench" / "bench" / "bench_peers"
REPACK = ROOT / "build" / "bench" / "examples" / "repack"
SETS = ["S", "M", "L"]
MEAN_MAY_DIFFER = 4   # of 255: other random crops, other resize filters


class Skipped(Exception):
    """The reason why a loader is skipped."""


def arguments():
    parser = argparse.ArgumentParser(prog="sh bench/run.sh peers")
    parser.add_argument("--only", action="append", help="a row to compare with the first one; may be repeated")
    parser.add_argument("--set", action="append", choices=SETS, help="photographs; may be repeated; default: all")
    parser.add_argument("--elements", action="append", choices=["u8", "f16"])
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=float, default=6, help="of each run, after its warm-up")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="one round of 3 seconds, set M, u8")
    parser.add_argument("--json", type=pathlib.Path)
    a = parser.parse_args()
    if a.quick:
        a.seconds = min(a.seconds, 3)
    a.rounds = a.rounds or (1 if a.quick else 3)
    a.set = a.set or (["M"] if a.quick else SETS)
    a.elements = a.elements or (["u8"] if a.quick else ["u8", "f16"])
    names = [c.name for c in CONTENDERS]
    for name in a.only or []:
        if name not in names:
            parser.error(f"unknown row '{name}', expected one of: {'; '.join(names)}")
    return a


def say(text):
    print(f"millrace: {text}", flush=True)


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"


def call(task, command, seconds, **options):
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=seconds,
                              stdin=subprocess.DEVNULL, **options)
    except subprocess.TimeoutExpired:
        raise Skipped(f"{task} did not end within {seconds} s") from None
    if done.returncode != 0:
        raise Skipped(f"{task} failed: {last_line(done.stderr or done.stdout)}")
    return done.stdout


def python_of(contender):
    """The Python of its virtual environment, which is created unless it exists."""
    folder = ENVIRONMENTS / contender.environment
    python, stamp = folder / "bin" / "python", folder / "installed"
    expected = json.dumps(contender.installs)
    if not stamp.exists() or stamp.read_text() != expected:
        say(f"installing {contender.name} into {folder.relative_to(ROOT)}")
        hint = f" (it needs Debian's {contender.needs})" if contender.needs else ""
        try:
            call("python -m venv", [sys.executable, "-m", "venv", folder], 300)
            for packages in contender.installs:
                call("pip", [python, "-m", "pip", "install", "--quiet", *packages], 1800)
        except Skipped as why:
            raise Skipped(f"{why}{hint}") from None
        stamp.write_text(expected)
    return python


def packed(contender, name):
    """The folder of the set as the loader reads it."""
    shards = DATA / f"photo-set-{name}"
    if not contender.pack:
        return shards
    folder = DATA / "peers" / f"{contender.environment or 'repacked'}-{name}"
    stamp, expected = folder / "stamp", (shards / "stamp").read_text()
    if not stamp.exists() or stamp.read_text() != expected:
        say(f"packing set {name} for {contender.name}")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if contender.environment:
            command = [python_of(contender), HERE / contender.pack, shards, folder]
        else:
            command = [REPACK, shards, folder / "%03d.tar", *contender.pack.split()]
        call("packing", command, 600)
        stamp.write_text(expected)
    return folder


def measure(contender, name, elements, a):
    folder = packed(contender, name)
    options = [folder, "--elements", elements, "--workers", a.workers, "--seconds", a.seconds]
    if contender.environment:
        command = [python_of(contender), HERE / contender.program, *options]
    else:
        command = [PROGRAM, *options, "--source", contender.program]
    printed = call("the run", command, 240 + a.seconds)
    try:
        return json.loads(last_line(printed))
    except ValueError:
        raise Skipped(f"the run printed '{last_line(printed)}', expected JSON") from None


def expect_same_work(run, reference):
    """Compares pixels and labels; the program has checked the shapes."""
    if abs(run["mean"] - reference["mean"]) > MEAN_MAY_DIFFER:
        raise Skipped(f"its mean pixel is {run['mean']:.1f}, expected {reference['mean']:.1f}")
    if run["labels"] < 0.9 * reference["labels"]:
        raise Skipped(f"it delivered {run['labels']} of {reference['labels']} labels")


class Table:
    """Runs by contender, set and elements, and the skipped contenders."""

    def __init__(self):
        self.runs, self.skipped = {}, {}

    def per_cpu_second(self, c, name, elements):
        return [r["images"] / r["cpu_s"] for r in self.runs.get((c.name, name, elements), [])]

    def per_second(self, c, name, elements):
        return [r["images"] / r["wall_s"] for r in self.runs.get((c.name, name, elements), [])]

    def every(self, c):
        return [r for (name, _, _), runs in self.runs.items() if name == c.name for r in runs]

    def best_peer(self, name, elements):
        rates = [statistics.median(rates) for c in CONTENDERS
                 if not c.is_ours and (rates := self.per_cpu_second(c, name, elements))]
        return max(rates, default=None)


def run_all(a):
    table = Table()
    contenders = [c for c in CONTENDERS if not a.only or c is CONTENDERS[0] or c.name in a.only]
    for name in a.set:
        call(f"generating set {name}", [PROGRAM, "--make", name], 600)
    for contender in contenders:   # before any measurement
        try:
            if contender.environment:
                python_of(contender)
            if contender.compiles:
                say(f"compiling {contender.name}")
                call("compiling", [python_of(contender), HERE / contender.program, "compile"], 1800)
            for name in a.set:
                packed(contender, name)
        except Skipped as why:
            table.skipped[contender.name] = str(why)
    try:
        for turn in range(a.rounds):
            for name in a.set:
                for elements in a.elements:
                    shift = turn * 2 % len(contenders)   # so that predecessors vary
                    for contender in contenders[shift:] + contenders[:shift]:
                        run_once(table, contender, name, elements, a)
    except KeyboardInterrupt:
        say("interrupted; these are the results until now")
    check(table, a)
    return table


def run_once(table, contender, name, elements, a):
    if contender.name in table.skipped:
        return
    try:
        run = measure(contender, name, elements, a)
    except Skipped as why:
        table.skipped[contender.name] = str(why)
        say(f"skipped {contender.name}: {why}")
        return
    table.runs.setdefault((contender.name, name, elements), []).append(run)
    print(f"  {name} {elements} {contender.name}: {run['images'] / run['cpu_s']:.0f} images per CPU second, "
          f"{run['images'] / run['wall_s']:.0f} per second", flush=True)


def check(table, a):
    for (who, name, elements), runs in list(table.runs.items()):
        reference = table.runs.get((CONTENDERS[0].name, name, elements))
        try:
            for run in runs if reference else []:
                expect_same_work(run, reference[0])
        except Skipped as why:
            table.skipped[who] = str(why)
    for who, name, elements in list(table.runs):
        if who in table.skipped:
            del table.runs[who, name, elements]


def spread(values, digits=0):
    if not values:
        return ""
    middle = f"{statistics.median(values):,.{digits}f}"
    return middle if len(values) == 1 else f"{middle} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"


def print_tables(table, a, facts):
    columns = [(name, elements) for elements in a.elements for name in a.set]
    heads = [f"{name} {elements}" for name, elements in columns]
    print("\nImages per CPU second: median (range)\n")
    print(f"| loader | reads | {' | '.join(heads)} |\n|---{'|---' * (len(heads) + 1)}|")
    rows = [c for c in CONTENDERS if table.every(c)]
    for c in rows:
        cells = [spread(table.per_cpu_second(c, *column)) for column in columns]
        print(f"| {c.name} | {c.reads} | {' | '.join(cells)} |")
    print("\nThe ratio to the best of the others, images per second of wall time, the first batch, resident memory\n")
    print(f"| loader | {' | '.join(heads)} | {' | '.join(f'{h}, per s' for h in heads)} | first batch s | MB |")
    print(f"|---{'|---' * (2 * len(heads) + 2)}|")
    for c in rows:
        ratios, walls = [], []
        for column in columns:
            rates, best = table.per_cpu_second(c, *column), table.best_peer(*column)
            ratios.append(f"{statistics.median(rates) / best:.2f}" if rates and best else "")
            walls.append(spread(table.per_second(c, *column)).partition(" (")[0])
        first = statistics.median(r["first_batch_s"] for r in table.every(c))
        resident = statistics.median(r["resident_bytes"] for r in table.every(c)) / 1e6
        print(f"| {c.name} | {' | '.join(ratios)} | {' | '.join(walls)} | {first:.2g} | {resident:.0f} |")
    print()
    for c in rows:
        versions = ", ".join(f"{library} {version}" for library, version in table.every(c)[0]["versions"].items())
        notes = "; ".join(note for note in (versions, c.note) if note)
        if notes:
            print(f"{c.name}: {notes}")
    for who, why in table.skipped.items():
        print(f"skipped {who}: {why}")
    print_pairs(table, a)
    print_readme_row(table, a, facts)


def print_pairs(table, a):
    """Ratios of CPU time per image, of the runs of each round."""
    by_name = {c.name: c for c in CONTENDERS}
    for one, other in (("Millrace in Python", "Millrace"), ("torchvision", "Millrace in Python")):
        for name, elements in ((name, elements) for elements in a.elements for name in a.set):
            rates = [table.per_cpu_second(by_name[who], name, elements) for who in (one, other)]
            ratios = [theirs / its for its, theirs in zip(*rates)]
            if ratios:
                print(f"CPU time per image, {one} / {other}, {name} {elements}: {spread(ratios, 3)} in {len(ratios)} "
                      "rounds")


def print_readme_row(table, a, facts):
    name = "M" if "M" in a.set else a.set[0]
    peers = sorted(((statistics.median(rates), c.name) for c in CONTENDERS
                    if not c.is_ours and (rates := table.per_cpu_second(c, name, a.elements[0]))), reverse=True)
    ours = table.per_cpu_second(CONTENDERS[0], name, a.elements[0])
    print(f"\n{facts['date']}, {facts['cpu']}, {facts['cores']} cores, load {facts['load']} to "
          f"{facts['load at the end']}, {a.rounds} rounds of {a.seconds:g} s, set {name}, {a.elements[0]}:")
    if ours and peers:
        print(f"**{statistics.median(ours):,.0f}**. Others: {', '.join(f'{peer} {rate:,.0f}' for rate, peer in peers)}")


def load():
    return " ".join(pathlib.Path("/proc/loadavg").read_text().split()[:3])


def machine_facts():
    names = [line.partition(":")[2].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    return {"date": datetime.date.today().isoformat(), "cpu": names[0] if names else "unknown",
            "cores": len(os.sched_getaffinity(0)), "load": load(), "kernel": os.uname().release}


def write_json(path, table, a, facts):
    results = []
    for c in CONTENDERS:
        for elements in a.elements:
            for name in a.set:
                rates = table.per_cpu_second(c, name, elements)
                if rates:
                    best = table.best_peer(name, elements)
                    results.append({"name": f"peers_{c.name}_{name}_{elements}", "value": statistics.median(rates),
                                    "unit": "images/CPU_s", "least": min(rates), "most": max(rates),
                                    "of_best_peer": statistics.median(rates) / best if best else None,
                                    "runs": table.runs[c.name, name, elements]})
    path.write_text(json.dumps({"benchmark": "peers", "quick": a.quick, **facts, "skipped": table.skipped,
                                "results": results}, indent=1) + "\n")


def main():
    a = arguments()
    facts = machine_facts()
    for name, value in facts.items():
        print(f"{name}: {value}")
    table = run_all(a)
    facts["load at the end"] = load()
    print_tables(table, a, facts)
    if a.json:
        write_json(a.json, table, a, facts)
    return 0 if table.runs else 1


if __name__ == "__main__":
    sys.exit(main())
