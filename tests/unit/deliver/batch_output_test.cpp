// The transfer of batches: fixed slots, several streams, and a device that refuses.
#include "../../copying_device.hpp"
#include "../run/quiet_sessions.hpp"

#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <thread>

namespace mr = millrace;

namespace {

struct row {
  std::int64_t number;
};

const auto as_rows = mr::map([](int n) { return row{n}; });

auto flow(int count, mr::to_device_options where) {
  return mr::from(numbers(count)) | as_rows | mr::batch<&row::number>({.size = 4}) | mr::prefetch({.batches = 2}) |
         mr::to_device(std::move(where));
}

/// Copies at once, counts its calls, and refuses the nth call of one kind.
class counting_device final : public mr::host_backend {
 public:
  enum call { copy, record_copy_call, copy_wait, record_call, stream_wait, wait_call, calls };

  explicit counting_device(call refused = calls, int nth = 0) : refused_(refused), nth_(nth) {}

  std::string name() const override { return "counting"; }
  bool leases_host_slots() const override { return false; }
  void copy_waits_for(mr::device_event&) override { count(copy_wait); }
  void copy_to_device(void* to, const void* from, std::size_t bytes) override {
    count(copy);
    std::memcpy(to, from, bytes);
  }
  void record_copy(mr::device_event&) override { count(record_copy_call); }
  void record(mr::device_event&, mr::stream_view) override { count(record_call); }
  void stream_waits_for(mr::stream_view, mr::device_event&) override { count(stream_wait); }
  void wait(mr::device_event&) override { count(wait_call); }

  int counted(call which) const { return counts_[which].load(); }

 private:
  void count(call which) {
    if (++counts_[which] == nth_ && which == refused_) throw mr::io_error("the device refused", "Nothing");
  }

  const call refused_;
  const int nth_;
  std::array<std::atomic<int>, calls> counts_{};
};

/// Delays marks, so that work which other threads do before a mark exists becomes visible.
class slow_device final : public mr::host_backend {
 public:
  std::string name() const override { return "slow"; }
  bool leases_host_slots() const override { return false; }
  void copy_waits_for(mr::device_event&) override {}
  void copy_to_device(void* to, const void* from, std::size_t bytes) override {
    if (releasing_) reused_early_ = true;
    copying_ = true;
    std::memcpy(to, from, bytes);
  }
  void record_copy(mr::device_event&) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    copying_ = false;
  }
  void record(mr::device_event&, mr::stream_view) override {
    releasing_ = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    releasing_ = false;
  }
  void stream_waits_for(mr::stream_view, mr::device_event&) override {
    if (copying_) delivered_early_ = true;
  }
  void wait(mr::device_event&) override {}

  bool reused_early() const { return reused_early_; }
  bool delivered_early() const { return delivered_early_; }

 private:
  std::atomic<bool> releasing_{false}, copying_{false}, reused_early_{false}, delivered_early_{false};
};

/// Its copies end when they are waited for.
class late_device final : public mr::host_backend {
 public:
  explicit late_device(std::atomic<bool>& freed_early) : freed_early_(freed_early) {}

  std::string name() const override { return "late"; }
  bool leases_host_slots() const override { return false; }
  std::unique_ptr<mr::device_event> make_event() override { return std::make_unique<event>(); }
  void free_host(void* memory) noexcept override {
    if (under_way_ > 0) freed_early_ = true;
    host_backend::free_host(memory);
  }
  void copy_waits_for(mr::device_event&) override {}
  void copy_to_device(void*, const void*, std::size_t) override { ++under_way_; }
  void record_copy(mr::device_event& mark) override { static_cast<event&>(mark).under_way = true; }
  void record(mr::device_event&, mr::stream_view) override {}
  void stream_waits_for(mr::stream_view, mr::device_event&) override {}
  void wait(mr::device_event& mark) override {
    if (!static_cast<event&>(mark).under_way.exchange(false)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    --under_way_;
  }

 private:
  struct event : mr::device_event {
    std::atomic<bool> under_way{false};
  };
  std::atomic<int> under_way_{0};
  std::atomic<bool>& freed_early_;
};

}  // namespace

