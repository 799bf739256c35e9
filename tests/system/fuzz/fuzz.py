# Runs every parser of untrusted bytes for a limited time: the targets NAME_fuzz.cpp with libFuzzer, AddressSanitizer
# and UndefinedBehaviorSanitizer. Each compares the library with a second, slower implementation.
#
#   python3 tests/system/fuzz/fuzz.py                          # those that are due, 45 seconds in all
#   python3 tests/system/fuzz/fuzz.py tar --runs 100000000     # one of them; rates are in bench/history.md
#   python3 tests/system/fuzz/fuzz.py wav --runs 10000000 --fast   # without AddressSanitizer: 2 to 10 times the rate
#   python3 tests/system/fuzz/fuzz.py --replay build/fuzz/tar-crash-0123 [--smaller]
#
# build/fuzz/NAME/corpus keeps the inputs of a target for its next run. build/fuzz/totals has a line for each run.
# --replay runs every check on one input, whose file name contains the target. With --smaller, libFuzzer then searches
# for a minute for the smallest input that still fails. Ends with `N passed, N failed, N skipped`. Skipped if clang++
# has no libFuzzer.
import argparse
import dataclasses
import datetime
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import ROOT, WARNINGS, Report, is_due, launcher
from legs import steady_addresses

FOLDER = ROOT / "build" / "fuzz"
SOURCES = ROOT / "tests" / "system" / "fuzz"
SANITIZERS = "-fsanitize=address,undefined"
# With --fast a page without access follows each input, and an undefined operation is an illegal instruction.
FAST = ["-fsanitize=undefined", "-fsanitize-trap=undefined", "-DMILLRACE_FUZZ_FAST"]
# Comparisons are not recorded, which would cost half of the time: the targets' own mutators know their formats.
# With NDEBUG, pools do not fill the half megabyte of a released block.
COMPILE = ["-gline-tables-only", "-DNDEBUG", "-fsanitize-coverage=inline-8bit-counters,pc-table",
           "-fno-sanitize-recover=all", f"-I{ROOT / 'include'}"]
LIBRARIES = ["-ltbb", "-larchive", "-lz", "-ljpeg"]
SMOKE_SECONDS = 45
LEVEL = "-O2"
SMOKE_LEVELS = {4: "-O1", 0: "-O0"}   # by seconds: for fewer, a higher level costs more time to compile than it saves
LEAST_PART = 0.01            # of an idle core's rate at -O2
LEAST_PART_OF_LOW_LEVEL = 0.001
FINDING = re.compile(r"^(?:FOUND|ERROR|==\d+==\s*ERROR|.*: runtime error|Test unit written to).*", re.MULTILINE)
PAIR_COUNTERS = re.compile(r"(\d+) files: the built-in decoder decoded (\d+), (\d+) of them progressive, .*; "
                           r"(\d+) images, (\d+) errors, (\d+) accepted though damaged, "
                           r"(\d+) by entries, (\d+) by wrong ones, (\d+) by restart markers")
COUNTERS = re.compile(r"(\d+) inputs: (\d+) accepted, (\d+) refused")


@dataclasses.dataclass(frozen=True)
class Target:
    """Parameters of a target."""
    share: int                   # of the time of all targets
    rate: int                    # executions a second on an idle core
    largest_bytes: int = 4096
    max_megabytes: int = 2      # of one allocation; no input needs more
    # Pools poison released blocks, half a megabyte for each reader, which costs more time than reading. The unit tests
    # cover that.
    poisoning: bool = False
    optional_library: str = ""   # the target is skipped if it is not installed


