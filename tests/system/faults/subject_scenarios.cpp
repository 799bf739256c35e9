// Scenarios beyond single calls: files that change while they are read, callables that throw, trainers that stop.
//
// Each scenario checks itself and throws broken_promise on a violation.
#include "subject_run.hpp"

#include <millrace/millrace.hpp>
#include <millrace/shards.hpp>
#include <millrace/text.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

namespace mr = millrace;

namespace {

struct broken_promise : std::runtime_error {
  using runtime_error::runtime_error;
};

void expect(bool good, const std::string& what) {
  if (!good) throw broken_promise(what);
}

struct example {
  std::uint64_t digest;
  std::int32_t label;
};

example prepare(const mr::record& r) {
  return {mr::detail::digest_bytes(r["txt"]), r["cls"].as<std::int32_t>()};
}

struct counted {
  std::uint64_t digest;
};

counted count(const mr::line& l) {
  const std::string_view text = l;
  return {mr::detail::digest_bytes(std::as_bytes(std::span(text.data(), text.size())))};
}

/// Reads one shard after the other with little prefetching, so that later shards are read after the change.
mr::session_options step_by_step(std::uint64_t epochs = 1) {
  auto o = quietly(epochs);
  o.io_threads = 1;
  o.read_ahead_bytes = 2'048;
  return o;
}

auto samples_of(const std::string& folder) {
  return mr::shards(folder + "/*", {.index = mr::index::off}) | mr::map(prepare) |
         mr::batch<&example::digest, &example::label>({.size = 2, .drop_last = false});
}
auto indexed_samples_of(const std::string& folder) {
  return mr::shards(folder + "/*.tar", {.notice = mr::quiet}) | mr::map(prepare) |
         mr::batch<&example::digest, &example::label>({.size = 2, .drop_last = false});
}
auto lines_of(const std::string& folder) {
  return mr::lines(folder + "/*") | mr::map(count) | mr::batch<&counted::digest>({.size = 2, .drop_last = false});
}
auto tokens_of(const std::string& folder) {
  return mr::token_files(folder + "/*", {.length = 64}) | mr::batch<&mr::packed::ids>({.size = 2, .drop_last = false});
}

enum class change { none, cut_in_half, cut_to_nothing, grows, is_replaced };

/// Changes of the last file of a folder.
void apply(change what, const std::filesystem::path& path) {
  const auto size = std::filesystem::file_size(path);
  if (what == change::cut_in_half) std::filesystem::resize_file(path, size / 2);
  if (what == change::cut_to_nothing) std::filesystem::resize_file(path, 0);
  if (what == change::grows) std::ofstream(path, std::ios::app) << std::string(70'000, '7');
  if (what == change::is_replaced) {
    std::ofstream(path.string() + "-new") << std::string(size, '7');
    std::filesystem::rename(path.string() + "-new", path);
  }
}

/// The result of a run whose last file changes when its first batch, or the first batch of that file, arrives.
template <class FlowOf>
std::string end_of(const FlowOf& flow_of, const std::string& folder, std::size_t when, change what, delivered& rows) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() != ".millrace-index") files.push_back(entry.path());
  try {
    mr::session run{flow_of(folder), step_by_step()};
    for (auto& b : run) {
      add_columns(rows, b);
      if (b.step() == when) apply(what, *std::max_element(files.begin(), files.end()));
    }
  } catch (const mr::error& e) {
    return e.what();
  }
  return "ok";
}

template <class FlowOf>
void change_files(const places& at, const char* kind, const FlowOf& flow_of, delivered& to) {
  delivered expected;
  const std::string source = at.data + "/" + kind;
  std::filesystem::copy(source, at.out + "/unchanged");
  expect(end_of(flow_of, at.out + "/unchanged", 0, change::none, expected) == "ok", "it does not run");
  int number = 0;
  for (const change what : {change::cut_in_half, change::cut_to_nothing, change::grows, change::is_replaced})
    for (const std::size_t when : {std::size_t{0}, expected.rows().size() * 4 / 5}) {
      const std::string folder = at.out + "/changed-" + std::to_string(number++);
      std::filesystem::copy(source, folder);
      delivered rows;
      const std::string end = end_of(flow_of, folder, when, what, rows);
      const std::string name = std::string(kind) + " change " + std::to_string(static_cast<int>(what)) + " at batch " +
                               std::to_string(when) + ": ";
      const auto& all = expected.rows();
      const bool prefix = rows.rows().size() <= all.size() &&
                          std::equal(rows.rows().begin(), rows.rows().end(), all.begin());
      // Text has no checksums: a file that changes before it is opened, or that grows, is still valid.
      const bool text = std::string_view(kind) == "text" || std::string_view(kind) == "tokens";
      const bool other_text = text && end == "ok" && (when == 0 || what == change::grows);
      expect(prefix || other_text, name + "other rows, " + end);
      expect(end != "ok" || other_text || rows.rows().size() >= all.size(), name + "fewer rows without an error");
      expect(end == "ok" || end.find(folder) != std::string::npos, name + "an error without the file: " + end);
    }
  to.add(expected.rows().empty() ? "none" : "some");
}

void tar_changes(const places& at, delivered& to) { change_files(at, "tar", samples_of, to); }
void gz_changes(const places& at, delivered& to) { change_files(at, "gz", samples_of, to); }
void indexed_changes(const places& at, delivered& to) { change_files(at, "tar", indexed_samples_of, to); }
void lines_change(const places& at, delivered& to) { change_files(at, "text", lines_of, to); }
void tokens_change(const places& at, delivered& to) { change_files(at, "tokens", tokens_of, to); }

