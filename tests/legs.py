# The legs of tests/run.sh, in the order in which they start. Two run at a time, so that one compiles while the other
# waits, links or runs a long program (legs that kill programs, delay answers or install packages mostly wait). Each leg
# is a function with a Leg as its parameter, which runs steps and counts results. LEGS lists the legs, whose docstrings
# `sh tests/run.sh --help` prints.
#
# Every printed line begins with its leg. Every step writes to build/logs/LEG.log. A failed leg prints the end of its
# log and the command that repeats the leg.
import os
import pathlib
import re
import resource
import subprocess
import sys
import sysconfig
import time

from concurrent.futures import ThreadPoolExecutor

import join

from checks import (COMPILED, COMPILERS, ROOT, WARNINGS, StepFailed, compiled_library, have_changed, is_due, is_turn,
                    launcher, library_flags)
from contract.install.consumers import install
from leg import BUILD, INTERRUPTED, Leg
from selection import CONTRACTED_UNITS, PLAIN_UNITS, THREADED_UNITS, is_unit_due, omitted_programs

LEGS_AT_ONCE = 2
SANITIZED = ["-Dcuda=disabled", "-Dtests=enabled", "-Djoined_tests=true", "-Dexamples=disabled", "-Dbench=disabled",
             "-Doptimization=0", "-Ddebug=false", "-Db_lundef=false", "-Dfake_cuda=true"]
NOT_DUE = "it is due at the next commit, or with MILLRACE_CHECKS=all"
# Trainers may use C++23. All other tests compile the headers as C++20.
IMAGES_IN_CXX23 = "-Dimage_tests_std=c++2b"


def steady_addresses():
    """A command that reduces the randomization of addresses if clang 14's sanitizers do not support the kernel's."""
    bits = pathlib.Path("/proc/sys/vm/mmap_rnd_bits")
    try:
        wide = int(bits.read_text()) > 28
    except OSError:
        wide = False
    narrows = wide and subprocess.run(["setarch", "-R", "true"], stderr=subprocess.DEVNULL).returncode == 0
    return ("setarch", "-R") if narrows else ()


def line_tables():
    """With line tables, a sanitizer reports lines in addition to functions, for a fifth more compile time."""
    return "-gline-tables-only" if os.environ.get("MILLRACE_LINES") else "-g0"


def asan_options():
    """With short allocation stacks and a small quarantine, which saves a third of the time."""
    options = "detect_leaks=1:detect_stack_use_after_return=1"
    if os.environ.get("MILLRACE_LINES"):   # complete stacks, to find the cause
        return options
    return f"{options}:malloc_context_size=5:quarantine_size_mb=32:min_uar_stack_size_log=16:max_uar_stack_size_log=16"


def lint(leg):
    """the rules of the tree, and that each rule detects the mistake planted for it"""
    leg.run_check("contract/lint/lint_test.py")
    leg.run_check("contract/lint/lint.py")
    leg.run_check("contract/lint/boundary_test.py")
    leg.run_check("contract/lint/boundary.py")
    leg.run_check("contract/lint/prose.py")
    leg.run_check("contract/lint/words_test.py")
    leg.run_check("contract/lint/words.py")
    leg.run_check("contract/lint/format.py")
    leg.run_check("contract/lint/hints.py")
    for script in ROOT / "tests/system/mutations/mutations.py", ROOT / "tests/cuda/planted/planted.py":
        leg.count(f"{script.name} --texts", leg.run(script.name, [sys.executable, script, "--texts"], may_fail=True))


def errors(leg):
    """the compiler's message for every mistake with a sentence of the library (g++, clang++)"""
    leg.run_check("contract/errors/runner_test.py")
    leg.run_check("contract/errors/run_error_tests.py")


def headers(leg):
    """each header alone, twice, among leaked macros (g++, clang++); standard headers; linking; the cost of including"""
    leg.run_check("contract/headers/standard_names.py")
    leg.run_checks("contract/headers/headers.py", "contract/headers/costs.py", "contract/headers/messages.py")


def documentation(leg):
    """Doxygen's reference: no warning, no undocumented public type or function; needs only Doxygen"""
    leg.run_check("contract/documentation/documentation.py")
    leg.say("  the reference: build/documentation/html/index.html")


def header_examples(leg):
    """the example at the beginning of each public header compiles"""
    leg.run_check("contract/documentation/examples.py")


