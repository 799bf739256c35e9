// Notices that are not errors: which are sent, which of them quiet prints, and how the user's function is called.
#include <millrace/millrace.hpp>
#include <millrace/sync/notice_outlet.hpp>
#include <millrace/shards.hpp>
#include <millrace/tuning.hpp>

#include "../../captured_stderr.hpp"
#include "../../temporary_folder.hpp"
#include "quiet_sessions.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

namespace mr = millrace;

namespace {

struct row {
  std::int32_t n;
};

row number_of(const mr::record& r) { return {r["cls"].as<std::int32_t>()}; }

/// Shards of 20 numbers each, whose files end with two zero blocks.
std::string write_shards(const temporary_folder& folder, int shards) {
  mr::shard_writer out({.pattern = folder / "s-%02d.tar", .max_samples = 20});
  for (int i = 0; i < 20 * shards; ++i) out.write("k" + std::to_string(i), {{"cls", std::to_string(i)}});
  out.close();
  return folder.path();
}

/// Cuts a shard within its eleventh sample.
void cut(const std::string& path) { std::filesystem::resize_file(path, 10 * 1'024 + 700); }

using news = std::vector<mr::notice>;

std::size_t count(const news& all, mr::notice_kind kind) {
  return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [&](const auto& n) { return n.kind == kind; }));
}

const mr::notice& first(const news& all, mr::notice_kind kind) {
  const auto it = std::find_if(all.begin(), all.end(), [&](const auto& n) { return n.kind == kind; });
  REQUIRE(it != all.end());
  return *it;
}

template <class Flow>
news notices_of(Flow flow, mr::session_options options) {
  news all;
  options.notice = [&](const mr::notice& n) { all.push_back(n); };
  {
    mr::session run{std::move(flow), options};
    for (auto& b : run) b.release();
  }
  for (const mr::notice& n : all) {
    CHECK(!n.text.starts_with("millrace"));
    CHECK(!n.text.ends_with('\n'));
  }
  return all;
}

auto batches_of(auto source) { return std::move(source) | mr::map(number_of) | mr::batch<&row::n>({.size = 4}); }

}  // namespace

