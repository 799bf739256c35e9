// What the step's path asks of the CUDA runtime, counted by the linker's wrappers around it: no call that waits, and
// once the session has started, none that makes or frees anything, on any thread of ours.
#include "kept_batches.hpp"
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
  const wrapped_calls seen = wrapped_calls() - before;
  CHECK(seen.waits == 2);   // one of them when the stream goes
  CHECK(seen.made == 4);
}

TEST_CASE("step path: next, get and release wait for nothing; after the start nothing is made, registered or freed") {
  for (const int threads : {0, 2})
    for (const bool fixed : {false, true}) {
      contract::start();
      const contract::stream step, beside;
      mr::session run{flow(160, {.device = mr::cuda_device(0), .stream = step, .slots = 3, .fixed_slots = fixed}),
                      {.epochs = 3, .threads = threads, .notice = mr::quiet}};
      keeper kept(60);
      const wrapped_calls before;
      for (auto& b : run) {
        kept.step(b, b.stream());
        b.also_used_on(static_cast<cudaStream_t>(beside));
      }
      const wrapped_calls seen = wrapped_calls() - before;
      // Inline, on the caller, a copy is waited for in the end: that is what threads = 0 is for.
      if (threads > 0) CHECK(seen.waits == 0);
      CHECK(seen.made == 0);
      step.synchronize();
      CHECK(kept.batches() == 60);
    }
}
