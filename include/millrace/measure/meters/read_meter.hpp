// Measures reads while they run: their durations, the number of outstanding reads, and their bytes.
//
//   mr::detail::read_meter meter;
//   {
//     mr::detail::read_meter::running read(meter, file.name());      // on any thread that reads
//     read.record_bytes(file.read_at(0, buffer));
//   }
//   const mr::detail::read_meter::statistics now = meter.snapshot();
//   now.levels.busy_ns();   now.levels.mean_outstanding();   now.service_ns.quantile(0.99);
//
// Costs two clock readings and two short locks per read, about 0.15 us. Errors: none. Threads: any number may read and
// create snapshots concurrently. Lifetime: a `running` belongs to its thread, and must end before the meter.
#pragma once

#include <millrace/measure/meters/span_ring.hpp>
#include <millrace/measure/values/distribution.hpp>
#include <millrace/measure/values/read_levels.hpp>

#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns a text like "31.2 s".
std::string seconds_text(std::uint64_t ns);

/// Measures the reads of a source.
class read_meter {
 public:
  /// The statistics of all reads so far.
  struct statistics {
    std::uint64_t busy_ns = 0;   ///< time of all reads together, including those in progress
    std::uint64_t bytes = 0;
    read_levels levels{};
    distribution service_ns{};   ///< time of each read

    statistics& operator-=(const statistics& earlier) noexcept;
  };

  /// Measures one read, from its construction to end() or its destruction.
  class running {
   public:
    /// `of` is the name of the file or source that is read; its text must live as long as the read.
    explicit running(read_meter& meter, std::string_view of = {}) noexcept;
    /// The same for a caller that has already read the clock.
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
      unsigned lane;   // the lowest number that no other current read uses
    };
    read_meter* meter_;
    moment start_;
    std::size_t bytes_ = 0;
  };

  statistics snapshot() const noexcept;

  /// Returns a text like "2 reads in progress, the longest for 31.2 s: train-000012.tar".
  std::string waits(std::uint64_t now) const;
  /// Returns the longest current read, like "train-000012.tar for 31.2 s"; empty if it has no name or there is none.
  std::string longest(std::uint64_t now) const;
  /// Returns the last reads as parallel lists; within a list, reads do not overlap.
  std::vector<std::vector<span_ring::span>> spans() const;

 private:
  struct named_start {
    std::uint64_t at_ns = 0;
    std::string_view of{};
  };
  /// Returns the read that began first; null if there is no current read.
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
  std::array<span_ring, 8> spans_;
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/measure/meters/impl/read_meter.inl>
#endif
