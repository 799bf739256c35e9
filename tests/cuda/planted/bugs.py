# The bugs that planted.py plants, with the test program that must fail.
#
#   bug("the copy stream is a blocking one", DEVICE, cuda("cudaStreamNonBlocking", "cudaStreamDefault"))
#
# An edit replaces a text that its header contains exactly once. `red` lists the accepted failures: a failed check
# ("check"), or a signal ("fault") if the program accesses memory that the fake CUDA runtime protects.
# A bug belongs here if it compiles, looks harmless and violates the rules of the CUDA runtime. The rules allow, for
# example, copies and waits with any current device.
import functools
import typing

from planting import Edit

DEVICE, SESSION, CAPTURE = (f"cuda/contract/{name}_contract_test.cpp" for name in ("device", "session", "steps"))
ORDERS = "unit/deliver/cuda_faults_test.cpp"
DELIVERY = "unit/deliver/batch_output_test.cpp"
METRICS, METRIC_KERNELS = "unit/train/metrics_cuda_test.cpp", "unit/train/metric_kernels_test.cpp"
NORMALIZE, KERNEL = "unit/device/normalize_cuda_test.cpp", "unit/device/kernel_test.cpp"
CHECK, FAULT = "check", "fault"


class Bug(typing.NamedTuple):
    name: str
    program: str   # under tests
    edits: tuple
    red: tuple


def bug(name, program, *edits, red=(CHECK,)):
    return Bug(name, program, edits, red)


stager = functools.partial(Edit, "deliver/device_batch_output")
lease = functools.partial(Edit, "deliver/batch_lease")
cuda = functools.partial(Edit, "device/cuda")
errors = functools.partial(Edit, "device/cuda_error")
sums = functools.partial(Edit, "train/metrics.cuh")
metrics = functools.partial(Edit, "train/metrics")
kernels = functools.partial(Edit, "train/metric_kernels.cuh")
normalize = functools.partial(Edit, "device/normalize.cuh")
team = functools.partial(Edit, "device/kernel.cuh")

# Statements of the stager.
COPY_WAITS = "for (std::size_t i = 0; i < target.release_events; ++i) backend_->copy_waits_for(*target.released[i]);"
COPY = "backend_->copy_to_device(target.data, from.data, bytes);\n"
MARK = "        backend_->record_copy(*target.copied);\n"
STEP_WAITS = "backend_->stream_waits_for(options_.stream, *slot->copied);"
EVERY_STREAM = "for (std::size_t i = 0; i < used_on.size(); ++i)"
RECORD = "backend_->record(*s.released[i], used_on[i]);"
QUEUE_COPY = f"""    bool failed = false;
    try {{
      if (!target.meta.error) {{
        {COPY_WAITS}
        {COPY}{MARK}      }}
    }} catch (...) {{
      target.meta.error = lose_device();
      failed = true;
    }}
    in_flight_.push_back({{&target, from.slot, failed, bytes, queued_ns, from.batch}});
"""
HAND_OUT = """    {
      const std::lock_guard lock(mutex_);
      target.now = state::ready;
      ++copied_until_;
    }
    bell().ring();
"""
RECORD_RELEASE = f"""    try {{
      if (!s.meta.error) {{
        {EVERY_STREAM} {RECORD}
        gaps_.released(options_.stream);
      }}
    }} catch (...) {{
      lose_device();
    }}
"""
GIVE_BACK = """    {
      const std::lock_guard lock(mutex_);
      if (!s.meta.error) s.release_events = used_on.size();
      s.released_as = ++releases_;
      s.now = state::released;
    }
    bell().ring();
"""

