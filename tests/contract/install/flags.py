# Programs whose files are compiled with different flags: one batch stream, the same bytes.
#
#   python3 tests/contract/install/flags.py            # two files of different flags, -fno-exceptions and libc++
#   python3 tests/contract/install/flags.py --long     # some 40 builds, about 30 minutes of CPU time
#   python3 tests/contract/install/flags.py --long lto # those with `lto` in their names
#
# A build is skipped if its compiler, standard library or linker is missing.
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import ROOT, WARNINGS, Report, launcher, library_flags

HERE = pathlib.Path(__file__).resolve().parent / "flags"
INCLUDE = f"-I{ROOT / 'include'}"
PLAIN = "-std=c++20 -O1"
# name: (compiler, flags of the first loader, flags of the second one or None, flags of main.cpp, flags of the linker)
SHORT = {
    "no RTTI and hidden symbols with _GLIBCXX_DEBUG": (
        "clang++", "-std=c++20 -O0 -fno-rtti -fvisibility=hidden", "-std=c++20 -O0 -D_GLIBCXX_DEBUG", "-std=c++11", ""),
}
LONG = {
    "reference": ("g++", PLAIN, None, "-std=c++11", ""),
    "O0": ("g++", "-std=c++20 -O0", None, "-std=c++17", ""),
    "O3 and native": ("g++", "-std=c++20 -O3 -march=native", None, "", ""),
    "fast math": ("g++", "-std=c++20 -O3 -ffast-math -mavx2 -mfma", None, "-ffast-math", "-ffast-math"),
    "Ofast": ("g++", "-std=c++20 -Ofast -march=native", None, "-Ofast", "-Ofast"),
    "unsafe math": ("g++", "-std=c++20 -O3 -funsafe-math-optimizations", None, "", ""),
    "reciprocal math": ("g++", "-std=c++20 -O2 -freciprocal-math -fno-signed-zeros", None, "", ""),
    "C++23": ("g++", "-std=c++23 -O1", None, "-std=c++17", ""),
    "gnu++20": ("g++", "-std=gnu++20 -O2", None, "-std=gnu++17", ""),
    "no RTTI": ("g++", f"{PLAIN} -fno-rtti", None, "-fno-rtti -fno-exceptions", ""),
    "assertions": ("g++", f"{PLAIN} -D_GLIBCXX_ASSERTIONS", None, "", ""),
    "debug mode everywhere": ("g++", f"{PLAIN} -D_GLIBCXX_DEBUG", None, "-D_GLIBCXX_DEBUG", ""),
    "debug mode in one file": ("g++", f"{PLAIN} -D_GLIBCXX_DEBUG", PLAIN, "", ""),
    "debug mode in the other file": ("g++", PLAIN, f"{PLAIN} -D_GLIBCXX_DEBUG", "", ""),
    "old strings in one file": ("g++", f"{PLAIN} -D_GLIBCXX_USE_CXX11_ABI=0", PLAIN, "", ""),
    "short enums in one file": ("g++", f"{PLAIN} -fshort-enums", PLAIN, "", ""),
    "NDEBUG in one file": ("g++", f"{PLAIN} -DNDEBUG", PLAIN, "", ""),
    "C++23 with C++20": ("g++", "-std=c++23 -O1", PLAIN, "", ""),
    "native with none": ("g++", f"{PLAIN} -march=native", PLAIN, "", ""),
    "none with native": ("g++", PLAIN, f"{PLAIN} -march=native", "", ""),
    "avx2 with none": ("g++", f"{PLAIN} -mavx2 -mfma", PLAIN, "", ""),
    "fast math with none": ("g++", f"{PLAIN} -ffast-math", PLAIN, "", ""),
    "none with fast math": ("g++", PLAIN, f"{PLAIN} -ffast-math", "", ""),
    "lto": ("g++", f"{PLAIN} -flto", None, "-flto", "-O2 -flto=2"),
    "lto of two kinds": ("g++", f"{PLAIN} -flto", f"{PLAIN} -flto -march=native", "-flto", "-O2 -flto=2"),
    "static runtime": ("g++", PLAIN, None, "", "-static-libstdc++ -static-libgcc"),
    "hidden": ("g++", f"{PLAIN} -fPIC -fvisibility=hidden -fvisibility-inlines-hidden", PLAIN, "", ""),
    "hardened": ("g++", f"{PLAIN} -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fcf-protection", None, "", "-pie"),
    "unsigned char": ("g++", f"{PLAIN} -funsigned-char", None, "", ""),
    "asan": ("g++", f"{PLAIN} -fsanitize=address,undefined", None, "-fsanitize=address,undefined",
             "-fsanitize=address,undefined"),
    "asan in main.cpp alone": ("g++", PLAIN, None, "-fsanitize=address", "-fsanitize=address"),
    "clang": ("clang++", PLAIN, None, "", ""),
    "clang O3 and native": ("clang++", "-std=c++20 -O3 -march=native", None, "", ""),
    "clang C++23": ("clang++", "-std=c++2b -O2", None, "", ""),
    "clang Ofast": ("clang++", "-std=c++20 -Ofast -march=native", None, "", ""),
    "clang fast math": ("clang++", "-std=c++20 -O2 -ffast-math", PLAIN, "-ffast-math", "-ffast-math"),
    "clang no RTTI": ("clang++", f"{PLAIN} -fno-rtti", None, "", ""),
    "clang debug mode in one file": ("clang++", f"{PLAIN} -D_GLIBCXX_DEBUG", PLAIN, "", ""),
    "clang thin lto": ("clang++", f"{PLAIN} -flto=thin", None, "-flto=thin", "-flto=thin -fuse-ld=lld"),
    "clang libc++": ("clang++", f"{PLAIN} -stdlib=libc++", None, "-stdlib=libc++", "-stdlib=libc++"),
}


