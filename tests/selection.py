# The programs that the legs unit, clang and tsan compile, unless MILLRACE_GCC, MILLRACE_ASAN or MILLRACE_TSAN is `all`.
#
#   programs = leg.build(options, lambda name: name in THREADED_UNITS)
#
# Each unit is compiled once: by g++ in the leg unit, with ThreadSanitizer, or with AddressSanitizer, whose units use
# memory in all ways.
import shutil
import subprocess

from checks import ROOT, have_changed, is_due, is_turn

# They include those that replace operator new, which skip their tests with a sanitizer.
PLAIN_UNITS = [f"unit_{name}" for name in "device_refusals examples fake_cuda_values gpu_network nvtx order report "
                                          "run_allocation run_frozen run_refusals run_resume simd tune".split()]
# g++ and AddressSanitizer's build run the kernels in turn: the compilers contract and order them differently.
CONTRACTED_UNITS = [f"unit_{name}" for name in "device device_cuda image_kernels".split()]
# Their subject is threads. ThreadSanitizer also reports uses after free.
THREADED_UNITS = [f"unit_{name}" for name in "adapt_feeders adapt_tbb deliver deliver_cuda fake_cuda measure "
                                             "read_stage run sync train_log work".split()]
# Large units. One half of them is due, in turn with each commit, and those in whose folder a test or a header changed.
UNITS_IN_TURN = ("adapt_remote_store deliver_cuda examples image_png io_cache report run_flows train "
                 "transcode".split(),
                 "adapt_remote_transfer cuda_contract fake_cuda gpu_rows image image_jpeg order read read_stage "
                 "run_damage sources".split())
# Half of them are due at each commit.
EXAMPLES_OF_ONE_TEST = {"evaluate": ["evaluate"],
                        "training": ["make_tones", "train_audio", "train_segmentation", "train_views",
                                     "tokenize_shards", "train_text"],
                        "opencv_pictures": ["opencv_pictures"], "torch_trainer": ["torch_trainer"],
                        "dlib_trainer": ["dlib_trainer"]}


def is_unit_due(unit):
    name = unit.removeprefix("unit_")
    folder = name.partition("_")[0]
    folder = {"cuda": "device", "fake": "device", "gpu": "device", "transcode": "examples"}.get(folder, folder)
    if have_changed(ROOT / "tests" / "unit" / folder, ROOT / "include" / "millrace" / folder, ROOT / folder):
        return True
    return not any(name in units and not is_turn(turn) for turn, units in enumerate(UNITS_IN_TURN))


def omitted_programs():
    """Programs and tests that the leg unit omits: examples that are not due, that of the leg exact, and programs that
    would skip their tests without a GPU."""
    has_gpu = shutil.which("nvidia-smi") and subprocess.run(["nvidia-smi", "-L"], capture_output=True).returncode == 0
    omitted = {"mpi_train", *([] if has_gpu else ["gpu_contract", "gpu_rows"])}
    for test, programs in EXAMPLES_OF_ONE_TEST.items():
        if not is_due(test, *(ROOT / "examples" / f"{program}.cpp" for program in programs)):
            omitted |= {test, *programs}
    return omitted
