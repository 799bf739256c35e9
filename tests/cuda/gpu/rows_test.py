# Tests rows.py: processes that hang, end, crash or skip; the budget; the files after a kill; and all rows that can run
# with the fake runtime.
#
#   python3 tests/cuda/gpu/rows_test.py PROGRAM...       # unit_gpu_rows and unit_cuda_contract
import argparse
import contextlib
import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest.mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]
import rows
from checks import Report
from rows import Row
from runner import CUT_BY_BUDGET, Runner, cases, program

DONE = "printf 'result: rate 97.5 %% target 95 ok\\n'"
SCRIPTS = {
    "good": DONE,
    "missed": "printf 'result: rate 90 %% target 95 short\\n'",
    "silent": "true",
    "crash": f"{DONE}; kill -SEGV $$",
    "skips": "echo 'skipped: no GPU'; exit 77",
    "hang": "sleep 300 & echo $! >\"$0.child\"; wait",
    "no_case": "case $1 in -ltc) printf '====================\\nsome case, with a comma\\n====================\\n';; "
               "*) echo '[doctest] test cases: 0 | 0 passed | 0 failed | 3 skipped';; esac",
}


def bundle_in(folder):
    (folder / "bin").mkdir()
    for name, script in SCRIPTS.items():
        path = folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)


def row(name, seconds=60, check=None):
    return Row(name, "it does", check or program(name), seconds)


def run(folder, some_rows, *options):
    """{row: its result}, the log, the exit status."""
    with contextlib.redirect_stdout(io.StringIO()):
        status = rows.main([str(folder), "--out", str(folder / "out"), *options], some_rows)
    results = json.loads((folder / "out" / "rows.json").read_text())["rows"]
    return {one["row"]: one for one in results}, (folder / "out" / "rows.log").read_text(), status


def child_ended(folder):
    written = folder / "bin" / "hang.child"
    child = int(written.read_text() or 0) if written.exists() else 0
    if not child:
        return True
    for _ in range(600):
        try:
            if pathlib.Path(f"/proc/{child}/stat").read_text().split()[2] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    return False


def outcomes(folder):
    got, _, status = run(folder, [row("good"), row("missed"), row("silent"), row("crash"), row("skips"), row("absent"),
                                  row("no_case", check=cases("no_case"))])
    expected = {"good": ("PASS", "rate 97.5 %"), "missed": ("FAIL", "rate 90 % target 95 short"),
                "silent": ("FAIL", "it printed no result"), "crash": ("FAIL", "exit status -11: "),
                "skips": ("SKIP", "no GPU"), "absent": ("SKIP", "absent is not in the bundle"),
                "no_case": ("FAIL", "0 of 1 cases")}
    for name, (result, value) in expected.items():
        if got[name]["status"] != result or not got[name]["value"].startswith(value):
            return f"expected {result} ({value}), got {got[name]}"
    table = (folder / "out" / "table.md").read_text()
    return None if status == 0 and table.count("\n| ") == len(expected) + 1 else f"status {status}, table: {table}"


def hang(folder):
    got, log, _ = run(folder, [row("hang", 1), row("good")])
    if got["hang"]["status"] != "HANG" or got["good"]["status"] != "PASS":
        return str(got)
    if "stacks of" not in log or "\nthread " not in log:
        return f"no stacks: {log}"
    return None if child_ended(folder) else "its child still runs"


def budget(folder):
    started = time.monotonic()
    got, _, _ = run(folder, [row("hang", 600), row("good"), row("missed")], "--budget", "4")
    if time.monotonic() - started > 300:
        return "it exceeded its budget"
    if any((one["status"], one["value"]) != ("SKIP", "the budget is used up") for one in got.values()):
        return str(got)
    return None if child_ended(folder) else "its child still runs"


