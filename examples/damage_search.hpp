// The search of inspect --quarantine: reads and decodes all samples of shards, and lists the damaged ones.
//
//   damage_search search(shards, "quarantine.jsonl");
//   const damage_totals totals = search.run(mr::usable_cores());
//   // then: mr::shards(shards, {.without = mr::keys_from("quarantine.jsonl")})
//
// Each thread reads one shard at a time. Fields that end in jpg or jpeg are decoded completely, with the default
// options of mr::jpeg(); a sample is damaged if that fails. All other fields are read. If a shard has the index that
// mr::shards() writes, all payloads are compared with its checksums; missing checksums are added, as in training. A
// shard that cannot be read to its end gets one entry after its last sample.
// Errors: those of mr::quarantine_list. Threads: run() starts its own threads.
#pragma once

#include <millrace/image/picture/picture.hpp>
#include <millrace/io/tar/read/shard_reader.hpp>
#include <millrace/run/quarantine_list.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/shards.hpp>
#include <millrace/stages/batch.hpp>
#include <millrace/stages/map.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

struct damage_totals {
  std::uint64_t shards = 0, samples = 0, bytes = 0;
  std::uint64_t damaged = 0;   // samples
  std::uint64_t cut = 0;       // shards that could not be read to their end
  std::uint64_t added = 0;     // new entries of the list
};

class damage_search {
 public:
  damage_search(std::vector<std::string> shards, const std::string& list, millrace::shard_reader_options reading = {})
      : shards_(std::move(shards)), list_(list), reading_(std::move(reading)) {}

  damage_totals run(std::size_t threads) {
    working_ = std::min(threads, shards_.size());
    std::vector<std::thread> running;
    for (std::size_t i = 0; i < working_; ++i) running.emplace_back([this] { work(); });
    {
      std::unique_lock lock(mutex_);
      // The first line is printed soon, the others less often.
      for (std::chrono::seconds pause{1}; !ended_.wait_for(lock, pause, [this] { return working_ == 0; });
           pause = std::chrono::seconds{10})
        print_progress();
    }
    for (std::thread& thread : running) thread.join();
    if (failure_) std::rethrow_exception(failure_);
    print_progress();
    return totals_;
  }

 private:
  struct fields_of {
    std::uint64_t count;
  };

  void print_progress() const {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
    const auto number = [](std::uint64_t n) { return std::to_string(n); };
    const std::string line = "inspect: " + number(totals_.shards) + " of " + number(shards_.size()) + " shards, " +
                             number(totals_.samples) + " samples, " +
                             number(static_cast<std::uint64_t>(static_cast<double>(totals_.bytes) * 1e-6 / seconds)) +
                             " MB/s, " + number(totals_.damaged) + " samples damaged, " + number(totals_.cut) +
                             " shards cut\n";
    std::fputs(line.c_str(), stderr);
  }

  void work() {
    try {
      millrace::block_pool pool;
      millrace::scratch scratch;
      for (std::size_t at = next_++; at < shards_.size(); at = next_++) {
        search_shard(shards_[at], pool, scratch);
        const std::lock_guard lock(mutex_);
        ++totals_.shards;
      }
    } catch (...) {   // such as a full disk: the other threads end after their current shards
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
      next_ = shards_.size();
    }
    const std::lock_guard lock(mutex_);
    --working_;
    ended_.notify_one();
  }

  void search_shard(const std::string& shard, millrace::block_pool& pool, millrace::scratch& scratch) {
    std::vector<std::string> damaged;   // keys
    std::uint64_t samples = 0;
    std::optional<millrace::shard_reader> reader;
    std::optional<millrace::record> sample;
    std::exception_ptr cut = damage_of(
        [&] { reader.emplace(std::make_unique<millrace::file_source>(shard), pool, reading_); });
    for (;;) {
      if (!cut) cut = damage_of([&] { sample = reader->next(); });
      if (cut && reader && reader->can_continue()) {   // the error is in one sample only
        damaged.push_back(add_to_list(std::exchange(cut, nullptr), {.shard = shard}));
        ++samples;
        const std::lock_guard lock(mutex_);
        ++totals_.samples;
        continue;
      }
      if (cut || !sample) break;
      if (const auto problem = damage_of([&] { decode(*sample, scratch); }))
        damaged.push_back(add_to_list(problem, sample->where()));
      count(*sample);
      ++samples;
    }
    if (cut) add_to_list(cut, {.shard = shard});
    else if (std::filesystem::exists(shard + ".millrace-index")) compare_with_index(shard, samples, std::move(damaged));
  }

  static void decode(const millrace::record& sample, millrace::scratch& scratch) {
    for (const millrace::bytes& field : sample.fields())
      if (field.name().ends_with("jpg") || field.name().ends_with("jpeg")) (void)millrace::jpeg(field).pixels(scratch);
  }

  /// A run ends at a modified payload, and the next one omits it. Usually there are none, or few.
  void compare_with_index(const std::string& shard, std::uint64_t samples, std::vector<std::string> damaged) {
    while (damaged.size() < samples) {
      const std::exception_ptr problem = damage_of([&] {
        const std::vector<std::string> one{shard};
        auto flow = millrace::shards(one, {.notice = millrace::quiet, .without = damaged}) |
                    millrace::map([](const millrace::record& r) { return fields_of{r.field_count()}; }) |
                    millrace::batch<&fields_of::count>({.size = 256, .drop_last = false});
        for (auto& b : millrace::session{std::move(flow), {.threads = 0, .notice = millrace::quiet}}) (void)b;
      });
      if (!problem) return;
      damaged.push_back(add_to_list(problem, {.shard = shard}));
      if (damaged.back().empty()) return;   // the shard itself is damaged
    }
  }

  /// Returns the error that damaged data cause; rethrows all others.
  template <class Action>
  static std::exception_ptr damage_of(const Action& action) {
    try {
      action();
    } catch (const millrace::setup_error&) {
      throw;
    } catch (const millrace::error&) {
      return std::current_exception();
    }
    return nullptr;
  }

  void count(const millrace::record& sample) {
    std::uint64_t bytes = 0;
    for (const millrace::bytes& field : sample.fields()) bytes += field.size();
    const std::lock_guard lock(mutex_);
    ++totals_.samples;
    totals_.bytes += bytes;
  }

  /// Adds the damage to the list, and returns the key; empty: the shard itself is damaged.
  std::string add_to_list(const std::exception_ptr& why, const millrace::error_location& where) {
    try {
      std::rethrow_exception(why);
    } catch (millrace::error& problem) {
      problem.locate(where);
      const millrace::error_location& at = problem.where();
      const std::lock_guard lock(mutex_);
      ++(at.key.empty() ? totals_.cut : totals_.damaged);
      totals_.added += list_.add({.shard = at.shard,
                                  .key = at.key,
                                  .offset_bytes = at.offset_bytes,
                                  .stage = at.stage,
                                  .reason = problem.message()});
      std::printf("%s\n", problem.what());
      return at.key;
    }
  }

  const std::vector<std::string> shards_;
  millrace::quarantine_list list_;
  const millrace::shard_reader_options reading_;
  std::atomic<std::size_t> next_ = 0;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::mutex mutex_;   // guards the members below, and the list
  std::condition_variable ended_;
  std::size_t working_ = 0;
  damage_totals totals_;
  std::exception_ptr failure_;
};
