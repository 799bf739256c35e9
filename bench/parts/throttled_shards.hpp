// Shards as in mr::shards(), from storage that is slowed down or dropped from the page cache, to emulate, for example,
// a disk of 200 MB/s.
//
//   auto flow = bench::throttled_shards(names, {.bytes_per_second = 200e6, .latency_ns = 5'000'000}) | mr::map(prepare)
//
// All shards share one pipe: a read of n bytes occupies it for n / bytes_per_second. Each read then has its own
// latency, which varies by the share `jitter`. `cold` drops a shard from the page cache when it is opened
// (posix_fadvise, which needs no root and does not affect pages in use). Errors and threads: as mr::shards().
#pragma once

#include <millrace/base/clock.hpp>
#include <millrace/base/random.hpp>
#include <millrace/flow/flow.hpp>
#include <millrace/io/file/byte_source.hpp>
#include <millrace/io/tar/read/shard_reader.hpp>
#include <millrace/measure/meters/read_meter.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>

namespace bench {

namespace mr = millrace;

struct throttle {
  double bytes_per_second = 0;   ///< 0: as fast as it is
  std::uint64_t latency_ns = 0;
  double jitter = 0;   ///< 0.5: from half the latency to one and a half
  bool cold = false;
};

/// The pipe that reads share.
class shared_pipe {
 public:
  explicit shared_pipe(throttle t) : settings_(t) {}
  const throttle& settings() const noexcept { return settings_; }

  void pass(std::size_t bytes) {
    std::int64_t until = mr::detail::read_clock_ns(CLOCK_MONOTONIC);
    if (settings_.bytes_per_second > 0) {
      const std::lock_guard lock(mutex_);
      free_at_ns_ = std::max(free_at_ns_, until) +
                    static_cast<std::int64_t>(1e9 * static_cast<double>(bytes) / settings_.bytes_per_second);
      until = free_at_ns_;
    }
    mr::rng random({.seed = 1, .sample = reads_.fetch_add(1)});
    until += static_cast<std::int64_t>(static_cast<double>(settings_.latency_ns) *
                                       (1 + settings_.jitter * (2 * random.uniform() - 1)));
    if (settings_.bytes_per_second > 0 || settings_.latency_ns > 0)
      std::this_thread::sleep_until(std::chrono::steady_clock::time_point(std::chrono::nanoseconds(until)));
  }

 private:
  const throttle settings_;
  std::mutex mutex_;
  std::int64_t free_at_ns_ = 0;
  std::atomic<std::uint64_t> reads_{0};
};

inline void drop_from_page_cache(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file == -1) return;
  ::fdatasync(file);   // or dirty pages would stay
  ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  ::close(file);
}

class throttled_file final : public mr::byte_source {
 public:
  throttled_file(const std::string& path, shared_pipe& pipe, mr::detail::read_meter& meter)
      : pipe_(&pipe), meter_(&meter), file_(path) {}

  std::string_view name() const noexcept override { return file_.name(); }
  std::size_t read_at(std::uint64_t offset_bytes, std::span<std::byte> buffer) override {
    mr::detail::read_meter::running read(*meter_);
    const std::size_t got = file_.read_at(offset_bytes, buffer);
    if (got > 0) pipe_->pass(got);
    return read.record_bytes(got);
  }

 private:
  shared_pipe* const pipe_;
  mr::detail::read_meter* const meter_;
  mr::file_source file_;
};

class throttled_shards_source {
 public:
  using item = mr::record;
  static constexpr bool same_every_pass = true;

  throttled_shards_source(std::vector<std::string> names, const throttle& t)
      : names_(std::move(names)), shared_(std::make_shared<shared>(t)) {}

  std::size_t shards() const noexcept { return names_.size(); }
  const std::string& shard_name(std::size_t shard) const noexcept { return names_[shard]; }
  mr::shard_reader open(std::size_t shard, std::uint64_t) const {
    if (shared_->pipe.settings().cold) drop_from_page_cache(names_[shard]);
    return {std::make_unique<throttled_file>(names_[shard], shared_->pipe, shared_->reads), shared_->pool};
  }
  mr::detail::read_meter& reads() const noexcept { return shared_->reads; }

 private:
  struct shared {
    explicit shared(const throttle& t) : pipe(t) {}
    mr::block_pool pool;
    shared_pipe pipe;
    mr::detail::read_meter reads;
  };
  std::vector<std::string> names_;
  std::shared_ptr<shared> shared_;
};

inline auto throttled_shards(std::vector<std::string> names, const throttle& t) {
  return mr::detail::flow<mr::record, throttled_shards_source>{{}, throttled_shards_source(std::move(names), t), 7};
}

/// Reads the bytes alone, in large pieces, on that many threads. Returns bytes per second, over all shards or for
/// `seconds`.
inline double raw_read_speed(const std::vector<std::string>& names, const throttle& t, unsigned threads,
                             double seconds) {
  shared_pipe pipe(t);
  mr::detail::read_meter meter;
  if (t.cold)
    for (const auto& name : names) drop_from_page_cache(name);
  std::atomic<std::size_t> next{0};
  const std::int64_t start = mr::detail::read_clock_ns(CLOCK_MONOTONIC);
  const auto passed_s = [&] { return 1e-9 * static_cast<double>(mr::detail::read_clock_ns(CLOCK_MONOTONIC) - start); };
  std::vector<std::thread> all;
  for (unsigned i = 0; i < threads; ++i)
    all.emplace_back([&] {
      std::vector<std::byte> buffer(std::size_t{512} << 10);
      for (std::size_t n = next++; n < names.size() && passed_s() < seconds; n = next++) {
        throttled_file file(names[n], pipe, meter);
        for (std::uint64_t at = 0; passed_s() < seconds;) {
          const std::size_t got = mr::detail::read_fully(file, at, buffer);
          at += got;
          if (got < buffer.size()) break;
        }
      }
    });
  for (auto& thread : all) thread.join();
  return static_cast<double>(meter.snapshot().bytes) / passed_s();
}

}   // namespace bench