struct unrelated {};

/// Throws an example of each kind of exception.
void throw_kind(int kind) {
  if (kind == 0) throw 7;
  if (kind == 1) throw std::string("text");
  if (kind == 2) throw std::bad_alloc();
  if (kind == 3) throw mr::data_error("a bad label", "Check it");
  if (kind == 4) throw unrelated();
  if (kind == 5) throw std::logic_error("a mistake");
}

template <class FlowOf>
void throw_all(const FlowOf& flow_of, const char* stage) {
  for (const int threads : {0, 1, 3})
    for (int kind = 0; kind < 6; ++kind) {
      std::string end = "ok", second = "ok";
      std::size_t batches = 0;
      auto o = quietly();
      o.threads = threads;
      try {
        mr::session run{flow_of(kind), o};
        try {
          for (auto& b : run) batches += b.size() > 0;
        } catch (const mr::error& e) {
          end = e.what();
        }
        try {
          static_cast<void>(run.next());
        } catch (const mr::setup_error& e) {
          second = e.what();
        }
      } catch (const mr::error& e) {
        end = std::string("at the start: ") + e.what();
      }
      const std::string name = "kind " + std::to_string(kind) + ", " + std::to_string(threads) + " threads: ";
      expect(batches == 10, name + std::to_string(batches) + " batches before the error: " + end);
      expect(end.find("position 4") != std::string::npos && end.find(stage) != std::string::npos,
             name + "not located: " + end);
      expect(second != "ok", name + "the session continues after its error");
    }
}

struct numbered {
  std::uint64_t number;
};

std::vector<std::uint64_t> numbers() {
  std::vector<std::uint64_t> all(200);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  return all;
}

/// Items from 40 on throw. The error must be the first one of a batch for one thread.
void thrown_by_maps(const places&, delivered& to) {
  const auto flow_of = [](int kind, bool blocking) {
    return mr::from(numbers()) | mr::map(
                                     [kind](std::uint64_t n) {
                                       if (n == 40) throw_kind(kind);
                                       return numbered{n};
                                     },
                                     {.blocking = blocking, .threads = 2}) |
           mr::batch<&numbered::number>({.size = 4});
  };
  throw_all([&](int kind) { return flow_of(kind, false); }, "map 1");
  throw_all([&](int kind) { return flow_of(kind, true); }, "map 1");
  to.add("done");
}

/// Leaves the loop at each batch, with a batch that outlives its session.
void left_early(const places& at, delivered& to) {
  for (std::uint64_t when = 0; when < 20; ++when) {
    const auto start = std::chrono::steady_clock::now();
    using run_type = decltype(mr::session{samples_of(""), step_by_step()});
    auto run = std::make_unique<run_type>(samples_of(at.data + "/tar"), step_by_step(100));
    typename run_type::batch last_batch;
    for (auto& b : *run)
      if (b.step() == when) {
        last_batch = std::move(b);
        break;
      }
    const auto labels = last_batch.template get<&example::label>().host();
    const std::vector<std::int32_t> before(labels.begin(), labels.end());
    std::thread([&] { run.reset(); }).join();   // during the trainer's step
    const auto elapsed = std::chrono::steady_clock::now() - start;
    expect(std::equal(labels.begin(), labels.end(), before.begin()), "a batch changes after its session");
    expect(elapsed < std::chrono::minutes(2), "leaving needs more than 2 minutes");
  }
  to.add("done");
}

/// The readers and workers must stop at their limits while the trainer sleeps.
void sleeping_trainer(const places&, delivered& to) {
  std::atomic<std::uint64_t> item_count{0};
  constexpr std::size_t item_bytes = std::size_t{64} << 10, ahead_bytes = std::size_t{4} << 20;
  const auto next = [&]() -> std::optional<mr::packed> {
    ++item_count;
    return mr::packed{.ids = std::vector<std::uint32_t>(item_bytes / 4, 1)};
  };
  auto o = quietly(mr::endless);
  o.read_ahead_bytes = ahead_bytes;
  o.epoch_batches = 100;
  mr::session run{mr::from(next) | mr::batch<&mr::packed::ids>({.size = 4}) | mr::prefetch({.batches = 2}), o};
  std::uint64_t step = 0;
  for (auto& b : run) {
    std::this_thread::sleep_for(std::chrono::milliseconds(step == 0 ? 400 : 20));
    // The read-ahead, the slots, and one chunk in a reader.
    const std::uint64_t most = ahead_bytes / item_bytes + 4 * (b.step() + 4) + 64;
    const std::uint64_t count = item_count;
    expect(count <= most, std::to_string(count) + " items were read before batch " + std::to_string(b.step()));
    if (++step == 10) break;
  }
  to.add("done");
}

}  // namespace

std::span<const stage> scenarios() {
  static constexpr stage all[] = {{"tar_changes", tar_changes},         {"gz_changes", gz_changes},
                                  {"indexed_changes", indexed_changes}, {"lines_change", lines_change},
                                  {"tokens_change", tokens_change},     {"thrown_by_maps", thrown_by_maps},
                                  {"left_early", left_early},           {"sleeping_trainer", sleeping_trainer}};
  return all;
}
