# Compiles headers with nvcc, if it is installed: view.hpp alone; the umbrella, device/ and every .cuh twice in one
# file; each kernel for several architectures without a warning, a spill or a stack frame; the cost of view.hpp.
#
#   nvcc.check(report, passes)          # of costs.py
#
# The cost is the number of tokens that the preprocessor passes on, over an empty .cu file: the same in every run.
import os
import re
import shutil
import subprocess

from checks import ROOT, library_flags, output_of

INCLUDE = ROOT / "include"
FOLDER = ROOT / "build" / "headers"
VIEW = "millrace/device/view.hpp"
VIEW_LIMIT_TOKENS = 25_000
TOKEN = re.compile(r"\w+|[^\w\s]")
ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "all-major")
# No -Wpedantic: the host compiler would warn of nvcc's generated code.
WARNINGS = ["-Xcompiler=-Wall,-Wextra,-Werror", "-Werror=all-warnings", "-Xptxas=-warn-spills,-warn-lmem-usage"]
KERNELS = """
#include <millrace/device/mix_rows.cuh>
#include <millrace/device/normalize.cuh>
#include <millrace/train/metrics.cuh>
namespace mr = millrace;
template <class T>
void instantiate(mr::stream_view s) {
  mr::normalize(mr::tensor_view<const std::uint8_t, 4>{}, mr::tensor_view<T, 4>{}, {}, s);
  mr::mix_rows(mr::tensor_view<T, 4>{}, {}, s);
}
std::shared_ptr<mr::device_sums> make_all(mr::stream_view s) {
  instantiate<float>(s);
  instantiate<mr::f16>(s);
  instantiate<mr::bf16>(s);
  mr::mix_rows(mr::tensor_view<std::uint8_t, 4>{}, {}, s);
  mr::dense_labels(mr::mixed_labels<std::int32_t>{}, {}, {}, s);
  return mr::cuda_metric_sums();
}
"""


def compiler():
    for path in (shutil.which("nvcc"), os.path.join(os.environ.get("CUDA_PATH", "/usr/local/cuda"), "bin", "nvcc")):
        if path and os.path.exists(path):
            return path
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
            report.add(f"nvcc: {name}", result.stdout[:3000] or "it failed without a message")
            return
        passes.remember(key)
    report.add(f"nvcc: {name}")


def tokens_of(nvcc, name, text):
    """The number of tokens after preprocessing; None if it fails."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    source = FOLDER / f"{name}.cu"
    source.write_text(text)
    done = subprocess.run(command(nvcc, "-E", str(source)), capture_output=True, text=True)
    lines = (line for line in done.stdout.splitlines() if not line.startswith("#"))
    return sum(len(TOKEN.findall(line)) for line in lines) if done.returncode == 0 else None


def check_cost(report, nvcc):
    empty, view = tokens_of(nvcc, "cost_empty", ""), tokens_of(nvcc, "cost_view", f"#include <{VIEW}>\n")
    if empty is None or view is None:
        report.add(f"nvcc: cost of {VIEW}", "the preprocessor fails")
        return
    cost = view - empty
    report.add(f"nvcc: cost of {VIEW}: {cost} tokens; an empty file: {empty}", None if cost <= VIEW_LIMIT_TOKENS else
               f"it costs {cost} tokens over an empty file; {VIEW_LIMIT_TOKENS} are allowed")


def check_oldest_architecture(report):
    """nvcc 12 compiles for sm_52 by default and rejects __grid_constant__ there; nvcc 13 has no such architecture."""
    guarded = []
    for architecture in (520, 700):
        text = subprocess.run(["g++", "-std=c++20", "-E", "-P", "-xc++", f"-I{INCLUDE}",
                               f"-I{ROOT / 'tests/cuda/fake/include'}", "-D__CUDACC__",
                               f"-D__CUDA_ARCH__={architecture}", str(INCLUDE / "millrace/device/kernel.cuh")],
                              capture_output=True, text=True, check=True).stdout
        guarded.append("__grid_constant__" in text)
    report.add("__grid_constant__ from sm_70 on", None if guarded == [False, True] else
               f"sm_52 and sm_70 have it: {guarded}")


def check(report, passes):
    check_oldest_architecture(report)
    nvcc = compiler()
    if nvcc is None:
        for name in (f"{VIEW} alone", "the umbrella, device and every .cuh, twice", "kernels", f"cost of {VIEW}"):
            report.skip(f"nvcc: {name}", "nvcc is not installed")
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