def readme(leg):
    """the README's programs and recipes compile unchanged (g++, clang++) and run; all names in it exist"""
    leg.run_check("contract/readme/readme.py")


def bench(leg):
    """clang++ compiles the benchmarks without a warning: all that can be joined, and the others that are due"""
    define = ['-DMILLRACE_BENCH_FLAGS=""', '-DMILLRACE_BENCH_PEERS="peers"', "-DMILLRACE_BENCH_LOOPS=loops"]
    renamed = {"normalize_loops.cpp": ["-Dv0_1=v0_1_loops"], "resize_loops.cpp": ["-Dv0_1=v0_1_loops"]}

    def command_for(source):
        python = f"-isystem{sysconfig.get_paths()['include']}"
        return ["clang++", *WARNINGS, "-fsyntax-only", f"-I{ROOT / 'include'}", *define, python,
                *renamed.get(source.name, [COMPILED]), *library_flags("--cflags"), source]

    sources = {str(source.relative_to(ROOT)): source for source in sorted((ROOT / "bench").rglob("*.cpp"))}
    # Most of their headers are the same. Files with #if cannot be joined.
    to_join = [name for name, source in sources.items()
               if source.parent.name == "bench" and "\n#if" not in source.read_text()]
    together = BUILD / "bench_sources" / "joined.cpp"
    together.parent.mkdir(parents=True, exist_ok=True)
    together.write_text(join.joined([sources[name] for name in to_join], ROOT, together.parent))
    commands = {name: command_for(source) for name, source in sources.items()
                if name not in to_join and is_due(name, source)}
    outputs = leg.run_concurrently(commands | {"the others as one file": command_for(together)}, may_fail=True)
    joined = outputs.pop("the others as one file")
    outputs |= {name: "" for name in to_join}
    if joined:
        # Compiles each file separately to find the broken one, if it is also broken alone.
        each = leg.run_concurrently({name: command_for(sources[name]) for name in to_join}, may_fail=True)
        outputs |= each if any(each.values()) else {name: joined for name in to_join}
    for name, problem in outputs.items():
        leg.expect(name, problem)


def fast_unit(leg):
    """g++: builds and runs the unit tests that depend on contraction and order of operations; a part of unit"""
    # unit_nvtx needs a library that is not a unit test, so the leg unit builds it.
    unit(leg, lambda name: name.startswith("unit_") and name not in ("unit_examples", "unit_nvtx"))


def unit(leg, among=lambda name: True):
    """g++: builds examples and some tests without a warning and runs them; all tests with MILLRACE_GCC=all"""
    # Most of the time is compilation, so only selected files are optimized, and there is no debug information.
    # The sanitizers' builds use the fake CUDA runtime, this one the toolkit if it is installed.
    every = os.environ.get("MILLRACE_GCC") == "all"
    omitted = () if every else omitted_programs()
    is_selected = None if every else lambda name: among(name) and name not in omitted and (
        not name.startswith("unit_") or is_unit_due(name) and name in (
            *PLAIN_UNITS, *(CONTRACTED_UNITS if is_turn(0) else [])))
    programs = leg.build(["-Dcuda=auto", "-Dgpu_arch=sm_90", "-Dtests=enabled", "-Djoined_tests=true",
                          "-Dexamples=enabled", "-Dbench=disabled", "-Doptimization=0", "-Ddebug=false",
                          "-Dcompiled_optimization=1", IMAGES_IN_CXX23], is_selected, CXX="g++")
    leg.run_tests((), None if every else [
        name for name in leg.tests_of(programs) if among(name) and name not in omitted],
        **({} if every else {"MILLRACE_PAIRS": "150", "MILLRACE_DIGEST_SEEDS": "2"}))


def header_only(leg):
    """builds all examples that clang++ compiles, as one program, without the compiled library"""
    # clang++ needs half the time. It compiles neither dlib's headers nor LibTorch's: the leg unit does.
    if not is_turn(1):
        return leg.skip("header-only examples", NOT_DUE)
    options = ["-Dheader_only=true", "-Dcuda=disabled", "-Dtests=enabled", "-Dexamples=enabled", "-Dbench=disabled",
               "-Doptimization=0", "-Ddebug=false"]
    for program in leg.build(options, lambda name: name == "every_example", CXX="clang++"):
        leg.expect(f"{program} builds header-only", None)


