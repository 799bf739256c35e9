// Measures reads while they run: their durations, their sizes, and the number of outstanding reads.
//
//   mr::detail::read_meter meter;
//   {
//     mr::detail::read_meter::running read(meter, file.name());      // on any thread that reads
//     read.record_bytes(file.read_at(0, buffer));
//   }
//   const mr::detail::read_meter::statistics now = meter.snapshot();
//   now.levels.busy_ns();   now.levels.mean_outstanding();   now.service_ns.quantile(0.99);
//
// Cost: two clock readings and two short locks per read, about 0.15 us. Errors: none. Threads: any number of threads
// may read and create snapshots concurrently. Lifetime: a `running` object belongs to one thread, and must be destroyed
// before the meter.
#pragma once

#include <millrace/measure/meters/span_ring.hpp>
#include <millrace/measure/values/distribution.hpp>
#include <millrace/measure/values/read_levels.hpp>

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns a text such as "31.2 s".
std::string seconds_text(std::uint64_t ns);

/// Measures the reads of a source.
class read_meter {
 public:
  /// The statistics of all reads so far.
  struct statistics {
    std::uint64_t busy_ns = 0;   ///< total time of all reads, including reads in progress
    std::uint64_t bytes = 0;
    read_levels levels{};
    distribution service_ns{};   ///< time of each read

    statistics& operator-=(const statistics& earlier) noexcept;
  };

  /// Measures one read, from its construction to end() or its destruction.
  class running {
   public:
    /// `of` is the name of the file or source that is read. The text must remain valid until the read ends.
    explicit running(read_meter& meter, std::string_view of = {}) noexcept;
    /// Same constructor for a caller that has already read the clock.
    running(read_meter& meter, std::uint64_t at_ns, std::string_view of = {}) noexcept;
    running(const running&) = delete;
    running& operator=(const running&) = delete;
    ~running();
    void end(std::uint64_t at_ns) noexcept { std::exchange(meter_, nullptr)->end(start_, {at_ns, bytes_}); }
    std::size_t record_bytes(std::size_t bytes) noexcept;

   private:
    friend class read_meter;
    struct moment {
      std::uint64_t at_ns, summed_ns;
      unsigned lane;   // number of this read: the lowest number that no other running read uses
    };
    read_meter* meter_;
    moment start_;
    std::size_t bytes_ = 0;
  };

  statistics snapshot() const noexcept;

  /// Returns a text such as "2 reads in progress, the longest for 31.2 s: train-000012.tar".
  std::string waits(std::uint64_t now) const;
  /// Describes the longest running read, such as "train-000012.tar for 31.2 s". Empty if no read is running, or if that
  /// read has no name.
  std::string longest(std::uint64_t now) const;
  /// Returns the last reads as several lists. The reads within a list do not overlap.
  std::vector<std::vector<span_ring::span>> spans() const;

 private:
  struct named_start {
    std::uint64_t at_ns = 0;
    std::string_view of{};
  };
  /// Returns the running read that began first; null if no read is running.
  const named_start* longest_read() const noexcept;
  running::moment begin(std::uint64_t now, std::string_view of) noexcept;
  struct ending {
    std::uint64_t at_ns;
    std::size_t bytes;
  };
  void end(const running::moment& start, const ending& e) noexcept;
  void pass(std::uint64_t now) const noexcept;

  mutable std::mutex mutex_;
  mutable statistics now_{};
  mutable std::uint64_t at_ns_ = 0;
  std::size_t outstanding_ = 0;
  std::uint64_t lanes_ = 0;   // one bit per lane: set if the lane is in use
  std::array<named_start, 64> current_;
  /// The rings of the first 8 lanes, created by the first read.
  std::unique_ptr<std::array<span_ring, 8>> spans_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/measure/meters/impl/read_meter.inl>
#endif
