# What nvcc makes of the headers, where there is one: view.hpp alone; the umbrella, device/ and every .cuh twice in one
# file; each kernel for the oldest and for a recent GPU without a warning, a spill or a frame in memory; the cost of
# view.hpp.
#
#   nvcc.check(report, passes)          # of costs.py
#
# The cost is processor seconds over an empty .cu file compiled right before, the median of three rounds, or of up to
# nine where that is too much. The limit holds for a machine on which the empty file takes 0.9 s; a slower or busy one
# gets as much more as that file takes longer.
import os
import shutil
import statistics
import subprocess

from checks import ROOT, allowed_here, library_flags, output_of, processor_seconds_of_children

INCLUDE = ROOT / "include"
FOLDER = ROOT / "build" / "headers"
VIEW = "millrace/device/view.hpp"
VIEW_LIMIT_SECONDS = 0.3
EMPTY_SECONDS = 0.9
ROUNDS = 3
MAX_TIMES = 3
ARCHITECTURES = ("sm_75", "sm_90")
# No -Wpedantic: the host compiler would complain of what nvcc writes.
WARNINGS = ["-Xcompiler=-Wall,-Wextra,-Werror", "-Werror=all-warnings", "-Xptxas=-warn-spills,-warn-lmem-usage"]
KERNELS = """
#include <millrace/device/mix_rows.cuh>
#include <millrace/device/normalize.cuh>
#include <millrace/train/metrics.cuh>
namespace mr = millrace;
template <class T>
void make(mr::stream_view s) {
  mr::normalize(mr::tensor_view<const std::uint8_t, 4>{}, mr::tensor_view<T, 4>{}, {}, s);
  mr::mix_rows(mr::tensor_view<T, 4>{}, {}, s);
}
std::shared_ptr<mr::device_sums> make_all(mr::stream_view s) {
  make<float>(s);
  make<mr::f16>(s);
  make<mr::bf16>(s);
  mr::mix_rows(mr::tensor_view<std::uint8_t, 4>{}, {}, s);
  mr::dense_labels(mr::mixed_labels<std::int32_t>{}, {}, {}, s);
  return mr::cuda_metric_sums();
}
"""


def compiler():
    for found in (shutil.which("nvcc"), os.path.join(os.environ.get("CUDA_PATH", "/usr/local/cuda"), "bin", "nvcc")):
        if found and os.path.exists(found):
            return found
    return None


def command(nvcc, *more):
    flags = [flag for flag in library_flags("--cflags") if flag.startswith("-isystem")]
    return [nvcc, "-std=c++20", *WARNINGS, "-DMILLRACE_CUDA=1", f"-I{INCLUDE}", *flags, *more]


def compile_text(nvcc, name, text, *more):
    FOLDER.mkdir(parents=True, exist_ok=True)
    source = FOLDER / f"{name}.cu"
    source.write_text(text)
    return subprocess.run(command(nvcc, *more, "-c", str(source), "-o", str(source.with_suffix(".cu.o"))),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def check_text(report, passes, nvcc, version, name, text, *more):
    key = passes.key(command(nvcc, *more), version + text, INCLUDE)
    if passes.remark(key) is None:
        result = compile_text(nvcc, name.replace(" ", "_").replace(",", ""), text, *more)
        if result.returncode != 0 or result.stdout.strip():
            report.add(f"nvcc: {name}", result.stdout[:3000] or "it failed without a word")
            return
        passes.remember(key)
    report.add(f"nvcc: {name}")


def check_cost(report, nvcc):
    texts = {"empty": "", "view": f"#include <{VIEW}>\n"}
    seconds = {name: [] for name in texts}
    for _ in range(MAX_TIMES):
        for _ in range(ROUNDS):
            for name, text in texts.items():
                before = processor_seconds_of_children()
                if compile_text(nvcc, f"cost_{name}", text).returncode != 0:
                    report.add(f"nvcc: cost of {VIEW}", "it does not compile")
                    return
                seconds[name].append(processor_seconds_of_children() - before)
        cost = statistics.median(view - empty for empty, view in zip(seconds["empty"], seconds["view"]))
        empty = statistics.median(seconds["empty"])
        allowed = allowed_here(VIEW_LIMIT_SECONDS, empty, EMPTY_SECONDS)
        if cost <= allowed:
            break
    report.add(f"nvcc: cost of {VIEW}: {cost:.2f} s; an empty file: {empty:.2f} s", None if cost <= allowed else
               f"it costs {cost:.2f} s over an empty file; {allowed:.2f} s are allowed on this machine")


def check(report, passes):
    nvcc = compiler()
    if nvcc is None:
        for name in (f"{VIEW} alone", "the umbrella, device and every .cuh, twice", "kernels", f"cost of {VIEW}"):
            report.skip(f"nvcc: {name}", "there is no nvcc")
        return
    version = output_of([nvcc, "--version"])
    headers = sorted(str(path.relative_to(INCLUDE)) for pattern in ("millrace/device/*.hpp", "millrace/*/*.cuh")
                     for path in INCLUDE.glob(pattern))
    view = f"#include <{VIEW}>\n"
    check_text(report, passes, nvcc, version, "view.hpp alone", view * 2 +
               "namespace mr = millrace;\n"
               "__global__ void step(const unsigned char*) {}\n"
               "void train(mr::tensor_view<unsigned char, 4> x, mr::stream_view s) {\n"
               "  const mr::tensor_view<const unsigned char, 4> read = x;\n"
               "  for (auto picture : read) static_cast<void>(picture(0, 0, 0) + x[0][0][0][0]);\n"
               "  step<<<1, 1, 0, s>>>(read.data);\n}\n")
    everything = "".join(f"#include <{name}>\n" for name in ("millrace/millrace.hpp", *headers))
    check_text(report, passes, nvcc, version, "the umbrella, device and every .cuh, twice", everything * 2)
    for architecture in ARCHITECTURES:
        check_text(report, passes, nvcc, version, f"kernels for {architecture}", KERNELS, f"-arch={architecture}")
    check_cost(report, nvcc)
