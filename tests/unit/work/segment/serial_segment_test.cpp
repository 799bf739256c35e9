// The segment with a separate thread, and without the thread where nothing depends on it: order, ends, space, errors.
#include "../../../eventually.hpp"
#include "../../../thorough.hpp"
#include "recording_sink.hpp"

#include <millrace/work/segment/sample_names.hpp>
#include <millrace/work/segment/serial_segment.hpp>

#include <doctest/doctest.h>

#include <new>
#include <stdexcept>
#include <thread>

namespace {

using sample = mr::detail::sample<int>;

/// Emits each number when the next one arrives, and the last one at the end of the epoch. Some numbers are special.
struct hold_one {
  using output = int;
  static constexpr const char* name = "hold";
  static constexpr bool one_for_one = false;
  static constexpr int thrice = 3, cuts = 7, bad = 13, bad_end = 14;

  std::optional<int> previous{};

  void push(sample s, std::vector<sample>& out) {
    if (previous) out.push_back({.item = *previous});
    previous = *s.item;
    if (*previous == thrice)
      for (int i = 0; i < 3; ++i) out.push_back({.item = 30 + i});
    if (*previous == cuts) out.emplace_back().what = sample::kind::batch_end;
    if (*previous == bad) throw std::runtime_error("thirteen");
  }
  void end_epoch(std::vector<sample>& out) {
    if (!previous) return;
    out.push_back({.item = *previous});
    if (std::exchange(previous, std::nullopt) == bad_end) throw mr::setup_error("fourteen", "Leave it out");
  }
};

/// Passes each number on. Its metrics are those of a stage that neither drops nor adds items.
struct pass_through {
  using output = int;
  static constexpr const char* name = "pass";
  static constexpr bool one_for_one = true;
  void push(sample s, std::vector<sample>& out) { out.push_back(std::move(s)); }
  void end_epoch(std::vector<sample>&) {}
};

struct counting_listener final : mr::detail::space_listener {
  std::atomic<int> calls{0};
  void space_freed() noexcept override { ++calls; }
};

template <class Stage>
struct segment_with_sink {
  using segment_type = mr::detail::serial_segment<int, Stage>;

  explicit segment_with_sink(bool threaded = false, mr::detail::stage_passage* passage = nullptr,
                             std::size_t capacity = 64)
      : segment({}, {.capacity = capacity, .threaded = threaded, .passage = passage}, sink),
        in(segment.entrance()) {
    in.set_listener(&producer);
    segment.start();
  }
  ~segment_with_sink() {
    segment.stop();
    segment.join();
  }

  void put(std::initializer_list<int> numbers) {
    for (const int n : numbers) in.put({.item = n});
    in.publish();
  }
  /// Advances until nothing is possible, and returns the arrived samples.
  std::string run() {
    while (segment.advance()) {
    }
    return sink.log();
  }
  mr::stage_statistics statistics(std::uint64_t now_ns) const {
    mr::flow_statistics f;
    segment.add_to(f, now_ns);
    REQUIRE(f.stages.size() == 1);
    return f.stages[0];
  }
  std::string waits() const { return segment.waits(mr::detail::steady_now_ns()); }
  bool sleeps(const std::string& text) const {
    return eventually([&] { return waits().find(text) != std::string::npos; });
  }
  bool logs(const std::string& text) const {
    return eventually([&] { return sink.log() == text; });
  }

  recording_sink<int> sink;
  counting_listener producer;
  segment_type segment;
  mr::detail::sample_sink<int>& in;
};

}  // namespace

TEST_CASE("outputs and ends of a serial stage travel in order, and only the end of an epoch empties it") {
  segment_with_sink<hold_one> t;
  CHECK_FALSE(t.segment.advance());
  t.put({0, 1, 7});
  t.in.end_pass();
  t.put({8});
  t.in.end_epoch();
  t.put({9});
  t.in.end_epoch();
  t.in.end_epoch();
  t.in.finish(nullptr);
  t.in.publish();
  CHECK(t.run() == "0 1 batch pass 7 8 epoch 9 epoch epoch end");
  CHECK_FALSE(t.sink.error());
  CHECK(t.in.backlog() == 0);
}

