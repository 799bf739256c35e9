// The segment that workers run: order of its results, space, ends, errors and names. The tests complete tickets in the
// order that they choose.
#include "../../../eventually.hpp"
#include "recording_sink.hpp"

#include <millrace/stages/expand.hpp>
#include <millrace/stages/map.hpp>
#include <millrace/work/segment/parallel_segment.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <new>
#include <stdexcept>
#include <thread>

namespace {

using sample = mr::detail::sample<int>;
using mr::detail::fused_maps;
using mr::detail::no_expanding_stage;
using mr::detail::parallel_segment;
using mr::detail::stage_list;

/// n % 10 numbers: 10 n, 10 n + 1, ... The number 13 throws after its first output.
struct digits {
  using output = int;
  std::size_t max_outputs(const int& n) const { return n == 13 ? 13 : static_cast<std::size_t>(n % 10); }
  void push(int n, auto& emit) const {
    for (int i = 0; i < n % 10; ++i) {
      emit(10 * n + i);
      if (n == 13) throw std::runtime_error("thirteen");
    }
  }
};
/// Emits as many as requested, whatever it promised.
struct count_of {
  using output = int;
  std::size_t promised = 2;
  std::size_t max_outputs(const int&) const { return promised; }
  void push(int n, auto& emit) const {
    for (int i = 0; i < n; ++i) emit(i);
  }
};

template <class Maps, class Expanding>
struct segment_with_sink {
  using segment_type = parallel_segment<Maps, Expanding>;

  segment_with_sink(Maps maps, Expanding expanding, typename segment_type::options o)
      : segment(std::move(maps), std::move(expanding), o, sink), in(segment.entrance()) {
    segment.start();
  }

  void put(std::initializer_list<int> numbers) {
    for (const int n : numbers) in.put({.item = n, .id = static_cast<std::uint64_t>(n)});
    in.publish();
  }
  void complete(std::uint64_t ticket, std::size_t worker = 0) {
    segment.run(worker, ticket, 1);
    segment.publish(ticket, 1);
  }
  std::string run() {
    while (segment.advance()) {
    }
    return sink.log();
  }
  std::size_t claims() {
    std::size_t done = 0;
    while (segment.advance()) ++done;
    return done;
  }
  mr::stage_statistics statistics() const {
    mr::flow_statistics f;
    segment.add_to(f, 0);
    REQUIRE(f.stages.size() == 1);
    return f.stages[0];
  }

  recording_sink<int> sink;
  segment_type segment;
  mr::detail::sample_sink<int>& in;
};

using plain = segment_with_sink<fused_maps<int>, no_expanding_stage>;
using digit_stage = mr::detail::expand_stage<digits>;
using expanding = segment_with_sink<fused_maps<int>, digit_stage>;

template <class First>
fused_maps<int, First> maps_of(First first) {
  return {{.seed = 9}, append(stage_list<>{}, std::move(first))};
}
template <class First, class Second>
fused_maps<int, First, Second> maps_of(First first, Second second) {
  return {{.seed = 9}, append(append(stage_list<>{}, std::move(first)), std::move(second))};
}

bool is_any(const int&) { return true; }

std::exception_ptr damage() { return std::make_exception_ptr(mr::data_error("torn", "Copy it")); }

}  // namespace

TEST_CASE("results are forwarded in the order of their tickets, whichever worker was first") {
  plain t({}, {}, {.max_workers = 3, .capacity = 4});
  t.put({10, 11, 12, 13});
  t.complete(2, 2);
  t.complete(1, 1);
  CHECK(t.sink.log().empty());
  t.complete(0);
  CHECK(t.sink.log() == "10 11 12");
  t.segment.space_freed();   // nothing else is complete
  CHECK(t.sink.log() == "10 11 12");
  t.complete(3);
  CHECK(t.sink.log() == "10 11 12 13");
}