def bare(leg):
    """the README's first command and the installation in an empty Debian 12 and 13; a leg with a broken program"""
    leg.run_check("system/leg_test.py")
    for suite in ("bookworm", "trixie"):
        what = f"the quickstart in an empty Debian, {suite}"
        if os.environ.get("MILLRACE_BARE"):
            leg.skip(what, "this is one")
            continue
        printed = leg.run(what, ["sh", ROOT / "tests" / "system" / "bare.sh", suite, "quickstart"], may_fail=True)
        if leg.returncode == 77:
            leg.skip(what, printed.strip().rpartition("\n")[2].removeprefix("millrace: "))
            continue
        leg.count("bare.sh", printed)
        # Some warnings need -O3, with which no other leg compiles the complete library.
        warnings = [line for line in printed.splitlines() if re.search(r":\d+:(\d+:)? warning: ", line)]
        leg.expect(f"the quickstart's compiler has no warning, {suite}", "\n".join(warnings) or None)


def digest(leg):
    """the same digest header-only with -Ofast -ffast-math -march=native, and at -O0 with the library (g++, clang++)"""
    source = ROOT / "tests" / "unit" / "run" / "digest.cpp"
    if not source.exists():
        leg.skip("digest", "tests/unit/run/digest.cpp does not exist")
        return
    if not is_turn(0):   # then the leg header_only runs
        return leg.skip("digest", NOT_DUE)
    folder = BUILD / "digest"
    folder.mkdir(parents=True, exist_ok=True)
    programs, compilations, links = {}, {}, {}
    # g++'s compiled library is not built only for this: unit_run_frozen, in the leg unit, compares its digests with
    # recorded ones. -Ofast does not add -ffast-math if g++'s pragmas select another level.
    compilers = COMPILERS if have_changed() else COMPILERS[:1]   # clang++ needs no pragmas
    native = [(compiler, ["-Ofast", "-ffast-math", "-march=native"], []) for compiler in compilers]
    for compiler, flags, mode in [*native, ("clang++", ["-O0"], [COMPILED])]:
        name = " ".join([compiler, *flags, *mode])
        program = programs[name] = folder / re.sub(r"\W+", "_", name)
        compile_flags = [*WARNINGS, *flags, *mode, f"-I{ROOT / 'include'}", *library_flags("--cflags")]
        compilations[f"compile with {name}"] = [*launcher(), compiler, *compile_flags, "-c", source, "-o",
                                                f"{program}.o"]
        library = [compiled_library(compiler)] if mode else []
        links[f"link that of {name}"] = [compiler, f"{program}.o", *library, "-o", program, *library_flags("--libs")]
    leg.run_concurrently(compilations)
    leg.run_concurrently(links)
    outputs = leg.run_concurrently({name: [program] for name, program in programs.items()})
    reference = next(iter(outputs.values()))
    for name, printed in outputs.items():
        leg.expect(f"digest of {name}", None if printed == reference and printed.strip() else
                   f"it printed {printed!r}; the first one {reference!r}")


def aarch64(leg):
    """an emulated aarch64: kernels, images and a session as on this machine; the number of instructions per image"""
    leg.run_check("system/aarch64/aarch64.py")


def fuzz(leg):
    """45 seconds of libFuzzer's inputs for parsers and a second one of each; concurrently, 20,000 undamaged crops"""
    leg.run_checks("system/fuzz/fuzz.py", "unit/image/corpus.py --crops 20000 --entries 1500")


def exact(leg):
    """the same samples and bytes after kill -9 and resume, and, in turn, with MPI ranks or with Python's readers"""
    leg.run_checks("system/exact/kill.py", *(["system/exact/mpi.py"] if is_turn(0) else []),
                   *(["system/exact/reader.py"] if is_turn(1) else []))


def python(leg):
    """the Python door: the batches of C++, CUDA streams, modules, recipes, package, PyTorch; needs NumPy"""
    names = "modules package life frameworks clash exact streams recipes memory".split()   # modules compiles for all
    leg.run_checks(*(f"system/python/{name}.py" for name in names))


def remote(leg):
    """objects from misbehaving servers, nginx, moto and rclone's server; rows from feeders that are killed"""
    leg.run_checks("system/remote/object_stores.py", "system/remote/web.py")
    if is_turn(0):
        leg.run_checks("system/remote/first_batch.py", "system/remote/spoiled_runs.py")
    if is_turn(1):
        leg.run_check("system/remote/cache_kills.py")
    leg.run_checks("system/feeders/feeders.py --quick")


