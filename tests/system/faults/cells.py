# The tables of failing calls and the verdict on a run, for faults.py.
#
#   for cell in cells_of("reader", {"read": 12, "alloc": 400}, 6, 20): ...   # Cell(stage, call, kind, nth, sticky)
#   verdict(cell, outcome, clean)                               # "exact", "located", "reported", or a problem
import json
import os
import re
from typing import NamedTuple

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
