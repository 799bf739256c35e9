# The leg "install" of tests/run.sh: the installed files, and users' projects that use them.
import pathlib
import re
import shutil
import subprocess

from checks import ROOT, WARNINGS, StepFailed, have_changed, is_turn
from contract.install.library import consumers_of_the_library, library_is_not_there

ADAPTERS = {"feed_rows": "libmicrohttpd", "json": "simdjson", "opencv": "OpenCV", "python": "Python.h",
            "remote": "libcurl", "sentencepiece": "SentencePiece", "sndfile": "libsndfile", "soxr": "libsoxr",
            "tbb": "oneTBB", "torch": "LibTorch", "webp": "libwebp"}
# Consumers of the compiled library, of copied headers and of CUDA are consumer.cpp. That of the other ways to find the
# headers costs less.
PARTS = "consumer.cpp" if have_changed() else "parts_consumer.cpp"


def install(leg):
    """the installation is complete; users' projects build with pkg-config, CMake, as a subproject and with a copy"""
    folder = ROOT / "build" / "install"
    prefix, consumer = folder / "prefix", folder / "consumer"
    for old in (prefix, consumer):
        shutil.rmtree(old, ignore_errors=True)
    # The same compiled library as in the leg unit, so that ccache has it.
    leg.build([f"--prefix={prefix}", "-Dtests=disabled", "-Dexamples=disabled", "-Dbench=disabled",
               "-Dcompiled=enabled", "-Dcompiled_optimization=1", "-Ddebug=false"], CXX="g++")
    leg.run("install", ["meson", "install", "-C", folder])

    package = next(prefix.rglob("py.typed"), prefix / "py.typed").parent
    for kind, ours, theirs in (("header", ROOT / "include" / "millrace", prefix / "include" / "millrace"),
                               ("file of the Python package", ROOT / "include" / "python" / "millrace", package)):
        leg.expect(f"every {kind} is installed", "\n".join(sorted(files_of(ours) ^ files_of(theirs))))

    shutil.copytree(ROOT / "tests" / "contract" / "install", consumer)
    pkg_config_path = ":".join(str(path) for path in sorted(prefix.rglob("pkgconfig")))
    consume = {"pkg-config": [], "a Meson subproject": ["--force-fallback-for=millrace"]}
    for how, options in consume.items():
        build = consumer / how.replace(" ", "_")
        if options:
            # Only the files of a clone, without build folders.
            shutil.copytree(ROOT, consumer / "subprojects" / "millrace",
                            ignore=shutil.ignore_patterns("build*", ".git", ".cache", "__pycache__"))
        found_through = {"PKG_CONFIG_PATH": "", "CXX": "clang++"} if options else {"PKG_CONFIG_PATH": pkg_config_path}
        try:
            leg.run(f"configure a consumer through {how}", [
                "meson", "setup", *options, f"-Dsource={PARTS}", build, consumer], **found_through)
            leg.run("build it", ["ninja", "-C", build])
            leg.run("run it", [build / "consumer"])
            leg.expect(f"a consumer through {how}", None)
        except StepFailed as problem:
            leg.expect(f"a consumer through {how}", str(problem))
    output = leg.run("configure a Meson subproject of text alone", [
        "meson", "setup", "--force-fallback-for=millrace", "-Dtext_only=true", "-Dmillrace:pictures=disabled",
        consumer / "text_subproject", consumer], may_fail=True, PKG_CONFIG_PATH="")
    leg.expect("text alone, as a subproject, needs no libjpeg",
               output if leg.returncode != 0 or "jpeg" in output else None)
    through_cmake(leg, prefix, consumer)
    as_a_part_by_cmake(leg, consumer)
    consumers_of_the_library(leg, prefix, consumer, pkg_config_path)
    if is_turn(1):
        leg.run_checks("contract/install/plug_ins.py", "contract/install/flags.py")
    try:
        leg.run("build a consumer with copied headers", [
            "g++", *WARNINGS, f"-I{prefix / 'include'}", consumer / "consumer.cpp", "-ltbb", "-ljpeg", "-larchive",
            "-o", consumer / "copied"])
        leg.run("run it", [consumer / "copied"])
        leg.expect("a consumer with a copy of the headers", None)
    except StepFailed as problem:
        leg.expect("a consumer with a copy of the headers", str(problem))
    flags = leg.run("print the flags of text alone", ["pkg-config", "--cflags", "--libs", "millrace-text"],
                    PKG_CONFIG_PATH=pkg_config_path).split("\n")[-2].split()
    no_jpeg = without(folder / "no_jpeg", "jpeglib.h", "jerror.h", "turbojpeg.h")
    try:
        leg.run("build a consumer of text alone", ["g++", *WARNINGS, *no_jpeg, consumer / "text_consumer.cpp", *flags,
                                                   "-o", consumer / "text"])
        leg.run("run it", [consumer / "text"])
        linked = leg.run("list its libraries", ["ldd", consumer / "text"])
        leg.expect("a consumer of text alone, without libjpeg", linked if "jpeg" in linked else None)
    except StepFailed as problem:
        leg.expect("a consumer of text alone, without libjpeg", str(problem))
    says_what_is_missing(leg, folder, prefix)
    as_the_readme_says(leg, folder / "readme", prefix)
    without_doctest(leg, folder / "no_doctest")
    library_is_not_there(leg, consumer, folder / "no_doctest")
    if not (prefix / "share" / "pkgconfig" / "millrace-cuda.pc").exists():
        return leg.skip("a consumer through pkg-config, with CUDA", "the CUDA toolkit is not installed")
    flags = leg.run("print the flags with CUDA", ["pkg-config", "--cflags", "--libs", "millrace-cuda"],
                    PKG_CONFIG_PATH=pkg_config_path).split("\n")[-2].split()
    program = consumer / "with_cuda"
    leg.run("build a consumer with CUDA", ["g++", "-std=c++20", consumer / "consumer.cpp", *flags, "-o", program])
    libraries = ":".join(flag[2:] for flag in flags if flag.startswith("-L"))
    leg.run("run it", [program], LD_LIBRARY_PATH=libraries)
    leg.expect("a consumer through pkg-config, with CUDA", None)