TEST_CASE("nothing is consumed while outputs wait for space") {
  segment_with_sink<hold_one> t;
  t.put({0, 3, 5});
  t.sink.room = 2;
  REQUIRE(t.segment.advance());   // 0 is kept
  CHECK(t.in.backlog() == 2);
  REQUIRE(t.segment.advance());   // 3 becomes four outputs
  CHECK(t.sink.log().empty());
  CHECK(t.segment.advance());
  CHECK(t.sink.log() == "0 30");
  const std::size_t published = t.sink.published;
  CHECK_FALSE(t.segment.advance());
  CHECK(t.sink.published == published + 1);
  CHECK(t.in.backlog() == 1);
  t.sink.room = 1;
  CHECK(t.segment.advance());
  CHECK_FALSE(t.segment.advance());
  CHECK(t.sink.log() == "0 30 31");
  t.sink.room = 1;
  CHECK(t.segment.advance());
  CHECK(t.in.backlog() == 1);   // all outputs are gone; the next call consumes
  CHECK(t.segment.advance());
  CHECK(t.in.backlog() == 0);
  CHECK(t.run() == "0 30 31 32");
  t.sink.room = 1;
  CHECK(t.run() == "0 30 31 32 3");
}

TEST_CASE("an end waits for space as a sample does, and the next sample waits until the end is written") {
  segment_with_sink<hold_one> t;
  t.put({0});
  t.in.end_epoch();
  t.put({1});
  t.sink.room = 1;
  CHECK(t.run() == "0");   // the end finds no space
  CHECK(t.in.backlog() == 1);
  t.sink.room = 1;
  t.sink.settled = false;
  CHECK(t.run() == "0 epoch");
  CHECK_FALSE(t.segment.advance());
  CHECK(t.in.backlog() == 1);
  t.sink.settled = true;
  CHECK(t.segment.advance());
  CHECK(t.in.backlog() == 1);
  CHECK(t.segment.advance());
  CHECK(t.in.backlog() == 0);
}

TEST_CASE("a consumed sample frees space in the input, and its producer is notified") {
  segment_with_sink<pass_through> t(false, nullptr, 4);
  t.put({0, 1, 2, 3});
  CHECK_FALSE(t.in.can_accept());
  CHECK(t.in.held_bytes() == 4 * sizeof(int));
  CHECK(t.producer.calls == 0);
  t.sink.room = 0;
  CHECK(t.segment.advance());
  CHECK(t.producer.calls == 1);
  CHECK(t.in.can_accept());
  CHECK(t.in.held_bytes() == 3 * sizeof(int));
  t.sink.room = 10;
  t.put({4});
  CHECK(t.run() == "0 1 2 3 4");
  CHECK(t.producer.calls == 5);
}

TEST_CASE("the exception of a stage follows its outputs, names the sample, and ends the run") {
  segment_with_sink<hold_one> t;
  mr::detail::sample_names names;
  t.put({0, 1});
  t.in.put({.item = hold_one::bad, .origin = names.make("train-3.tar", "n017", 512)});
  t.put({2});
  CHECK(t.run() == "0 1 failed");
  CHECK(t.in.backlog() == 1);   // nothing after it is consumed
  try {
    std::rethrow_exception(t.sink.error());
  } catch (const mr::stage_error& e) {
    CHECK(e.message() == "thirteen");
    CHECK(e.where().stage == "hold");
    CHECK(e.where().shard == "train-3.tar");
    CHECK(e.where().key == "n017");
    CHECK(e.where().offset_bytes == 512);
  }
}

TEST_CASE("an exception at the end of an epoch ends the run in its place") {
  segment_with_sink<hold_one> t;
  t.put({hold_one::bad_end});
  t.in.end_epoch();
  t.put({1});
  CHECK(t.run() == "14 failed");
  CHECK_THROWS_WITH_AS(std::rethrow_exception(t.sink.error()), doctest::Contains("fourteen"), mr::setup_error);
  CHECK_FALSE(t.segment.advance());
}

