# The cost of including a header, and nvcc's results for the headers (nvcc.py).
#
#   python3 tests/contract/headers/costs.py
#
# The cost is the memory that g++ allocates for a file (the total of -ftime-report), less that for an empty file, in
# units of the same cost of the yardstick, some headers of the standard library. The number does not depend on the load
# of the machine, and grows with declarations, instantiations and code like the compile time. The yardstick depends on
# the version of the compiler and of its library. Seconds are only informative. Half of the texts are due (checks.py).
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import nvcc
from checks import (COMPILED, ROOT, RememberedPasses, Report, is_due, library_flags,
                    processor_seconds_of_children)
from headers import INCLUDE, UMBRELLA

YARDSTICK = "".join(f"#include <{name}>\n" for name in """
    algorithm chrono filesystem functional future iostream map random ranges regex thread""".split())
CONSUMER = ROOT / "tests" / "contract" / "install" / "consumer.cpp"
FLOW = """#include <millrace/millrace.hpp>
namespace mr = millrace;
struct options { std::string shards; std::size_t batch = 256; std::uint64_t seed = 0; };
struct example { mr::picture pixels; std::int64_t label; };
auto train(const options& o) {
  const auto prepare = [](const mr::record& r, mr::rng& rng) -> example {
    return {mr::jpeg(r["jpg"]).random_resized_crop(224, rng).random_flip(rng), r["cls"].as<std::int64_t>()};
  };
  return mr::shards(o.shards, {.seed = o.seed}) | mr::shuffle({.window = 8192}) | mr::map(prepare) |
         mr::batch<&example::pixels, &example::label>({.size = o.batch});
}
"""
PROGRAM = FLOW + """int main(int, char** words) {
  std::int64_t sum = 0;
  mr::session run{train({.shards = words[1], .seed = 7}), {.epochs = 90}};
  for (auto& b : run) sum += b.get<&example::pixels>()(0, 0, 0, 0) + b.get<&example::label>()[0];
  return sum == 0;
}
"""
MODULE = "#include <millrace/adapt/python.hpp>\n" + FLOW + """PyMODINIT_FUNC PyInit_photos() {
  using mr::python::loader;
  return mr::python::module("photos", loader<&options::shards, &options::batch, &options::seed>("train", train));
}
"""
LARGEST_MODULE = 1.2   # in costs of the program
TOTAL = re.compile(r"^ TOTAL .*?(\d+)([kMG]?)$", re.MULTILINE)
UNITS = {"": 1, "k": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class Cost(NamedTuple):
    """A text to compile, and the memory that it may cost, in yardsticks."""
    name: str
    text: str
    limit: float
    flags: tuple = ()


def included(header):
    return f"#include <{header}>\n"


# Alone the umbrella contains all definitions; with the compiled library it only declares. g++ 12 allocates 192 MiB for
# the yardstick. Measured with g++ 12 on 29 and 30 November 2026: 5.34, 1.28, 0.05, 0.08, 7.26 and 2.24 yardsticks.
COSTS = (Cost(UMBRELLA, included(UMBRELLA), 5.4),
         Cost(f"{UMBRELLA} {COMPILED}", included(UMBRELLA), 1.32, (COMPILED,)),
         Cost("millrace/flow/stage.hpp", included("millrace/flow/stage.hpp"), 0.1),
         Cost("millrace/device/view.hpp", included("millrace/device/view.hpp"), 0.1),
         Cost("a program of one flow", CONSUMER.read_text(), 7.35),
         Cost(f"a program of one flow {COMPILED}", CONSUMER.read_text(), 2.3, (COMPILED,)))


def memory_of(passes, text, *flags):
    """(bytes that g++ allocates for this text, processor seconds or None if they are cached)"""
    # Also generates code, which instantiates the templates that a program uses.
    command = ["g++", "-std=c++20", "-O0", "-S", "-o", "/dev/null", "-ftime-report", f"-I{INCLUDE}",
               *library_flags("--cflags"), *flags]
    key = passes.key(command, text, INCLUDE)
    if remembered := passes.remark(key):
        return int(remembered), None
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "costs.cpp"
        source.write_text(text)
        before = processor_seconds_of_children()
        done = subprocess.run([*command, str(source)], capture_output=True, text=True)
        seconds = processor_seconds_of_children() - before
    total = TOTAL.search(done.stderr)
    if done.returncode != 0 or not total:
        raise ValueError(done.stderr[-2000:])
    memory = int(total[1]) * UNITS[total[2]]
    passes.remember(key, str(memory))
    return memory, seconds


def check_costs(report, passes):
    empty, _ = memory_of(passes, "")
    yardstick = memory_of(passes, YARDSTICK)[0] - empty
    for cost in COSTS:
        if not is_due(cost.name):
            continue
        try:
            memory, seconds = memory_of(passes, cost.text, *cost.flags)
        except ValueError as problem:
            report.add(f"cost of {cost.name}", f"it does not compile:\n{problem}")
            continue
        yardsticks = (memory - empty) / yardstick
        measured = f"{yardsticks:.3g} yardsticks of the compiler's memory ({(memory - empty) >> 20} MiB)"
        report.add(f"cost of {cost.name}: {measured}" + (f", {seconds:.1f} s here" if seconds else ""),
                   f"it costs {measured}; {cost.limit} are allowed" if yardsticks > cost.limit else None)


def check_module(report, passes):
    """The module of a flow against the program of that flow, both with the compiled library."""
    python = sysconfig.get_paths()["include"]
    if not pathlib.Path(python, "Python.h").exists():
        report.skip("cost of a Python module", "Python.h is not installed (python3-dev)")
        return
    empty, _ = memory_of(passes, "")
    program, module = (memory_of(passes, text, COMPILED, f"-isystem{python}")[0] - empty for text in (PROGRAM, MODULE))
    ratio = module / program
    report.add(f"cost of a Python module: {ratio:.3g} times that of the program of its flow ({module >> 20} MiB)",
               f"it costs {ratio:.3g} times; {LARGEST_MODULE} are allowed" if ratio > LARGEST_MODULE else None)


def main():
    report, passes = Report(), RememberedPasses()
    nvcc.check(report, passes)
    check_costs(report, passes)
    check_module(report, passes)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