def files_of(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*.*")
            if path.is_file() and "__pycache__" not in path.parts}


def without(folder, *hidden):
    """Flags with which g++ finds its usual headers except these files and folders."""
    shutil.rmtree(folder, ignore_errors=True)
    output = subprocess.run(["g++", "-E", "-v", "-x", "c++", "/dev/null"], capture_output=True, text=True).stderr
    flags = ["-nostdinc", "-nostdinc++"]
    for place in re.search(r"<\.\.\.> search starts here:\n(.*?)End of search", output, re.DOTALL)[1].split():
        links = folder / str(len(flags))
        links.mkdir(parents=True)
        for entry in pathlib.Path(place).iterdir():
            if entry.name not in hidden:
                (links / entry.name).symlink_to(entry)
        flags += ["-isystem", links]
    return flags


def says_what_is_missing(leg, folder, prefix):
    """Without a library, the first error names it and its package."""
    nothing = without(folder / "nothing", "ATen", "archive.h", "curl", "jpeglib.h", "microhttpd.h", "oneapi",
                      "opencv2", "python3.11", "python3.13", "sentencepiece_processor.h", "simdjson.h", "sndfile.h",
                      "soxr.h", "webp", "zlib.h")
    libraries = {"io/tar/read/archive.hpp": "libarchive", "io/tar/read/gzip_inflater.hpp": "zlib",
              "work/schedule/arena_executor.hpp": "oneTBB", "image/jpeg/libjpeg/libjpeg.hpp": "libjpeg"}
    libraries |= {f"adapt/{name}.hpp": library for name, library in ADAPTERS.items()}
    for header, library in libraries.items():
        includer = folder / "includer.cpp"
        includer.write_text(f"#include <millrace/{header}>\n")
        output = leg.run(f"include {header} without {library}", [
            "g++", "-std=c++20", "-E", *nothing, f"-I{prefix / 'include'}", includer, "-o", "/dev/null"], may_fail=True)
        # The first line has the message. Other headers of the same library may repeat it.
        errors = [line for line in output.splitlines() if "error: " in line]
        leg.expect(f"{header} says that {library} is missing", None if errors and re.search(
            rf'#error "millrace: {library} is not installed.*apt-get install (lib|zlib|py)', errors[0]) else output)


