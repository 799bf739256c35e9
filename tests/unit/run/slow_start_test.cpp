// Reports before the first batch: each slow step of a start is named, with the file that it waits for. A storage that
// blocks until the report has arrived simulates a slow one. Later stalls name the sample or the part that blocks.
#include "../../eventually.hpp"
#include "../io/tar_bytes.hpp"
#include "quiet_sessions.hpp"

#include <millrace/io/file/file_list.hpp>
#include <millrace/io/index/set/index_build.hpp>
#include <millrace/millrace.hpp>
#include <millrace/run/stall_watcher.hpp>
#include <millrace/shards.hpp>
#include <millrace/sources/list/shard_list.hpp>

#include <doctest/doctest.h>

#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>

namespace mr = millrace;

namespace {

struct row {
  std::int32_t n;
};
row number_of(const mr::record& r) { return {r["cls"].as<std::int32_t>()}; }

constexpr std::uint64_t millisecond = 1'000'000;

/// The call in which the storage blocks, until `open`.
struct gate {
  std::string in{};   // "find", "open", "read" or "list"
  std::string name{};
  std::atomic<bool> open{false};
  void pass(const std::string& call, const std::string& file) {
    if (call != in || (!name.empty() && file != name)) return;
    while (!open) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
};

/// A storage in memory that blocks in one kind of call.
struct slow_storage {
  struct file {
    std::string name;
    std::shared_ptr<const std::string> bytes;
    std::shared_ptr<gate> at;
    mr::file_identity identity() const { return {.size_bytes = bytes->size(), .version = "1"}; }
    std::size_t read_at(std::uint64_t from, std::span<std::byte> to) {
      at->pass("read", name);
      if (from >= bytes->size()) return 0;
      const auto n = std::min<std::size_t>(to.size(), bytes->size() - from);
      std::memcpy(to.data(), bytes->data() + from, n);
      return n;
    }
  };
  std::map<std::string, std::shared_ptr<const std::string>> files;
  std::shared_ptr<gate> at;

  std::unique_ptr<file> open(const std::string& name) const {
    const auto it = files.find(name);
    if (it == files.end()) return nullptr;
    at->pass("open", name);
    return std::make_unique<file>(file{name, it->second, at});
  }
  std::optional<mr::file_identity> find(const std::string& name) const {
    const auto it = files.find(name);
    if (it == files.end()) return std::nullopt;
    at->pass("find", name);
    return mr::file_identity{.size_bytes = it->second->size(), .version = "1"};
  }
  std::vector<std::string> list(const std::string& prefix) const {
    at->pass("list", prefix);
    std::vector<std::string> all;
    for (const auto& [name, bytes] : files)
      if (name.starts_with(prefix)) all.push_back(name);
    return all;
  }
};

slow_storage storage_with(std::shared_ptr<gate> at) {
  slow_storage s{.files = {}, .at = std::move(at)};
  for (int shard = 0; shard < 3; ++shard) {
    std::string tar;
    for (int i = 0; i < 20; ++i) {
      const std::string n = std::to_string(20 * shard + i);
      tar += tar_test::file("k" + n + ".cls", n);
    }
    tar += std::string(1'024, '\0');
    s.files["m:s-" + std::to_string(shard) + ".tar"] = std::make_shared<const std::string>(tar);
  }
  return s;
}

/// Runs `act`, which blocks, and opens the gate once stderr contains the text. Returns the content of stderr. Earlier
/// reports may name files that were slow for other reasons.
template <class Act>
std::string stderr_while_slow(const std::shared_ptr<gate>& at, const std::string& expected, const Act& act) {
  const stall_watchdog watchdog;
  std::FILE* const file = std::tmpfile();
  const int before = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  const auto stderr_text = [&] {
    std::string text(40'000, '\0');
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, pread(fileno(file), text.data(), text.size(), 0))));
    return text;
  };
  std::thread opens([&] {
    while (stderr_text().find(expected) == std::string::npos)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    at->open = true;
  });
  act();
  opens.join();
  dup2(before, STDERR_FILENO);
  close(before);
  const std::string text = stderr_text();
  std::fclose(file);
  return text;
}

}  // namespace

