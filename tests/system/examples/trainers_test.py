# One of the examples in which another library trains: its usual loop and Millrace's must read the same samples.
#
#   python3 trainers_test.py FOLDER_OF_THE_PROGRAMS PROGRAM      # exit status 77 if it was not built
import pathlib
import re
import subprocess
import sys
import tempfile

FOLDER, NAME = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
LOSSES = r"(?:final|average) loss before (\d\.\d+), after \1, difference 0\.0e\+00\n"


def run(*arguments):
    """Its output. Fails unless its exit status is 0."""
    done = subprocess.run([FOLDER / NAME, *arguments], capture_output=True, text=True, timeout=900,
                          stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f"{NAME} {arguments}: exit status {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def expect(pattern, printed):
    match = re.fullmatch(pattern, printed)
    if not match:
        sys.exit(f"{NAME}: expected {pattern!r}, it printed {printed!r}")
    return match


def torch_trainer():
    assert float(expect(LOSSES, run())[1]) < 2.25, "it learns nothing"
    # Tensors that outlive their batches: only AddressSanitizer detects reads after free.
    assert b"__asan_init" in (FOLDER / NAME).read_bytes()
    expect("1000 steps: no copy, and retained tensors did not change\n", run("--check", "1000"))


def dlib_trainer():
    assert float(expect(LOSSES, run())[1]) < 2.3, "it learns nothing"


def opencv_pictures():
    with tempfile.TemporaryDirectory() as folder:
        expect(r"before (\d+\.\d+), after \1\n", run(folder))
        assert {path.name for path in pathlib.Path(folder).iterdir()} == {"batch.png", "first.png"}


if not (FOLDER / NAME).exists():
    print(f"skipped: {NAME} is not built, its library is missing")
    sys.exit(77)
globals()[NAME]()
