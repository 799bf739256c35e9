# One leg of tests/run.sh: its steps, counts and log.
#
#   leg = Leg("unit")
#   leg.build(["-Dtests=enabled"], CXX="g++")           # build/unit
#   leg.run_tests()
#   print(leg.passed, leg.failed, leg.skipped)
#
# Legs run concurrently, so each printed line begins with the leg's name.
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
STEP_LIMIT_SECONDS = 6 * 3600   # only guards against hangs, also on a busy machine
PROGRESS_SECONDS = 15
CLOSING_LINE = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", re.MULTILINE)
MAX_FAILURE_LINES = 12   # for a program's failed assertions
CONFIGURING = threading.Lock()   # Meson may fetch into subprojects/
INTERRUPTED = threading.Event()
DOCTEST_LINE = re.compile(r"\[doctest\] test cases: +\d+ \| +(\d+) passed \| +(\d+) failed \| +(\d+) skipped")


def failed_assertions(printed):
    """doctest's lines for each, with test case and values, which may be far above the end of the log."""
    reported, case = [], ""
    lines = printed.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("TEST CASE:"):
            case = line
        if re.match(r"\S+:\d+: (FATAL )?ERROR: ", line):
            reported += [case] if case not in reported else []
            reported += [line, *(following for following in lines[number + 1:number + 2] if following.startswith("  "))]
    return reported