def faults(leg):
    """system calls fail one by one, files change and callables throw: each run is exact or has one located error"""
    leg.count("faults.py", leg.run("faults.py", [sys.executable, ROOT / "tests" / "system" / "faults" / "faults.py",
                                                 "--quick"], may_fail=True))


def kills(leg):
    """kill -9 at random moments to all writers of files; in turn memory, threads and descriptors of long runs"""
    leg.count("kills.py", leg.run("kills.py", [sys.executable, ROOT / "tests" / "system" / "kills" / "kills.py",
                                               "--kills", "100"], may_fail=True))
    if is_turn(0):
        leg.count("soak.py", leg.run("soak.py", [sys.executable, ROOT / "tests" / "system" / "soak" / "soak.py",
                                                 "--samples", "2000000", "--pictures", "20000", "--sessions", "150",
                                                 "--tolerance", "0.5"], may_fail=True))


def planted(leg):
    """bugs planted one by one in the CUDA path: each makes its test program fail"""
    # One for each test program that is due; all of them with MILLRACE_PLANTED=all.
    brief = {} if os.environ.get("MILLRACE_PLANTED") == "all" else {"MILLRACE_BRIEF": "1"}
    leg.run_check("cuda/planted/planted_test.py")
    leg.run_check("cuda/planted/planted.py", **brief)


def clang(leg):
    """clang++ with AddressSanitizer (leaks too), UndefinedBehaviorSanitizer and the standard library's assertions"""
    # All programs with MILLRACE_ASAN=all. AddressSanitizer itself reports null pointers and reads through overflowed
    # pointers; the fuzzers, whose inputs cause overflows, check pointer arithmetic, too. UndefinedBehaviorSanitizer
    # checks the compiled library and the tests that loop over bytes and pixels. The others are mostly engines, where
    # AddressSanitizer's checks are function calls, which compile faster.
    every = os.environ.get("MILLRACE_ASAN") == "all"
    lighter = [] if every else ["-Dunoptimised_tests_args=-fno-sanitize=undefined,-mllvm,"
                                "-asan-instrumentation-with-call-threshold=0"]
    unchecked = "null,vptr" if every else "null,vptr,pointer-overflow"
    units = leg.build([*SANITIZED, *lighter, "-Db_sanitize=address,undefined", "-Dcompiled_optimization=1",
                       IMAGES_IN_CXX23,
                       f"-Dcpp_args=-D_GLIBCXX_ASSERTIONS -funsigned-char {line_tables()} "
                       f"-fno-sanitize-recover=all -fno-sanitize={unchecked}",
                       "-Dcpp_link_args=-fno-sanitize-recover=all"],
                      lambda name: name.startswith("unit_") and (
                          every or is_unit_due(name) and name not in (
                              *PLAIN_UNITS, *THREADED_UNITS, *([] if is_turn(1) else CONTRACTED_UNITS))), CXX="clang++")
    leg.run_tests(steady_addresses(), units, ASAN_OPTIONS=asan_options(),
                  UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1",
                  MILLRACE_BRIEF="1", MILLRACE_DIGEST_SEEDS="1", MILLRACE_PAIRS="150")   # unit tests all of them


def tsan(leg):
    """clang++ with ThreadSanitizer, with a oneTBB that is also built with it; nothing is suppressed"""
    parts = ROOT / "tests" / "system" / "tsan"
    prefix = leg.run("oneTBB with ThreadSanitizer", ["sh", parts / "one_tbb.sh"]).split("\n")[-2]
    environment = {"PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig", "LD_LIBRARY_PATH": f"{prefix}/lib",
                   "MILLRACE_BRIEF": "1", "MILLRACE_DIGEST_SEEDS": "1",   # unit tests all of them
                   # Children of fork() start threads in the tests of fork().
                   "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1:die_after_fork=0"}
    wrapper = steady_addresses()
    # All programs with MILLRACE_TSAN=all; without it, those that test threads. Others only use them. The library is not
    # optimized: that costs less to compile than its checks cost to run.
    every = os.environ.get("MILLRACE_TSAN") == "all"

    folder = BUILD / "tsan"
    folder.mkdir(parents=True, exist_ok=True)
    for name, define in (("a correct program is not reported", []), ("a planted race is", ["-DPLANTED_RACE"])):
        program = folder / f"probe{len(define)}"
        leg.run(f"probe: {name}", ["clang++", *WARNINGS, "-O1", "-gline-tables-only", "-fsanitize=thread", *define,
                                   f"-I{prefix}/include", parts / "probe.cpp", "-o", program,
                                   f"-L{prefix}/lib", "-ltbb"])
        output = leg.run("run it", [*wrapper, program], may_fail=True, **environment)
        reported = "WARNING: ThreadSanitizer: data race" in output
        leg.expect(name, None if reported == bool(define) and (leg.returncode == 0) == (not define) else output)

    units = leg.build([*SANITIZED, "-Db_sanitize=thread", "-Dcompiled_optimization=0", f"-Dcpp_args={line_tables()}"],
                      lambda name: name.startswith("unit_") and (
                          every or is_unit_due(name) and name in THREADED_UNITS), CXX="clang++",
                      **environment)
    leg.run_tests(wrapper, units, **environment)