def output_of(command, folder):
    """The exit status and output of a command."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          cwd=folder, timeout=1800)
    return done.returncode, done.stdout


def works_here(compiler, flags, folder):
    """Whether the compiler, its standard library and its linker are installed."""
    probe = folder / "probe.cpp"
    probe.write_text("#include <string>\nint main() { return static_cast<int>(std::string().size()); }\n")
    return bool(shutil.which(compiler)) and output_of([compiler, probe, *flags, "-o", folder / "probe"], folder)[0] == 0


def program(folder, compiler, first, second, main, link):
    """Builds and runs one. Returns its output, and its problem or None."""
    loaders = {"first": first} | ({"second": second} if second else {})
    objects = []
    for name, flags in loaders.items():
        objects.append(folder / f"{name}.o")
        writes = ["-DWRITES"] if name == "first" else []
        status, printed = output_of([*launcher(), compiler, *flags.split(), f"-DLOADER={name}_loader", *writes, INCLUDE,
                                *library_flags("--cflags"), "-c", HERE / "loader.cpp", "-o", objects[-1]], folder)
        if status != 0:
            return "", f"{name} does not compile\n" + printed[-2000:]
    two = ["-DTWO"] if second else []
    status, printed = output_of([compiler, *main.split(), *two, HERE / "main.cpp", *objects, *link.split(), "-o",
                            folder / "program", *library_flags("--libs"), "-pthread"], folder)
    if status != 0:
        return "", "it does not link\n" + printed[-2000:]
    status, printed = output_of([folder / "program", folder, f"{folder}/{{0..1}}.tar"], folder)
    return printed, None if status == 0 else f"exit status {status}\n{printed[-2000:]}"


def disabled_exceptions(report, folder):
    """One message, and no errors inside the library."""
    source = folder / "no_exceptions.cpp"
    source.write_text("#include <millrace/millrace.hpp>\n")
    for compiler in ("g++", "clang++"):
        _, printed = output_of([compiler, "-std=c++20", "-fno-exceptions", INCLUDE, "-fsyntax-only", source], folder)
        right = "millrace: exceptions are required: compile this file without -fno-exceptions" in printed
        report.add(f"{compiler} says that -fno-exceptions is the problem",
                   None if right and len(printed.splitlines()) <= 16 else printed[:2000])


def other_standard_library(report, folder):
    """Every umbrella compiles with its definitions."""
    flags = ["-std=c++20", "-stdlib=libc++"]
    if not works_here("clang++", flags, folder):
        return report.skip("clang++ -stdlib=libc++", "libc++ is missing (apt-get install libc++-dev libc++abi-dev)")
    source = folder / "umbrellas.cpp"
    source.write_text("".join(f"#include <millrace/{header.name}>\n"
                              for header in sorted((ROOT / "include" / "millrace").glob("*.hpp"))
                              if header.name != "src.hpp"))
    command = ["clang++", *flags, *WARNINGS, INCLUDE, *library_flags("--cflags"), "-fsyntax-only", source]
    status, printed = output_of(command, folder)
    report.add("clang++ -stdlib=libc++", printed[:2000] if status != 0 else None)


def main():
    report = Report()
    long, names = "--long" in sys.argv, [word for word in sys.argv[1:] if not word.startswith("--")]
    builds = {name: build for name, build in (LONG if long else SHORT).items()
              if name == "reference" or not names or any(word in name for word in names)}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        expected = None
        for build, (compiler, first, second, main_flags, link) in builds.items():
            if not works_here(compiler, [*main_flags.split(), *link.split()], folder):
                report.skip(build, f"{compiler} cannot build this here")
                continue
            printed, problem = program(folder, compiler, first, second, main_flags, link)
            expected = expected or (None if problem else printed)
            report.add(build, problem or (None if printed == expected else
                                          f"it printed {printed.strip()}, the first one {expected.strip()}"))
        if not long:
            disabled_exceptions(report, folder)
            other_standard_library(report, folder)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