def as_the_readme_says(leg, folder, prefix):
    """The README's lines for CMake and pkg-config, unchanged."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(ROOT / "tests" / "contract" / "install" / PARTS, folder / "trainer.cpp")
    readme = (ROOT / "README.md").read_text()
    by_cmake = "".join(re.findall(r"^```cmake\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL))
    by_pkg_config = "\n".join(re.findall(r"^g\+\+ .*$", readme, re.MULTILINE))
    packages = set("".join(re.findall(r"^apt-get install ([^#\n]*)", readme, re.MULTILINE)).split())
    needed = {"g++", "meson", "ninja-build", "pkg-config", "cmake"}   # by the README's next lines
    needed |= set(leg.run("the packages of quickstart", ["sh", "-c", f". '{ROOT}/.ci/setup.sh'; packages_for build"])
                  .split("\n")[-2].split()) - {"ccache"}
    leg.expect("the README's apt line installs the packages of its next lines", " ".join(needed - packages))
    (folder / "CMakeLists.txt").write_text(by_cmake)
    ways = {"CMake": f"cmake -B by_cmake -DCMAKE_PREFIX_PATH={prefix} && cmake --build by_cmake && by_cmake/trainer",
            "pkg-config": f"{by_pkg_config}\n./trainer"}
    for how, commands in ways.items():
        output = leg.run(f"the README's commands for {how}", ["sh", "-euc", f"cd '{folder}'\n{commands}"],
                         may_fail=True, PKG_CONFIG_PATH=":".join(map(str, prefix.rglob("pkgconfig"))))
        leg.expect(f"the README's commands for {how}", output if leg.returncode != 0 else None)


def without_doctest(leg, folder):
    """Without doctest and a network, Millrace can still be configured, and its installation compiles nothing."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "pkgconfig").mkdir(parents=True)
    places = leg.run("pkg-config's search path", ["pkg-config", "--variable=pc_path", "pkg-config"]).split("\n")[-2]
    for place in reversed(places.split(":")):
        for file in pathlib.Path(place).glob("*.pc"):
            if file.name != "doctest.pc":
                (folder / "pkgconfig" / file.name).unlink(missing_ok=True)
                (folder / "pkgconfig" / file.name).symlink_to(file)
    (folder / "no_cmake.ini").write_text("[binaries]\ncmake = '/bin/false'\n")   # CMake would find doctest
    nowhere = "http://127.0.0.1:9"
    setup = ["meson", "setup", "--native-file", folder / "no_cmake.ini", f"--prefix={folder / 'prefix'}"]
    hidden = {"PKG_CONFIG_LIBDIR": str(folder / "pkgconfig"), "http_proxy": nowhere, "https_proxy": nowhere}
    output = leg.run("configure without doctest", [*setup, folder / "auto"], may_fail=True, **hidden)
    leg.expect("tests at auto are disabled if doctest is not installed", None if leg.returncode == 0 and
               "the tests are left out: doctest is not installed" in output and "ownload" not in output else output)
    output = leg.run("list the compilations", ["ninja", "-C", folder / "auto", "-n"], may_fail=True)
    leg.expect("installing compiles nothing", None if "no work to do" in output else output)
    leg.run("install it", ["meson", "install", "-C", folder / "auto", "--no-rebuild"])
    output = leg.run("configure enabled tests", [*setup, "--wrap-mode=nodownload", "-Dtests=enabled",
                                                        folder / "enabled"], may_fail=True, **hidden)
    leg.expect("enabled tests use the wrap", None if leg.returncode != 0 and "ownload" in output else output)