TEST_CASE("no more tickets are between claim and commit than the capacity says") {
  plain t({}, {}, {.capacity = 3});
  t.sink.room = 0;
  t.put({0, 1, 2, 3, 4, 5});
  CHECK(t.in.can_accept());   // twice the capacity, as a power of two
  CHECK(t.claims() == 3);
  CHECK(t.in.backlog() == 3);
  t.sink.free(1);
  CHECK(t.sink.log() == "0");
  CHECK(t.claims() == 1);
  t.sink.free(2);
  CHECK(t.claims() == 2);
  CHECK(t.claims() == 0);
  t.sink.free(10);
  CHECK(t.run() == "0 1 2 3 4 5");
}

TEST_CASE("an entry that was committed is not committed again, before it has a new result") {
  plain t({}, {}, {.capacity = 2});
  t.put({0, 1, 2});
  CHECK(t.claims() == 3);
  t.put({3});
  t.segment.space_freed();
  CHECK(t.sink.samples().size() == 3);
  CHECK(t.run() == "0 1 2 3");
}

TEST_CASE("outputs of one input may be forwarded in parts, each once, and the next input waits for all of them") {
  expanding t({}, {}, {.capacity = 8});
  t.sink.room = 2;
  t.put({3, 0, 2});
  CHECK(t.run() == "30 31");
  t.segment.space_freed();
  CHECK(t.sink.log() == "30 31");
  t.sink.free(1);
  CHECK(t.sink.log() == "30 31 32");
  t.sink.free(1);
  CHECK(t.sink.log() == "30 31 32 20");
  t.sink.free(5);
  CHECK(t.sink.log() == "30 31 32 20 21");
}

TEST_CASE("ends are forwarded in order with the samples, each as soon as there is space") {
  expanding t({}, {}, {.capacity = 8});
  t.put({1});
  t.in.end_pass();
  t.put({2});
  t.in.end_epoch();
  t.in.finish(nullptr);
  t.in.publish();
  t.sink.room = 1;
  CHECK(t.run() == "10");
  t.sink.free(2);
  CHECK(t.sink.log() == "10 pass 20 21");
  t.sink.free(1);
  CHECK(t.sink.log() == "10 pass 20 21 epoch end");
  CHECK_FALSE(t.sink.error());
}

TEST_CASE("the sink may write the rest of an end whenever space is reported") {
  plain t({}, {}, {});
  t.put({0});
  CHECK(t.run() == "0");
  const std::size_t calls = t.sink.settle_calls, published = t.sink.published;
  t.segment.space_freed();
  CHECK(t.sink.settle_calls == calls + 1);
  CHECK(t.sink.published == published + 1);
}

TEST_CASE("space that is freed while another thread commits is not lost") {
  plain t({}, {}, {.capacity = 8});
  t.sink.room = 1;
  t.put({0, 1, 2, 3, 4});
  for (const std::uint64_t ticket : {1, 2, 3, 4}) t.segment.run(0, ticket, 1);
  t.segment.publish(1, 4);
  CHECK(t.sink.log().empty());
  int frees = 3;
  t.sink.on_publish = [&] {   // like a worker that removes a sample just when the commit found no space
    if (frees-- > 0) t.sink.free(1);
  };
  t.complete(0);
  CHECK(t.sink.log() == "0 1 2 3");
}

TEST_CASE("an input that is consumed frees space for the producer") {
  struct final_listener final : mr::detail::space_listener {
    int calls = 0;
    void space_freed() noexcept override { ++calls; }
  } producer;
  plain t({}, {}, {.capacity = 2});
  t.in.set_listener(&producer);
  t.put({0, 1, 2, 3});
  CHECK_FALSE(t.in.can_accept());
  CHECK(t.in.held_bytes() == 4 * sizeof(int));
  t.segment.run(0, 0, 2);
  CHECK(producer.calls == 1);
  CHECK(t.in.can_accept());
  CHECK(t.in.backlog() == 2);
  CHECK(t.in.held_bytes() == 2 * sizeof(int));
  CHECK(t.sink.log().empty());   // publish() forwards
}