def killed_by(number):
    def check(folder):
        code = (f"import sys; sys.path[:0] = [{str(HERE)!r}, {str(HERE.parents[1])!r}]; import rows, rows_test as t;"
                f"sys.exit(rows.main([{str(folder)!r}, '--out', {str(folder / 'out')!r}], [t.row('good'), "
                "t.row('hang'), t.row('missed')]))")
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)
        for _ in range(1200):
            if (folder / "bin" / "hang.child").exists() and (folder / "bin" / "hang.child").read_text().strip():
                break
            time.sleep(0.05)
        process.send_signal(number)
        status = process.wait(600)
        results = json.loads((folder / "out" / "rows.json").read_text())["rows"]
        if number == signal.SIGKILL:
            os.kill(int((folder / "bin" / "hang.child").read_text()), signal.SIGKILL)
        elif not (folder / "out" / "table.md").exists() or status != 128 + number or not child_ended(folder):
            return f"status {status}, or no table, or a child still runs"
        expected = [("PASS", "rate 97.5 %"), ("SKIP", "not run"), ("SKIP", "not run")]
        return None if [(r["status"], r["value"]) for r in results] == expected else str(results)
    return check


def sanitizers(folder):
    """The summary of racecheck has its own name."""
    tool = folder / "compute-sanitizer"
    tool.write_text("#!/bin/sh\ncase $* in *'--report-api-errors no'*) ;; *) echo 'ERROR SUMMARY: 7 errors'; exit 9;; "
                    "esac\ncase $2 in racecheck) echo '========= RACECHECK SUMMARY: 0 hazards displayed';; "
                    "*) echo '========= ERROR SUMMARY: 0 errors';; esac\n")
    tool.chmod(0o755)
    for name in ("gpu_kernels", "gpu_contract"):
        shutil.copy(folder / "bin" / "silent", folder / "bin" / name)
    with unittest.mock.patch.dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}"):
        got, _, _ = run(folder, [row(name, check=rows.sanitizer(name)) for name in ("memcheck", "racecheck")])
    values = [(one["status"], one["value"]) for one in got.values()]
    expected = [("PASS", "ERROR SUMMARY: 0 errors; ERROR SUMMARY: 0 errors"),
                ("PASS", "RACECHECK SUMMARY: 0 hazards displayed")]
    return None if values == expected else str(values)


def stopped_at_start(folder):
    class StopsRunner(subprocess.Popen):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            runner.stop()

    with (folder / "log").open("w") as log, unittest.mock.patch("subprocess.Popen", StopsRunner):
        runner = Runner({}, argparse.Namespace(budget=600, libraries=[]), log)
        first, second = runner.run([folder / "bin" / "hang"], 30), runner.run([folder / "bin" / "good"], 30)
    if first[0] != -signal.SIGKILL or second[0] != CUT_BY_BUDGET:
        return f"got {first} and {second}"
    return None if child_ended(folder) else "its child still runs"


def architectures(_folder):
    def entry(kind, architecture, size):
        header = kind.to_bytes(2, "little") + b"\1\1" + (64).to_bytes(4, "little") + size.to_bytes(8, "little")
        return header.ljust(28, b"\0") + architecture.to_bytes(4, "little") + bytes(32 + size)

    def fat_binary(*entries):
        data = b"".join(entries)
        return (0xBA55ED50).to_bytes(4, "little") + b"\1\0\x10\0" + len(data).to_bytes(8, "little") + data

    program_of = b"\x7fELF" + bytes(100) + fat_binary(entry(2, 90, 1000), entry(1, 120, 30)) + fat_binary(
        entry(2, 75, 8)) + b"tail"
    found = rows.architectures(program_of)
    return None if found == ([75, 90], [120]) else str(found)


# PyTorch and the module of the row torch, without a GPU: a stream reads a batch when the batch is cloned.
TORCH = """
import contextlib, os, types
class Tensor:
    is_cuda = "CUDA_VISIBLE_DEVICES" not in os.environ
    def __init__(self, data): self.data = data
    def clone(self): return Tensor(self.data)
    def view(self, kind): return self
    cpu = contiguous = numpy = lambda self: self
    def tobytes(self): return self.data
cuda = types.SimpleNamespace(is_available=lambda: @GPU@, Stream=object, stream=lambda s: contextlib.nullcontext(),
                             _sleep=lambda cycles: None, synchronize=lambda: None)
uint8 = None
def from_dlpack(column): return Tensor(column.data)
"""
FLOWS = """
import torch
class Column:
    def __init__(self, data): self.data = data
    def __dlpack_device__(self): return (2, 0)
    def __dlpack__(self, stream):
        if stream == 0 and @REFUSES@: raise BufferError
class Loader(list):
    def close(self): pass
def numbers(shards, batch, seed, wide, threads, convert):
    kind = Column if convert is False else torch.Tensor
    wrong = b"x" if @WRONG@ else b""
    return Loader([kind(b"%d" % n + wrong), kind(b"label")] for n in range(5))
"""


