# Processes of rows.py: time limits, stack dumps, and the judgment of their output.
#
#   runner = Runner({"gpu_speed": path}, options, log)
#   outcome = program("gpu_speed", "--only", "first")(runner, row)       # one process
#   outcome = cases("gpu_contract", "-tc=session*")(runner, row)         # one process for each test case
#
# The functions cases(), program() and all_of() return checks: functions of (runner, row) that return an Outcome.
# Threads: a check may run several processes at a time.
import concurrent.futures
import dataclasses
import glob
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

RESERVE_SECONDS = 3        # for the last stack dump and the table
DUMP_SECONDS = 15
KILLED_AT_LIMIT, CUT_BY_BUDGET = "limit", "budget"
SUMMARY = re.compile(r"\[doctest\] test cases: +(\d+) \| +(\d+) passed \| +(\d+) failed")
RESULT = re.compile(r"^result: (\S+ \S+ \S+(?: target \S+ (?:ok|short))?)$", re.MULTILINE)
MESSAGE = re.compile(r"MESSAGE: (.*)")


@dataclasses.dataclass
class Outcome:
    status: str             # PASS, FAIL, HANG or SKIP
    value: str = ""         # the measured values, or the reason
    details: list = dataclasses.field(default_factory=list)


class Runner:
    """Starts processes until the budget is used up."""

    def __init__(self, programs, options, log):
        self.programs, self.options, self.log = programs, options, log
        self.end = time.monotonic() + options.budget
        self.running, self.lock, self.stopped = set(), threading.RLock(), False

    def remaining(self):
        return self.end - RESERVE_SECONDS - time.monotonic()

    def write(self, text):
        with self.lock:
            self.log.write(text if text.endswith("\n") else text + "\n")
            self.log.flush()

    def run(self, command, limit, **environment):
        """Returns (exit status, or KILLED_AT_LIMIT or CUT_BY_BUDGET; the output)."""
        limit, allowed = min(limit, self.remaining()), limit
        if limit <= 0:
            return CUT_BY_BUDGET, ""
        libraries = [*self.options.libraries, *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        environment = os.environ | {"LD_LIBRARY_PATH": ":".join(libraries)} | environment
        with tempfile.TemporaryFile("w+", errors="replace") as output:
            process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=subprocess.STDOUT, env=environment, start_new_session=True)
            with self.lock:
                self.running.add(process)
                if self.stopped:   # by a signal while the process started
                    kill(process)
            try:
                status = process.wait(limit)
            except subprocess.TimeoutExpired:
                status = KILLED_AT_LIMIT if limit == allowed else CUT_BY_BUDGET
                if status == KILLED_AT_LIMIT:
                    self.write(f"stacks of {shown(command)}, which was killed after {limit:.0f} s:\n" +
                               stacks(process.pid))
            finally:
                with self.lock:
                    self.running.discard(process)
                kill(process)
                process.wait()
            output.seek(0)
            printed = output.read()
        self.write(f"$ {shown(command)}\n{printed}status: {status}")
        return status, printed

    def stop(self):
        """Kills all processes, and starts no more. For a signal handler, too: the lock is recursive, and no process is
        waited for, because the interrupted thread may own the lock of its process."""
        self.stopped, self.end = True, 0
        with self.lock:
            for process in list(self.running):
                kill(process)


def shown(command):
    return " ".join(f"'{part}'" if re.search(r"[\s*]", str(part)) else str(part) for part in command)


