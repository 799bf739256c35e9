# Injects a failure, once or permanently, into each system call of the library: the run must continue with the same
# batches, or end with one located error after the batches before it.
#
#   python3 tests/system/faults/faults.py                 # every call of every stage: an hour
#   python3 tests/system/faults/faults.py --quick         # some of each: two minutes
#   python3 tests/system/faults/faults.py --stages reader,lines --calls read,alloc
#   python3 tests/system/faults/faults.py --cell reader:read:EIO:3:sticky     # one run, with its output
#
# It also runs scenarios: files that change while they are read, callables that throw, trainers that stop.
#
# As in SQLite's tests, the Nth call fails for N = 1, 2, ... until a run passes without a failure. shim.cpp injects the
# failures, subject.cpp has the stages. Calls that oneTBB, libjpeg, libarchive, zlib and the C library issue for
# themselves do not fail.
import argparse
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import JOBS, QUICK_COMPILER, ROOT, WARNINGS, Report, in_parallel, is_due, linked_program

HERE = pathlib.Path(__file__).resolve().parent
BUILT = ROOT / "build" / "faults"
RUN_LIMIT_SECONDS = 600   # only guards against hangs
STATE_WORDS = 27   # fault_state in shim_order.hpp
DETAILED_FAILURES = 3
ALL = 1_000_000
ARGUMENTS = re.compile(r"\bmillrace::v\w+::|\bdetail::|<.*>|\(.*\)|^.* (?=\S+$)")
# How each call may fail. Failures in HARMLESS must have no effect if they happen once.
KINDS = {
    "open": ["EINTR", "ENOENT", "EACCES", "EMFILE", "EIO", "ESTALE", "ENOMEM"],
    "read": ["EINTR", "EAGAIN", "ESTALE", "EIO", "short", "tiny", "end"],
    "write": ["EINTR", "ENOSPC", "EIO", "EDQUOT", "EAGAIN", "short", "tiny"],
    "sync": ["EINTR", "EIO", "ENOSPC", "EROFS"],
    "rename": ["EACCES", "EIO", "ENOSPC", "EXDEV"],
    "unlink": ["EACCES", "EIO"],
    "cut": ["EINTR", "EIO"],
    "close": ["EINTR", "EIO", "ENOSPC"],
    "stat": ["EIO", "ENOENT", "EACCES", "ESTALE"],
    "folder": ["EACCES", "EMFILE", "ENOSPC"],
    "lock": ["EINTR", "EIO"],
    "map": ["ENOMEM", "EAGAIN", "EACCES"],
    "alloc": ["ENOMEM"],
    "thread": ["EAGAIN"],
    "clock": ["forward", "ahead", "back"],
}
HARMLESS = {("open", "EINTR"), ("read", "EINTR"), ("read", "EAGAIN"), ("read", "ESTALE"), ("read", "short"),
            ("read", "tiny"), ("write", "EINTR"), ("write", "short"), ("write", "tiny"), ("lock", "EINTR"),
            ("sync", "EINTR"), ("clock", "forward"), ("clock", "ahead"), ("clock", "back")}
# These would never end, or one failure is permanent.
NEVER_STICKY = {"EINTR", "forward", "ahead", "back"}
# These continue without a file or a row, log that on stderr, and count the lost rows.
LOGS = {"json_lines", "status_line", "tensorboard", "metrics"}


class Cell(NamedTuple):
    stage: str
    call: str
    kind: str
    nth: int
    sticky: bool

    def __str__(self):
        return ":".join([self.stage, self.call, self.kind, str(self.nth)] + ["sticky"] * self.sticky)

    @staticmethod
    def named(text):
        stage, call, kind, nth, *sticky = text.split(":")
        return Cell(stage, call, kind, int(nth), bool(sticky))


class Outcome(NamedTuple):
    """Output of a run, and the resources that it left open."""
    status: int | None   # None: it exceeded its time limit
    calls: int
    fired: int
    place: list
    rows: list
    end: str
    lost: int
    left: str            # descriptors and threads
    again: str
    files: dict          # {name: bytes} in the folder of the armed run
    stderr: str


