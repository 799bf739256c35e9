// What inspect --quarantine does: reads and decodes all samples of shards, and lists what is damaged.
//
//   damage_search search(shards, "quarantine.jsonl");
//   const damage_found found = search.run(mr::usable_cores());
//   // then: mr::shards(shards, {.without = mr::keys_from("quarantine.jsonl")})
//
// A thread reads one shard at a time. Fields that end in jpg or jpeg are decoded from the first row to the last, with
// the options that mr::jpeg() has by default; a sample is damaged if one of them cannot be. All other fields are read.
// Where a shard has an index beside it, as mr::shards() writes it, all payloads are compared with the checksums
// that the index knows. It learns those that it does not know, as in training. A shard that cannot be read to its end
// gets one note behind its last sample.
// Errors: those of mr::quarantine_list. Threads: run() starts its own.
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

struct damage_found {
  std::uint64_t shards = 0, samples = 0, bytes = 0;
  std::uint64_t damaged = 0;   // samples
  std::uint64_t cut = 0;       // shards that could not be read to their end
  std::uint64_t added = 0;     // of both, what the list did not have
};

class damage_search {
 public:
  damage_search(std::vector<std::string> shards, const std::string& list, millrace::shard_reader_options reading = {})
      : shards_(std::move(shards)), list_(list), reading_(std::move(reading)) {}

  damage_found run(std::size_t threads) {
    working_ = std::min(threads, shards_.size());
    std::vector<std::thread> running;
    for (std::size_t i = 0; i < working_; ++i) running.emplace_back([this] { work(); });
    {
      std::unique_lock lock(mutex_);
      // The first line comes soon, the others now and then.
      for (std::chrono::seconds pause{1}; !ended_.wait_for(lock, pause, [this] { return working_ == 0; });
           pause = std::chrono::seconds{10})
        tell();
    }
    for (std::thread& thread : running) thread.join();
    if (failure_) std::rethrow_exception(failure_);
    tell();
    return found_;
  }

 private:
  struct fields_of {
    std::uint64_t count;
  };

  void tell() const {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
    const auto number = [](std::uint64_t n) { return std::to_string(n); };
    const std::string line = "inspect: " + number(found_.shards) + " of " + number(shards_.size()) + " shards, " +
                             number(found_.samples) + " samples, " +
                             number(static_cast<std::uint64_t>(static_cast<double>(found_.bytes) * 1e-6 / seconds)) +
                             " MB/s, " + number(found_.damaged) + " samples damaged, " + number(found_.cut) +
                             " shards cut\n";
    std::fputs(line.c_str(), stderr);
  }

  void work() {
    try {
      millrace::block_pool pool;
      millrace::scratch scratch;
      for (std::size_t at = next_++; at < shards_.size(); at = next_++) {
        look_into(shards_[at], pool, scratch);
        const std::lock_guard lock(mutex_);
        ++found_.shards;
      }
    } catch (...) {   // such as a full disk: the others end behind the shards that they are at
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
      next_ = shards_.size();
    }
    const std::lock_guard lock(mutex_);
    --working_;
    ended_.notify_one();
  }

  void look_into(const std::string& shard, millrace::block_pool& pool, millrace::scratch& scratch) {
    std::vector<std::string> damaged;   // keys
    std::uint64_t samples = 0;
    std::optional<millrace::shard_reader> reader;
    std::optional<millrace::record> sample;
    std::exception_ptr cut =
        caught([&] { reader.emplace(std::make_unique<millrace::file_source>(shard), pool, reading_); });
    for (;;) {
      if (!cut) cut = caught([&] { sample = reader->next(); });
      if (cut && reader && reader->goes_on()) {   // the error of one sample
        damaged.push_back(note(std::exchange(cut, nullptr), {.shard = shard}));
        ++samples;
        const std::lock_guard lock(mutex_);
        ++found_.samples;
        continue;
      }
      if (cut || !sample) break;
      if (const auto problem = caught([&] { decode(*sample, scratch); }))
        damaged.push_back(note(problem, sample->where()));
      count(*sample);
      ++samples;
    }
    if (cut) note(cut, {.shard = shard});
    else if (std::filesystem::exists(shard + ".millrace-index"))
      compare_with_index(shard, samples, std::move(damaged));
  }

  static void decode(const millrace::record& sample, millrace::scratch& scratch) {
    for (const millrace::bytes& field : sample.fields())
      if (field.name().ends_with("jpg") || field.name().ends_with("jpeg")) (void)millrace::jpeg(field).pixels(scratch);
  }

  /// A run ends at a payload that has changed; the next one leaves it out. There are few of them, if any.
  void compare_with_index(const std::string& shard, std::uint64_t samples, std::vector<std::string> damaged) {
    while (damaged.size() < samples) {
      const std::exception_ptr problem = caught([&] {
        const std::vector<std::string> one{shard};
        auto flow = millrace::shards(one, {.notice = millrace::quiet, .without = damaged})
                  | millrace::map([](const millrace::record& r) { return fields_of{r.field_count()}; })
                  | millrace::batch<&fields_of::count>({.size = 256, .drop_last = false});
        for (auto& b : millrace::session{std::move(flow), {.threads = 0, .notice = millrace::quiet}}) (void)b;
      });
      if (!problem) return;
      damaged.push_back(note(problem, {.shard = shard}));
      if (damaged.back().empty()) return;   // it was the shard
    }
  }

  /// Returns the damage that it meets; what is no fault of the data goes on its way.
  template <class Action>
  static std::exception_ptr caught(const Action& action) {
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
    ++found_.samples;
    found_.bytes += bytes;
  }

  /// Lists what was damaged, and returns its key; empty: it was the shard.
  std::string note(const std::exception_ptr& why, const millrace::error_location& where) {
    try {
      std::rethrow_exception(why);
    } catch (millrace::error& problem) {
      problem.locate(where);
      const millrace::error_location& at = problem.where();
      const std::lock_guard lock(mutex_);
      ++(at.key.empty() ? found_.cut : found_.damaged);
      found_.added += list_.add({.shard = at.shard, .key = at.key, .offset_bytes = at.offset_bytes, .stage = at.stage,
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
  std::mutex mutex_;   // guards what follows, and the list
  std::condition_variable ended_;
  std::size_t working_ = 0;
  damage_found found_;
  std::exception_ptr failure_;
};