def torch_rows(folder):
    (folder / "python").mkdir()
    check = [one.check for one in rows.ROWS if one.name == "torch"][0]
    for values, expected in (
            ({}, ("PASS", "15 batches are equal: current stream, from_dlpack")),
            ({"GPU": False}, ("SKIP", "PyTorch with a GPU is not installed")),
            ({"REFUSES": False}, ("FAIL", "exit status 1: stream=0 is ambiguous, and was accepted")),
            ({"WRONG": "convert is False"}, ("FAIL", "the batches have other bytes: from_dlpack")),
            ({"WRONG": "convert is None and torch.Tensor.is_cuda"},
             ("FAIL", "the batches have other bytes: current stream"))):
        for name, text in (("torch", TORCH), ("flows", FLOWS)):
            for word, value in ({"GPU": True, "REFUSES": True, "WRONG": False} | values).items():
                text = text.replace(f"@{word}@", str(value))
            (folder / "python" / f"{name}.py").write_text(text)
        shutil.rmtree(folder / "python" / "__pycache__", ignore_errors=True)
        got, log, _ = run(folder, [row("torch", check=check)])
        if (got["torch"]["status"], got["torch"]["value"]) != expected:
            return f"expected {expected}, got {got['torch']}\n{log}"
    return None


def changed_sources(folder):
    """pack.sh rejects programs whose sources changed during the build, for example by another commit."""
    root = folder / "clone"
    for name in (".ci", "tests/cuda/gpu", "tools"):
        (root / name).mkdir(parents=True)
    shutil.copy(HERE / "pack.sh", root / "tests/cuda/gpu")
    (root / "source").write_text("old")
    (root / ".ci/setup.sh").write_text("fail() { echo \"$1\"; exit 1; }\nconfigure() { :; }\nbuild() { $BUILD; }\n")
    (root / "tools/nvcc").write_text("")
    (root / "tools/nvcc").chmod(0o755)
    git = ["git", "-C", root, "-c", "user.name=n", "-c", "user.email=e", "-c", "init.defaultBranch=main"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *arguments], check=True)
    for build, message in ((f"cp {__file__} {root}/source", "the sources changed while they were compiled"),
                           ("true", "gpu_contract")):   # then strip misses the first program
        done = subprocess.run(["sh", root / "tests/cuda/gpu/pack.sh", folder / "packed"], text=True, cwd=root,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                              env=os.environ | {"PATH": f"{root}/tools:{os.environ['PATH']}", "BUILD": build})
        if done.returncode == 0 or message not in done.stdout:
            return f"expected {message}, got status {done.returncode}: {done.stdout}"
    return None


def with_fake_runtime(programs):
    def check(folder):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            status = rows.main(["--fake", *programs, "--out", str(folder / "out"), "--cases", "3", "--budget", "3600"])
        results = json.loads((folder / "out" / "rows.json").read_text())["rows"]
        expected = {one.name: "PASS" if one.on_fake else "SKIP" for one in rows.ROWS}
        if {one["row"]: one["status"] for one in results} != expected or status != 0:
            return printed.getvalue() + (folder / "out" / "rows.log").read_text()[-3000:]
        return None
    return check


def main(programs):
    report = Report()
    tests = {"each end of a process has its result": outcomes,
             "a process that hangs is killed with its children, after its stacks are written": hang,
             "rows that do not fit into the budget are skipped": budget,
             "rows.json is complete after kill -9": killed_by(signal.SIGKILL),
             "SIGTERM ends all processes, and the table is written": killed_by(signal.SIGTERM),
             "the summaries of compute-sanitizer are found": sanitizers,
             "a process that starts at the moment of a signal is killed": stopped_at_start,
             "the architectures in a program are found": architectures,
             "PyTorch's batches are compared with those of the host": torch_rows,
             "programs of different revisions are not packed": changed_sources}
    if programs:
        tests["all rows pass that can run with the fake runtime"] = with_fake_runtime(programs)
    for name, test in tests.items():
        if test is changed_sources and not shutil.which("git"):
            report.skip(name, "git is not installed")
            continue
        with tempfile.TemporaryDirectory() as folder:
            bundle_in(pathlib.Path(folder))
            report.add(name, test(pathlib.Path(folder)))
    return report.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