def numbers_to_try(calls, most):
    """All of 1 to calls + 1, or `most` of them: the first ones, the last one, and others at even distances."""
    if calls + 1 <= most:
        return list(range(1, calls + 2))
    few = max(1, most // 3)
    step = (calls - few) / (most - few)
    return sorted({*range(1, few + 1), *(round(few + step * i) for i in range(1, most - few + 1))})


def cells_of(stage, calls, max_runs, max_allocations):
    for call, kinds in KINDS.items():
        if calls.get(call, 0) == 0:
            continue
        for kind in kinds:
            for sticky in (False, True):
                if sticky and kind in NEVER_STICKY:
                    continue
                limit = max_allocations if call == "alloc" else max_runs
                for nth in numbers_to_try(calls[call], limit):
                    yield Cell(stage, call, kind, nth, sticky)


def is_subsequence(some, every):
    """Whether `some` is a subsequence of `every`."""
    rest = iter(every)
    return all(row in rest for row in some)


def problem_with_files(cell, outcome, clean):
    for name, data in outcome.files.items():
        if name.endswith(".partial"):
            if cell.call != "unlink":
                return f"{name} is left"
        elif name.endswith(".jsonl"):
            for line in data.decode(errors="replace").splitlines(keepends=True):
                try:
                    json.loads(line)
                except ValueError:
                    return f"{name} has the line {line!r}"
        elif name == "saved":
            if data not in (b"a" * 5000, b"b" * 5000):
                return f"{name} is incomplete: {len(data)} bytes"
        elif name.endswith(".tar") and data != clean.files.get(name):
            return f"{name} has other content"
        # For readers, an empty index is under construction.
        elif name.endswith("-index") and data and len(data) != len(clean.files.get(name, b"")):
            return f"{name} is incomplete: {len(data)} bytes"
    return None


def names_the_cause(cell, end):
    """Whether an error names its file, or the resource that the machine lacks."""
    if cell.call == "alloc":
        return bool(re.search("memory|bad_alloc", end))
    if cell.call == "thread":
        return "thread" in end
    return "/data/" in end or "/out/" in end or "cannot create the folder '/" in end


def verdict(cell, outcome, clean):
    """exact, located or reported; or the problem, in a sentence that begins with !"""
    if outcome.status is None:
        return "! it hangs"
    if outcome.status != 0:
        return f"! it ended with status {outcome.status}"
    if outcome.left:
        return f"! left open: {outcome.left}"
    if problem := problem_with_files(cell, outcome, clean):
        return f"! {problem}"
    if outcome.again != clean.again:
        return f"! the next run in the process: {outcome.again}, expected {clean.again}"
    if outcome.end == "ok":
        if outcome.rows == clean.rows:
            return "exact"
        # A status line shows the latest of each value, so a lost value changes the line.
        is_subset = cell.stage == "status_line" or is_subsequence(outcome.rows, clean.rows)
        if cell.stage in LOGS and is_subset and len(clean.rows) - len(outcome.rows) <= outcome.lost:
            if outcome.fired and "sink failed" in outcome.stderr:
                return "reported"
        return f"! {len(outcome.rows)} rows of {len(clean.rows)}, others or fewer, without an error"
    if not outcome.fired:
        return f"! no call failed, and yet: {outcome.end}"
    if outcome.rows != clean.rows[:len(outcome.rows)]:
        return f"! before its error it delivered other rows: {outcome.end}"
    if (cell.call, cell.kind) in HARMLESS and not cell.sticky or cell.kind in ("short", "tiny"):
        return f"! it should have continued: {outcome.end}"
    if not names_the_cause(cell, outcome.end):
        return f"! the error does not name its cause: {outcome.end}"
    return "located"


def files_below(folder):
    files = {}
    for path, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(path, name), "rb") as file:
                files[name] = file.read()
    return files


def built():
    """(program, shim)"""
    program = linked_program(BUILT / "subject", sorted(HERE.glob("subject*.cpp")), level="-O0")
    shim = BUILT / "shim.so"
    subprocess.run([QUICK_COMPILER, *WARNINGS, "-O1", "-fPIC", "-shared", HERE / "shim.cpp", "-o", shim], check=True)
    return program, shim


