# Every header in include/millrace compiles at the beginning of a file, included twice, without a warning, and with
# macros that other headers are known to leak. The first header that a header includes is thereby also at the beginning
# of a file, and is not compiled again. clang++ compiles them, in half of g++'s time, with MILLRACE_COMPILED, which
# includes less. The definitions, impl/x.inl, follow only their x.hpp: they see only declarations of other headers, as
# in a program that links the library, and the header-only mode only adds to those. Some headers that many others
# include first are precompiled, which halves the time. g++ compiles all headers in one
# file, in reverse order, header-only: one compiler suffices to detect missing includes, and the file detects
# conflicting names. src.hpp, which has all definitions, is only for the compiled mode; every build compiles its thirds,
# compiled/. Then two files that include the umbrella must link into one program. costs.py measures the cost of
# including.
#
#   python3 tests/contract/headers/headers.py
#
# clang++ compiles the headers that are due (checks.py), because a change of a header can break those that include it.
import functools
import pathlib
import re
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import (COMPILED, OWN_INCLUDE, QUICK_COMPILER, ROOT, WARNINGS, RememberedPasses, Report, in_parallel,
                    is_due, launcher, library_flags, reached_text)

import standard_names

INCLUDE = ROOT / "include"
UMBRELLA = "millrace/millrace.hpp"
DEFINITIONS = "millrace/src.hpp"
NAMESPACE = "#ifndef MILLRACE_ABI\n#error it lacks <millrace/base/version.hpp>\n#endif\n"
MODE = "#ifndef MILLRACE_COMPILED"
# Headers that need the CUDA runtime are compiled with the declarations of the tests' fake runtime, without a toolkit.
FAKE_CUDA = ROOT / "tests" / "cuda" / "fake" / "include"
CUDA_FLAGS = ("-DMILLRACE_CUDA=1", f"-isystem{FAKE_CUDA}")
# Debian's folders for headers that are missing in the pkg-config files of their packages.
OWN_FOLDERS = ["-isystem" + folder for folder in ("/usr/include/opencv4",) if pathlib.Path(folder).is_dir()]

# From <complex.h>, <termios.h>, <math.h>, <sys/sysmacros.h>, X11 and Windows' headers. Macros named like names of the
# standard library or of a dependency (such as min and max) would break those, not us.
LEAKED_MACROS = """
I B0 B50 DOMAIN OVERFLOW UNDERFLOW SING PLOSS TLOSS major(x) minor(x) makedev(x,y)
None Bool Status Success Always Never Above Below Unsorted Complex KeyPress CursorShape ControlMask ShiftMask
small near far interface ERROR IN OUT OPTIONAL DELETE CONST VOID THIS PURE uuid cdecl pascal hyper
unix linux
""".split()
FIRST_INCLUDE = re.compile(r"(?:\s*//.*\n|\s*\n|\s*#\s*pragma once\s*\n)*\s*#\s*include\s*<(millrace/[^>]+)>")
OTHER_INCLUDE = re.compile(r"^#include <((?!millrace/)[\w/]+\.h(?:pp)?)>", re.MULTILINE)
TBB_INCLUDE = re.compile(r"^\s*#\s*include\s*(<(?:tbb|oneapi)/[^>]+>)", re.MULTILINE)
HOSTILE = "".join(f"#undef {name.partition('(')[0]}\n#define {name} leaked macro\n" for name in LEAKED_MACROS)
# Measured: a further one saves less time than its compilation needs.
PRECOMPILED = [f"millrace/{name}.hpp" for name in (
    "base/error", "image/plan/geometry", "io/index/format/shard_index", "item/bytes", "order/exact_order",
    "read/run/indexed_run", "read/stage/read_stage_base", "run/session_order", "stages/batch",
    "work/schedule/segment")]
PRECOMPILING = {header: threading.Lock() for header in [None, *PRECOMPILED]}


def compile_command(compiler, *more):
    return [compiler, *WARNINGS, f"-I{INCLUDE}", *library_flags("--cflags"), *OWN_FOLDERS, *more]


def without_i(text):
    """oneTBB itself does not support the `I` of <complex.h>."""
    return text.replace("#define I leaked macro\n", "")


def leading_includes(text):
    """Our headers that a text includes unconditionally before its first line of code."""
    included, depth = [], 0
    for line in map(str.strip, text.splitlines()):
        if line.startswith("#"):
            directive = line[1:].strip()
            depth += directive.startswith("if") - directive.startswith("endif")
            if depth == 0 and (match := OWN_INCLUDE.match(line)):
                included.append(match[1])
        elif line and not line.startswith("//") and depth == 0:
            break
    return included


@functools.lru_cache
def read_first(header):
    """A header and the headers that it includes before its own code, directly or through others."""
    return frozenset([header]).union(*map(read_first, leading_includes((INCLUDE / header).read_text())))


@functools.lru_cache
def reaches_tbb(header):
    return bool(TBB_INCLUDE.search("\n".join(reached_text(f"#include <{header}>\n", INCLUDE).values())))


