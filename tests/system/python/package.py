# The package: load() compiles once, and again if a file's content changed; two processes compile once; an error names
# the Debian package of a missing compiler, header or library; the version is that of the library.
#
#   python3 tests/system/python/package.py
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile

from door import BUILD, COMPILED, PART, QUICK_COMPILER, ROOT, Report, enter, launcher, library, python_object

MODULE = """
#include "answer.h"
#include <Python.h>
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "tiny", 0, -1, 0, 0, 0, 0, 0};
PyMODINIT_FUNC PyInit_tiny() {
  PyObject* module = PyModule_Create(&definition);
  PyModule_AddIntConstant(module, "answer", ANSWER);
  return module;
}
"""
LOAD = "import sys; sys.path.insert(0, {package!r})\nimport millrace\n" \
       "print(millrace.load({source!r}, compiled=False, cache={cache!r}).answer)"


def succeed(*command, **options):
    try:
        done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=600, **options)
    except subprocess.TimeoutExpired as e:   # a network that does not answer
        raise RuntimeError(f"{' '.join(map(str, command))}: no end after {e.timeout} s") from e
    if done.returncode != 0:
        raise RuntimeError(done.stdout[-4000:])
    return done.stdout


def installed_library():
    """A folder with the installed library, as after meson install; its compiled part is that of the other tests."""
    build, prefix = BUILD / "installed", BUILD / "prefix"
    shutil.rmtree(build, ignore_errors=True)
    shutil.rmtree(prefix, ignore_errors=True)
    succeed("meson", "setup", f"--prefix={prefix}", "--libdir=lib", *(f"-D{part}=disabled" for part in (
        "tests", "examples", "bench", "cuda")), "-Dcompiled=enabled", "-Ddebug=false", build, ROOT)
    part = python_object(PART, ["-O0", COMPILED])
    succeed("ar", "rcs", build / "libmillrace-compiled.a", library(), part)
    succeed("ar", "rcs", build / "libmillrace-compiled-remote.a")   # installed if libcurl is there; nothing uses it
    succeed("meson", "install", "--no-rebuild", "-C", build)
    return prefix


def built_by_pip(report, folder):
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    names = ("pip installs the package", "a package by meson-python", "a package by scikit-build-core")
    missing = ""
    try:
        succeed(*pip, "download", "-q", "--retries", "1", "--timeout", "20", "--no-deps", "-d", folder, "meson-python")
    except RuntimeError as e:
        missing = str(e)
    if missing or not shutil.which("meson") or not shutil.which("cmake"):
        for name in names:
            report.skip(name, f"needs pip, PyPI, meson and cmake. {missing.strip().rpartition(chr(10))[2]}")
        return
    install = [*pip, "install", "-q", "--no-deps", "--target"]
    shutil.copytree(ROOT / "include", folder / "include", ignore=shutil.ignore_patterns("__pycache__"))
    try:
        succeed(*install, folder / "site", folder / "include" / "python")
        include = succeed(sys.executable, "-c", "import millrace; print(millrace.get_include())", cwd=folder / "site")
        report.add(names[0], None if include.strip() == str(folder / "site" / "millrace" / "include") else include)
    except RuntimeError as e:
        report.add(names[0], str(e))
        return
    guide = (ROOT / "examples" / "guide" / "python.md").read_text()
    files = dict(re.findall(r"^```(toml|meson|cmake)\n(.*?)^```$", guide, re.M | re.S))
    cmake = files["toml"].replace("meson-python", "scikit-build-core").replace("mesonpy", "scikit_build_core.build")
    prefix = installed_library()
    environment = dict(os.environ, CMAKE_PREFIX_PATH=str(prefix),
                       PKG_CONFIG_PATH=":".join(map(str, prefix.rglob("pkgconfig"))),
                       CXX=" ".join([*launcher(), QUICK_COMPILER]), CXXFLAGS="-O0", PYTHONPATH=str(folder / "site"))
    for name, project, build in ((names[1], files["toml"], ("meson.build", files["meson"])),
                                 (names[2], cmake, ("CMakeLists.txt", files["cmake"]))):
        source, target = folder / f"source of {build[0]}", folder / f"for {build[0]}"
        source.mkdir()
        shutil.copy(ROOT / "examples" / "python" / "flow.cpp", source)
        (source / "pyproject.toml").write_text(project)
        (source / build[0]).write_text(build[1])
        try:
            succeed(*install, target, source, env=environment)
            doc = succeed(sys.executable, "-c", "import photos; print(photos.train.__doc__)", cwd=target,
                          env=environment)
            report.add(name, None if "Augmented images." in doc else doc)
        except RuntimeError as e:
            report.add(name, str(e))