COPIES_AND_REUSE = (
    bug("a host slot is released before its copy is done", ORDERS,
        stager("if (!oldest.failed && try_to_wait(*oldest.target->copied))", "if (!oldest.failed)"),
        red=(CHECK, FAULT)),
    bug("the copy's event is recorded before the copy", ORDERS, stager(COPY + MARK, MARK + COPY), red=(CHECK, FAULT)),
    bug("the copy's event is another slot's", ORDERS,
        stager("backend_->record_copy(*target.copied);", "backend_->record_copy(*ring_[0].copied);"),
        red=(CHECK, FAULT)),
    bug("the step's stream does not wait for the copy", ORDERS, stager(STEP_WAITS, ";")),
    bug("a batch is handed out before its copy is marked", DELIVERY,
        stager(QUEUE_COPY + HAND_OUT, HAND_OUT + QUEUE_COPY)),
    bug("the stream of also_used_on() does not wait for the copy", SESSION,
        stager("backend_->stream_waits_for(stream, *ring_[slot].copied);", "")),
    bug("also_used_on() forgets its stream", SESSION,
        lease("streams_[stream_count_++] = stream;", "streams_[stream_count_] = stream;")),
    bug("a copy does not wait for the release of its slot", SESSION, stager(COPY_WAITS, "")),
    bug("a copy only waits for the first of the release events", SESSION,
        stager(COPY_WAITS, COPY_WAITS.replace("; ++i", " && i < 1; ++i"))),
    bug("the first stream's release event is dropped", SESSION,
        stager(EVERY_STREAM, EVERY_STREAM.replace("i = 0", "i = 1"))),
    bug("the second stream's release event is dropped", SESSION,
        stager(EVERY_STREAM, EVERY_STREAM.replace("; ++i", " && i < 1; ++i"))),
    bug("release events are recorded in the step's stream, whichever streams used the batch", SESSION,
        stager(RECORD, RECORD.replace("used_on[i]", "options_.stream"))),
    bug("the streams of a batch share one release event", SESSION,
        stager(RECORD, RECORD.replace("released[i]", "released[0]"))),
    bug("the slots share their release events", SESSION, stager(RECORD, RECORD.replace("*s.", "*ring_[0].")),
        stager(COPY_WAITS, COPY_WAITS.replace("*target.", "*ring_[0]."))),
    bug("a slot is released before its release is recorded", DELIVERY,
        stager(RECORD_RELEASE + GIVE_BACK, GIVE_BACK + RECORD_RELEASE)),
    bug("join() does not wait for copies under way", DELIVERY, stager("    while (finish_oldest()) {}\n", "")),
    bug("fixed slots are not fixed", DELIVERY, stager("    if (options_.fixed_slots) {\n", "    if (false) {\n")),
    bug("errors of a device are not reported", DELIVERY, stager("if (!lost_) lost_ = why;", "")),
)

WAITS_AND_ALLOCATIONS = (
    bug("next() waits for the copy", ORDERS, stager(STEP_WAITS, "backend_->wait(*slot->copied);")),
    bug("release() waits for the step", ORDERS,
        stager(RECORD, RECORD.replace(";", ", backend_->wait(*s.released[i]);"))),
    bug("release() creates its event", ORDERS, stager(RECORD, "s.released[i] = backend_->make_event(), " + RECORD)),
    bug("the copy blocks its thread", DEVICE,
        cuda("cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, copies_)",
             "cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice)")),
    bug("host slots are pageable", DEVICE,
        cuda("if (!allocate_registered(where) && !allocate_by_runtime(where))", "")),
    bug("device slots are never freed", ORDERS, stager("      backend_->free_device(s.data);\n", "")),
)


def not_current(name, signature):
    """The call uses the current device of its thread."""
    here = "    const current_context here(gpu_);\n"
    return bug(f"the device is not current: {name}", DEVICE, cuda(f"{signature} {{\n{here}", f"{signature} {{\n"))


def not_tolerant(indent, call):
    """The call invalidates another thread's capture."""
    return cuda(f"{indent}const capture_tolerant now;\n{indent}{call}", indent + call)


STREAMS_AND_DEVICES = (
    bug("the copy stream is a blocking one", DEVICE, cuda("cudaStreamNonBlocking", "cudaStreamDefault")),
    bug("the copy is queued in the legacy stream", DEVICE,
        cuda("cudaMemcpyHostToDevice, copies_)", "cudaMemcpyHostToDevice, nullptr)")),
    bug("the copy's event is recorded in the legacy stream", DEVICE,
        cuda("cudaEventRecord(handle(mark), copies_)", "cudaEventRecord(handle(mark), nullptr)")),
    bug("the legacy stream waits for the release instead of the copy", DEVICE,
        cuda("cudaStreamWaitEvent(copies_, ", "cudaStreamWaitEvent(nullptr, ")),
    bug("the device is not current: its copy stream", DEVICE,
        cuda("const current_context here(gpu_);\n    const capture_tolerant now;\n    check_cuda(cudaStreamCreate",
             "check_cuda(cudaStreamCreate")),
    not_current("memory", "void* cuda_backend::allocate_device(std::size_t bytes)"),
    not_current("make_event()", "std::unique_ptr<device_event> cuda_backend::make_event(unsigned flags)"),
    bug("the device is not current: check_stream()", DEVICE,
        cuda("check_default_stream(stream, gpu_);\n  const current_context here(gpu_);", "")),
    not_current("record()", "void cuda_backend::record(device_event& mark, stream_view stream)"),
    not_current("stream_waits_for()", "void cuda_backend::stream_waits_for(stream_view stream, device_event& mark)"),
    bug("the caller's device is not restored", DEVICE,
        errors("if (pushed_) ignore_cuda(the_driver().pop(&context));", "")),
)

