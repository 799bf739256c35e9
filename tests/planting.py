# Plants mistakes in copies of our headers and checks that a test program fails, for cuda/planted/planted.py and
# system/mutations/mutations.py.
#
#   build = Build("g++", ["-O0"], SCRATCH)
#   objects = build.common_objects([TESTS / "main.cpp"])
#   plant([Edit("base/random", "below(span + 1)", "below(span)")], folder / "include")
#   kind, what = build.outcome_of("unit/base/random_test.cpp", folder, objects, [folder / "include"])
#
# The folder of planted headers precedes include/ on the compiler's path, so that the tree itself is never changed. An
# edit replaces a text that its file contains exactly once. A file without an ending is x.hpp with its definitions. A
# header examples/FOLDER/x is planted with all headers of its folder, because they include each other.
import pathlib
import re
import shutil
import signal
import subprocess
import typing

from checks import ROOT, Broken, in_parallel, launcher, library_flags

INCLUDE, EXAMPLES, TESTS = ROOT / "include", ROOT / "examples", ROOT / "tests"
LIMIT_SECONDS = 60
UNPLANTED_LIMIT_SECONDS = 900   # only guards against hangs


class Edit(typing.NamedTuple):
    file: str   # under include/millrace; or examples/FOLDER/NAME
    old: str
    new: str


def run_or_break(command, what):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Broken(f"{what}\n" + "\n".join(done.stdout.splitlines()[:20]))


def folder_for(scratch, name):
    return scratch / re.sub(r"\W+", "_", name)


def place_of(name):
    """The folder that the compiler searches, and the path in it."""
    if name.startswith("examples/"):
        return EXAMPLES, name.removeprefix("examples/")
    return INCLUDE, f"millrace/{name}"


def files_of(root, name):
    """The file of that name. For a name without an ending, all existing parts."""
    if pathlib.PurePath(name).suffix:
        return [name]
    folder, _, stem = name.rpartition("/")
    parts = (f"{name}.hpp", f"{name}.tpl.hpp", f"{folder}/impl/{stem}.inl")
    return [part for part in parts if (root / part).exists()]


def plant(edits, folder):
    """Writes the changed headers."""
    shutil.rmtree(folder, ignore_errors=True)
    for edit in edits:
        texts = {}
        root, name = place_of(edit.file)
        parent = pathlib.PurePath(name).parent
        if root == EXAMPLES and not (folder / parent).exists():
            shutil.copytree(root / parent, folder / parent)
        for file in files_of(root, name):
            planted = folder / file
            texts[file] = (planted if planted.exists() else root / file).read_text()
        # Ignores the indentation of each line.
        old = re.compile(r"\n *".join(re.escape(line.lstrip()) for line in edit.old.split("\n")))
        if sum(len(old.findall(text)) for text in texts.values()) != 1:
            raise Broken(f"the file must contain the text once: {edit.file}\n{edit.old}")
        for file, text in texts.items():
            if old.search(text):
                planted = folder / file
                planted.parent.mkdir(parents=True, exist_ok=True)
                planted.write_text(old.sub(lambda _: edit.new, text))


def lost_text(scratch, edits_by_name):
    """None, or the first of the named edits that does not apply."""
    for name, edits in edits_by_name.items():
        try:
            plant(edits, folder_for(scratch, name) / "include")
        except Broken as problem:
            return f"{name}: {problem}"
    return None


class Build(typing.NamedTuple):
    """The commands that build test programs: `flags` for compiling and linking, `defines` only for compiling."""
    compiler: str
    flags: list
    scratch: pathlib.Path
    defines: tuple = ()
    include: tuple = ()   # in addition to include/ and tests/

    def compile_command(self, source, to, include=()):
        folders = [*include, INCLUDE, *self.include, TESTS]
        # doctest is the system's or the one that Meson downloaded.
        fetched = [f"-isystem{folder}" for folder in sorted((ROOT / "subprojects").glob("doctest-*/"))]
        return [*launcher(), self.compiler, "-std=c++20", *self.flags, *self.defines,
                *(f"-I{folder}" for folder in folders), *fetched, *library_flags("--cflags"), "-c", str(source),
                "-o", str(to)]

    def common_objects(self, sources):
        """The common objects of all programs, compiled once."""
        folder = self.scratch / "common"
        folder.mkdir(parents=True, exist_ok=True)
        objects = [folder / f"{source.stem}.o" for source in sources]
        for _ in in_parallel(lambda job: run_or_break(self.compile_command(*job), f"{job[0].name} does not compile"),
                             list(zip(sources, objects))):
            pass
        return objects

    def outcome_of(self, program, folder, objects, include=(), limit_seconds=LIMIT_SECONDS):
        """('green' | 'check' | 'fault' | 'time-out', description)."""
        folder.mkdir(parents=True, exist_ok=True)
        run_or_break(self.compile_command(TESTS / program, folder / "test.o", include), "it does not compile")
        own = ["-lcrypto"] if "adapt/remote" in str(program) else []
        run_or_break([self.compiler, *self.flags, folder / "test.o", *objects, "-o", folder / "test", "-pthread", *own,
                      *library_flags("--libs")], "it does not link")
        try:
            done = subprocess.run([folder / "test", "--abort-after=1", "--no-colors=true"], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, errors="replace", timeout=limit_seconds,
                                  cwd=folder)
        except subprocess.TimeoutExpired:
            return "time-out", f"no end within {limit_seconds:.0f} s"
        cases = re.findall(r"^TEST CASE: +(.*)$", done.stdout, re.MULTILINE)
        where = cases[-1] if cases else done.stdout[-500:]
        if done.returncode == 0:
            return "green", ""
        if done.returncode < 0:
            return "fault", f"{signal.Signals(-done.returncode).name} in: {where}"
        return "check", f"failed: {where}"

    def check_unplanted(self, program, objects, limit_seconds=UNPLANTED_LIMIT_SECONDS):
        """None if the program passes with the unchanged tree; otherwise its problem."""
        folder = folder_for(self.scratch, program)
        try:
            kind, what = self.outcome_of(program, folder, objects, limit_seconds=limit_seconds)
        except Broken as problem:
            return str(problem)
        if kind != "green":
            return f"it must pass with the unchanged tree: {what}"
        shutil.rmtree(folder)
        return None
