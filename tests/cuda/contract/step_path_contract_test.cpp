// Counts the step's calls of the CUDA runtime with the linker's wrappers: no call waits, and after the start of the
// session, no thread of the library creates or frees resources.
#include "recorded_batches.hpp"
#include "wrapped_calls.hpp"

using namespace contract;

TEST_CASE("step path: the counters see the calls of this program") {
  contract::start();
  const wrapped_calls before;
  {
    const contract::stream s;
    s.synchronize();
    const auto memory = contract::make_device(16);
  }
  const wrapped_calls calls = wrapped_calls() - before;
  CHECK(calls.waits == 2);   // one of them when the stream is destroyed
  CHECK(calls.resource_calls == 4);
}

TEST_CASE("step path: next, get and release never wait; after the start nothing is created, registered or freed") {
  for (const int threads : {0, 2})
    for (const bool fixed : {false, true}) {
      contract::start();
      const contract::stream step, other;
      mr::session run{flow(160, {.device = mr::cuda_device(0), .stream = step, .slots = 3, .fixed_slots = fixed}),
                      {.epochs = 3, .threads = threads, .notice = mr::quiet}};
      batch_recorder recorder(60);
      const wrapped_calls before;
      for (auto& b : run) {
        recorder.step(b, b.stream());
        b.also_used_on(static_cast<cudaStream_t>(other));
      }
      const wrapped_calls calls = wrapped_calls() - before;
      // With threads = 0, the caller finally waits for its copy.
      if (threads > 0) CHECK(calls.waits == 0);
      CHECK(calls.resource_calls == 0);
      step.synchronize();
      CHECK(recorder.batches() == 60);
    }
}