TARGETS = {
    # Images have at most 65,536 pixels.
    "jpeg_pair": Target(share=36, rate=2_700, max_megabytes=64, poisoning=True),
    "tar": Target(share=24, rate=20_000, max_megabytes=4),
    "index": Target(share=12, rate=80_000, poisoning=True),
    "lines": Target(share=8, rate=20_000, largest_bytes=2048, max_megabytes=8),
    "sidecar": Target(share=8, rate=15_000, largest_bytes=512, poisoning=True),
    "resume": Target(share=8, rate=20_000, largest_bytes=1024, poisoning=True),
    "brace": Target(share=8, rate=8_000, largest_bytes=128, poisoning=True),
    "quarantine": Target(share=8, rate=8_000, largest_bytes=512, max_megabytes=8, poisoning=True),
    "npy": Target(share=8, rate=20_000, largest_bytes=1024, poisoning=True),
    "pnm": Target(share=4, rate=5_000, largest_bytes=256, poisoning=True),
    "jpeg_header": Target(share=8, rate=40_000, poisoning=True),
    "feeder_request": Target(share=4, rate=10_000, largest_bytes=256, poisoning=True),
    "json": Target(share=8, rate=30_000, largest_bytes=512, poisoning=True, optional_library="simdjson"),
    "store_text": Target(share=8, rate=30_000, largest_bytes=512, poisoning=True),
    "feeder_answer": Target(share=8, rate=30_000, largest_bytes=512, poisoning=True),
    "fields": Target(share=8, rate=10_000, largest_bytes=128),
    "tokens": Target(share=8, rate=15_000, largest_bytes=384),
    "set_index": Target(share=8, rate=10_000, largest_bytes=512),
    "wav": Target(share=8, rate=15_000, largest_bytes=512, poisoning=True),
    # Images have at most 65,536 pixels of 8 bytes.
    "png": Target(share=16, rate=4_000, max_megabytes=8, poisoning=True, optional_library="libpng"),
}


def lacks_libfuzzer():
    empty = 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }'
    try:
        done = subprocess.run(["clang++", "-fsanitize=fuzzer", "-x", "c++", "-", "-o", FOLDER / "probe"], input=empty,
                              text=True, capture_output=True)
    except OSError:
        return True
    return done.returncode != 0


def is_missing(library):
    return library != "" and subprocess.run(["pkg-config", "--exists", library]).returncode != 0


def compiled(name, level, fast):
    folder = FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / f"{name}_fuzz"
    source = SOURCES / f"{name}_fuzz.cpp"
    flags = [*WARNINGS, level, *COMPILE, *(FAST if fast else [SANITIZERS])]
    subprocess.run([*launcher(), "clang++", *flags, "-c", source, "-o", f"{program}.o"], check=True)
    own = TARGETS[name].optional_library
    libraries = [*LIBRARIES, f"-l{own.removeprefix('lib')}"] if own else LIBRARIES
    subprocess.run(["clang++", *([] if fast else [SANITIZERS]), "-fsanitize=fuzzer", f"{program}.o", *libraries, "-o",
                    program], check=True)
    return program


def run(name, program, *arguments):
    """The exit status and the output, which is also in build/fuzz/NAME/log."""
    target = TARGETS[name]
    environment = os.environ | {
        "ASAN_OPTIONS": f"quarantine_size_mb=4:malloc_context_size=4:allow_user_poisoning={int(target.poisoning)}",
        "UBSAN_OPTIONS": "print_stacktrace=1"}
    limits = [f"-max_len={target.largest_bytes}", f"-malloc_limit_mb={target.max_megabytes}", "-rss_limit_mb=1024",
              "-timeout=200"]
    log = FOLDER / name / "log"
    with log.open("w") as out:
        done = subprocess.run([*steady_addresses(), program, f"-artifact_prefix={FOLDER}/{name}-", *limits, *arguments],
                              stdout=out, stderr=subprocess.STDOUT, env=environment, cwd=FOLDER / name)
    return done.returncode, log.read_text(errors="replace")


def unreached_paths(printed):
    """None, or the counters if some path was not reached."""
    if counters := PAIR_COUNTERS.search(printed):
        files, decoded, *others = map(int, counters.groups())
        return None if decoded > files // 20 and min(others) > 0 else counters[0]
    counters = COUNTERS.search(printed)
    inputs, accepted, refused = map(int, counters.groups())
    return None if accepted > inputs // 1000 and refused > 0 else counters[0]