def precompiled_for(header):
    """The largest header of PRECOMPILED that `header` includes before its own code, so that it replaces no include
    that `header` lacks. None if there is none."""
    return max((name for name in PRECOMPILED if read_first(name) <= read_first(header)),
               key=lambda name: sum(len((INCLUDE / other).read_text()) for other in read_first(name)), default=None)


@functools.lru_cache
def precompile(header):
    named = {name for path in (INCLUDE / "millrace").rglob("*.*") if path.suffix in (".hpp", ".inl")
             for name in standard_names.STANDARD_INCLUDE.findall(path.read_text())
             if name != "the_compilation_ends_here"}
    text = "".join(f"#include <{name}>\n" for name in sorted(named))
    if header:
        text += f"{without_i(HOSTILE) if reaches_tbb(header) else HOSTILE}#include <{header}>\n"
    folder = ROOT / "build" / "headers"
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / f"{(header or 'standard').replace('/', '.')}.pch.hpp"
    source.write_text(text)
    # Otherwise each file that includes it instantiates its templates again: a quarter of a second.
    command = compile_command("clang++", *([COMPILED] if header else []), "-fpch-instantiate-templates", "-x",
                              "c++-header", str(source), "-o", str(source.with_suffix("")))
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode == 0:
        return ("-include-pch", str(source.with_suffix("")))
    # The check of the broken header reports the problem.
    return precompiled() if header else sys.exit(f"the standard headers cannot be precompiled:\n{done.stdout}")


def precompiled(header=None):
    """Flags with which clang++ first includes all headers of the standard library that ours include, and a header of
    PRECOMPILED among leaked macros."""
    with PRECOMPILING[header]:
        return precompile(header)


def syntax_check(compiler, text, *more, header=None):
    """Compiles a text, after a header of PRECOMPILED if one is given."""
    first = precompiled(header) if compiler == "clang++" else ()
    command = compile_command(compiler, *first, *more, "-fsyntax-only", "-x", "c++", "-")
    return subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def adapted_headers(header):
    """The headers of the adapted library that an opt-in header and its parts include."""
    if not header.startswith("millrace/adapt/"):
        return []
    own = (INCLUDE / header).read_text()
    parts = [text for name, text in reached_text(own, INCLUDE).items() if name.startswith("millrace/adapt/")]
    return sorted({name for text in [own, *parts] for name in OTHER_INCLUDE.findall(text)})


def definitions_of(header):
    """The header's impl/x.inl, or None."""
    definitions = pathlib.PurePath(header).parent / "impl" / f"{pathlib.PurePath(header).stem}.inl"
    return str(definitions) if (INCLUDE / definitions).exists() else None


def is_there(header):
    """Whether the header and all headers that it includes exist."""
    command = compile_command("g++", "-E", "-o", "/dev/null", "-x", "c++", "-")
    return subprocess.run(command, input=f"#include <{header}>\n", capture_output=True, text=True).returncode == 0


def chains_of(headers, kind):
    """The headers in lists: each is the first include of its predecessor, which is of the same kind."""
    first = {header: match[1] for header in headers
             if (match := FIRST_INCLUDE.match((INCLUDE / header).read_text())) and kind(match[1]) == kind(header)}
    chains, left, covered = [], set(headers), set(first.values())
    for header in [header for header in headers if header not in covered]:
        chain = []
        while header in left:
            chain.append(header)
            left.remove(header)
            header = first.get(header)
        chains.append(chain)
    return chains