CAPTURES_AND_ERRORS = (
    bug("a batch is handed out while its stream is being captured", CAPTURE,
        stager("backend_->check_stream(options_.stream);", "")),
    bug("the stager invalidates a capture", CAPTURE, not_tolerant("    ", "check_cuda(cudaEventSynchronize"),
        cuda('check_cuda(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");', "")),
    bug("wait() invalidates a capture", DEVICE, not_tolerant("    ", "check_cuda(cudaEventSynchronize"),
        red=(CHECK, FAULT)),
    bug("allocate_host() invalidates a capture", DEVICE,
        cuda("const capture_tolerant now;\n  const cudaError_t result = cudaHostRegister",
               "const cudaError_t result = cudaHostRegister")),
    bug("allocate_device() invalidates a capture", DEVICE, not_tolerant("    ", "void* memory = nullptr;")),
    bug("freeing invalidates a capture", DEVICE, errors("    now.emplace();\n", "")),
    bug("the caller's capture mode is not restored", DEVICE,
        errors("{ ignore_cuda(cudaThreadExchangeStreamCaptureMode(&mode_)); }", "{}")),
    bug("a refused call remains the last error", DEVICE,
        errors("  cudaGetLastError();\n  throw io_error", "  throw io_error")),
    bug("an ignored error remains the last error", DEVICE,
        errors("if (result != cudaSuccess) cudaGetLastError();", "(void)result;")),
)

OF_METRICS = (
    bug("metrics: the live sums are copied", METRICS,
        sums("cudaMemcpyAsync(s.on_host, s.on_device,", "cudaMemcpyAsync(s.on_host, totals_,")),
    bug("metrics: a hand-over does not clear the sums", METRICS, sums("o_.slots], true);", "o_.slots], false);")),
    bug("metrics: the copy does not wait for the hand-over", METRICS,
        sums('check_cuda(cudaStreamWaitEvent(side_, s.moved, 0), "cudaStreamWaitEvent");', "")),
    bug("metrics: the copy's event is recorded in the step's stream", METRICS,
        sums("cudaEventRecord(s.landed, side_)", "cudaEventRecord(s.landed, step_)")),
    bug("metrics: the side stream is a blocking one", METRICS, sums("cudaStreamNonBlocking", "cudaStreamDefault")),
    bug("metrics: a slot is used again before its row was read", METRICS,
        sums("if (!used_ || pending_ == o_.slots) return false;", "if (!used_) return false;")),
    bug("metrics: a row is read before its copy completes", METRICS,
        sums("      return nullptr;\n    }\n    check_cuda(reached",
             "      return ring_[first_].on_host;\n    }\n    check_cuda(reached")),
    bug("metrics: a row has the step at which it arrived", METRICS,
        metrics("    r.finished = row_of(", "    r.of.at = last_;\n    r.finished = row_of(")),
    bug("metrics: an add in another stream does not wait", METRICS,
        sums('check_cuda(cudaStreamWaitEvent(stream, order_, 0), "cudaStreamWaitEvent");', "")),
    bug("metrics: read_now() clears the sums", METRICS, sums("move_out(spare, false);", "move_out(spare, true);")),
    bug("metrics: read_now() uses a slot of the ring", METRICS, sums("ring_.back();", "ring_.front();")),
    bug("metrics: the step waits for a row", METRICS, sums("cudaEventQuery(", "cudaEventSynchronize(")),
    bug("metrics: a query invalidates another thread's capture", METRICS,
        sums("const capture_tolerant now;   // another", "// another")),
    bug("metrics: a hand-over becomes part of a capture", METRICS,
        sums("if (is_capturing(step_)) return false;", "")),
    bug("metrics: the device is not current in an add", METRICS,
        sums("check_default_stream(v.stream, gpu_);\n    const current_context here(gpu_);", "")),
    bug("metrics: the sums are freed before the adds are done", METRICS,
        sums("      if (used_ && !is_capturing(step_)) {\n", "      if (false) {\n")),
    bug("metrics: an invalid label is ranked", METRICS,
        kernels("static_cast<std::uint64_t>(label) >= classes", "static_cast<std::uint64_t>(label) > classes")),
    bug("metrics: the values after the last vector are not summed", METRIC_KERNELS,
        kernels("if (rest < count) f(to_float(data[rest]), rest);", "(void)rest;")),
    bug("metrics: each block adds up all values", METRIC_KERNELS,
        kernels("team.block() * threads + t, team.blocks() * threads,", "t, threads,")),
    bug("metrics: the blocks of a group are counted from its begin", METRIC_KERNELS,
        kernels("first += adds[i++].blocks;", "first += adds[i++].blocks;\n    first = 0;")),
    bug("metrics: the last part is not merged", METRIC_KERNELS, kernels("t < count ?", "t + 1 < count ?")),
    bug("metrics: a long vector has parts only", METRIC_KERNELS, sums("if (blocks > 1) launch(", "if (false) launch(")),
)