class Leg:
    """One leg's counts and its log."""

    def __init__(self, name):
        self.name, self.passed, self.failed, self.skipped = name, 0, 0, 0
        self.failures = []   # printed again at the end of a run, because a build service may keep only the end
        self.costs = {}   # processor seconds of each step that has ended
        self.folder = BUILD / name   # the build folder of build()
        self.broken = set()   # programs that build() could not build
        self.log = BUILD / "logs" / f"{name}.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.write_text("")

    def write(self, text):
        with self.log.open("a") as log:
            log.write(text + "\n")

    def say(self, text):
        print(f"{self.name}: {text}\n", end="", flush=True)   # one call, because another leg prints, too

    def say_failure(self, name, details=()):
        lines = [f"  FAILED {name}", *(f"    {line[:200]}" for line in details)][:MAX_FAILURE_LINES + 1]
        self.failures += lines
        for line in lines:
            self.say(line)

    def skip(self, name, reason):
        self.skipped += 1
        self.say(f"  skipped {name}: {reason}")

    def expect(self, name, problem, details=None):
        """Counts one check: it passed unless there is a problem. Prints the details, or the end of the problem."""
        self.write(f"{'FAILED' if problem else 'ok'} {name}\n{problem or ''}")
        if problem:
            self.failed += 1
            self.say_failure(name, details if details is not None else problem.splitlines()[-MAX_FAILURE_LINES:])
        else:
            self.passed += 1

    def run(self, what, command, may_fail=False, **environment):
        """Runs a command and returns its output; prints its newest line from time to time as progress."""
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
        """Runs a command to its end, records the time of it and its children, and returns its exit status."""
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

    def run_concurrently(self, commands, may_fail=False):
        """Runs the commands {name: command}, one per core at a time; returns {name: output}."""
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
                running = [what for what, job in jobs.items() if job.running()]
                self.say(f"    {time.monotonic() - started:.0f} s: {', '.join(running)}")
        for what, job in jobs.items():
            returncode, outputs[what] = job.result()
            self.write("$ " + " ".join(map(str, commands[what])) + "\n" + outputs[what])
            if returncode != 0 and not may_fail:
                raise StepFailed(f"{what}: exit status {returncode}")
        return outputs

    def run_checks(self, *scripts):
        """Runs several scripts like run_check(), concurrently. Arguments may follow a script's name."""
        commands = {script: [sys.executable, ROOT / "tests" / script.split()[0], *script.split()[1:]]
                    for script in scripts}
        for script, output in self.run_concurrently(commands, may_fail=True).items():
            self.count(script, output)

    def run_check(self, script, **environment):
        """Runs one of our checks in Python and adds its counts."""
        self.count(script, self.run(script, [sys.executable, ROOT / "tests" / script], may_fail=True, **environment))

    def count(self, script, output):
        closing = CLOSING_LINE.findall(output)
        if not closing:
            raise StepFailed(f"{script}: it broke off")
        passed, failed, skipped = map(int, closing[-1])
        self.passed, self.failed, self.skipped = self.passed + passed, self.failed + failed, self.skipped + skipped
        for line in re.findall(r"^skipped .*", output, re.MULTILINE):
            self.say(f"  {line}")
        for name, details in re.findall(r"^FAILED +(.*)\n((?: {8}.*\n)*)", output + "\n", re.MULTILINE):
            self.say_failure(name, [line.strip() for line in details.splitlines()][-MAX_FAILURE_LINES:])

    def build(self, options, is_selected=None, folder=None, **environment):
        """Configures and builds build/LEG, or another folder there, or only the programs that `is_selected`
        accepts, and returns their names.

        A program that does not build is one failure. The others are built, and run_tests() runs them."""
        # Meson only searches for ccache if no compiler is specified.
        if "CXX" in environment:
            environment["CXX"] = " ".join([*launcher(), environment["CXX"]])
        shell = f'root={sh_quoted(ROOT)}; . "$root/.ci/setup.sh"; '
        self.folder = BUILD / (folder or self.name)
        with CONFIGURING:
            self.run("configure", ["sh", "-c", shell + 'configure "$@"', "sh", self.folder.relative_to(ROOT), *options],
                     **environment)
        programs = {target["name"]: str(pathlib.Path(target["filename"][0]).relative_to(self.folder))
                    for target in self.introspect("--targets") if target["type"] in ("executable", "shared module") and
                    target["build_by_default"] and (not is_selected or is_selected(target["name"]))}
        if is_selected and not programs:
            return []
        targets = programs.values() if is_selected else ()
        printed = self.run("build", ["ninja", "-C", self.folder, f"-j{JOBS}", "-k0", *targets], may_fail=True,
                           **environment)
        if self.returncode != 0:
            self.count_broken(programs, printed, environment)
        return [name for name, program in programs.items() if program not in self.broken]

    def tests_of(self, programs):
        """The names of the tests that are these programs or are not unit tests."""
        return [test["name"] for test in self.introspect("--tests") if "millrace:checks" not in test["suite"] and
                (not test["name"].startswith("unit_") or test["name"] in programs)]

    def introspect(self, what):
        printed = self.run("list", ["meson", "introspect", self.folder, what])
        return json.loads(printed[printed.index("["):])

    def count_broken(self, programs, printed, environment):
        """Counts each program that ninja could not build, and removes it, so that no test runs an outdated one."""
        for program in programs.values():
            left = subprocess.run(["ninja", "-C", self.folder, "-n", program], capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, env=os.environ | environment)
            if "no work to do" in left.stdout:
                continue
            self.broken.add(program)
            (self.folder / program).unlink(missing_ok=True)
            # ninja prints FAILED:, the target, the command and its output, up to the next step.
            own = re.search(rf"^FAILED: {re.escape(program)}(?:\.p/|\s).*?(?=^\[\d+/\d+\]|^ninja: |\Z)", printed,
                            re.MULTILINE | re.DOTALL)
            reasons = own[0].splitlines()[2:] if own else ["one of its inputs was not built"]
            errors = [line for line in reasons if re.search("error|undefined|cannot find", line)] or reasons
            self.expect(f"{program} does not build", "\n".join(reasons), errors[:3])
        if not self.broken:
            raise StepFailed("build: exit status of ninja was not 0")

    def run_tests(self, wrapper=(), tests=None, **environment):
        """Runs all or some tests of build/LEG. A doctest program counts its cases, any other test counts as one."""
        logs = self.folder / "meson-logs"
        for old in logs.glob("testlog*"):
            old.unlink()
        if self.broken:
            tests = self.tests_that_can_run(tests)
            if not tests:
                return
        self.run("test", ["meson", "test", "-C", self.folder, "--no-rebuild", "--no-suite", "checks",
                          "--print-errorlogs", f"--num-processes={JOBS + 1}",   # some mostly wait
                          "--timeout-multiplier=4",   # limits only guard against hangs, also on a busy machine
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
                printed = result.get("stdout", "") + result.get("stderr", "")
                self.say_failure(f"{result['name']} ({result['result']})",
                                 failed_assertions(printed)[:MAX_FAILURE_LINES]
                                 or printed.splitlines()[-MAX_FAILURE_LINES:])
            self.passed, self.failed, self.skipped = self.passed + passed, self.failed + failed, self.skipped + skipped

    def tests_that_can_run(self, selected):
        """The tests, of the selected ones or of all, whose programs were built."""
        broken = {str(self.folder / program) for program in self.broken}
        able = []
        for test in self.introspect("--tests"):
            if "millrace:checks" in test["suite"] or selected is not None and test["name"] not in selected:
                continue
            if broken.isdisjoint(test["cmd"]):
                able.append(test["name"])
            else:
                self.say(f"  {test['name']} is not run: its program was not built")
        return able


def sh_quoted(text):
    return "'" + str(text).replace("'", "'\\''") + "'"
