# The leg "install" of tests/run.sh: what is installed, and projects of others that use it.
import shutil

from checks import ROOT, WARNINGS, StepFailed


def install(leg):
    """what is installed is complete, and consumers build through pkg-config, CMake, as a subproject and by a copy"""
    folder = ROOT / "build" / "install"
    prefix, consumer = folder / "prefix", folder / "consumer"
    for old in (prefix, consumer):
        shutil.rmtree(old, ignore_errors=True)
    leg.build([f"--prefix={prefix}", "-Dtests=disabled", "-Dexamples=disabled", "-Dbench=disabled"])
    leg.run("install", ["meson", "install", "-C", folder])

    ours = {str(path.relative_to(ROOT / "include")) for path in (ROOT / "include" / "millrace").rglob("*.*")
            if path.is_file()}
    theirs = {str(path.relative_to(prefix / "include")) for path in (prefix / "include").rglob("*.*") if path.is_file()}
    leg.expect("every header is installed", "\n".join(sorted(ours ^ theirs)))

    shutil.copytree(ROOT / "tests" / "install", consumer)
    pkg_config_path = str(prefix / "share" / "pkgconfig")
    consume = {"pkg-config": [], "a Meson subproject": ["--force-fallback-for=millrace"]}
    for how, options in consume.items():
        build = consumer / how.replace(" ", "_")
        if options:
            # Only what a clone would hold: no build folder of ours.
            shutil.copytree(ROOT, consumer / "subprojects" / "millrace",
                            ignore=shutil.ignore_patterns("build*", ".git", ".cache", "__pycache__"))
        try:
            leg.run(f"configure a consumer through {how}", ["meson", "setup", *options, build, consumer],
                    PKG_CONFIG_PATH="" if options else pkg_config_path)
            leg.run("build it", ["ninja", "-C", build])
            leg.run("run it", [build / "consumer"])
            leg.expect(f"a consumer through {how}", None)
        except StepFailed as problem:
            leg.expect(f"a consumer through {how}", str(problem))
    through_cmake(leg, prefix, consumer)
    try:
        leg.run("build a consumer with copied headers", [
            "g++", *WARNINGS, f"-I{prefix / 'include'}", consumer / "consumer.cpp", "-ltbb", "-ljpeg", "-larchive",
            "-o", consumer / "copied"])
        leg.run("run it", [consumer / "copied"])
        leg.expect("a consumer with a copy of the headers", None)
    except StepFailed as problem:
        leg.expect("a consumer with a copy of the headers", str(problem))
    flags = leg.run("ask for the flags of text alone", ["pkg-config", "--cflags", "--libs", "millrace-text"],
                    PKG_CONFIG_PATH=pkg_config_path).split("\n")[-2].split()
    try:
        leg.run("build a consumer of text alone", ["g++", *WARNINGS, consumer / "text_consumer.cpp", *flags, "-o",
                                                   consumer / "text"])
        leg.run("run it", [consumer / "text"])
        linked = leg.run("what it is linked to", ["ldd", consumer / "text"])
        leg.expect("a consumer of text alone, without libjpeg", linked if "jpeg" in linked else None)
    except StepFailed as problem:
        leg.expect("a consumer of text alone, without libjpeg", str(problem))
    if not (prefix / "share" / "pkgconfig" / "millrace-cuda.pc").exists():
        return leg.skip("a consumer through pkg-config, with CUDA", "the CUDA toolkit is not there")
    flags = leg.run("ask for the flags with CUDA", ["pkg-config", "--cflags", "--libs", "millrace-cuda"],
                    PKG_CONFIG_PATH=pkg_config_path).split("\n")[-2].split()
    program = consumer / "with_cuda"
    leg.run("build a consumer with CUDA", ["g++", "-std=c++20", consumer / "consumer.cpp", *flags, "-o", program])
    libraries = ":".join(flag[2:] for flag in flags if flag.startswith("-L"))
    leg.run("run it", [program], LD_LIBRARY_PATH=libraries)
    leg.expect("a consumer through pkg-config, with CUDA", None)


def through_cmake(leg, prefix, consumer):
    """A project of CMake, and what it is told where a library is missing or a component is none."""
    build = consumer / "cmake"
    configure = ["cmake", "-S", consumer, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Debug"]
    try:
        leg.run("configure a consumer through CMake", configure)
        leg.run("build it", ["cmake", "--build", build])
        leg.run("run it", [build / "consumer"])
        leg.expect("a consumer through CMake", None)
    except StepFailed as problem:
        leg.expect("a consumer through CMake", str(problem))
    lacks = ["-DCMAKE_DISABLE_FIND_PACKAGE_JPEG=ON", "-B", consumer / "cmake_without_jpeg"]
    told = leg.run("configure it without libjpeg", [*configure, *lacks], may_fail=True)
    leg.expect("CMake says what is missing", None if leg.returncode != 0 and
               "needs JPEG, which is not installed: apt-get install libjpeg-dev" in " ".join(told.split()) else told)
    told = leg.run("configure text alone without libjpeg", [*configure, *lacks, "-DTEXT_ONLY=ON"], may_fail=True)
    leg.expect("text alone needs no libjpeg of CMake", told if leg.returncode != 0 else None)
