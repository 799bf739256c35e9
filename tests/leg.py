# One leg of tests/run.sh: what it runs, counts, prints and writes.
#
#   leg = Leg("unit")
#   leg.build(["-Dtests=enabled"], CXX="g++")           # build/unit
#   leg.run_tests()
#   print(leg.passed, leg.failed, leg.skipped)
#
# Legs run beside each other: each line that one prints begins with its name.
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

from concurrent.futures import ThreadPoolExecutor, wait

from checks import JOBS, ROOT, StepFailed, launcher

BUILD = ROOT / "build"
STEP_LIMIT_SECONDS = 6 * 3600   # guards against hangs alone, on a busy machine too
PROGRESS_SECONDS = 15
CLOSING_LINE = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", re.MULTILINE)
MAX_TOLD_LINES = 12   # of a program's failed assertions
CONFIGURING = threading.Lock()   # Meson may fetch into subprojects/
INTERRUPTED = threading.Event()
DOCTEST_LINE = re.compile(r"\[doctest\] test cases: +\d+ \| +(\d+) passed \| +(\d+) failed \| +(\d+) skipped")


def failed_assertions(printed):
    """What doctest says of each, with its test case and values: these may stand far above the end of the log."""
    told, case = [], ""
    lines = printed.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("TEST CASE:"):
            case = line
        if re.match(r"\S+:\d+: (FATAL )?ERROR: ", line):
            told += [case] if case not in told else []
            told += [line, *(following for following in lines[number + 1:number + 2] if following.startswith("  "))]
    return told


