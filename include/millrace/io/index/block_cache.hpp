// Small samples, read a stretch of neighbours at a time and given out one by one, in whatever order they are wanted.
//
//   detail::block_cache held({.limit_bytes = std::size_t{64} << 20});
//   held.take({.part = 3, .number = 7}, offsets, places, read);   // *places[i] becomes sample offsets[i] of stretch 7
//   held.held_bytes();
//
// For samples so small that a read of its own would cost more than all the rest of a sample. `read` fills a vector with
// the records of a whole stretch; one that it leaves empty is given out empty, and the caller finds out what is wrong
// with it. Each record is given out once, and a stretch that has none left is forgotten: whoever wants a sample again,
// in the next epoch, has the stretch read again. Beyond the limit the stretch that was not asked for for longest is
// dropped, which costs a read and never a sample.
// Errors: what `read` throws. Threads: any; two that want the same stretch wait for one reading of it.
#pragma once

#include <millrace/base/random.hpp>
#include <millrace/item/record.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The `number`-th stretch of a part.
struct stretch_name {
  std::uint64_t shard = 0;
  std::uint32_t number = 0;

  friend bool operator==(const stretch_name&, const stretch_name&) = default;
};

class block_cache {
 public:
  struct options {
    std::size_t limit_bytes = 0;
  };

  explicit block_cache(options o) : options_(o) {}
  block_cache(const block_cache&) = delete;
  block_cache& operator=(const block_cache&) = delete;

  /// `offsets` in the stretch, each once. `read(std::vector<record>&)` is called where the stretch is not there.
  template <class Read>
  void take(const stretch_name& name, std::span<const std::uint32_t> offsets, std::span<record* const> places,
            const Read& read) {
    const std::shared_ptr<stretch> s = find_or_add(name);
    const std::lock_guard lock(s->mutex);
    for (const std::uint32_t offset : offsets)
      if (offset >= s->records.size() || s->records[offset].empty()) {
        fill(*s, read);
        break;
      }
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      record& from = s->records[offsets[i]];
      s->left -= !from.empty();
      *places[i] = std::move(from);
    }
    if (s->left == 0) forget(name, *s);
  }

  /// Of the stretches that are here; what was given out does not count.
  std::size_t held_bytes() const {
    const std::lock_guard lock(mutex_);
    return held_bytes_;
  }

 private:
  struct stretch {
    std::mutex mutex;   // of the records
    std::vector<record> records{};
    std::size_t left = 0;   // that have not been given out
    std::size_t bytes = 0;           // this and the next: under the cache's lock
    std::uint64_t asked_for_at = 0;
    bool forgotten = false;
  };
  struct hash {
    std::size_t operator()(const stretch_name& n) const noexcept {
      return static_cast<std::size_t>(combine_keys(n.shard, n.number));
    }
  };

  std::shared_ptr<stretch> find_or_add(const stretch_name& name) {
    const std::lock_guard lock(mutex_);
    auto& found = stretches_[name];
    if (!found) found = std::make_shared<stretch>();
    found->asked_for_at = ++asked_;
    return found;
  }

  template <class Read>
  void fill(stretch& s, const Read& read) {
    s.records.clear();
    s.left = 0;
    read(s.records);
    std::size_t bytes = 0;
    for (const record& r : s.records) {
      s.left += !r.empty();
      bytes += r.held_bytes();
    }
    const std::lock_guard lock(mutex_);
    if (s.forgotten) return;
    held_bytes_ += bytes - std::exchange(s.bytes, bytes);
    while (held_bytes_ > options_.limit_bytes && drop_oldest(s)) {
    }
  }

  bool drop_oldest(const stretch& but) {
    auto oldest = stretches_.end();
    for (auto at = stretches_.begin(); at != stretches_.end(); ++at)
      if (at->second.get() != &but && at->second->bytes > 0 &&
          (oldest == stretches_.end() || at->second->asked_for_at < oldest->second->asked_for_at))
        oldest = at;
    if (oldest == stretches_.end()) return false;
    held_bytes_ -= oldest->second->bytes;
    oldest->second->forgotten = true;
    stretches_.erase(oldest);   // whoever is using it keeps it until done
    return true;
  }

  void forget(const stretch_name& name, stretch& s) {
    const std::lock_guard lock(mutex_);
    if (std::exchange(s.forgotten, true)) return;
    held_bytes_ -= s.bytes;
    stretches_.erase(name);
  }

  const options options_;
  mutable std::mutex mutex_;   // of all below; taken after a stretch's own
  std::unordered_map<stretch_name, std::shared_ptr<stretch>, hash> stretches_;
  std::size_t held_bytes_ = 0;
  std::uint64_t asked_ = 0;
};

}}}  // namespace millrace::detail
