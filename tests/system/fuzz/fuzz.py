# Two damaged JPEGs beside each other, for so long: jpeg_pair_fuzz.cpp with libFuzzer, AddressSanitizer and
# UndefinedBehaviorSanitizer. What it has learnt is in build/fuzz/corpus, and the next run begins with that.
#
#   python3 tests/system/fuzz/fuzz.py                       # 60 seconds on one core
#   python3 tests/system/fuzz/fuzz.py --runs 10000000       # an hour and a half
#   python3 tests/system/fuzz/fuzz.py --replay build/fuzz/crash-0123 [--smaller]
#
# --replay runs every check on one input; with --smaller libFuzzer then looks for the smallest input that still fails,
# for a minute. Ends with `N passed, N failed, N skipped`. Skipped where clang++ comes without libFuzzer.
import argparse
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import ROOT, WARNINGS, Report, launcher
from legs import steady_addresses

FOLDER = ROOT / "build" / "fuzz"
SANITIZERS = "-fsanitize=address,undefined"
# Without what records comparisons, which would take half of the time: the target's own changes know what a JPEG is.
COMPILE = ["-O2", "-gline-tables-only", SANITIZERS, "-fsanitize-coverage=inline-8bit-counters,pc-table",
           "-fno-sanitize-recover=all", f"-I{ROOT / 'include'}"]
# A picture here is below 65,536 pixels, so nothing has a reason to ask for so much at once, or to take so long.
LIMITS = ["-max_len=4096", "-malloc_limit_mb=64", "-rss_limit_mb=1024", "-timeout=20"]
LEAST_A_SECOND = 20          # two thousand on an idle core
FINDING = re.compile(r"^(?:FOUND|ERROR|==\d+==\s*ERROR|.*: runtime error|Test unit written to).*", re.MULTILINE)
WAYS = re.compile(r"(\d+) files: the built-in decoder took (\d+), .*; (\d+) pictures, (\d+) errors, (\d+) accepted")


def lacks_libfuzzer():
    empty = 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }'
    try:
        done = subprocess.run(["clang++", "-fsanitize=fuzzer", "-x", "c++", "-", "-o", FOLDER / "probe"], input=empty,
                              text=True, capture_output=True)
    except OSError:
        return True
    return done.returncode != 0


def compiled():
    program = FOLDER / "jpeg_pair_fuzz"
    source = ROOT / "tests" / "system" / "fuzz" / "jpeg_pair_fuzz.cpp"
    subprocess.run([*launcher(), "clang++", *WARNINGS, *COMPILE, "-c", source, "-o", f"{program}.o"], check=True)
    subprocess.run(["clang++", SANITIZERS, "-fsanitize=fuzzer", f"{program}.o", "-ljpeg", "-o", program], check=True)
    return program


def run(program, *arguments):
    """Its exit status and what it printed, which is in build/fuzz/log too."""
    environment = os.environ | {"ASAN_OPTIONS": "quarantine_size_mb=4:malloc_context_size=6",
                                "UBSAN_OPTIONS": "print_stacktrace=1"}
    log = FOLDER / "log"
    with log.open("w") as out:
        done = subprocess.run([*steady_addresses(), program, f"-artifact_prefix={FOLDER}/", *LIMITS, *arguments],
                              stdout=out, stderr=subprocess.STDOUT, env=environment, cwd=FOLDER)
    return done.returncode, log.read_text(errors="replace")


def fuzz(program, report, amount, seconds):
    for folder in ("corpus", "seeds"):
        (FOLDER / folder).mkdir(exist_ok=True)
    status, printed = run(program, "--seeds=seeds", "-entropic=0", "-print_final_stats=1", amount, "corpus", "seeds")
    found = "\n".join(dict.fromkeys(match[0] for match in FINDING.finditer(printed)))
    report.add("no input fails", f"{found}\n(all of it: build/fuzz/log; fuzz.py --replay FILE repeats it)"
               if status != 0 else None)
    if status != 0:
        return
    executed = int(re.search(r"number_of_executed_units: (\d+)", printed)[1])
    print(f"{executed} executions; " + WAYS.search(printed)[0])
    report.add("it got somewhere", f"{executed} executions in {seconds} seconds"
               if executed < LEAST_A_SECOND * seconds else None)
    files, *ways = map(int, WAYS.search(printed).groups())
    report.add("files went every way", None if ways[0] > files // 20 and min(ways[1:]) > 0 else WAYS.search(printed)[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--runs", type=int)
    parser.add_argument("--replay", type=pathlib.Path)
    parser.add_argument("--smaller", action="store_true")
    asked = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    report = Report()
    if lacks_libfuzzer():
        report.skip("fuzz", "this clang++ comes without libFuzzer (Debian: libclang-rt-14-dev)")
        return report.close()
    program = compiled()
    if asked.replay:
        status, printed = run(program, "--all", asked.replay.resolve())
        report.add(str(asked.replay), printed if status != 0 else None)
        if asked.smaller and status != 0:
            smaller = FOLDER / "smaller"
            smaller.unlink(missing_ok=True)
            run(program, "--all", "-minimize_crash=1", "-max_total_time=60", f"-exact_artifact_path={smaller}",
                asked.replay.resolve())
            print("a smaller one: build/fuzz/smaller" if smaller.exists() else "there is none smaller")
    elif asked.runs:
        fuzz(program, report, f"-runs={asked.runs}", 0)
    else:
        fuzz(program, report, f"-max_total_time={asked.seconds}", asked.seconds)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