def main():
    report = Report()
    enter(report)
    import millrace
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        sources = folder / "My #1 $"   # characters that g++ escapes in the output of -MMD
        sources.mkdir()
        source, answer, log = sources / "tiny.cpp", sources / "answer.h", folder / "log"
        source.write_text(MODULE)
        answer.write_text("#define ANSWER 1\n")
        compiler = folder / "compiler"
        compiler.write_text(f'#!/bin/sh\ncase "$1" in -dump*) ;; *) echo run >> {log};; esac\nexec g++ "$@"\n')
        compiler.chmod(0o755)
        os.environ["CXX"] = str(compiler)

        def runs():
            return len(log.read_text().split()) if log.exists() else 0

        def load():
            return millrace.load(source, compiled=False, cache=folder / "cache").answer

        program = LOAD.format(package=sys.path[0], source=str(source), cache=str(folder / "cache"))
        two = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(2)]
        outputs = [process.communicate()[0] for process in two]
        report.add("two processes compile once", None if outputs == ["1\n", "1\n"] and runs() == 1
                   else f"{outputs}, {runs()} compilations")
        report.add("a second load() compiles nothing",
                   None if load() == 1 and runs() == 1 else f"{runs()} compilations")
        os.utime(source)
        report.add("a newer time alone compiles nothing",
                   None if load() == 1 and runs() == 1 else f"{runs()} compilations")
        answer.write_text("#define ANSWER 2\n")
        report.add("a changed header is compiled, and the new module is loaded",
                   None if load() == 2 and runs() == 2 else f"{runs()} compilations, {load()}")
        if shutil.which("clang++"):
            os.environ["CXX"] = "env clang++"
            report.add("CXX may contain a launcher of clang++", None if load() == 2 else "another module")
            os.environ["CXX"] = str(compiler)
        files = millrace.build._user_files(
            f"/c/m.so: /usr/src/app/flow.cpp {sysconfig.get_paths()['include']}/Python.h \\\n"
            " /usr/include/millrace/item.hpp /usr/lib/python3/millrace/recipes.cpp\n", "/usr/include")
        report.add("sources in /usr are compared", None if files == [
            "/usr/lib/python3/millrace/recipes.cpp", "/usr/src/app/flow.cpp"] else str(files))

        def message(text, **environment):
            other = folder / "other.cpp"
            other.write_text(text)
            os.environ.update(environment)
            try:
                millrace.load(other, compiled=False, cache=folder / "cache")
            except (RuntimeError, ValueError) as e:
                return str(e)
            return "no error"

        def expect(name, got, *words):
            report.add(name, None if all(word in got for word in words) else got)

        expect("a missing library is named with its package",
               message('#error "millrace: libjpeg is not installed: apt-get install libjpeg-dev"\nvoid PyInit_x();\n'
                       "int PyInit_x() {}"), "millrace: libjpeg is not installed: apt-get install libjpeg-dev")
        expect("an error of the compiler is shown", message("int PyInit_x() { return unknown; }"), "does not compile",
               "unknown")
        expect("a source without a module is refused", message("int x;"), "must define one function PyInit_NAME")
        expect("a missing compiler is named", message("int PyInit_x() {}", CXX=str(folder / "none")),
               "is not installed: apt-get install g++")
        del os.environ["CXX"]
        built_by_pip(report, folder)
    version = re.search(r"version: '([\d.]+)'", (ROOT / "meson.build").read_text())[1]
    project = re.search(r'^version = "([\d.]+)"', (ROOT / "include" / "python" / "pyproject.toml").read_text(), re.M)[1]
    report.add("the package has the version of the library",
               None if version == project == millrace.__version__ else f"{version}, {project}, {millrace.__version__}")
    project, unlisted = (ROOT / "include" / "python" / "pyproject.toml").read_text(), []
    for package, files in (("millrace", ROOT / "include" / "python" / "millrace"),
                           ("millrace.include.millrace", ROOT / "include" / "millrace")):
        patterns = json.loads(re.search(rf'^"{package}" = (\[.*\])$', project, re.M)[1])
        unlisted += [str(path) for path in files.rglob("*.*") if path.is_file() and
                     path.suffix not in (".py", ".pyc", ".md") and not any(map(path.match, patterns))]
    report.add("pip installs every file of the package and every header", ", ".join(unlisted))
    report.add("get_include() returns the folder of the headers",
               None if millrace.get_include() == str(ROOT / "include") else millrace.get_include())
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        get = sysconfig.get_config_var
        sysconfig.get_config_var = lambda name: name == "Py_GIL_DISABLED" or get(name)
        try:
            millrace.load(__file__)
            problem = "no error"
        except ImportError as e:
            problem = None if "free-threaded" in str(e) else str(e)
        sysconfig.get_config_var = get
        report.add("a free-threaded Python is refused", problem)
    return report.close()


if __name__ == "__main__":
    raise SystemExit(main())