def as_a_part_by_cmake(leg, consumer):
    """Millrace's sources are part of the project: the copy of the Meson subproject."""
    for how, component in (("add_subdirectory", "millrace"), ("FetchContent", "text")):
        build = consumer / f"cmake_{how}"
        output = leg.run(f"configure a consumer through {how}", [
            "cmake", "-S", consumer, "-B", build, f"-DFROM={how}", f"-DCOMPONENT={component}",
            f"-DMILLRACE_FOLDER={consumer / 'subprojects' / 'millrace'}", "-DCMAKE_CXX_COMPILER=clang++",
            f"-DSOURCE={PARTS}"], may_fail=True)
        if leg.returncode == 0:
            output = leg.run("build it and run it", ["sh", "-c", 'cmake --build "$0" && "$0"/consumer', build],
                           may_fail=True)
        leg.expect(f"a consumer through {how}", output if leg.returncode != 0 else None)


def consumer_of_remote_names(leg, prefix, consumer, also):
    """Header-only through CMake or pkg-config, in turn, or with `also` the compiled library through both."""
    build, package = consumer / f"cmake_remote{also}", f"millrace-{also and also + '-'}remote"
    if also or is_turn(0):
        output = leg.run("build a consumer of remote names", [
            "sh", "-c", f"cmake -S {consumer} -B {build} -DCMAKE_PREFIX_PATH={prefix} -DCOMPONENT=remote "
                        f"-DALSO={also} && cmake --build {build} && {build}/consumer"], may_fail=True)
        leg.expect(f"CMake's component remote {also}".rstrip(), output if leg.returncode != 0 else None)
    if also or is_turn(1):
        output = leg.run("build it through pkg-config", [
            "sh", "-c", f"g++ {' '.join(WARNINGS)} -O0 {consumer}/remote_consumer.cpp -o {consumer}/{package} "
                        f"$(pkg-config --cflags --libs {package}) && {consumer}/{package}"],
            may_fail=True, PKG_CONFIG_PATH=str(prefix / "share" / "pkgconfig"))
        leg.expect(f"pkg-config's {package}", output if leg.returncode != 0 else None)


def through_cmake(leg, prefix, consumer):
    """A project with CMake, and its messages for a missing library or an unknown component."""
    build = consumer / "cmake"
    configure = ["cmake", "-S", consumer, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Debug",
                 "-DCMAKE_CXX_COMPILER=clang++", f"-DSOURCE={PARTS}"]
    try:
        leg.run("configure a consumer through CMake", configure)
        leg.run("build it", ["cmake", "--build", build])
        leg.run("run it", [build / "consumer"])
        leg.expect("a consumer through CMake", None)
    except StepFailed as problem:
        leg.expect("a consumer through CMake", str(problem))
    lacks = ["-DCMAKE_DISABLE_FIND_PACKAGE_JPEG=ON", "-B", consumer / "cmake_without_jpeg"]
    output = leg.run("configure it without libjpeg", [*configure, *lacks], may_fail=True)
    leg.expect("CMake names the missing library", None if leg.returncode != 0 and
               "needs JPEG, which is not installed: apt-get install libjpeg-dev" in
               " ".join(output.split()) else output)
    output = leg.run("configure text alone without libjpeg", [*configure, *lacks, "-DCOMPONENT=text"], may_fail=True)
    leg.expect("text alone does not need libjpeg with CMake", output if leg.returncode != 0 else None)
    if (prefix / "share" / "pkgconfig" / "millrace-remote.pc").exists():
        for also in ("", "compiled"):
            consumer_of_remote_names(leg, prefix, consumer, also)
    if (prefix / "share" / "pkgconfig" / "millrace-cuda.pc").exists():
        output = leg.run("configure it with CUDA", [*configure, "-B", consumer / "cmake_cuda", "-DCOMPONENT=cuda"],
                       may_fail=True)
        leg.expect("CMake's component cuda", output if leg.returncode != 0 else None)