class Leg:
    """One leg's counts and its log."""

    def __init__(self, name):
        self.name, self.passed, self.failed, self.skipped = name, 0, 0, 0
        self.costs = {}   # processor seconds of each step that has ended
        self.folder = BUILD / name   # where build() builds
        self.broken = set()   # what build() could not build
        self.log = BUILD / "logs" / f"{name}.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.write_text("")

    def write(self, text):
        with self.log.open("a") as log:
            log.write(text + "\n")

    def say(self, text):
        print(f"{self.name}: {text}\n", end="", flush=True)   # in one piece: the other leg prints, too

    def skip(self, name, reason):
        self.skipped += 1
        self.say(f"  skipped {name}: {reason}")

    def expect(self, name, problem):
        """Counts one check: it passed unless there is a problem."""
        self.write(f"{'FAILED' if problem else 'ok'} {name}\n{problem or ''}")
        if problem:
            self.failed += 1
            self.say(f"  FAILED {name}")
        else:
            self.passed += 1

    def run(self, what, command, may_fail=False, **environment):
        """Runs a command and returns what it printed; every now and then its newest line shows that it is alive."""
        self.say(f"  {what}")
        start_of_output = self.log.stat().st_size
        self.write("$ " + " ".join(map(str, command)))
        shown = 0

        def show(seconds):
            nonlocal shown
            if seconds - shown > PROGRESS_SECONDS:
                shown = seconds
                newest = self.output_since(start_of_output).rstrip().rpartition("\n")[2]
                self.say(f"    {seconds:.0f} s: {newest[:100]}")

        with self.log.open("a") as log:
            self.returncode = self.finish(what, command, log, show, **environment)
        if self.returncode != 0 and not may_fail:
            raise StepFailed(f"{what}: exit status {self.returncode}")
        return self.output_since(start_of_output)

    def finish(self, what, command, output, meanwhile=lambda seconds: None, **environment):
        """Runs a command to its end, lists what it and its children cost, and returns its exit status."""
        process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT, cwd=ROOT, env=os.environ | environment,
                                   start_new_session=True)
        started, ended = time.monotonic(), 0
        try:
            while not ended:
                time.sleep(0.05)
                seconds = time.monotonic() - started
                if INTERRUPTED.is_set():
                    raise StepFailed(f"{what}: interrupted")
                if seconds > STEP_LIMIT_SECONDS:
                    raise StepFailed(f"{what}: not done after {STEP_LIMIT_SECONDS} seconds")
                meanwhile(seconds)
                ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        finally:
            if not ended:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        process.returncode = os.waitstatus_to_exitcode(status)
        self.costs[what] = self.costs.get(what, 0) + usage.ru_utime + usage.ru_stime
        return process.returncode

    def output_since(self, offset):
        with self.log.open(errors="replace") as log:
            log.seek(offset)
            return log.read()

    def run_beside_each_other(self, commands, may_fail=False):
        """Runs the commands {what: command}, as many at once as there are cores; returns {what: what it printed}."""
        def finished(what):
            with tempfile.TemporaryFile("w+", errors="replace") as printed:
                returncode = self.finish(what, commands[what], printed)
                printed.seek(0)
                return returncode, printed.read()

        for what in commands:
            self.say(f"  {what}")
        outputs, started = {}, time.monotonic()
        with ThreadPoolExecutor(JOBS) as pool:
            jobs = {what: pool.submit(finished, what) for what in commands}
            while wait(jobs.values(), PROGRESS_SECONDS).not_done:
                going = [what for what, job in jobs.items() if job.running()]
                self.say(f"    {time.monotonic() - started:.0f} s: {', '.join(going)}")
        for what, job in jobs.items():
            returncode, outputs[what] = job.result()
            self.write("$ " + " ".join(map(str, commands[what])) + "\n" + outputs[what])
            if returncode != 0 and not may_fail:
                raise StepFailed(f"{what}: exit status {returncode}")
        return outputs

    def run_checks(self, *scripts):
        """As run_check(), one beside the other; arguments may follow a script's name."""
        commands = {script: [sys.executable, ROOT / "tests" / script.split()[0], *script.split()[1:]]
                    for script in scripts}
        for script, output in self.run_beside_each_other(commands, may_fail=True).items():
            self.count(script, output)

    def run_check(self, script, **environment):
        """Runs one of our checks in Python, which counts for itself."""
        self.count(script, self.run(script, [sys.executable, ROOT / "tests" / script], may_fail=True, **environment))

    def count(self, script, output):
        closing = CLOSING_LINE.findall(output)
        if not closing:
            raise StepFailed(f"{script}: it broke off")
        passed, failed, skipped = map(int, closing[-1])
        self.passed, self.failed, self.skipped = self.passed + passed, self.failed + failed, self.skipped + skipped
        for line in re.findall(r"^(?:FAILED|skipped) .*", output, re.MULTILINE):
            self.say(f"  {line}")

    def build(self, options, wanted=None, folder=None, **environment):
        """Configures and builds build/LEG, or another folder there; or of its programs those that are `wanted`, and
        returns their names.

        A program that does not build is one failure; the others are built, and run_tests() runs what there is."""
        # Meson looks for ccache by itself only where no compiler is named.
        if "CXX" in environment:
            environment["CXX"] = " ".join([*launcher(), environment["CXX"]])
        shell = f'root={sh_quoted(ROOT)}; . "$root/.ci/setup.sh"; '
        self.folder = BUILD / (folder or self.name)
        with CONFIGURING:
            self.run("configure", ["sh", "-c", shell + 'configure "$@"', "sh", self.folder.relative_to(ROOT), *options],
                     **environment)
        programs = {target["name"]: str(pathlib.Path(target["filename"][0]).relative_to(self.folder))
                    for target in self.introspect("--targets") if target["type"] in ("executable", "shared module") and
                    target["build_by_default"] and (not wanted or wanted(target["name"]))}
        if wanted and not programs:
            return []
        targets = programs.values() if wanted else ()
        printed = self.run("build", ["ninja", "-C", self.folder, f"-j{JOBS}", "-k0", *targets], may_fail=True,
                           **environment)
        if self.returncode != 0:
            self.tell_broken(programs, printed, environment)
        return [name for name, program in programs.items() if program not in self.broken]

    def tests_of(self, programs):
        """The names of the tests that are these programs, or that are not one of the unit tests."""
        return [test["name"] for test in self.introspect("--tests") if "millrace:checks" not in test["suite"] and
                (not test["name"].startswith("unit_") or test["name"] in programs)]

    def introspect(self, what):
        found = self.run("list", ["meson", "introspect", self.folder, what])
        return json.loads(found[found.index("["):])

    def tell_broken(self, programs, printed, environment):
        """Counts each program that ninja has not brought up to date, and removes it: nobody runs an older one."""
        for program in programs.values():
            left = subprocess.run(["ninja", "-C", self.folder, "-n", program], capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, env=os.environ | environment)
            if "no work to do" in left.stdout:
                continue
            self.broken.add(program)
            (self.folder / program).unlink(missing_ok=True)
            # ninja prints FAILED:, what it was to make, the command and its output, up to the next step.
            own = re.search(rf"^FAILED: {re.escape(program)}(?:\.p/|\s).*?(?=^\[\d+/\d+\]|^ninja: |\Z)", printed,
                            re.MULTILINE | re.DOTALL)
            reasons = own[0].splitlines()[2:] if own else ["something that it is made of was not built"]
            self.expect(f"{program} does not build", "\n".join(reasons))
            for reason in ([line for line in reasons if re.search("error|undefined|cannot find", line)] or reasons)[:3]:
                self.say(f"    {reason[:200]}")
        if not self.broken:
            raise StepFailed("build: exit status of ninja was not 0")

    def run_tests(self, wrapper=(), tests=None, **environment):
        """Runs the tests of build/LEG, or some: a doctest program counts its cases, any other test counts as one."""
        logs = self.folder / "meson-logs"
        for old in logs.glob("testlog*"):
            old.unlink()
        if self.broken:
            tests = self.tests_that_can_run(tests)
            if not tests:
                return
        self.run("test", ["meson", "test", "-C", self.folder, "--no-rebuild", "--no-suite", "checks",
                          "--print-errorlogs", f"--num-processes={JOBS + 1}",   # some wait more than they work
                          "--timeout-multiplier=4",   # limits guard against hangs alone, on a busy machine too
                          *([f"--wrapper={' '.join(wrapper)}"] if wrapper else []), *(tests or ())], may_fail=True,
                 **environment)
        results = [json.loads(line) for path in logs.glob("testlog*.json") for line in path.read_text().splitlines()]
        if not results:
            raise StepFailed("test: no test ran")
        for result in results:
            good = result["result"] in ("OK", "SKIP")
            counts = DOCTEST_LINE.findall(result.get("stdout", ""))
            passed, failed, skipped = map(int, counts[-1]) if counts else (
                result["result"] == "OK", 0, result["result"] == "SKIP")
            if result["result"] == "SKIP":
                reason = result.get("stdout", "").strip().rpartition("\n")[2]
                self.say(f"  skipped {result['name']}: {reason.removeprefix('skipped: ')}")
            if not good:
                failed = max(failed, 1)
                self.say(f"  FAILED {result['name']} ({result['result']})")
                for line in failed_assertions(result.get("stdout", ""))[:MAX_TOLD_LINES]:
                    self.say(f"    {line[:200]}")
            self.passed, self.failed, self.skipped = self.passed + passed, self.failed + failed, self.skipped + skipped

    def tests_that_can_run(self, wanted):
        """Of those that are wanted, or of all, the ones that run nothing that was not built."""
        broken = {str(self.folder / program) for program in self.broken}
        able = []
        for test in self.introspect("--tests"):
            if "millrace:checks" in test["suite"] or wanted is not None and test["name"] not in wanted:
                continue
            if broken.isdisjoint(test["cmd"]):
                able.append(test["name"])
            else:
                self.say(f"  {test['name']} is not run: its program was not built")
        return able


def sh_quoted(text):
    return "'" + str(text).replace("'", "'\\''") + "'"
