# Tests of the tests: plants easy mistakes in the library, one at a time. A unit test must detect each.
#
#   python3 tests/system/mutations/mutations.py                        # all of them, with g++ -O0
#   python3 tests/system/mutations/mutations.py sync "take returns"      # those whose name contains one of these texts
#   python3 tests/system/mutations/mutations.py --texts                # only checks that each still applies
#   python3 tests/system/mutations/mutations.py --compiler clang++ --flags '-O0 -fsanitize=address,undefined'
#
# The table is table.py. First, each test program must pass with the unchanged tree. A mistake is detected if the
# program then fails a check, crashes, or exceeds its time limit: one minute, or three times its previous time to
# compile and run, if that is more. Each mistake must compile without a warning. Prints a line for each and ends with `N
# passed, N failed, N skipped`. Needs no GPU. Some mistakes are in code for x86-64 only.
import argparse
import pathlib
import shlex
import shutil
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import JOBS, ROOT, WARNINGS, Report, in_parallel
from planting import EXAMPLES, LIMIT_SECONDS, TESTS, Broken, Build, folder_for, lost_text, plant
from table import MUTATIONS

LIMIT_UNPLANTED_SECONDS = 600


def timed(function):
    """A function that returns the result of `function` and the seconds it needed."""
    def call(item):
        started = time.monotonic()
        return function(item), time.monotonic() - started
    return call


def program_of(test):
    """The file under tests/."""
    return f"{'system' if test.startswith('examples/') else 'unit'}/{test}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", help="texts; without one, all mutations")
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--flags", type=shlex.split, default=["-O0"], help="for compiling and for linking")
    parser.add_argument("--jobs", type=int, default=JOBS, help="as many are compiled at a time")
    parser.add_argument("--texts", action="store_true", help="only check that each mistake still applies")
    options = parser.parse_args()
    build = Build(options.compiler, options.flags, ROOT / "build" / "mutations", tuple(WARNINGS), (EXAMPLES,))
    report = Report()
    selected = [m for m in MUTATIONS if not options.names or any(name in m.name for name in options.names)]
    if not selected:
        report.add("mutations", "no mutation has such a name")
        return report.close()

    if options.texts:
        report.add(f"the headers contain the texts of {len(selected)} mutations, once each",
                   lost_text(build.scratch, {m.name: [m.edit] for m in selected}))
        return report.close()

    objects = build.common_objects([TESTS / "main.cpp"])
    limits = {}   # of the programs that pass with the unchanged tree

    def unplanted(test):
        return build.check_unplanted(program_of(test), objects, limit_seconds=LIMIT_UNPLANTED_SECONDS)

    def planted(mutation):
        if mutation.test not in limits:
            return f"{mutation.test} fails without it", ""
        folder = folder_for(build.scratch, mutation.name)
        try:
            plant([mutation.edit], folder / "include")
            kind, what = build.outcome_of(program_of(mutation.test), folder, objects, [folder / "include"],
                                          limit_seconds=limits[mutation.test])
        except Broken as problem:
            return str(problem), ""
        if kind == "green":
            return f"NOT detected: {mutation.test} passes", ""
        shutil.rmtree(folder)
        return None, what

    tests = sorted({mutation.test for mutation in selected})
    for test, (problem, seconds) in in_parallel(timed(unplanted), tests, options.jobs):
        report.add(f"{test} with the unchanged tree, {seconds:.0f} s", problem)
        if not problem:
            limits[test] = max(LIMIT_SECONDS, 3 * seconds)
    for mutation, ((problem, what), seconds) in in_parallel(timed(planted), selected, options.jobs):
        detected = "" if problem else f"detected by {mutation.test} in "
        report.add(f"{mutation.name}: {detected}{seconds:.0f} s" + (f" ({what})" if what else ""), problem)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