TEST_CASE("lost shards and damaged samples are reported, streamed and by an index") {
  for (const int threads : {0, 2}) {
    CAPTURE(threads);
    const temporary_folder folder;
    const std::string shards = write_shards(folder, 3);
    const auto damage = [&](const std::string& word, std::size_t bytes) {   // of one sample: "k5" has the label 5
      std::string text(bytes, '\0');
      std::fstream file(shards + "/s-00.tar", std::ios::in | std::ios::out | std::ios::binary);
      file.read(text.data(), static_cast<std::streamsize>(bytes));
      text.replace(5 * 1'024 + 512, word.size(), word);
      file.seekp(0);
      file.write(text.data(), static_cast<std::streamsize>(bytes));
    };
    damage("x", 8'000);
    auto options = quiet(threads);
    options.on_damage = {.policy = mr::damage::mask, .at_most_share = 1};
    const auto check = [&](const news& all, const std::string& lost, std::size_t times = 1) {
      CHECK(count(all, mr::notice_kind::start) == 1);
      const mr::notice& sample = first(all, mr::notice_kind::damaged_sample);
      CHECK(sample.severity == mr::notice_severity::loss);
      CHECK(sample.where.shard == shards + "/s-00.tar");
      CHECK(sample.where.key == "k5");
      CHECK(sample.text.find("a damaged sample was masked") != std::string::npos);
      CHECK(count(all, mr::notice_kind::lost_shard) == (lost.empty() ? 0 : times));
      if (lost.empty()) return;
      const mr::notice& shard = first(all, mr::notice_kind::lost_shard);
      CHECK(shard.severity == mr::notice_severity::loss);
      CHECK(shard.where.shard == lost);
    };
    check(notices_of(batches_of(mr::shards(shards)), options), {});
    cut(shards + "/s-01.tar");
    check(notices_of(batches_of(mr::shards(shards, {.index = mr::index::off})), options), shards + "/s-01.tar");
    check(notices_of(batches_of(mr::shards(shards, {.damaged_shards_at_most = 1})), options),
          shards + "/s-01.tar", 2);   // at the start, and at its first damaged sample
  }
}

TEST_CASE("missing end markers and warnings of the start are reported, and quiet prints them without the start line") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder, 2);
  std::filesystem::resize_file(shards + "/s-01.tar", 20 * 1'024);
  for (const bool indexed : {false, true}) {
    CAPTURE(indexed);
    const auto flow = [&](auto consume) {
      if (indexed) consume(batches_of(mr::shards(shards, {.without = std::vector<std::string>{"nokey"}})));
      else consume(batches_of(mr::shards(shards, {.index = mr::index::off})));
    };
    flow([&](auto f) {
      const news all = notices_of(std::move(f), quiet(1));
      const mr::notice& n = first(all, mr::notice_kind::missing_end_marker);
      CHECK(n.severity == mr::notice_severity::warning);
      CHECK(n.where.shard == shards + "/s-01.tar");
      CHECK(count(all, mr::notice_kind::data) == (indexed ? 1 : 0));   // the key that no shard has
    });
    flow([&](auto f) {
      const std::string text = captured_stderr([&] {
        mr::session run{std::move(f), quiet(1)};
        for (auto& b : run) b.release();
      });
      CHECK(text.starts_with("millrace: "));
      CHECK(text.find("millrace: the shard " + shards + "/s-01.tar ended without an end marker") != std::string::npos);
      CHECK((text.find("nokey") != std::string::npos) == indexed);
      CHECK(text.find(" workers, ") == std::string::npos);
    });
  }
}

TEST_CASE("ten lost shards are reported one by one, and the sum of all at the end") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder, 13);
  for (int i = 1; i < 13; ++i) cut(shards + (i < 10 ? "/s-0" : "/s-") + std::to_string(i) + ".tar");
  auto options = quiet(1);
  options.on_damage = {.policy = mr::damage::mask, .shards_at_most = 20};
  const news all = notices_of(batches_of(mr::shards(shards, {.index = mr::index::off})), options);
  CHECK(count(all, mr::notice_kind::lost_shard) == 11);
  CHECK(all.back().text.find("0 damaged samples and 12 lost shards") != std::string::npos);
}

TEST_CASE("a resumed stream reports where it continues") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder, 2);
  auto options = quiet(1);
  {
    mr::session run{batches_of(mr::shards(shards, {.index = mr::index::off})), options};
    options.resume = mr::to_text(run.next().position());
  }
  const news all = notices_of(batches_of(mr::shards(shards, {.index = mr::index::off})), options);
  CHECK(first(all, mr::notice_kind::resume).text.starts_with("the run continues after its batch 1 "));
}

TEST_CASE("an exception of the notice function does not end the run, and the notice is printed") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder, 2);
  std::filesystem::resize_file(shards + "/s-01.tar", 20 * 1'024);
  for (const bool of_std : {false, true}) {
    std::size_t rows = 0;
    const std::string text = captured_stderr([&] {
      auto options = quiet(1);
      options.notice = [&](const mr::notice&) {
        if (of_std) throw std::runtime_error("no disk");
        throw 7;
      };
      mr::session run{batches_of(mr::shards(shards, {.index = mr::index::off})), options};
      for (auto& b : run) rows += b.size();
    });
    CHECK(rows == 40);
    CHECK(text.find("s-01.tar ended without an end marker") != std::string::npos);
    CHECK(text.find(of_std ? "the notice function threw: no disk" : "the notice function threw an exception") !=
          std::string::npos);
  }
}