FAST = ("lint", "errors", "fast_unit")   # `sh tests/run.sh fast`: for every commit, at most 12 minutes of one core
LEGS = {leg.__name__: leg for leg in (lint, clang, exact, python, remote, faults, kills, bare, unit, fuzz, tsan,
                                      headers, planted, errors, readme, install, digest, header_only, bench, aarch64,
                                      header_examples, documentation)}
FUNCTIONS = LEGS | {fast_unit.__name__: fast_unit}


def run_leg(leg):
    leg.say(FUNCTIONS[leg.name].__doc__)
    started = time.monotonic()
    try:
        FUNCTIONS[leg.name](leg)
    except (StepFailed, OSError) as problem:
        leg.failed += 1
        leg.write(f"{problem}")
        end = [line for line in leg.output_since(0).splitlines() if not line.startswith("ok ")]
        leg.say_failure(str(problem), end[-10:-1])
    lines = [f"{leg.passed} passed, {leg.failed} failed, {leg.skipped} skipped"
             f" in {time.monotonic() - started:.0f} s, {sum(leg.costs.values()):.0f} s of the processor"]
    if leg.failed:
        end = [line for line in leg.output_since(0).splitlines() if not line.startswith("ok ")][-40:]
        setting = "MILLRACE_LINES=1 " if leg.name in ("clang", "tsan") else ""
        lines = [f"  the end of {leg.log.relative_to(ROOT)}:", *(f"    | {line}" for line in end),
                 f"  to repeat this leg: {setting}sh tests/run.sh {leg.name}", *lines]
    for what, seconds in sorted(leg.costs.items(), key=lambda cost: -cost[1]):
        leg.write(f"{seconds:.1f} s of the processor: {what}")
    leg.say(f"\n{leg.name}: ".join(lines))


def main(names):
    names = [leg for name in names for leg in (FAST if name == "fast" else [name])]
    unknown = [name for name in names if name not in FUNCTIONS]
    if unknown:
        print(f"usage: sh tests/run.sh [LEG...]; fast: {', '.join(FAST)}; without a leg all of them, in this order:")
        for name, leg in LEGS.items():
            print(f"  {name:<13} {leg.__doc__}")
        return 0 if unknown[0] in ("-h", "--help") else 2
    # Other clones and later legs reuse compiled objects.
    os.environ.setdefault("CCACHE_BASEDIR", str(ROOT))
    os.environ.setdefault("CCACHE_NOHASHDIR", "1")

    started = time.monotonic()
    legs = [Leg(name) for name in names or LEGS]
    with ThreadPoolExecutor(LEGS_AT_ONCE) as pool:
        try:
            for done in [pool.submit(run_leg, leg) for leg in legs]:
                done.result()
        except BaseException:
            INTERRUPTED.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise

    for leg in legs:
        if leg.failed:
            print(f"failed: {leg.name} (its log: {leg.log.relative_to(ROOT)})", *leg.failures, sep="\n")
    children, own = (resource.getrusage(who) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF))
    cpu_seconds = sum(usage.ru_utime + usage.ru_stime for usage in (children, own))
    print(f"millrace: {time.monotonic() - started:.0f} s of wall time, {cpu_seconds:.0f} s of processor time")
    total = {count: sum(getattr(leg, count) for leg in legs) for count in ("passed", "failed", "skipped")}
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped", flush=True)
    return 1 if total["failed"] or not sum(total.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
