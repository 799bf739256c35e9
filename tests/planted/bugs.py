# The bugs that planted.py plants: what each changes, and which test program has to turn red.
#
#   Bug("the copy is queued in the legacy stream", DEVICE, [Edit("device/cuda.hpp", "old", "new")])
#
# `old` stands in the file exactly once. `red` is how the program may end: a failed check ("check"), a signal ("fault",
# where the stand-in for the CUDA runtime keeps memory that must not be touched), or no end ("time-out").
import typing

DEVICE, SESSION, CAPTURE = (f"cuda/{name}_contract_test.cpp" for name in ("device", "session", "capture"))
ORDERS = "run/cuda_faults_test.cpp"
HANDING_OVER = "run/delivery_test.cpp"
METRICS, METRIC_KERNELS = "train/metrics_cuda_test.cpp", "train/metric_kernels_test.cpp"
NORMALIZE = "device/normalize_cuda_test.cpp"


class Edit(typing.NamedTuple):
    file: str   # under include/millrace
    old: str
    new: str


class Bug(typing.NamedTuple):
    name: str
    program: str   # under tests
    edits: tuple
    red: tuple = ("check",)


def stager(old, new):
    return Edit("run/copying_delivery.hpp", old, new)


def cuda(old, new):
    return Edit("device/cuda.hpp", old, new)


def sums(old, new):
    return Edit("train/metrics.cuh", old, new)


WAITS = "for (std::size_t i = 0; i < target.release_events; ++i) backend_->copy_waits_for(*target.released[i]);"
RECORDS = "for (std::size_t i = 0; i < used_on.size(); ++i) backend_->record(*s.released[i], used_on[i]);"
COPY = "backend_->copy_to_device(target.data, from.data, batch_bytes_);"
MARK = "backend_->record_copy(*target.copied);"
TAKE = "backend_->stream_waits_for(options_.stream, *found->copied);"
HERE = "    const current_device here(ordinal_);\n"


def without_device(signature, next_line):
    """The call is made on whatever device the thread has."""
    return cuda(f"{signature} {{\n{HERE}{next_line}", f"{signature} {{\n{next_line}")