TEST_CASE("an exception replaces the sample, names it and the map, and ends the run") {
  const auto maps = maps_of(mr::map([](int n) { return n + 1; }), mr::map([](int n) {
                              if (n == 14) throw std::runtime_error("fourteen");
                              return n;
                            }));
  mr::detail::sample_names names;
  segment_with_sink<std::remove_cv_t<decltype(maps)>, no_expanding_stage> t(maps, {}, {.capacity = 8});
  t.put({1, 2});
  t.in.put({.item = 13, .origin = names.make("train-3.tar", "n017", 512)});
  t.put({4});
  for (const std::uint64_t ticket : {3, 2, 1, 0}) t.complete(ticket);
  CHECK(t.sink.log() == "2 3 failed");
  t.segment.space_freed();
  CHECK(t.sink.log() == "2 3 failed");
  try {
    std::rethrow_exception(t.sink.error());
  } catch (const mr::stage_error& e) {
    CHECK(e.message() == "fourteen");
    CHECK(e.where().stage == "map 2");
    CHECK(e.where().shard == "train-3.tar");
    CHECK(e.where().key == "n017");
    CHECK(e.where().offset_bytes == 512);
  }
}

TEST_CASE("if an expanding stage throws, none of its outputs is forwarded") {
  expanding t({}, {}, {});
  t.put({2, 13, 1});
  CHECK(t.run() == "20 21 failed");
  CHECK_THROWS_WITH_AS(std::rethrow_exception(t.sink.error()), doctest::Contains("stage expand"), mr::stage_error);
}

TEST_CASE("an error that arrives is forwarded in its place") {
  expanding t({}, {}, {});
  t.sink.room = 2;
  t.put({2});
  t.in.finish(damage());
  t.in.publish();
  CHECK(t.run() == "20 21");
  t.sink.free(1);
  CHECK(t.sink.log() == "20 21 failed");
  CHECK(error_text(t.sink.error()).find("torn") != std::string::npos);
}

TEST_CASE("without memory for a sample that is passed on, the run ends there") {
  plain t({}, {}, {});
  mr::detail::sample_names names;
  t.put({0});
  CHECK(t.run() == "0");
  t.in.put({.item = 1, .origin = names.make("train-3.tar", "n018")});
  t.put({2});
  t.sink.fails = true;
  CHECK(t.run() == "0 failed");
  CHECK(error_text(t.sink.error()).find("memory is exhausted") != std::string::npos);
  CHECK(error_text(t.sink.error()).find("key n018") != std::string::npos);
}

TEST_CASE("a stage may emit as many items as it promised or as expand() allows, and not one more") {
  using promised_type = mr::detail::expand_stage<count_of>;
  using bounded_type = mr::detail::expand_stage<count_of, true>;
  segment_with_sink<fused_maps<int>, promised_type> promised({}, promised_type{{}, {.promised = 2}}, {});
  segment_with_sink<fused_maps<int>, bounded_type> bounded({}, bounded_type{{}, {}, {.max_outputs = 3}}, {});
  promised.put({2, 3});
  bounded.put({3, 4});
  CHECK(promised.run() == "0 1 failed");
  CHECK(bounded.run() == "0 1 2 failed");
  CHECK_THROWS_WITH_AS(std::rethrow_exception(promised.sink.error()),
                       doctest::Contains("got more than 2, expected at most 2, as its max_outputs()"), mr::setup_error);
  CHECK_THROWS_WITH_AS(std::rethrow_exception(bounded.sink.error()),
                       doctest::Contains("got more than 3, expected at most 3"), mr::setup_error);
}