def kill(process):
    """Also its children, which are in its session."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def stacks(pid):
    """The stacks of all threads, if there is a debugger, and the state of each thread in the kernel."""
    text = ""
    debugger = shutil.which("cuda-gdb") or shutil.which("gdb")
    if debugger:
        try:
            text = subprocess.run([debugger, "-p", str(pid), "-batch", "-ex", "thread apply all bt"], text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=DUMP_SECONDS, errors="replace").stdout
        except subprocess.TimeoutExpired:
            text = f"{debugger} did not end within {DUMP_SECONDS} s\n"
    for task in sorted(glob.glob(f"/proc/{pid}/task/*")):
        state = {}
        for name in ("comm", "wchan", "syscall"):
            try:
                state[name] = pathlib.Path(task, name).read_text().strip()
            except OSError:
                state[name] = "?"
        text += (f"thread {pathlib.Path(task).name} {state['comm']}: {state['wchan']}, system call "
                 f"{state['syscall']}\n")
    return text or "the process has ended\n"


def judged(status, printed, good=0):
    """The outcome of one process, without its values."""
    last = printed.strip().rpartition("\n")[2]
    if status == CUT_BY_BUDGET:
        return Outcome("SKIP", "the budget is used up")
    if status == KILLED_AT_LIMIT:
        return Outcome("HANG", "killed at its time limit; rows.log has its stacks")
    if status == 77:
        return Outcome("SKIP", last.removeprefix("skipped: "))
    return Outcome("PASS") if status == good else Outcome("FAIL", f"exit status {status}: {last[:200]}")


def joined(outcomes):
    """The worst outcome of several processes, with all details."""
    for status in ("HANG", "FAIL", "SKIP", "PASS"):
        for outcome in outcomes:
            if outcome.status == status:
                return Outcome(status, outcome.value, [line for one in outcomes for line in one.details])
    return Outcome("SKIP", "nothing to run")


def cases(program, *filters, together=4, good=0, wrapper=(), **environment):
    """Each test case of a doctest program in its own process, because an error of the GPU ends all its work."""
    def check(runner, row):
        if program not in runner.programs:
            return Outcome("SKIP", f"{program} is not in the bundle")
        path = runner.programs[program]
        status, printed = runner.run([path, "-ltc", "-nc", *filters], row.seconds)
        if status != 0:
            return judged(status, printed)
        names = [line for line in printed.split("=" * 20 + "\n")[1].splitlines() if line.strip("=")]
        names = names[:runner.options.cases or len(names)]

        def one(name):
            # In filters, a comma separates patterns and ? matches any character.
            pattern = re.sub(r"[,\\\"*]", "?", name)
            status, printed = runner.run([*wrapper, path, f"-tc={pattern}", "-nc"], row.seconds, **environment)
            outcome = judged(status, printed, good)
            if outcome.status == "PASS":
                count = SUMMARY.search(printed)
                outcome.details = [f"{name}: {text.strip()}" for text in MESSAGE.findall(printed)]
                if not count or int(count[1]) != 1:
                    outcome = Outcome("FAIL", "the filter selected no case, or several")
            if outcome.status != "PASS":
                outcome.details = [f"{outcome.status} {name}: {outcome.value}"]
            return outcome

        with concurrent.futures.ThreadPoolExecutor(together) as pool:
            outcomes = list(pool.map(one, names))
        total = joined(outcomes)
        passed = sum(outcome.status == "PASS" for outcome in outcomes)
        total.value = f"{passed} of {len(names)} cases" + (
            f"; {total.value}" if total.status == "SKIP" else "") + (
            "; " + "; ".join(line.rpartition(": ")[2] for line in total.details)
            if len(names) <= 4 and total.status == "PASS" and total.details else "")
        return total
    return check


def brief(results):
    """Up to six results; of more, the range for each unit."""
    parts = [line.split()[:3] for line in results]
    if len(parts) <= 6:
        return "; ".join(" ".join(part) for part in parts)
    ranges = []
    for unit in dict.fromkeys(part[2] for part in parts):
        values = sorted(((float(value), name) for name, value, one in parts if one == unit))
        ranges.append(f"{values[0][0]:g} {unit} ({values[0][1]}) to {values[-1][0]:g} {unit} ({values[-1][1]})")
    return "; ".join(ranges)


def program(name, *arguments, wrapper=(), good=0, says=None, **environment):
    """A program whose result lines have targets, or which prints a text."""
    def check(runner, row):
        if name not in runner.programs:
            return Outcome("SKIP", f"{name} is not in the bundle")
        chosen = [*arguments, *(["--quick"] if runner.options.fake else [])]
        status, printed = runner.run([*wrapper, runner.programs[name], *chosen], row.seconds, **environment)
        outcome = judged(status, printed, good)
        outcome.details = list(dict.fromkeys(RESULT.findall(printed)))
        nothing = re.search(r"^nothing measured: (.*)", printed, re.MULTILINE)
        short = [line for line in outcome.details if line.endswith(" short")]
        if outcome.status == "PASS":
            found = re.search(says, printed) if says else None
            if nothing:
                outcome = Outcome("SKIP", nothing[1])
            elif short:
                outcome.status, outcome.value = "FAIL", "; ".join(short)
            elif says and not found or not says and not outcome.details and not wrapper:
                outcome.status, outcome.value = "FAIL", "it printed no result"
            elif found:
                outcome.value = found[0]
            else:
                outcome.value = brief([line for line in outcome.details if " target " in line] or outcome.details)
        return outcome
    return check


def all_of(*checks):
    """Several checks as one row."""
    def check(runner, row):
        outcomes = [one(runner, row) for one in checks]
        total = joined(outcomes)
        if total.status == "PASS":
            total.value = "; ".join(outcome.value for outcome in outcomes if outcome.value)
        return total
    return check