BUGS = (
    # The order of copies, steps and reuse.
    Bug("a host slot is given back before its copy is done", ORDERS, (
        stager("if (!oldest.failed && try_to_wait(*oldest.target->copied))", "if (!oldest.failed)"),), ("check", "fault")),
    Bug("the copy's event is recorded before the copy", ORDERS, (
        stager(COPY, MARK), stager(f"{MARK}\n        {MARK}", f"{MARK}\n        {COPY}")), ("check", "fault")),
    Bug("the copy's event is never recorded", SESSION, (stager(MARK, ""),), ("check", "fault")),
    Bug("the copy's event is another slot's", ORDERS, (stager(MARK, "backend_->record_copy(*ring_[0].copied);"),),
        ("check", "fault")),
    Bug("the trainer's stream does not wait for the copy", ORDERS, (stager(TAKE, ""),)),
    Bug("also_used_on() lets the stream go ahead of the copy", SESSION, (
        stager("backend_->stream_waits_for(stream, *ring_[slot].copied);", ""),)),
    Bug("also_used_on() forgets the stream", SESSION, (
        Edit("run/batch.hpp", "streams_[stream_count_++] = stream;", "streams_[stream_count_] = stream;"),)),
    Bug("a copy does not wait for the events of its slot's release", SESSION, (stager(WAITS, ""),)),
    Bug("a copy waits for the first of the release events alone", SESSION, (
        stager("i < target.release_events; ++i) backend", "i < target.release_events && i < 1; ++i) backend"),)),
    Bug("the release event of the first stream is dropped", SESSION, (
        stager("for (std::size_t i = 0; i < used_on.size(); ++i)", "for (std::size_t i = 1; i < used_on.size(); ++i)"),)),
    Bug("the release event of the second stream is dropped", SESSION, (
        stager("i < used_on.size(); ++i)", "i < used_on.size() && i < 1; ++i)"),)),
    Bug("release events are recorded in the step's stream, whoever used the batch", SESSION, (
        stager("backend_->record(*s.released[i], used_on[i]);", "backend_->record(*s.released[i], options_.stream);"),)),
    Bug("release events are recorded in the legacy stream", SESSION, (
        stager("backend_->record(*s.released[i], used_on[i]);", "backend_->record(*s.released[i], {});"),)),
    Bug("the streams of a batch share one release event", SESSION, (
        stager("backend_->record(*s.released[i], used_on[i]);", "backend_->record(*s.released[0], used_on[i]);"),)),
    Bug("all slots share their release events", SESSION, (
        stager(RECORDS, RECORDS.replace("*s.", "*ring_[0].")), stager(WAITS, WAITS.replace("*target.", "*ring_[0].")))),
    Bug("join() does not wait for copies under way", HANDING_OVER, (
        stager("while (finish_oldest()) {\n    }", ""),)),
    Bug("slots are freed while the step still reads them", ORDERS, (
        stager("try_to_wait(*s.released[i]);", ""),)),
    Bug("a slot is free before its release is recorded", ORDERS, (
        stager("    try {\n      if (!s.meta.error)\n        for (std::size_t i = 0; i < used_on.size(); ++i) ",
               "    {\n      const std::lock_guard lock(mutex_);\n      if (!s.meta.error) s.release_events = used_on.size();\n"
               "      s.released_as = ++releases_;\n      s.now = state::released;\n    }\n"
               "    try {\n      if (!s.meta.error)\n        for (std::size_t i = 0; i < used_on.size(); ++i) "),
        stager("      lose_device();\n    }\n    {\n      const std::lock_guard lock(mutex_);\n"
               "      if (!s.meta.error) s.release_events = used_on.size();\n      s.released_as = ++releases_;\n"
               "      s.now = state::released;\n    }\n    bell().ring();", "      lose_device();\n    }\n    bell().ring();"))),
    Bug("a batch is handed out before its copy is queued", ORDERS, (
        stager("    bool failed = false;\n    try {\n      if (!target.meta.error) {",
               "    bool failed = false;\n    {\n      const std::lock_guard lock(mutex_);\n      target.now = state::ready;\n"
               "      ++copied_until_;\n    }\n    bell().ring();\n    try {\n      if (!target.meta.error) {"),
        stager("    in_flight_.push_back({&target, from.slot, failed});\n    {\n      const std::lock_guard lock(mutex_);\n"
               "      target.now = state::ready;\n      ++copied_until_;\n    }\n    bell().ring();",
               "    in_flight_.push_back({&target, from.slot, failed});")), ("check", "fault")),
    Bug("fixed slots are not fixed", ORDERS, (
        stager("    if (options_.fixed_slots) {\n", "    if (false) {\n"),)),
    Bug("fixed slots are not fixed: graphs", CAPTURE, (
        stager("    if (options_.fixed_slots) {\n", "    if (false) {\n"),), ("check", "fault")),
    Bug("a batch is handed out while its stream is being captured", CAPTURE, (
        stager("    backend_->check_stream(options_.stream);   // before anything changes: the call may be repeated\n", ""),)),
    # What the step's path must not do.
    Bug("an event is made on the step's path", ORDERS, (
        stager(RECORDS, RECORDS.replace("backend_->record", "s.released[i] = backend_->make_event(), backend_->record")),)),
    Bug("release() waits for the step", ORDERS, (
        stager(RECORDS, RECORDS.replace(") backend_->record(*s.released[i], used_on[i]);",
                                        ") backend_->record(*s.released[i], used_on[i]), backend_->wait(*s.released[i]);")),)),
    Bug("next() waits for the copy", ORDERS, (stager(TAKE, "backend_->wait(*found->copied);"),)),
    Bug("the copy blocks its thread", DEVICE, (
        cuda("cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, copies_)",
             "cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice)"),), ("check", "time-out")),
    # Streams and devices.
    Bug("the copy is queued in the legacy stream", DEVICE, (
        cuda("cudaMemcpyHostToDevice, copies_)", "cudaMemcpyHostToDevice, nullptr)"),), ("check", "time-out")),
    Bug("the copy's event is recorded in the legacy stream", DEVICE, (
        cuda("cudaEventRecord(handle(mark), copies_)", "cudaEventRecord(handle(mark), nullptr)"),), ("check", "time-out")),
    Bug("the wait for the release is queued in the legacy stream", DEVICE, (
        cuda("cudaStreamWaitEvent(copies_, ", "cudaStreamWaitEvent(nullptr, "),), ("check", "time-out")),
    Bug("the copy stream is a blocking one", DEVICE, (
        cuda("cudaStreamNonBlocking", "cudaStreamDefault"),), ("check", "time-out")),
    Bug("device not current: the copy stream", DEVICE, (
        cuda("    const current_device here(ordinal_);\n    const capture_tolerant now;\n    check_cuda(cudaStreamCreate",
             "    const capture_tolerant now;\n    check_cuda(cudaStreamCreate"),)),
    Bug("device not current: allocate_device", DEVICE, (
        without_device("void* allocate_device(std::size_t bytes) override", "    const capture_tolerant now;"),)),
    Bug("device not current: make_event", DEVICE, (
        without_device("std::unique_ptr<device_event> make_event() override", ""),)),
    Bug("device not current: copy_waits_for", DEVICE, (
        without_device("void copy_waits_for(device_event& mark) override", ""),)),
    Bug("device not current: copy_to_device", DEVICE, (
        without_device("void copy_to_device(void* to, const void* from, std::size_t bytes) override", ""),)),
    Bug("device not current: record_copy", DEVICE, (
        without_device("void record_copy(device_event& mark) override", ""),)),
    Bug("device not current: check_stream", DEVICE, (
        without_device("void check_stream(stream_view stream) override", ""),)),
    Bug("device not current: record", DEVICE, (
        without_device("void record(device_event& mark, stream_view stream) override", ""),)),
    Bug("device not current: stream_waits_for", DEVICE, (
        without_device("void stream_waits_for(stream_view stream, device_event& mark) override", ""),)),
    Bug("device not current: wait", DEVICE, (
        without_device("void wait(device_event& mark) override", ""),)),
    Bug("the caller's device is not restored", DEVICE, (
        Edit("device/cuda_error.hpp", "if (changed_) ignore_cuda(cudaSetDevice(before_));", ""),)),
    # Captures of the user's, and errors.
    Bug("capture: enter_thread() leaves the stager's mode alone", CAPTURE, (
        cuda("check_cuda(cudaThreadExchangeStreamCaptureMode(&mode), \"cudaThreadExchangeStreamCaptureMode\");", ""),)),
    Bug("capture: wait() is not tolerant", DEVICE, (
        cuda("    const capture_tolerant now;\n    check_cuda(cudaEventSynchronize", "    check_cuda(cudaEventSynchronize"),)),
    Bug("capture: allocate_host() is not tolerant", DEVICE, (
        cuda("      const capture_tolerant now;\n      result = cudaHostAlloc", "      result = cudaHostAlloc"),)),
    Bug("capture: allocate_device() is not tolerant", DEVICE, (
        cuda("    const capture_tolerant now;\n    void* memory", "    void* memory"),)),
    Bug("capture: freeing is not tolerant", DEVICE, (cuda("      now.emplace();\n", ""),)),
    Bug("capture: a new device is not tolerant", DEVICE, (
        cuda("    const capture_tolerant now;\n    check_cuda(cudaStreamCreate", "    check_cuda(cudaStreamCreate"),)),
    Bug("capture: the mode is not given back", DEVICE, (
        Edit("device/cuda_error.hpp", "~capture_tolerant() { ignore_cuda(cudaThreadExchangeStreamCaptureMode(&mode_)); }",
             "~capture_tolerant() {}"),)),
    Bug("a refused call stays behind as the last error", DEVICE, (
        Edit("device/cuda_error.hpp", "  cudaGetLastError();\n  throw io_error", "  throw io_error"),)),
    Bug("an ignored error stays behind as the last error", DEVICE, (
        Edit("device/cuda_error.hpp", "if (result != cudaSuccess) cudaGetLastError();", "(void)result;"),)),
    Bug("host slots are pageable", DEVICE, (
        cuda("      result = cudaHostAlloc(&memory, bytes, cudaHostAllocPortable);", "      result = cudaErrorNotSupported;"),)),
    Bug("what a device refused is not told", HANDING_OVER, (
        stager("if (!lost_) lost_ = why;", ""),), ("check", "time-out")),
    # Metrics.
    Bug("metrics: the side stream copies the live sums", METRICS, (
        sums("cudaMemcpyAsync(s.on_host, s.on_device,", "cudaMemcpyAsync(s.on_host, totals_,"),)),
    Bug("metrics: a hand-over leaves the sums as they are", METRICS, (
        sums("o_.slots], true);", "o_.slots], false);"),)),
    Bug("metrics: the copy does not wait for the hand-over", METRICS, (
        sums("    check_cuda(cudaStreamWaitEvent(side_, s.moved, 0), \"cudaStreamWaitEvent\");\n", ""),)),
    Bug("metrics: the copy's event is recorded in the step's stream", METRICS, (
        sums("cudaEventRecord(s.landed, side_)", "cudaEventRecord(s.landed, step_)"),)),
    Bug("metrics: a ring slot is reused before its row was read", METRICS, (
        sums("if (!used_ || under_way_ == o_.slots) return false;", "if (!used_) return false;"),)),
    Bug("metrics: a row is read before its copy has landed", METRICS, (
        sums("      ignore_cuda(reached);\n      return nullptr;\n", "      ignore_cuda(reached);\n      return ring_[first_].on_host;\n"),)),
    Bug("metrics: a row has the step at which it arrived", METRICS, (
        Edit("train/metrics.hpp", "    r.made = row_of(r.host, r.of);", "    r.of.at = last_;\n    r.made = row_of(r.host, r.of);"),)),
    Bug("metrics: an add in another stream does not wait", METRICS, (
        sums("      check_cuda(cudaStreamWaitEvent(stream, order_, 0), \"cudaStreamWaitEvent\");\n", ""),)),
    Bug("metrics: reading on demand clears the sums", METRICS, (sums("move_out(spare, false);", "move_out(spare, true);"),)),
    Bug("metrics: reading on demand takes a slot of the ring", METRICS, (sums("ring_.back();", "ring_.front();"),)),
    Bug("metrics: the step waits for a row", METRICS, (
        sums("cudaEventQuery(ring_[first_].landed);", "cudaEventSynchronize(ring_[first_].landed);"),)),
    Bug("metrics: a query spoils another thread's capture", METRICS, (
        sums("    const capture_tolerant now;   // some other thread may be capturing\n", ""),)),
    Bug("metrics: a hand-over becomes part of a capture", METRICS, (
        sums("    if (is_capturing(step_)) return false;\n", ""),)),
    Bug("metrics: device not current in an add", METRICS, (
        sums("    if (v.count == 0) return;\n    const current_device here(o_.device);\n", "    if (v.count == 0) return;\n"),)),
    Bug("metrics: the side stream is a blocking one", METRICS, (sums("cudaStreamNonBlocking", "cudaStreamDefault"),)),
    # Kernels.
    Bug("kernels: the values behind the last vector are not summed", METRIC_KERNELS, (
        Edit("train/metric_kernels.cuh", "  if (rest < count) f(to_float(data[rest]), rest);\n", "  (void)rest;\n"),)),
    Bug("kernels: a label that is no class is read", METRIC_KERNELS, (
        Edit("train/metric_kernels.cuh", "static_cast<std::uint64_t>(label) >= classes", "static_cast<std::uint64_t>(label) > classes"),)),
    Bug("kernels: a block ranks its first row alone", METRIC_KERNELS, (
        Edit("train/metric_kernels.cuh", "row += team.blocks()", "row += rows"),)),
    Bug("kernels: the hand-over moves one metric for each thread", METRIC_KERNELS, (
        Edit("train/metric_kernels.cuh", "i < count; i += threads)", "i < count && i < threads; i += threads)"),)),
    Bug("normalize: the numbers behind the last vector are left out", NORMALIZE, (
        Edit("device/normalize.cuh", "    if (rest + t < count && t < width) one(rest + t);\n", "    (void)rest;\n"),)),
    Bug("normalize: the numbers before the first vector are left out", NORMALIZE, (
        Edit("device/normalize.cuh", "    if (t < head) one(t);\n", ""),)),
    Bug("normalize: channels are counted from the first vector", NORMALIZE, (
        Edit("device/normalize.cuh", "(first_channel + head + unit % Channels * width)", "(first_channel + unit % Channels * width)"),)),
    Bug("normalize: the last unit of a block is left out", NORMALIZE, (
        Edit("device/normalize.cuh", "return static_cast<unsigned>((units + units_of_block - 1) / units_of_block);",
             "return static_cast<unsigned>(units / units_of_block);"),)),
    Bug("normalize: planes of any width are stored in vectors", NORMALIZE, (
        Edit("device/normalize.cuh", "job.pixels % width == 0 && ", ""),)),
)