TEST_CASE("an error that arrives is forwarded in its place, without the samples that the stage keeps") {
  segment_with_sink<hold_one> t;
  t.put({0, 1});
  t.in.finish(std::make_exception_ptr(mr::data_error("torn", "Copy it")));
  t.in.publish();
  CHECK(t.run() == "0 failed");
  CHECK(error_text(t.sink.error()).find("torn") != std::string::npos);
}

TEST_CASE("a stage counts its inputs and outputs in each pass, whichever end the pass has") {
  mr::detail::stage_passages passages;
  segment_with_sink<hold_one> t(false, &passages.add("expand", {.may_buffer = true}));
  const auto pass = [&] { return passages.close_pass(true).text; };
  t.put({0, 7, 3});
  t.in.end_pass();
  t.put({5});
  t.in.end_epoch();
  CHECK(t.run() == "0 batch 7 30 31 32 pass 3 5 epoch");
  CHECK(pass() == "expand 1 emitted 5 items for 3 samples");   // the end of a batch is not an item
  CHECK(pass() == "expand 1 emitted 2 items for 1 samples");
}

TEST_CASE("metrics count samples, and outputs if the stage changes their number") {
  segment_with_sink<hold_one> t;
  segment_with_sink<pass_through> same;
  const std::string at_start = t.waits();
  CHECK(at_start == "hold (one thread): at sample 0");
  for (int n = 100; n < 133; ++n) {
    t.put({n});
    same.put({n});
    t.run();
    same.run();
    if (n == 100) CHECK(t.waits() == at_start);
    if (n == 101) CHECK(t.statistics(0).items_per_sample == 2);   // the stage keeps one sample
  }
  CHECK(t.statistics(0).items == 33);
  CHECK(t.statistics(0).items_per_sample == 33.0 / 32);
  CHECK(same.statistics(0).items_per_sample == 1);
  CHECK(t.statistics(0).service_ns.count() == 3);   // of every 16th sample
  const auto f = t.statistics(mr::detail::steady_now_ns() + 1'000'000'000);
  CHECK(f.busy_ns == 0);   // without a thread these are not measured
  CHECK(f.starved_ns == 0);
  CHECK(f.blocked_ns == 0);
  CHECK(t.waits() == "hold (one thread): at sample 32");
}

TEST_CASE("the thread is woken by one sample, however long it slept") {
  segment_with_sink<pass_through> t(true);
  std::string log;
  for (int n = 0; n < 8; ++n) {
    const std::uint64_t starved_ns = t.statistics(mr::detail::steady_now_ns()).starved_ns;
    // Longer than its wait for a quarter of its buffer.
    REQUIRE(eventually(
        [&] { return t.statistics(mr::detail::steady_now_ns()).starved_ns > starved_ns + 4'000'000; }));
    REQUIRE(t.sleeps("at sample " + std::to_string(n) + ", waits for input"));
    t.put({n});
    log += (n > 0 ? " " : "") + std::to_string(n);
    REQUIRE(t.logs(log));
  }
}

TEST_CASE("the thread is woken by space, and its time without space is counted separately") {
  segment_with_sink<pass_through> t(true);
  t.sink.room = 0;
  t.put({0, 1, 2});
  std::uint64_t blocked_ns = 0;
  for (int n = 0; n < 3; ++n) {
    REQUIRE(t.sleeps("at sample " + std::to_string(n) + ", waits for space"));
    const std::uint64_t now = mr::detail::steady_now_ns();
    const auto before = t.statistics(now), after = t.statistics(now + 1'000'000);
    CHECK(after.blocked_ns == before.blocked_ns + 1'000'000);
    CHECK(after.starved_ns == before.starved_ns);
    CHECK(after.busy_ns == before.busy_ns);
    CHECK(before.blocked_ns > blocked_ns);
    blocked_ns = before.blocked_ns;
    t.sink.free(1);
  }
  REQUIRE(t.logs("0 1 2"));
  REQUIRE(t.sleeps("at sample 3, waits for input"));
  const std::uint64_t now = mr::detail::steady_now_ns();
  const auto before = t.statistics(now), after = t.statistics(now + 1'000'000);
  CHECK(before.blocked_ns >= blocked_ns);   // the time of the last sleep is kept
  CHECK(after.starved_ns == before.starved_ns + 1'000'000);
  CHECK(after.blocked_ns == before.blocked_ns);
}

TEST_CASE("the thread is woken when an end can be written, without space for a sample") {
  segment_with_sink<pass_through> t(true);
  t.sink.settled = false;
  t.put({0});
  t.in.end_epoch();
  REQUIRE(t.logs("0 epoch"));
  t.sink.room = 0;
  t.put({1});
  REQUIRE(t.sleeps("waits for space"));
  CHECK(t.in.backlog() == 1);
  t.sink.settled = true;
  t.segment.space_freed();
  REQUIRE(eventually([&] { return t.in.backlog() == 0; }));
  REQUIRE(t.sleeps("waits for space"));
  t.sink.free(1);
  CHECK(t.logs("0 epoch 1"));
}

TEST_CASE("without memory for a sample that is passed on, the run ends there") {
  segment_with_sink<pass_through> t(true);
  t.put({0});
  REQUIRE(t.logs("0"));
  t.sink.fails = true;
  t.sink.settled = false;
  t.put({1, 2});
  REQUIRE(t.logs("0 failed"));
  CHECK(error_text(t.sink.error()).find("memory is exhausted") != std::string::npos);
  CHECK(error_text(t.sink.error()).find("stage pass") != std::string::npos);
  REQUIRE(t.sleeps("waits for space"));   // the sink has not yet written the error
  t.sink.settled = true;
  t.segment.space_freed();
  REQUIRE(t.sleeps("waits for input"));
  t.put({3});
  t.segment.stop();
  t.segment.join();
  CHECK(t.sink.log() == "0 failed");
}

TEST_CASE("a thread that sleeps for input or for space is stopped") {
  for (const bool for_space : {false, true}) {
    segment_with_sink<pass_through> t(true);
    t.sink.room = 0;
    if (for_space) t.put({0, 1});
    REQUIRE(t.sleeps(for_space ? "waits for space" : "waits for input"));
    t.segment.stop();
    t.segment.join();
    CHECK(t.in.backlog() == (for_space ? 1 : 0));
    CHECK(t.sink.log().empty());
  }
}

namespace {

/// Removes samples from an input of four entries as fast as they arrive; the segment's thread sleeps for space often.
struct small_input final : mr::detail::claimed_ticket_gate {
  small_input() { entrance.connect(*this); }
  void set_available(std::uint64_t tickets) override { tickets_.store(tickets); }
  std::uint64_t available() const noexcept override { return tickets_.load(); }

  mr::detail::ticket_input<int> entrance{{.capacity = 4}};

 private:
  std::atomic<std::uint64_t> tickets_{0};
};

}  // namespace

TEST_CASE("no wake-up of a thread that sleeps for space is lost") {
  const int count = 100'000 / static_cast<int>(stride(5));
  small_input next;
  mr::detail::serial_segment<int, pass_through> segment({}, {.capacity = 4}, next.entrance);
  counting_listener space;
  auto& in = segment.entrance();
  in.set_listener(&space);
  segment.start();
  std::thread producer([&] {
    for (int n = 0; n < count; ++n) {
      while (!in.can_accept()) std::this_thread::yield();
      in.put({.item = n});
      in.publish();
    }
  });
  // A lost wake-up leaves the segment asleep, and this loop without an end.
  bool in_order = true;
  for (int n = 0; n < count; ++n) {
    const auto ticket = static_cast<std::uint64_t>(n);
    while (next.available() <= ticket) std::this_thread::yield();
    std::size_t bytes = 0;
    in_order = in_order && *next.entrance.take(ticket, bytes).item == n;
    next.entrance.freed(1, bytes);
  }
  producer.join();
  segment.stop();
  segment.join();
  CHECK(in_order);
}
