# A very long run must not accumulate memory, threads or descriptors.
#
#   python3 tests/system/soak/soak.py                      # 100,000,000 samples of 2 KB, 10,000,000 images, sessions
#   python3 tests/system/soak/soak.py --samples 1000000 --pictures 0 --sessions 500 --tolerance 0.05
#   python3 tests/system/soak/soak.py --planted            # detects leaks planted in copies of headers
#
# soak_subject.cpp reports its resources at 200 points of the run. The first tenth does not count. A least-squares line
# is fitted to the rest. It is flat if its slope is within three standard errors of 0 or negative, or if the growth over
# the run is less than --tolerance of the memory. Threads and descriptors fluctuate: they grow only if, in addition, the
# minimum of the last third exceeds the maximum of the first third. The tolerance is needed because pools keep the
# largest number of blocks ever in use. Five percent are 0.1 bytes per sample over the run, less than a leak of 16 bytes
# per batch. The tolerance of resident memory is three times that, because the memory that malloc retains varies by a
# tenth over millions of samples.
import argparse
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import typing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import JOBS, ROOT, Report, in_parallel, linked_program
from planting import Edit, plant

HERE = pathlib.Path(__file__).resolve().parent
MEASURES = ("resident bytes", "allocated bytes", "threads", "descriptors")
WARM_UP = 0.1
NOISE = 3   # standard errors
RESIDENT_TOLERANCES = 3

# The planted leaks, the run that shows them, and the measures that grow.
PLANTED = [Edit("run/impl/run_core.inl", "process_(getpid()),", "process_((::dup(2), getpid())),"),
           Edit("run/impl/run_core.inl", "#include <optional>", "#include <optional>\n#include <thread>"),
           Edit("run/impl/run_core.inl", """  if (settings_.batch_rows == 0)
                                        throw setup_error""", """static_cast<void>(new char[400]);
                std::thread([] { ::pause(); }).detach();
                if (settings_.batch_rows == 0)
                  throw setup_error""")]
PLANTED_IN, PLANTED_COUNT, PLANTED_SHOWS = "sessions", 300, ("allocated bytes", "threads", "descriptors")


class Line(typing.NamedTuple):
    slope: float
    error: float
    mean: float


def fitted(xs, ys):
    """The least-squares line and the standard error of its slope."""
    count = len(xs)
    x_mean, y_mean = sum(xs) / count, sum(ys) / count
    spread = sum((x - x_mean) ** 2 for x in xs)
    slope = sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys)) / spread
    left = sum((y - y_mean - slope * (x - x_mean)) ** 2 for x, y in zip(xs, ys))
    return Line(slope, math.sqrt(left / (count - 2) / spread), y_mean)


def built(folder, planted=None):
    return linked_program(folder / "soak_subject", [HERE / "soak_subject.cpp"], planted=planted)


class Run(typing.NamedTuple):
    what: str
    lines: dict      # by measure
    thirds: dict     # by measure: the maximum of the first third, the minimum of the last
    span: int        # the range of the lines
    seconds: float
    problem: str     # the reason why it did not complete


def soaked(program, data, what, count):
    started, points = time.monotonic(), []
    # Without caches per thread, which count as allocated and fill slowly.
    environment = os.environ | {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
    with subprocess.Popen([program, what, data, str(count)], env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            points.append([int(word) for word in line.split()[1:]])
        errors = process.stderr.read()
    seconds = time.monotonic() - started
    points = [point for point in points if point[0] >= WARM_UP * count]
    if process.returncode != 0 or len(points) < 20:
        return Run(what, {}, {}, 0, seconds, f"exit status {process.returncode}, {len(points)} points: {errors}")
    xs = [point[0] for point in points]
    lines = {measure: fitted(xs, [point[1 + i] for point in points]) for i, measure in enumerate(MEASURES)}
    third = len(points) // 3
    thirds = {measure: (max(point[1 + i] for point in points[:third]), min(point[1 + i] for point in points[-third:]))
              for i, measure in enumerate(MEASURES)}
    return Run(what, lines, thirds, xs[-1] - xs[0], seconds, "")


def growth(run, measure, tolerance):
    """Why a measure grows, or None."""
    line = run.lines[measure]
    if line.slope <= NOISE * line.error:
        return None
    if measure in ("threads", "descriptors"):
        first, last = run.thirds[measure]
        return f"it grows: at most {first} in the first third, at least {last} in the last" if last > first else None
    most = tolerance * line.mean * (RESIDENT_TOLERANCES if measure == "resident bytes" else 1)
    return f"it grows: at most {most:.4g} would do" if line.slope * run.span > most else None


def add(report, run, tolerance):
    if run.problem:
        report.add(run.what, run.problem)
        return
    for measure, line in run.lines.items():
        scale, unit = (1, "session") if run.what == "sessions" else (1e6, "million")
        mean = f"{line.mean:.2f}" if measure in ("threads", "descriptors") else f"{line.mean / 1e6:.3f} MB"
        text = (f"{run.what}: {measure} {mean}, slope {line.slope * scale:+.4g} +- {line.error * scale:.2g} per {unit},"
                f" {line.slope * run.span:+.4g} over {run.span}")
        report.add(text, growth(run, measure, tolerance))


def try_planted(report, folder, data, tolerance):
    plant(PLANTED, folder / "include")
    run = soaked(built(folder / "planted", folder / "include"), data, PLANTED_IN, PLANTED_COUNT)
    if run.problem:
        report.add(run.what, run.problem)
    for measure in PLANTED_SHOWS if not run.problem else ():
        line = run.lines[measure]
        growing = growth(run, measure, tolerance)
        report.add(f"{run.what} use more {measure}: {line.slope:+.4g} +- {line.error:.2g} each",
                   None if growing else "the planted leak is not detected")


def main():
    words = argparse.ArgumentParser()
    words.add_argument("--samples", type=int, default=100_000_000, help="half of them indexed, half as a stream")
    words.add_argument("--pictures", type=int, default=10_000_000)
    words.add_argument("--sessions", type=int, default=10_000)
    words.add_argument("--tolerance", type=float, default=0.05,
                       help="accepted growth, as a share of the memory of a run")
    words.add_argument("--jobs", type=int, default=JOBS)
    words.add_argument("--planted", action="store_true")
    options = words.parse_args()
    report = Report()
    with tempfile.TemporaryDirectory(prefix="millrace-soak-") as name:
        folder, program = pathlib.Path(name), built(ROOT / "build" / "soak")
        data = folder / "data"
        data.mkdir()
        subprocess.run([program, "data", data], check=True)
        if options.planted:
            try_planted(report, folder, data, options.tolerance)
            return report.close()
        counts = {"samples": options.samples // 2, "stream": options.samples // 2, "pictures": options.pictures,
                  "sessions": options.sessions}
        runs = [(kind, count) for kind, count in counts.items() if count]
        for (kind, count), run in in_parallel(lambda run: soaked(program, data, *run), runs, options.jobs):
            print(f"{kind}: {count} in {run.seconds:.0f} s, {count / run.seconds:.0f} a second", flush=True)
            add(report, run, options.tolerance)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
