# Users' programs with the compiled library, with all ways of finding it; and programs that must not link.
import re
import shutil

from checks import COMPILED, COMPILERS, ROOT, WARNINGS, StepFailed, compiled_library, have_changed, is_turn, launcher

HERE = ROOT / "tests" / "contract" / "install"
LIBRARIES = ["-ltbb", "-ljpeg", "-larchive", "-lz"]


def due_compilers():
    """One, in turn with each commit; both with MILLRACE_CHECKS=all."""
    return COMPILERS if have_changed() else [COMPILERS[is_turn(1)]]


def consumers_of_the_library(leg, prefix, consumer, pkg_config_path):
    """All but the subproject link an existing library; clang++ compiles that of the subproject."""
    ways = {"pkg-config": through_pkg_config, "CMake": through_cmake, "a Meson subproject": through_a_subproject,
            "a copy": by_a_copy}
    if not is_turn(0):
        del ways["a Meson subproject"]   # clang++ compiles the library, as in by_a_copy()
    for how, build in ways.items():
        name = f"a consumer of the compiled library through {how}"
        try:
            build(leg, prefix, consumer, pkg_config_path)
            leg.expect(name, None)
        except StepFailed as problem:
            leg.expect(name, str(problem))
    for compiler in due_compilers():
        two_files(leg, prefix, compiler)


def build_and_run(leg, folder, command, **environment):
    leg.run("build it", command)
    leg.run("run it", [folder / "consumer"], **environment)


def through_pkg_config(leg, prefix, consumer, pkg_config_path):
    build = consumer / "pkg-config_library"
    leg.run("configure a consumer of the library through pkg-config", [
        "meson", "setup", "-Dlibrary=true", "-Ddebug=false", build, consumer], PKG_CONFIG_PATH=pkg_config_path)
    build_and_run(leg, build, ["ninja", "-C", build])


def through_cmake(leg, prefix, consumer, pkg_config_path):
    build = consumer / "cmake_library"
    leg.run("configure a consumer of the library through CMake", [
        "cmake", "-S", consumer, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCOMPONENT=compiled"])
    build_and_run(leg, build, ["cmake", "--build", build])


def through_a_subproject(leg, prefix, consumer, pkg_config_path):
    build = consumer / "subproject_library"
    leg.run("configure a Meson subproject with the library", [
        "meson", "setup", "--force-fallback-for=millrace", "-Dlibrary=true", "-Ddebug=false",
        "-Dmillrace:compiled_optimization=0", "-Dmillrace:debug=false", build, consumer],
            PKG_CONFIG_PATH="", CXX=" ".join([*launcher(), "clang++"]))
    leg.run("build its library", ["meson", "compile", "-C", build, "millrace-compiled"])
    build_and_run(leg, build, ["ninja", "-C", build])


def by_a_copy(leg, prefix, consumer, pkg_config_path):
    """The compiler compiles compiled.cpp as in the README. Without it the program does not link."""
    for compiler in due_compilers():
        folder = consumer / f"copied_library_{compiler}"
        folder.mkdir()
        leg.run(f"compile a consumer with {compiler} and copied headers", [
            compiler, *WARNINGS, COMPILED, f"-I{prefix / 'include'}", "-c", consumer / "consumer.cpp", "-o",
            folder / "consumer.o"])
        leg.run("link it with the library", [compiler, folder / "consumer.o", compiled_library(compiler),
                                             *LIBRARIES, "-o", folder / "consumer"])
        leg.run("run it", [folder / "consumer"])
        output = leg.run("link it without the library", [compiler, folder / "consumer.o", *LIBRARIES, "-o",
                                                       folder / "nothing"], may_fail=True)
        names = unresolved(output)
        others = [name for name in names if "v0_1_compiled" not in name]
        leg.expect(f"without the library nothing links, and the missing names show why, {compiler}",
                   None if leg.returncode != 0 and names and not others else "\n".join([output, *others]))


def two_files(leg, prefix, compiler):
    """Two files that exchange our types only link if both or none use the compiled library, and both or none use
    the containers of _GLIBCXX_DEBUG."""
    folder = ROOT / "build" / "install" / "mixed" / compiler
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file, define in (("main", "-UPART"), ("part", "-DPART")):
        for mode, flags in {"compiled": [COMPILED], "header_only": [], "debug": ["-D_GLIBCXX_DEBUG"]}.items():
            leg.run(f"compile the {file} file with {compiler}, {mode}", [
                compiler, *WARNINGS, *flags, define, f"-I{prefix / 'include'}", "-c", HERE / "two_files.cpp", "-o",
                folder / f"{file}_{mode}.o"])

    def linked(main, part):
        return leg.run(f"link {main} with {part}", [
            compiler, folder / f"main_{main}.o", folder / f"part_{part}.o", compiled_library(compiler),
            *LIBRARIES, "-o", folder / "program"], may_fail=True)

    for mode in ("compiled", "header_only"):
        output = linked(mode, mode)
        leg.expect(f"two files of one mode link, {mode}, {compiler}", output if leg.returncode != 0 else None)
    namespaces = {"compiled": "v0_1_compiled", "header_only": "v0_1", "debug": "v0_1_debug"}
    expected = {(main, part): {f"same_words(millrace::{namespaces[main]}::position const&)",
                               f"words_of[abi:cxx11](millrace::{namespaces[part]}::position const&)"}
                for main, part in (("compiled", "header_only"), ("header_only", "compiled"), ("debug", "header_only"),
                                   ("header_only", "debug"))}
    for modes, names in expected.items():
        output = linked(*modes)
        leg.expect(f"two files of different modes do not link, {' and '.join(modes)}, {compiler}",
                   None if leg.returncode != 0 and unresolved(output) == names else output)


def unresolved(output):
    return set(re.findall(r"undefined reference to `(.*)'", output))


def library_is_not_there(leg, consumer, folder):
    """If the compiled library is not installed, CMake explains how to get it."""
    output = leg.run("request a library that is not installed", [
        "cmake", "-S", consumer, "-B", consumer / "cmake_without_library", f"-DCMAKE_PREFIX_PATH={folder / 'prefix'}",
        "-DCOMPONENT=compiled"], may_fail=True)
    leg.expect("CMake says that the compiled library is not installed", None if leg.returncode != 0 and
               "Millrace was installed without its compiled library: configure Millrace with -Dcompiled=enabled" in
               " ".join(output.split()) else output)
    built = list(folder.rglob("libmillrace-compiled*.a"))
    leg.expect("without -Dcompiled=enabled there is no library", "\n".join(map(str, built)))