TEST_CASE("outputs keep the place of their input; those of an expanding stage get identities and names") {
  mr::detail::sample_names names;
  const auto put_into = [&](mr::detail::sample_sink<int>& in) {
    in.put({.item = 2, .epoch = 3, .pass = 5, .id = 77, .ordinal = 9, .origin = names.make("a.tar", "k")});
    in.publish();
  };
  expanding t({}, {}, {.names = &names});
  plain same({}, {}, {.names = &names});
  const auto keep = mr::filter(is_any).as_expanding<int>();
  segment_with_sink<fused_maps<int>, std::remove_cv_t<decltype(keep)>> filtered({}, keep, {.names = &names});
  expanding unnamed({}, {}, {});
  for (auto* in : {&t.in, &same.in, &filtered.in, &unnamed.in}) put_into(*in);
  t.run();
  same.run();
  filtered.run();
  unnamed.run();
  REQUIRE(t.sink.samples().size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const sample& s = t.sink.samples()[i];
    CHECK(s.epoch == 3);
    CHECK(s.pass == 5);
    CHECK(s.ordinal == 9);
    CHECK(s.id == mr::detail::child_id(77, i));
    CHECK(s.origin.key() == "k#" + std::to_string(i));
    CHECK(s.origin.shard() == "a.tar");
  }
  REQUIRE(same.sink.samples().size() == 1);
  CHECK(same.sink.samples()[0].id == 77);
  CHECK(same.sink.samples()[0].origin.key() == "k");
  REQUIRE(filtered.sink.samples().size() == 1);
  CHECK(filtered.sink.samples()[0].id == mr::detail::child_id(77, 0));
  CHECK(filtered.sink.samples()[0].origin.key() == "k");
  CHECK(unnamed.sink.samples()[1].origin.key() == "k");
}

TEST_CASE("a map draws by the pass and the identity of its sample") {
  const auto draw = [](int n, mr::rng& random) { return n + static_cast<int>(random.below(1 << 20)); };
  const auto maps = maps_of(mr::map(draw));
  segment_with_sink<std::remove_cv_t<decltype(maps)>, no_expanding_stage> t(maps, {}, {});
  t.in.put({.item = 0, .epoch = 1, .pass = 2, .id = 40});
  t.in.put({.item = 0, .epoch = 1, .pass = 3, .id = 40});
  t.in.publish();
  t.run();
  for (std::size_t i = 0; i < 2; ++i)
    CHECK(*t.sink.samples().at(i).item ==
          static_cast<int>(mr::rng({.seed = 9, .epoch = 2 + i, .sample = 40, .stage = 0}).below(1 << 20)));
}

TEST_CASE("an expanding stage counts its inputs and outputs in each pass, whichever end the pass has") {
  mr::detail::stage_passages passages;
  expanding t({}, {}, {.passage = &passages.add("expand", {})});
  t.put({2, 0});
  t.in.end_pass();
  t.put({1});
  t.in.end_epoch();
  CHECK(t.run() == "20 21 pass 10 epoch");
  CHECK(passages.close_pass(true).text == "expand 1 emitted 2 items for 2 samples");
  CHECK(passages.close_pass(true).text == "expand 1 emitted 1 items for 1 samples");
}

TEST_CASE("metrics count samples, and outputs if the stage changes their number") {
  expanding t({}, {}, {});
  plain same({}, {}, {});
  t.put({2, 2, 4});
  same.put({2, 2, 4});
  CHECK(t.statistics().items_per_sample == 1);   // no output yet
  t.run();
  same.run();
  CHECK(t.statistics().name == "expand");
  CHECK(t.statistics().items == 3);
  CHECK(t.statistics().items_per_sample == 3.0 / 8);
  expanding once({}, {}, {});
  once.put({0, 1, 0});
  once.run();
  CHECK(once.statistics().items_per_sample == 3);
  CHECK(same.statistics().name == "map");
  CHECK(same.statistics().items_per_sample == 1);
}

TEST_CASE("many workers and little space change nothing") {
  mr::detail::thread_executor workers(4);
  expanding t({}, {}, {.max_workers = 4, .workers = &workers, .capacity = 8});
  t.sink.room = 2;
  std::string expected;
  std::size_t outputs = 0;
  for (int n = 0; n < 600; ++n) {
    while (!t.in.can_accept()) {
      t.sink.free(3);
      std::this_thread::yield();
    }
    const int number = n == 13 ? 14 : n;
    t.put({number});
    for (int i = 0; i < number % 10; ++i, ++outputs)
      expected += (outputs > 0 ? " " : "") + std::to_string(10 * number + i);
  }
  t.in.finish(nullptr);
  t.sink.free(10 * 600);
  REQUIRE(eventually([&] { return t.in.settle() && t.sink.log().ends_with("end"); }));
  CHECK(t.sink.log() == expected + " end");
  t.segment.stop();
  t.segment.join();
}