TEST_CASE("slow listing and finding of files in a storage are reported with the file") {
  {
    const auto at = std::make_shared<gate>();
    at->in = "list";
    const std::string text = stderr_while_slow(at, "before the first batch: ", [&] {
      CHECK(mr::detail::list_stored("m:s-*.tar", {.at = storage_with(at), .report_after_ns = 5 * millisecond}).size() ==
            3);
    });
    CHECK_MESSAGE(text.find("millrace: before the first batch: lists files in the storage") != std::string::npos, text);
    CHECK_MESSAGE(text.find("m:s-*.tar") != std::string::npos, text);
  }
  {
    const auto at = std::make_shared<gate>();
    at->in = "find";
    at->name = "m:s-1.tar";
    const std::string text = stderr_while_slow(at, "the longest now: m:s-1.tar", [&] {
      const mr::detail::file_list files({"m:s-0.tar", "m:s-1.tar", "m:s-2.tar"}, storage_with(at), 5 * millisecond);
      CHECK(files.size() == 3);
    });
    CHECK_MESSAGE(text.find("finds files in the storage, ") != std::string::npos, text);
    CHECK_MESSAGE(text.find(" of 3 done after ") != std::string::npos, text);
    CHECK_MESSAGE(text.find("the longest now: m:s-1.tar") != std::string::npos, text);
  }
}

TEST_CASE("a stalled index build is reported with its shard") {
  const auto at = std::make_shared<gate>();
  at->in = "read";
  at->name = "m:s-2.tar";
  const std::vector<std::string> names{"m:s-0.tar", "m:s-1.tar", "m:s-2.tar"};
  const std::string text = stderr_while_slow(at, "the longest now: m:s-2.tar", [&] {
    const auto built = mr::detail::build_indexes(
        names, {.files = {.storage = storage_with(at)}, .store = false, .report_after_ns = 5 * millisecond});
    CHECK(built.indexes.size() == 3);
  });
  CHECK_MESSAGE(text.find("reads and builds indexes, ") != std::string::npos, text);
  CHECK_MESSAGE(text.find("the longest now: m:s-2.tar") != std::string::npos, text);
}

TEST_CASE("with a function, a slow listing is progress, and a stalled index build a stall") {
  const std::vector<std::string> names{"m:s-0.tar", "m:s-1.tar", "m:s-2.tar"};
  for (const bool lists : {false, true}) {
    CAPTURE(lists);
    const stall_watchdog watchdog;
    const auto at = std::make_shared<gate>();
    at->in = lists ? "list" : "read";
    std::vector<mr::notice> notices;
    const auto notice = [&](const mr::notice& n) {
      notices.push_back(n);
      at->open = true;
    };
    mr::detail::notice_outlet outlet(notice);
    if (lists)
      CHECK(mr::detail::list_stored("m:s-*.tar", {.at = storage_with(at), .notice = notice,
                                                  .report_after_ns = 5 * millisecond}).size() == 3);
    else
      CHECK(mr::detail::build_indexes(names, {.files = {.storage = storage_with(at)}, .store = false,
                                              .notices = &outlet, .report_after_ns = 5 * millisecond})
                .indexes.size() == 3);
    REQUIRE(!notices.empty());
    CHECK(notices[0].text.starts_with("before the first batch: "));
    CHECK(notices[0].kind == (lists ? mr::notice_kind::progress : mr::notice_kind::stall));
    CHECK(notices[0].severity == (lists ? mr::notice_severity::info : mr::notice_severity::warning));
  }
}