TEST_CASE("two threads never call the notice function at once, and it may deliver notices itself") {
  int inside = 0, most = 0, calls = 0;   // not atomic: ThreadSanitizer would detect two callers
  mr::detail::notice_outlet* self = nullptr;
  mr::detail::notice_outlet outlet([&](const mr::notice& n) {
    most = std::max(most, ++inside);
    ++calls;
    if (n.text == "outer") self->deliver({.text = "inner"});
    for (int i = 0; i < 10; ++i) std::this_thread::yield();   // other threads reach deliver() meanwhile
    --inside;
  });
  self = &outlet;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 100; ++i) outlet.deliver({.text = i % 10 == 0 ? "outer" : "plain"});
      });
  }
  CHECK(most == 2);
  CHECK(calls == 440);
}

TEST_CASE("decisions of tuning are notices") {
  std::size_t decisions = 0;
  mr::session_options options{.epochs = mr::endless, .threads = 1, .io_threads = 1};
  options.tuning = mr::tuning({.max_workers = 2});
  options.notice = [&](const mr::notice& n) {
    decisions += n.kind == mr::notice_kind::tuning && n.text.starts_with("tuning after ");
  };
  mr::session run{mr::from(numbers(100)) | mr::map([](int n) {
                    std::this_thread::sleep_for(std::chrono::milliseconds(2));   // the step waits for data
                    return row{n};
                  }) | mr::batch<&row::n>({.size = 5}),
                  options};
  for (int batches = 0; decisions == 0 && batches < 5'000; ++batches) run.next().release();
  CHECK(decisions > 0);
}

TEST_CASE("quiet prints warnings, losses and stalls, and a notice of each kind has its own name and line") {
  const auto printed = [](const mr::notice& n) { return captured_stderr([&] { mr::quiet(n); }); };
  std::set<std::string> names;
  for (std::size_t k = 0; k < mr::detail::notice_texts.size(); ++k) {
    const auto kind = static_cast<mr::notice_kind>(k);
    CHECK(names.insert(mr::text_of(kind)).second);
    std::vector<mr::notice> got;
    mr::detail::notice_outlet listener([&](const mr::notice& n) { got.push_back(n); }), none, quietly(mr::quiet);
    const mr::notice news{.kind = kind, .text = "one\ntwo"};
    CHECK(captured_stderr([&] { listener.deliver(news); }).empty());
    REQUIRE(got.size() == 1);
    CHECK(got[0].kind == kind);
    CHECK(captured_stderr([&] { none.deliver(news); }) == "millrace: one\ntwo\n");
    CHECK(captured_stderr([&] { quietly.deliver(news); }).empty() == (kind != mr::notice_kind::stall));
    CHECK(printed({.kind = kind, .severity = mr::notice_severity::warning, .text = "w"}) == "millrace: w\n");
    CHECK(printed({.kind = kind, .severity = mr::notice_severity::loss, .text = "l"}) == "millrace: l\n");
  }
  CHECK(std::string(mr::text_of(mr::notice_kind::lost_shard)) == "lost shard");
  CHECK(std::string(mr::text_of(mr::notice_kind::log)) == "log");
}

TEST_CASE("indexes that cannot be kept, and sinks that fail, are notices of their source or log") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder, 2);
  news all;
  const auto notice = [&](const mr::notice& n) { all.push_back(n); };
  {
    const mr::shards_options source{.index_folder = folder / "s-00.tar/none", .notice = notice};
    mr::session run{batches_of(mr::shards(shards, source)), quiet(0)};
    for (auto& b : run) b.release();
  }
  REQUIRE(all.size() == 1);
  CHECK(first(all, mr::notice_kind::index).severity == mr::notice_severity::warning);
  all.clear();
  struct failing final : mr::sink {
    const char* name() const noexcept override { return "failing"; }
    void write(const mr::row&) override { throw mr::io_error("no room", "Make some"); }
  };
  mr::log out(mr::log_options{.hold = std::chrono::seconds(0), .notice = notice}, failing{});
  for (int i = 0; i < 3; ++i) CHECK(out.message("m"));
  CHECK(out.close());
  CHECK(out.counts().sink_errors >= 3);
  REQUIRE(all.size() == 1);
  CHECK(first(all, mr::notice_kind::log).text.starts_with("the log's failing sink failed (it is retried;"));
}
