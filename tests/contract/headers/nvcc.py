# Compiles headers with nvcc, if it is installed: view.hpp alone; the umbrella, device/ and every .cuh twice in one
# file; each kernel for several architectures without a warning, a spill or a stack frame; the registers of each kernel;
# with nvdisasm (in NVIDIA's toolkit, or `pip install nvidia-cuda-nvdisasm`) its instructions; the cost of view.hpp.
#
#   nvcc.check(report, passes)          # of costs.py
#
# The cost is the number of tokens that the preprocessor passes on, over an empty .cu file: the same in every run.
import os
import re
import shutil
import subprocess
import typing

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


class Limit(typing.NamedTuple):
    """Of all kernels whose mangled name matches. `wide_stores` is the least number, the others are the greatest."""
    registers: int
    instructions: int
    wide_stores: int = 0
    indexed_parameters: int = 0   # loads of a parameter whose index may differ between lanes


# Measured with nvcc 13.0 for sm_90, with room for another compiler. Of several rules, the first that matches applies.
LIMITS = {
    "planar_normalizeINS0_3f16ELj3ELj8E": Limit(64, 9 * 48, 6),    # 16 pixels of three channels in each thread
    "planar_normalizeINS0_4bf16ELj3ELj8E": Limit(64, 9 * 48, 6),
    "planar_normalizeIfLj3ELj4E": Limit(64, 9 * 48, 12),
    "planar_normalizer": Limit(80, 500),
    "interleaved_normalizeINS0_": Limit(32, 280, 2, 4),            # the first and last elements use an index
    "interleaved_normalizeIf": Limit(32, 330, 4, 4),
    "row_mix_kernelINS0_3f16ELj8E": Limit(40, 360, 4),
    "row_mix_kernel": Limit(64, 650),
    "metric_rank_rows": Limit(40, 720),
    "sum_values": Limit(40, 420),
    "merge_metric_parts": Limit(40, 300),
    "add_group": Limit(80, 5200, 0, 80),                           # all threads of a block have the same index
    "": Limit(32, 200),
}


def tool(name):
    for path in (shutil.which(name), os.path.join(os.environ.get("CUDA_PATH", "/usr/local/cuda"), "bin", name)):
        if path and os.path.exists(path):
            return path
    return None


def compiler():
    return tool("nvcc")


def limit_of(kernel):
    return next(limit for part, limit in LIMITS.items() if part in kernel)


def problem_of_registers(printed):
    """The kernels of `ptxas -v` that need too many registers, memory for them, or are unknown to it."""
    kernels = re.findall(r"Compiling entry function '(\w+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores, "
                         r"(\d+) bytes spill loads.*?Used (\d+) registers", printed, re.DOTALL)
    wrong = [f"{kernel}: {registers} registers, {limit_of(kernel).registers} are allowed; stack and spills: {memory}"
             for kernel, *memory, registers in kernels
             if int(registers) > limit_of(kernel).registers or any(map(int, memory))]
    return "\n".join(wrong) or (None if kernels else "ptxas -v printed no kernel")


def problem_of_instructions(disassembly):
    kernels = re.split(r"^\.text\.", disassembly, flags=re.MULTILINE)[1:]
    wrong = []
    for text in kernels:
        kernel = text.split(":")[0]
        codes = re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z][\w.]*)", text)
        limit = limit_of(kernel)
        count = sum(code != "NOP" for code in codes)
        stores = sum(code.startswith("STG") and code.endswith(".128") for code in codes)
        indexed = len(re.findall(r"\bLDC[\w.]* R\d+, c\[0x0\]\[R", text))
        if count > limit.instructions or stores < limit.wide_stores or indexed > limit.indexed_parameters:
            wrong.append(f"{kernel}: {count} instructions, {stores} stores of 16 bytes, {indexed} indexed loads of "
                         f"parameters; allowed: {limit}")
    return "\n".join(wrong) or (None if kernels else "nvdisasm printed no kernel")


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


def check_kernels(report, passes, nvcc, version):
    """The registers and the instructions of the kernels for sm_90."""
    disassembler = tool("nvdisasm")
    flags = ["-arch=sm_90", "-cubin", "-Xptxas=-v"]
    key = passes.key(command(nvcc, *flags), version + KERNELS + repr(LIMITS) + str(disassembler), INCLUDE)
    names = ("nvcc: registers of the kernels", "nvcc: instructions of the kernels")
    problems = [None, None]
    if passes.remark(key) is None:
        FOLDER.mkdir(parents=True, exist_ok=True)
        source, code = FOLDER / "kernels.cu", FOLDER / "kernels.cubin"
        source.write_text(KERNELS)
        done = subprocess.run(command(nvcc, *flags, str(source), "-o", str(code)), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        problems[0] = done.stdout[:3000] if done.returncode != 0 else problem_of_registers(done.stdout)
        if disassembler and done.returncode == 0:
            problems[1] = problem_of_instructions(output_of([disassembler, "-c", str(code)]))
        if not any(problems):
            passes.remember(key)
    report.add(names[0], problems[0])
    if disassembler:
        report.add(names[1], problems[1])
    else:
        report.skip(names[1], "nvdisasm is not installed")


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
        for name in (f"{VIEW} alone", "the umbrella, device and every .cuh, twice", "kernels",
                     "registers of the kernels", "instructions of the kernels", f"cost of {VIEW}"):
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
    check_kernels(report, passes, nvcc, version)
    check_cost(report, nvcc)