OF_NORMALIZE = (
    bug("normalize: the numbers after the last vector are left out", NORMALIZE,
        normalize("if (rest + t < count && t < width) one(rest + t);", "(void)rest;")),
    bug("normalize: the numbers before the first vector are left out", NORMALIZE,
        normalize("if (t < head) one(t);", "")),
    bug("normalize: channels are counted from the first vector", NORMALIZE,
        normalize("job.scale[(done + body.head + c)", "job.scale[(done + c)")),
    bug("normalize: three channels are rotated the wrong way", NORMALIZE,
        normalize("factors[(c + r) % Channels]", "factors[(c + Channels - r) % Channels]")),
    bug("normalize: the head begins at the first channel of the vectors", NORMALIZE,
        normalize("(i + Channels * width - head)", "i")),
)

BARRIER = "      thread_.synchronize();\n"
AFTER_PREVIOUS = "thread_.synchronize();   // separates the previous reduction from this one\n"
STORE = "if (thread % lanes == 0) of_warps[thread / lanes] = mine;\n"

OF_KERNELS = (
    bug("kernels: a reduction does not wait for the previous one", KERNEL, team(AFTER_PREVIOUS, "")),
    bug("kernels: the first thread does not wait for the other warps", KERNEL,
        team(STORE + BARRIER, STORE)),
    bug("kernels: only the first lanes of the warps wait", KERNEL,
        team(STORE + BARRIER, "if (thread % lanes == 0) of_warps[thread / lanes] = mine, thread_.synchronize();\n")),
    bug("kernels: only the first warp exchanges its words", KERNEL,
        team("for (unsigned step = lanes / 2; step > 0; step /= 2) mine",
             "for (unsigned step = lanes / 2; step > 0 && thread < lanes; step /= 2) mine")),
    bug("kernels: the exchange begins with half of the lanes", KERNEL,
        team("step = lanes / 2; step > 0", "step = lanes / 4; step > 0")),
    bug("kernels: the exchange merges neighbors first", KERNEL,
        team("step = lanes / 2; step > 0; step /= 2", "step = 1; step < lanes; step *= 2")),
    bug("kernels: the last lanes of the warps store their sums", KERNEL,
        team(STORE, STORE.replace("== 0", "== lanes - 1"))),
    bug("kernels: the last warp is not merged", KERNEL, team("w < warps; ++w", "w < warps - 1; ++w")),
    bug("kernels: only the first word of a part is exchanged", KERNEL,
        team("for (unsigned& word : moved.of) word = thread_.from_lane_above(word, step);",
             "moved.of[0] = thread_.from_lane_above(moved.of[0], step);")),
)

BUGS = (*COPIES_AND_REUSE, *WAITS_AND_ALLOCATIONS, *STREAMS_AND_DEVICES, *CAPTURES_AND_ERRORS, *OF_METRICS,
        *OF_NORMALIZE, *OF_KERNELS)