def check_each(report, headers, passes):
    in_umbrella = reached_text(f"#include <{UMBRELLA}>\n", INCLUDE)

    def check(job):
        group, compiler, flags = job
        plain = "".join(f"#include <{header}>\n" for header in group) * 2
        if "MILLRACE_ABI" in (INCLUDE / group[0]).read_text():
            plain += NAMESPACE   # otherwise the inline namespace would have that name
        if COMPILED in flags and (definitions := definitions_of(group[0])):
            plain += f"#include <{definitions}>\n"
        # Headers of other libraries need not support those macros.
        adapted = [name for header in group for name in adapted_headers(header)]
        text, texts = "".join(f"#include <{name}>\n" for name in adapted) + HOSTILE + plain, []
        tbb = sorted(set(TBB_INCLUDE.findall("\n".join(reached_text(plain, INCLUDE).values()))))
        if tbb:
            # With the macro `I`, oneTBB must be included first, so the header is not compiled alone: one compiler does
            # that for the umbrella and headers outside of it.
            text = without_i(text)
            if COMPILED in flags and (group[0] == UMBRELLA or group[0] not in in_umbrella):
                texts.append("".join(f"#include {name}\n" for name in tbb) + HOSTILE + plain)
        texts.append(text)
        key = passes.key(compile_command(compiler, *flags), repr(texts) + plain + declarations(flags), INCLUDE)
        if passes.remark(key) is not None:
            return None
        for text in texts:
            extends = flags == (COMPILED,) and not adapted and text is texts[-1]
            result = syntax_check(compiler, text, *flags, header=precompiled_for(group[0]) if extends else None)
            if result.returncode != 0:
                cause, alone = "a leaked macro breaks it", syntax_check(compiler, plain, *flags)
                if alone.returncode != 0:
                    cause, result = f"it does not compile {'alone' if len(group) == 1 else 'with the others'}", alone
                return cause + ":\n" + "\n".join(result.stdout.splitlines()[:12])
        passes.remember(key)
        return None

    def declarations(flags):
        return (FAKE_CUDA / "cuda_runtime_api.h").read_text() if set(CUDA_FLAGS) <= set(flags) else ""

    needs_cuda = {header for header in headers if header.startswith("millrace/device/cuda")}
    # Adapters are compiled separately, LibTorch's apart from the others because it defines many macros.
    adapting = [header for header in headers if header.startswith("millrace/adapt/")]
    for_torch = [header for header in adapting if header == "millrace/adapt/torch.hpp"]
    adapters = {"millrace/adapt/torch.hpp": for_torch,
                "those for other libraries together": [header for header in adapting
                                                       if header.count("/") == 2 and header not in for_torch]}
    together = {"all headers together": [header for header in reversed(headers)
                                         if header not in adapting and header != DEFINITIONS]}

    @functools.lru_cache
    def kind(header):
        """Distinguishes the headers that check() compiles in different ways."""
        if header in needs_cuda or header in adapting or header in (UMBRELLA, DEFINITIONS):
            return header
        return reaches_tbb(header)

    def chains(headers):
        return {chain[0]: chain for chain in chains_of(headers, kind)}

    by_clang = chains(headers)
    by_clang |= {header: [header] for header in headers if definitions_of(header) and header not in by_clang}
    by_clang = {name: group for name, group in by_clang.items() if any(
        is_due(header, INCLUDE / header, INCLUDE / (definitions_of(header) or header)) for header in group)}
    # Headers that declare more in that mode and have no own definitions.
    other_mode = {header: [header] for header in headers if header == UMBRELLA or header != DEFINITIONS and
                  not definitions_of(header) and MODE in (INCLUDE / header).read_text()}
    jobs = {}
    for compiler, groups, mode in (("clang++", by_clang, (COMPILED,)), ("clang++", other_mode, ()),
                                   ("g++", together | adapters, ())):
        for name, group in groups.items():
            plain = tuple(header for header in group if header not in needs_cuda)
            cuda = tuple(header for header in group if header in needs_cuda | {UMBRELLA})
            suffix = " compiled" if mode else ""
            if plain:
                jobs[plain, compiler, mode] = f"{name} {compiler}{suffix}", f" {compiler}{suffix}"
            if cuda:
                jobs[cuda, compiler, CUDA_FLAGS + mode] = f"{name} {compiler} with CUDA{suffix}", f" {compiler}{suffix}"
    for (group, compiler, flags), problem in in_parallel(check, list(jobs)):
        name, suffix = jobs[group, compiler, flags]
        report.add(name, problem)
        if not name.startswith("all headers together"):
            for header in group[1:]:
                if header not in by_clang:   # otherwise it is also compiled alone
                    report.add(header + suffix, problem and check(((header,), compiler, flags)))


def check_linking(report):
    folder = ROOT / "build" / "headers"
    folder.mkdir(parents=True, exist_ok=True)
    objects = []
    for name, body in (("one", "void other(); int main() { other(); }"), ("two", "void other(); void other() {}")):
        source = folder / f"{name}.cpp"
        source.write_text(f"#include <{UMBRELLA}>\n{body}\n")
        objects.append(str(source.with_suffix(".o")))
        command = [*launcher(), *compile_command(QUICK_COMPILER, "-O0", "-c", str(source), "-o", objects[-1])]
        compiled = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if compiled.returncode != 0:
            report.add("two files that include the umbrella link", compiled.stdout[:2000])
            return
    program = str(folder / "program")
    linked = subprocess.run([QUICK_COMPILER, *objects, "-o", program, *library_flags("--libs")],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    problem = linked.stdout[:2000] if linked.returncode else None
    if not problem and subprocess.run([program]).returncode != 0:
        problem = "their program does not run"
    report.add("two files that include the umbrella link", problem)


def main():
    report = Report()
    headers = sorted(str(path.relative_to(INCLUDE)) for path in (INCLUDE / "millrace").rglob("*.hpp")
                     if path.parent.name != "compiled")
    for header in [header for header in headers if header.startswith("millrace/adapt/")]:
        if lacking := [name for name in adapted_headers(header) if not is_there(name)]:
            report.skip(header, f"there is no <{lacking[0]}>")
            headers.remove(header)
    if not headers:
        report.add("headers", "no header in include/millrace")
    passes = RememberedPasses()
    check_each(report, headers, passes)
    if (INCLUDE / UMBRELLA).exists():
        check_linking(report)
    else:
        report.skip("two files that include the umbrella link", f"{UMBRELLA} does not exist")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