TEST_CASE("with fixed slots batch n is in slot n % slots, at one address, on every device and number of threads") {
  for (const bool copying : {false, true})
    for (const int threads : {0, 1, 3}) {
      mr::session run{flow(400, {.device = copying ? copying_device() : mr::host_device(), .fixed_slots = true}),
                      quiet(threads)};
      std::map<std::size_t, const std::int64_t*> address_of;
      std::int64_t expected = 0;
      for (auto& b : run) {
        REQUIRE(b.slot() == b.step() % run.slots());
        const auto numbers_of = b.get<&row::number>();
        REQUIRE(address_of.try_emplace(b.slot(), numbers_of.data).first->second == numbers_of.data);
        for (const auto n : numbers_of.host()) REQUIRE(n == expected++);
      }
      CHECK(expected == 400);
      CHECK(address_of.size() == 3);
    }
}

TEST_CASE("with fixed slots a batch whose slot is still leased is refused by name, and delivered after its release") {
  for (const bool copying : {false, true}) {
    mr::session run{flow(400, {.device = copying ? copying_device() : mr::host_device(), .fixed_slots = true}),
                    quiet(2)};
    auto first = run.next();
    run.next();
    run.next();
    CHECK_THROWS_WITH_AS(run.next(), doctest::Contains("slot 0, which the next batch needs, is leased: the batch "
                                                       "in this slot is still in use (in total, 1 batch is "
                                                       "still in use)"),
                         mr::setup_error);
    first.release();
    const auto next = run.next();
    CHECK(next.step() == 3);
    CHECK(next.slot() == 0);
  }
}

TEST_CASE("each stream of a batch waits for its copy, and the slot's next copy waits for each") {
  const auto device = std::make_shared<counting_device>();
  {
    mr::session run{flow(16, {.device = mr::device(device), .slots = 1}), quiet(2)};
    for (auto& b : run) {
      b.also_used_on({});
      b.also_used_on({});
    }
  }
  CHECK(device->counted(counting_device::copy) == 4);
  CHECK(device->counted(counting_device::stream_wait) == 4 * 3);
  CHECK(device->counted(counting_device::record_call) == 4 * 3);
  CHECK(device->counted(counting_device::copy_wait) == 3 * 3);
}

TEST_CASE("a batch is used on N streams, and on no more") {
  mr::session run{flow(16, {.device = mr::host_device()}), quiet(1)};
  auto b = run.next();
  for (std::size_t i = 1; i < mr::detail::batch_output::max_streams; ++i) b.also_used_on({});
  CHECK_THROWS_WITH_AS(b.also_used_on({}), doctest::Contains("more than 8 streams"), mr::setup_error);
}

TEST_CASE("a batch is delivered when its copy has been marked, and its slot is reused when its release has") {
  const auto device = std::make_shared<slow_device>();
  {
    mr::session run{flow(24, {.device = mr::device(device), .slots = 1}), quiet(2)};
    for (auto& b : run) CHECK(b.get<&row::number>().host()[0] == static_cast<std::int64_t>(4 * b.step()));
  }
  CHECK_FALSE(device->delivered_early());
  CHECK_FALSE(device->reused_early());
}

TEST_CASE("a destroyed session waits for its copies before their memory is freed") {
  std::atomic<bool> freed_early{false};
  for (std::uint64_t last = 0; last < 20; ++last) {
    mr::session run{flow(4'000, {.device = mr::device(std::make_shared<late_device>(freed_early))}), quiet(2)};
    for (auto& b : run)
      if (b.step() == last) break;
  }
  CHECK_FALSE(freed_early);
}

TEST_CASE("a call that a device refuses is the error of a batch, with its stage, and the session ends there") {
  using refused = counting_device::call;
  for (const refused which : {counting_device::copy, counting_device::record_copy_call, counting_device::copy_wait,
                              counting_device::record_call, counting_device::stream_wait, counting_device::wait_call})
    for (const int threads : {0, 2}) {
      CAPTURE(which);
      CAPTURE(threads);
      mr::session run{flow(4'000, {.device = mr::device(std::make_shared<counting_device>(which, 5))}), quiet(threads)};
      std::int64_t expected = 0;
      try {
        for (auto& b : run)
          for (const auto n : b.get<&row::number>().host()) REQUIRE(n == expected++);
        FAIL("no error");
      } catch (const mr::io_error& e) {
        CHECK(e.where().stage == "to_device");
        CHECK(e.message() == "the device refused");
      }
      CHECK(expected < 4'000);
      CHECK_THROWS_WITH_AS(run.next(), doctest::Contains("with an error: the device refused"), mr::setup_error);
    }
}