class Runs:
    """Runs of the program, each in its own folder."""

    def __init__(self, folder, program, shim):
        self.folder, self.program, self.shim = pathlib.Path(folder), program, shim
        (self.folder / "data").mkdir()
        subprocess.run([program, "data", self.folder / "data"], check=True)

    def names(self, kind):
        printed = subprocess.run([self.program, "list"], capture_output=True, text=True, check=True).stdout
        return [name for what, name in (line.split() for line in printed.splitlines()) if what == kind]

    def run(self, cell):
        place = pathlib.Path(tempfile.mkdtemp(dir=self.folder, prefix="run-"))
        (place / "out").mkdir()
        (place / "state").write_bytes(bytes(8 * STATE_WORDS))
        environment = os.environ | {"LD_PRELOAD": str(self.shim), "FAULTS_CALL": cell.call, "FAULTS_KIND": cell.kind,
                                    "FAULTS_NTH": str(cell.nth), "FAULTS_STICKY": str(int(cell.sticky)),
                                    "FAULTS_STATE": str(place / "state")}
        try:
            done = subprocess.run([self.program, "run", cell.stage, self.folder / "data", place / "out"],
                                  env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  errors="replace", timeout=RUN_LIMIT_SECONDS)
            status, printed, stderr = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as late:
            status, printed, stderr = None, "", (late.stderr or b"").decode(errors="replace")
        calls, fired, frames, *place_of_call = struct.unpack(f"<{STATE_WORDS}Q", (place / "state").read_bytes())
        values = {}
        rows = []
        for word, _, rest in (line.partition(" ") for line in printed.splitlines()):
            if word == "row":
                rows.append(rest)
            else:
                values[word] = rest
        left = ", ".join(f"{values[name]} {name}" for name in ("descriptors", "threads") if name in values)
        outcome = Outcome(status=status, calls=calls, fired=fired, place=place_of_call[:frames], rows=rows,
                          end=values.get("end", ""), lost=int(values.get("lost", 0)), left=left,
                          again=values.get("again", ""), files=files_below(place / "out" / "armed"), stderr=stderr)
        shutil.rmtree(place)
        return outcome

    def functions(self, addresses):
        """The library's functions that led to a call, the innermost first, without arguments."""
        if not addresses or not shutil.which("addr2line"):
            return []
        printed = subprocess.run(["addr2line", "-Cfse", self.program, *map(hex, addresses)], capture_output=True,
                                 text=True).stdout
        names = [ARGUMENTS.sub("", name) for name in printed.splitlines()[::2] if "millrace::" in name]
        return [name[-100:] for name in names if not name.startswith("std::")]


def failure_text(runs, cell, outcome, result):
    lines = [f"{cell}: {result.lstrip('! ')}", f"  again: python3 {pathlib.Path(__file__).resolve().relative_to(ROOT)}"
             f" --cell {cell}"]
    lines += [f"  in {name}" for name in runs.functions(outcome.place)[:8]]
    return "\n".join(lines + [f"  | {line}" for line in outcome.stderr.splitlines()[-3:]])


def one_cell(runs, cell):
    clean, outcome = runs.run(cell._replace(nth=0)), runs.run(cell)
    result = verdict(cell, outcome, clean)
    print(f"{cell}: {outcome.fired} of {outcome.calls} calls failed; {len(outcome.rows)} of {len(clean.rows)} rows")
    print(f"end: {outcome.end}\nagain: {outcome.again}\nfiles: {sorted(outcome.files)}\n{outcome.stderr}", end="")
    print("".join(f"  in {name}\n" for name in runs.functions(outcome.place)), end="")
    report = Report()
    report.add(str(cell), result[2:] if result.startswith("!") else None)
    return report.close()


