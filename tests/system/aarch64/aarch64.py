# Checks on an emulated aarch64: kernels, images, a session and the number of instructions per image.
#
#   python3 tests/system/aarch64/aarch64.py                    # the leg aarch64: the parts that are due (checks.py)
#   python3 tests/system/aarch64/aarch64.py kernels session    # these parts
#   python3 tests/system/aarch64/aarch64.py --all unit_read    # unit tests in a Meson build; without names all of them
#
# Each part compiles one program with g++ or clang++ and runs it with qemu-aarch64, two at a time. `images` compares
# planes and pixels of 1,000 random images with those of this machine, where the planes are compared with libjpeg's.
# `session` compares a session's digest with this machine's, each with its own index and with the other's.
# `instructions` compares the count of bench/instructions.sh with the stored one. Needs Debian's g++-aarch64-linux-gnu
# and qemu-user, and downloads arm64 libraries (.ci/sysroot.sh). Without them, the checks are skipped, by name.
import os
import pathlib
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests"))
import join
from checks import JOBS, QUICK_COMPILER, WARNINGS, Broken, Report, StepFailed, is_turn, launcher, library_flags
from leg import BUILD, DOCTEST_LINE, Leg, failed_assertions

HERE = pathlib.Path(__file__).parent
FOLDER = BUILD / "aarch64"
UNIT = ROOT / "tests" / "unit"
GCC, CLANG = ["aarch64-linux-gnu-g++"], ["clang++", "--target=aarch64-linux-gnu"]
PACKAGES = {"aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu", "qemu-aarch64": "qemu-user", "clang++": "clang"}
LIBRARIES = ["-ltbb", "-ljpeg", "-larchive", "-lz"]
# Kernels by compiler. Both compile the decoder and the resizer: clang++ for `images`, g++ for `instructions`.
# The tests of the decoder are due at every second commit, and at the others `images`.
JPEG_KERNELS = ["simd/*_test.cpp", "image/resize/*_test.cpp"]
JPEG_DECODER = ["image/jpeg/baseline/*_test.cpp", "image/jpeg/progressive/*_test.cpp"]
OTHER_KERNELS = ["base/checksums_test.cpp", "device/host_batches_test.cpp",
                 "image/augment/photometric_runner_test.cpp", "image/color/*_test.cpp",
                 "image/png/inflate_test.cpp", "image/png/unfilter_test.cpp", "image/warp/*_test.cpp"]
# They compare scalar code with definitions, as the tests of this machine do.
SCALAR = ["*in real numbers*", "*weights of every output*", "bicubic weights*", "tables that are built in runs*",
          "samples of a smaller size*", "rows computed from planes*portable code", "an image with a turned view*"]
# qemu needs about ten times as long as this machine, whose legs test more.
BRIEF = {"MILLRACE_BRIEF": "1", "MILLRACE_TEST_PICTURES": "200", "MILLRACE_TEST_DAMAGED": "200"}
ALL_OPTIONS = ["-Dcuda=disabled", "-Dtests=enabled", "-Djoined_tests=true", "-Dexamples=disabled", "-Dbench=disabled",
               "-Doptimization=0", "-Ddebug=false", "-Dcompiled_optimization=1"]
ALL_PACKAGES = ["libcurl4-openssl-dev", "libssl-dev", "libwebp-dev", "libsimdjson-dev", "libsentencepiece-dev"]


class Skipped(Exception):
    """The reason why a part cannot run here."""


def succeed(*command, **environment):
    """The output of a command. Raises Broken if it fails."""
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL, env=os.environ | environment, errors="replace")
    if done.returncode != 0:
        end = failed_assertions(done.stdout) or done.stdout.splitlines()[-20:]
        raise Broken(f"exit status {done.returncode}: {' '.join(map(str, command))[:200]}\n" + "\n".join(end[:30]))
    return done.stdout


