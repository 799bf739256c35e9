// Determines the files to prefetch into a cache, from the lists of files that readers will open.
//
//   mr::detail::cache_plan plan(limit_bytes);
//   plan.expect(names);                                    // each reader announces its files
//   while (const auto name = plan.next())                  // on a prefetching thread
//     for (const std::uint64_t bytes : blocks)
//       if (plan.wait_for_room(*name)) plan.add(*name, bytes);
//   plan.closed(names[0]);                                 // a reader has finished the file
//
// Each call of expect() adds a list. The plan alternates between the lists and keeps the order of each list. The plan
// also limits the prefetched bytes that no reader has used yet.
// Errors: none. Threads: any number of threads.
#pragma once

#include <millrace/base/version.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Lists of expected files, and their prefetched bytes.
class cache_plan {
 public:
  explicit cache_plan(std::uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  /// Adds a list. If there are too many lists, discards the oldest ones.
  void expect(std::span<const std::string> names) {
    {
      const std::lock_guard lock(mutex_);
      lists_.emplace_back(names.begin(), names.end());
      for (const std::string& name : names) done_.erase(name);
      if (lists_.size() > max_lists) {
        // A reader of the oldest list has probably stopped. Therefore the plan no longer counts prefetched bytes.
        lists_.pop_front();
        ahead_.clear();
        ahead_bytes_ = 0;
      }
    }
    changed_.notify_all();
  }
  /// Waits for the next file and returns its name. Returns nothing after stop().
  std::optional<std::string> next() {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (stopped_) return std::nullopt;
      if (ahead_bytes_ < limit_bytes_)
        if (auto name = pop_next()) {
          ahead_[*name] += 0;   // creates an entry, so that no other thread prefetches the file
          return name;
        }
      changed_.wait(lock);
    }
  }
  /// Waits until one more block may be prefetched. Returns false if a reader has finished the file or stop() was
  /// called.
  bool wait_for_room(const std::string& name) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || ahead_bytes_ < limit_bytes_ || !ahead_.contains(name); });
    return !stopped_ && ahead_.contains(name);
  }
  /// Counts a prefetched block of a file.
  void add(const std::string& name, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto entry = ahead_.find(name);
    if (entry == ahead_.end()) return;
    entry->second += bytes;
    ahead_bytes_ += bytes;
  }
  /// Reports that a reader has finished a file. After this call, the bytes of the file count as read.
  void closed(const std::string& name) {
    {
      const std::lock_guard lock(mutex_);
      const auto entry = ahead_.find(name);
      if (entry != ahead_.end()) {
        ahead_bytes_ -= entry->second;
        ahead_.erase(entry);
      }
      if (!lists_.empty()) done_.insert(name);
      else done_.clear();
    }
    changed_.notify_all();
  }
  /// Ends all current and later waits.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
  }

 private:
  static constexpr std::size_t max_lists = 128;

  std::optional<std::string> pop_next() {
    while (!lists_.empty()) {
      std::deque<std::string> list = std::move(lists_.front());
      lists_.pop_front();
      while (!list.empty()) {
        std::string name = std::move(list.front());
        list.pop_front();
        if (done_.contains(name) || ahead_.contains(name)) continue;
        if (!list.empty()) lists_.push_back(std::move(list));
        return name;
      }
    }
    return std::nullopt;
  }

  const std::uint64_t limit_bytes_;
  std::mutex mutex_;   // guards all members below
  std::condition_variable changed_;
  std::deque<std::deque<std::string>> lists_{};
  std::unordered_map<std::string, std::uint64_t> ahead_{};
  std::unordered_set<std::string> done_{};   // files that were closed after a reader announced them
  std::uint64_t ahead_bytes_ = 0;
  bool stopped_ = false;
};

}}}   // namespace millrace::detail