class Matrix:
    """The results of each stage, for each call."""

    def __init__(self):
        self.counts = {}   # {(stage, call): {"exact": n, "located": n, "reported": n, "wrong": n, "runs": n}}

    def add(self, cell, result, fired):
        counts = self.counts.setdefault((cell.stage, cell.call), {})
        kind = "wrong" if result.startswith("!") else "not reached" if not fired else result
        counts[kind] = counts.get(kind, 0) + 1

    def show(self):
        calls = [call for call in KINDS if any(c == call for _, c in self.counts)]
        stages = list(dict.fromkeys(stage for stage, _ in self.counts))
        print("\nEach cell: exact runs / located errors / reported losses; ! unexplained runs")
        print(f"{'':14}" + "".join(f"{call:>13}" for call in calls))
        for stage in stages:
            line = f"{stage:14}"
            for call in calls:
                counts = self.counts.get((stage, call))
                kinds = ("exact", "located", "reported")
                text = "" if not counts else "/".join(str(counts.get(kind, 0)) for kind in kinds)
                if counts and counts.get("wrong"):
                    text += f"!{counts['wrong']}"
                line += f"{text:>13}"
            print(line)
        total = {}
        for counts in self.counts.values():
            for kind, count in counts.items():
                total[kind] = total.get(kind, 0) + count
        print(f"{len(self.counts)} cells, {sum(total.values())} runs: " +
              ", ".join(f"{total.get(kind, 0)} {kind}" for kind in ("exact", "located", "reported", "not reached")) +
              f", {total.get('wrong', 0)} unexplained", flush=True)


def try_stage(runs, report, matrix, stage, options):
    clean = runs.run(Cell(stage, "read", "EIO", 0, False))
    if clean.status != 0 or clean.end != "ok" or clean.left:
        report.add(f"{stage} without a fault", f"{clean.end} {clean.left}\n{clean.stderr}")
        return
    calls = {call: outcome.calls for call, outcome in in_parallel(
        lambda call: runs.run(Cell(stage, call, KINDS[call][0], 0, False)), options.calls, options.jobs)}
    if options.quick:
        max_runs, max_allocations = 2, 12
    else:
        max_runs, max_allocations = ALL, options.most
    cells = list(cells_of(stage, calls, max_runs, max_allocations))
    problems = {}
    for cell, outcome in in_parallel(runs.run, cells, options.jobs):
        result = verdict(cell, outcome, clean)
        matrix.add(cell, result, outcome.fired)
        texts = problems.setdefault(cell.call, [])
        if result.startswith("!"):
            detailed = len(texts) < DETAILED_FAILURES
            texts.append(failure_text(runs, cell, outcome, result) if detailed else f"{cell}: {result[2:]}")
    for call, texts in problems.items():
        runs_of_call = sum(cell.call == call for cell in cells)
        report.add(f"{stage}: {call}, {runs_of_call} runs", "\n".join(texts))


def try_scenario(runs, report, name):
    """A scenario checks itself. It prints `ok` twice, or its problem."""
    outcome = runs.run(Cell(name, "read", "EIO", 0, False))
    good = outcome.status == 0 and outcome.end == "ok" and not outcome.left and outcome.again.endswith(" ok")
    report.add(name, None if good else f"status {outcome.status}, {outcome.end} {outcome.left}\n{outcome.again}\n"
                                       f"{outcome.stderr}")


def main():
    words = argparse.ArgumentParser()
    words.add_argument("--quick", action="store_true", help="few runs of the stages that are due (checks.py)")
    words.add_argument("--stages", type=lambda text: text.split(","))
    words.add_argument("--calls", type=lambda text: text.split(","), default=list(KINDS))
    words.add_argument("--most", type=int, default=ALL, help="runs for the allocations of a stage")
    words.add_argument("--jobs", type=int, default=JOBS)
    words.add_argument("--cell", type=Cell.named)
    options = words.parse_args()
    with tempfile.TemporaryDirectory(prefix="millrace-faults-") as folder:
        runs = Runs(folder, *built())
        if options.cell:
            return one_cell(runs, options.cell)
        report, matrix = Report(), Matrix()
        stages, scenarios = runs.names("stage"), runs.names("scenario")
        due = [stage for stage in stages if not options.quick or is_due(f"faults {stage}")]
        for name in options.stages or [*scenarios, *due]:
            if name in scenarios:
                try_scenario(runs, report, name)
            else:
                try_stage(runs, report, matrix, name, options)
        matrix.show()
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