def built(program, compiler, level, sources, cflags, libs):
    """Builds a program header-only: the compiled library needs more time than any of these programs."""
    objects = []
    for source in sources:
        objects.append(program.with_name(f"{program.name}.{source.stem}.o"))
        succeed(*launcher(), *compiler, *WARNINGS, level, f"-I{ROOT / 'include'}", f"-I{ROOT / 'tests'}", *cflags,
                "-c", source, "-o", objects[-1])
    succeed(*compiler, *objects, "-o", program, *libs, "-pthread")
    return program


class Here:
    """This machine."""

    @staticmethod
    def program(name, level, sources):
        return built(FOLDER / f"{name}.here", [QUICK_COMPILER], level, sources, library_flags("--cflags"),
                     library_flags("--libs"))


class Machine:
    """The emulated processor: its compilers and libraries."""

    def __init__(self, *packages):
        missing = [tool for tool in PACKAGES if not shutil.which(tool)]
        if missing:
            raise Skipped(f"there is no {missing[0]} (apt-get install {PACKAGES[missing[0]]})")
        fetched = subprocess.run(["sh", ROOT / ".ci" / "sysroot.sh", *packages], capture_output=True, text=True)
        if fetched.returncode != 0:
            raise Skipped(fetched.stderr.strip().rpartition("\n")[2].removeprefix("millrace: "))
        self.sysroot = pathlib.Path(fetched.stdout.split("\n")[-2])
        parts = [self.sysroot / folder / "aarch64-linux-gnu" for folder in ("usr/lib", "lib")]
        self.cflags = [f"-isystem{self.sysroot / 'usr/include'}",
                       f"-isystem{self.sysroot / 'usr/include/aarch64-linux-gnu'}"]
        self.libs = [*(f"-L{part}" for part in parts), *(f"-Wl,-rpath-link,{part}" for part in parts)]
        self.emulator = ["qemu-aarch64", "-L", self.sysroot]

    def program(self, name, compiler, level, sources):
        return built(FOLDER / name, compiler, level, sources, self.cflags, [*self.libs, *LIBRARIES])

    def unit_tests(self, name, compiler, level, patterns, without=()):
        """Joins the test files into one program, runs its other cases, and returns doctest's counts."""
        sources = sorted({source for pattern in patterns for source in UNIT.glob(pattern)})
        joined = FOLDER / f"{name}.cpp"
        text = join.joined(sources, ROOT, FOLDER)
        if not joined.exists() or joined.read_text() != text:
            joined.write_text(text)
        program = self.program(name, compiler, level, [joined, ROOT / "tests" / "main.cpp"])
        printed = succeed(*self.emulator, program, f"-tce={','.join(without)}", **BRIEF)
        passed, failed, _ = map(int, DOCTEST_LINE.findall(printed)[-1])   # those without were not skipped
        return passed, failed, 0


def jpeg_kernels(machine):
    decoder = JPEG_DECODER if is_turn(1) else []
    return machine.unit_tests("jpeg_kernels", GCC, "-O1", JPEG_KERNELS + decoder, SCALAR)


def other_kernels(machine):
    return machine.unit_tests("other_kernels", CLANG, "-O1", OTHER_KERNELS)


def wake_ups(machine):
    return machine.unit_tests("wake_ups", CLANG, "-O0", ["work/segment/serial_segment_test.cpp"])


def images(machine):
    on_host = Here.program("write_cases", "-O1", [HERE / "write_cases.cpp"])
    cases = FOLDER / "cases"
    succeed(on_host, cases, "1000")
    program = machine.program("check_cases", CLANG, "-O1", [HERE / "check_cases.cpp"])
    printed = succeed(*machine.emulator, program, cases)
    return tuple(map(int, re.findall(r"(\d+) passed, (\d+) failed, (\d+) skipped", printed)[-1]))


def session(machine):
    there = [*machine.emulator, machine.program("session", CLANG, "-O0", [HERE / "session.cpp"])]
    here = [Here.program("session", "-O0", [HERE / "session.cpp"])]
    shards = FOLDER / "session_shards"
    expected, problems = None, []
    # The second run of each pair uses the index of the first.
    for first, second in ((there, here), (here, there)):
        shutil.rmtree(shards, ignore_errors=True)
        shards.mkdir()
        succeed(*here, "write", shards)
        for command in (first, second):
            printed = succeed(*command, "run", shards)
            expected = expected or printed
            if printed != expected:
                problems.append(f"{'aarch64' if command is there else 'this machine'} printed\n{printed}"
                                f"and not\n{expected}")
    if problems:
        raise Broken("\n".join(problems))
    return 4, 0, 0


