// Several sessions on one device, and several devices. Compiled against the fake CUDA runtime and against the real one.
#include "recorded_batches.hpp"

using namespace contract;

TEST_CASE("session: two sessions share a device, batch by batch") {
  contract::start();
  const contract::stream train_step, valid_step;
  const auto device = mr::cuda_device(0);
  batch_recorder trained(20), validated(20);
  mr::session train{flow(160, {.device = device, .stream = train_step}), quiet(2)};
  mr::session valid{flow(160, {.device = device, .stream = valid_step}), quiet(1)};
  for (auto& b : train) {
    trained.step(b, train_step);
    auto v = valid.next();
    validated.step(v, valid_step);
  }
  train_step.synchronize();
  valid_step.synchronize();
  CHECK(trained.right());
  CHECK(validated.right());
}

TEST_CASE("session: two sessions on a device do not wait for each other's steps") {
  contract::start();
  const contract::stream train_step, valid_step;
  const auto device = mr::cuda_device(0);
  batch_recorder trained(20), validated(20);
  mr::session train{flow(160, {.device = device, .stream = train_step, .slots = 2}), quiet(2)};
  mr::session valid{flow(160, {.device = device, .stream = valid_step, .slots = 2}), quiet(1)};
  {
    const contract::stream_block block(valid_step);
    for (int i = 0; i < 2; ++i) {
      auto b = valid.next();   // released at once: the next copy into its slot waits for the step
      validated.step(b, valid_step);
    }
    contract::pause();
    for (auto& b : train) trained.step(b, train_step);
    train_step.synchronize();
    CHECK_FALSE(block.is_over());
  }
  for (auto& b : valid) validated.step(b, valid_step);
  valid_step.synchronize();
  CHECK(trained.right());
  CHECK(validated.batches() == 20);
  CHECK(validated.right());
}

TEST_CASE("session: one session on each device of the process") {
  contract::start(1, 2);
  if (!second_device()) return;
  batch_recorder first(20), second(20);
  const contract::stream on_0;
  ok(cudaSetDevice(1));
  const contract::stream on_1;
  ok(cudaSetDevice(0));
  mr::session a{flow(160, {.device = mr::cuda_device(0), .stream = on_0}), quiet(2)};
  mr::session b{flow(160, {.device = mr::cuda_device(1), .stream = on_1}), quiet(2)};
  for (auto& batch : a) {
    first.step(batch, on_0);
    auto other = b.next();
    ok(cudaSetDevice(1));
    second.step(other, on_1);
    ok(cudaSetDevice(0));
  }
  on_0.synchronize();
  on_1.synchronize();
  CHECK(first.right());
  CHECK(second.right());
}