// On a busy machine an earlier step of the start may be late too: then a later stall is tried.
TEST_CASE("a session whose first sample is late reports the step and the file to its notice function") {
  const stall_watchdog watchdog;
  for (const std::string call : {"open", "read"})
    for (const int threads : {0, 2}) {
      CAPTURE(call);
      CAPTURE(threads);
      std::string first;
      CHECK_MESSAGE(at_some_scale([&](int scale) {
        const auto at = std::make_shared<gate>();
        at->in = call;
        at->name = "m:s-1.tar";
        std::vector<mr::notice> stalls;
        auto options = quiet(threads);
        options.stalls = {.after = std::chrono::milliseconds(20) * scale};
        options.notice = [&](const mr::notice& n) {
          if (n.kind != mr::notice_kind::stall) return;
          stalls.push_back(n);
          at->open = true;
        };
        mr::session run{mr::shards("m:s-1.tar", {.index = mr::index::off, .storage = storage_with(at)}) |
                            mr::map(number_of) | mr::batch<&row::n>({.size = 4}),
                        options};
        std::size_t rows = 0;
        for (auto& b : run) rows += b.size();
        CHECK(rows == 20);
        REQUIRE(!stalls.empty());
        first = stalls[0].text;
        return stalls[0].severity == mr::notice_severity::warning &&
               first.find("start: waits for the first sample") != std::string::npos &&
               (threads == 0 || first.find("m:s-1.tar") != std::string::npos);
      }), first);
    }
}

TEST_CASE("a resumed session that counts samples reports it") {
  const stall_watchdog watchdog;
  const auto flow = [](const std::shared_ptr<gate>& at) {
    return mr::shards("m:s-{0..2}.tar", {.index = mr::index::off, .storage = storage_with(at)}) | mr::map(number_of) |
           mr::batch<&row::n>({.size = 4});
  };
  auto options = quiet(1);
  options.epoch_batches = 10;
  options.world = {.rank = 0, .size = 3};   // ranks have lanes, whose samples are counted
  options.epochs = 2;
  {
    mr::session run{flow(std::make_shared<gate>()), options};
    mr::position at;
    for (int i = 0; i < 7; ++i) at = run.next().position();
    options.resume = mr::to_text(at);
  }
  std::string first;
  CHECK_MESSAGE(at_some_scale([&](int scale) {
    const auto at = std::make_shared<gate>();
    at->in = "read";
    first.clear();
    options.stalls = {.after = std::chrono::milliseconds(20) * scale};
    options.notice = [&](const mr::notice& n) {
      if (n.kind != mr::notice_kind::stall) return;
      if (first.empty()) first = n.text;
      at->open = true;
    };
    mr::session run{flow(at), options};
    CHECK(run.next().size() == 4);
    return first.find("start: determines where reading begins") != std::string::npos &&
           first.find("m:s-") != std::string::npos;
  }), first);
}

TEST_CASE("stalls are watched from the start by default, and not with after = 0") {
  mr::session run{mr::from(numbers(8)) | mr::map([](int n) { return row{n}; }) | mr::batch<&row::n>({.size = 4}),
                  quiet(1)};
  CHECK_FALSE(mr::session_options{}.stalls.after.has_value());
  CHECK(run.next().size() == 4);
  auto off = quiet(1);
  off.stalls = {.after = std::chrono::seconds(0)};
  mr::session silent{mr::from(numbers(8)) | mr::map([](int n) { return row{n}; }) | mr::batch<&row::n>({.size = 4}),
                     off};
  CHECK(silent.next().size() == 4);
}

TEST_CASE("without an option a wait of 10 s is a stall, and a step of the trainer is not") {
  const stall_watchdog watchdog;
  std::atomic<int> reports{0};
  mr::detail::notice_outlet outlet([&](const mr::notice&) { ++reports; });
  mr::detail::trainer_times waiting, at_work;
  const std::uint64_t ago = mr::detail::steady_now_ns() - 10'500'000'000;
  at_work.watch(ago);
  at_work.leave(ago);
  waiting.watch(ago);
  const auto text = [] { return std::string("waits"); };
  const mr::detail::stall_watcher not_of_the_trainer({}, at_work, text, outlet);
  const mr::detail::stall_watcher of_a_wait({}, waiting, text, outlet);
  while (reports == 0) std::this_thread::yield();
  CHECK(reports == 1);
}