def instructions(_):
    printed = succeed("sh", ROOT / "bench" / "instructions.sh", "--check")
    counts = tuple(map(int, re.findall(r"(\d+) passed, (\d+) failed, (\d+) skipped", printed)[-1]))
    if counts[2]:
        raise Skipped(printed.splitlines()[0].removeprefix("skipped "))
    return counts


PARTS = {part.__name__: part for part in (jpeg_kernels, other_kernels, session, images, instructions, wake_ups)}


def run_parts(names):
    report = Report()
    try:
        machine = Machine()
    except Skipped as reason:
        report.skip("aarch64", reason)
        return report.close()

    def outcome(name):
        try:
            return PARTS[name](machine)
        except (Broken, Skipped) as problem:
            return problem

    with ThreadPoolExecutor(JOBS) as pool:
        for name, result in zip(names, pool.map(outcome, names)):
            if isinstance(result, Skipped):
                report.skip(name, result)
            elif isinstance(result, Broken):
                report.add(name, str(result))
            else:
                print(f"ok      {name}: {result[0]} passed", flush=True)
                report.passed, report.skipped = report.passed + result[0], report.skipped + result[2]
    return report.close()


def quoted(parts):
    return "[" + ", ".join(f"'{part}'" for part in parts) + "]"


def run_all(names):
    """Cross-compiles unit tests with Meson, and runs them."""
    leg = Leg("aarch64_all")
    try:
        machine = Machine(*ALL_PACKAGES)
    except Skipped as reason:
        leg.skip("aarch64", reason)
        print("0 passed, 0 failed, 1 skipped")
        return 0
    libraries = machine.sysroot / "usr" / "lib" / "aarch64-linux-gnu"
    # Debian's doctest only has a file for CMake.
    (FOLDER / "doctest.pc").write_text("Name: doctest\nDescription: unit tests\nVersion: 2.4.9\n")
    cross = FOLDER / "cross.ini"
    cross.write_text(f"""[binaries]
cpp = {quoted([*launcher(), *CLANG])}
c = {quoted([*launcher(), 'clang', CLANG[1]])}
ar = 'aarch64-linux-gnu-ar'
strip = 'aarch64-linux-gnu-strip'
pkgconfig = 'pkg-config'
exe_wrapper = {quoted(machine.emulator)}
[properties]
sys_root = '{machine.sysroot}'
pkg_config_libdir = {quoted([libraries / 'pkgconfig', machine.sysroot / 'usr/share/pkgconfig', FOLDER])}
[built-in options]
cpp_args = {quoted(machine.cflags)}
cpp_link_args = {quoted(machine.libs)}
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'armv8-a'
endian = 'little'
""")
    try:
        programs = leg.build([*ALL_OPTIONS, "--cross-file", str(cross)],
                             lambda name: name.startswith("unit_") and (not names or name in names))
        leg.run_tests(tests=programs, **BRIEF)
    except StepFailed as problem:
        leg.failed += 1
        leg.say(f"  FAILED {problem}; see {leg.log.relative_to(ROOT)}")
    print(f"{leg.passed} passed, {leg.failed} failed, {leg.skipped} skipped")
    return 1 if leg.failed else 0


def main(names):
    os.environ.setdefault("CCACHE_BASEDIR", str(ROOT))
    os.environ.setdefault("CCACHE_NOHASHDIR", "1")
    os.environ.setdefault("CCACHE_DEPEND", "1")
    FOLDER.mkdir(parents=True, exist_ok=True)
    if names and names[0] == "--all":
        return run_all(names[1:])
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        print(f"unknown part {unknown[0]}; the parts are: {', '.join(PARTS)}")
        return 2
    in_turn = {"images": 0, "wake_ups": 0, "session": 1}
    return run_parts(names or [name for name in PARTS if name not in in_turn or is_turn(in_turn[name])])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