def fuzz(name, report, runs, seconds, fast):
    """Runs a target `runs` times or, if that is None, for `seconds`."""
    smoke_level = next(level for least, level in SMOKE_LEVELS.items() if seconds >= least)
    program = compiled(name, LEVEL if runs else smoke_level, fast)
    amount = f"-runs={runs}" if runs else f"-max_total_time={seconds}"
    for folder in ("corpus", "seeds"):
        (FOLDER / name / folder).mkdir(exist_ok=True)
    begin = time.monotonic()
    status, printed = run(name, program, "--seeds=seeds", "-entropic=0", "-print_final_stats=1", amount,
                          "corpus", "seeds")
    seconds_used = time.monotonic() - begin
    findings = "\n".join(dict.fromkeys(match[0] for match in FINDING.finditer(printed)))
    how = f"(complete output: build/fuzz/{name}/log; fuzz.py --replay FILE repeats it)"
    report.add(f"{name}: no input fails", f"{findings}\n{how}" if status != 0 else None)
    executed = max(map(int, re.findall(r"number_of_executed_units: (\d+)", printed)), default=0)
    with (FOLDER / "totals").open("a") as totals:
        totals.write(f"{datetime.date.today()} {name} {executed} executions in {seconds_used:.0f} s, "
                     f"exit status {status}{', fast' if fast else ''}\n")
    if status != 0:
        return
    counters = COUNTERS.search(printed) or PAIR_COUNTERS.search(printed)
    print(f"{name}: {executed} executions; {counters[0]}", flush=True)
    part = LEAST_PART_OF_LOW_LEVEL if smoke_level == "-O0" else LEAST_PART
    least = runs or part * TARGETS[name].rate * seconds
    problem = f"{executed} executions in {seconds_used:.0f} seconds" if executed < least else None
    report.add(f"{name}: it is fast enough", problem)
    report.add(f"{name}: inputs reached every path", unreached_paths(printed))


def replay(path, report, smaller):
    name = next((n for n in TARGETS if path.name.startswith(n + "-")), None)
    if name is None:
        raise SystemExit(f"the name of {path} does not begin with that of a target: {', '.join(TARGETS)}")
    program = compiled(name, LEVEL, fast=False)
    status, printed = run(name, program, "--all", path.resolve())
    report.add(str(path), printed if status != 0 else None)
    if smaller and status != 0:
        smallest = FOLDER / f"{name}-smaller"
        smallest.unlink(missing_ok=True)
        run(name, program, "--all", "-minimize_crash=1", "-max_total_time=60", f"-exact_artifact_path={smallest}",
            path.resolve())
        print(f"smaller input: {smallest}" if smallest.exists() else "there is no smaller input")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name", nargs="?", choices=[*TARGETS])
    parser.add_argument("--seconds", type=int, default=SMOKE_SECONDS, help="in all")
    parser.add_argument("--runs", type=int, help="of each target")
    parser.add_argument("--fast", action="store_true", help="without AddressSanitizer")
    parser.add_argument("--replay", type=pathlib.Path)
    parser.add_argument("--smaller", action="store_true")
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    report = Report()
    if lacks_libfuzzer():
        report.skip("fuzz", "this clang++ has no libFuzzer (Debian: libclang-rt-14-dev)")
        return report.close()
    if options.replay:
        replay(options.replay, report, options.smaller)
        return report.close()
    # Without a name and a time, half of the small targets are due, in turn with each commit.
    every = options.name or options.runs or options.seconds != SMOKE_SECONDS
    due = [name for name, target in TARGETS.items()
           if every or target.share > 8 or is_due(f"fuzz {name}", SOURCES / f"{name}_fuzz.cpp")]
    names = [options.name] if options.name else due
    for name in names:
        if is_missing(TARGETS[name].optional_library):
            report.skip(name, f"{TARGETS[name].optional_library} is not installed")
    names = [name for name in names if not is_missing(TARGETS[name].optional_library)]
    parts = max(1, sum(TARGETS[name].share for name in names))
    for name in names:
        fuzz(name, report, options.runs, max(1, options.seconds * TARGETS[name].share // parts), options.fast)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