namespace {

struct labeled_row {
  std::int32_t label;
};

/// Three parts of ten rows; the reader of the last one waits in the middle of it.
struct gated_rows {
  using item = labeled_row;
  std::atomic<bool>* open_gate;
  std::atomic<int>* at_gate;

  struct reader {
    const gated_rows* from;
    std::int32_t at, end;
    std::optional<labeled_row> next() {
      if (at == 25 && ++*from->at_gate > 0)
        while (!*from->open_gate) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return at < end ? std::optional(labeled_row{at++}) : std::nullopt;
    }
  };
  std::size_t shards() const { return 3; }
  reader open(std::size_t shard, std::uint64_t) const {
    return {this, static_cast<std::int32_t>(10 * shard), static_cast<std::int32_t>(10 * shard + 10)};
  }
};
struct named_rows : gated_rows {
  std::string shard_name(std::size_t shard) const { return "number-" + std::to_string(shard); }
};
struct metered_rows : gated_rows {
  mr::detail::read_meter* meter;
  mr::detail::read_meter& reads() const { return *meter; }
};

}  // namespace

TEST_CASE("a stalled run names the sample that blocks, not the first one claimed with it") {
  // Cheap at first, so that a claim contains many; then one that does not return.
  std::vector<std::int32_t> numbers(800);
  std::iota(numbers.begin(), numbers.end(), 0);
  std::mutex gate;
  std::unique_lock closed(gate);
  std::atomic<int> at_gate{0};
  auto run = mr::session{mr::from(std::move(numbers)) | mr::map([&](std::int32_t n) {
                           if (n == 333) {
                             ++at_gate;
                             const std::lock_guard wait(gate);
                           }
                           return labeled_row{n};
                         }) |
                             mr::batch<&labeled_row::label>({.size = 400}),
                         {.threads = 1, .io_threads = 1, .notice = mr::quiet}};
  while (at_gate == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const std::string of_batch = run.waits();
  closed.unlock();
  CAPTURE(of_batch);
  CHECK(of_batch.find(" at sample 333 (batch 0)") != std::string::npos);
  CHECK(run.next().size() == 400);
}

TEST_CASE("a stalled run names the part of the user's source that blocks, metered or not") {
  mr::detail::read_meter meter;
  std::atomic<bool> open{false};
  std::atomic<int> at_gate{0};
  const auto waits_of = [&](auto source) {
    open = false;
    at_gate = 0;
    auto run = mr::session{mr::from(source) | mr::batch<&labeled_row::label>({.size = 10}),
                           {.threads = 1, .io_threads = 1, .notice = mr::quiet}};
    while (at_gate == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::string text = run.waits();
    open = true;
    std::uint64_t batches = 0;
    for (auto& b : run) batches += b.size() == 10;
    CHECK(batches == 3);
    return text;
  };
  const std::string plain = waits_of(gated_rows{&open, &at_gate});
  CHECK_MESSAGE(plain.find("\nread: 1 read in progress, the longest for ") != std::string::npos, plain);
  CHECK_MESSAGE(plain.find(" s: shard 2 of the source; ") != std::string::npos, plain);
  const std::string named = waits_of(named_rows{{&open, &at_gate}});
  CHECK_MESSAGE(named.find(" s: number-2; ") != std::string::npos, named);
  const std::string metered = waits_of(metered_rows{{&open, &at_gate}, &meter});
  CHECK_MESSAGE(metered.find("\nread: no read in progress, now at shard 2 of the source for ") != std::string::npos,
                metered);
}
