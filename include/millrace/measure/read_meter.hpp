// Measures reads while they run: how long each takes, how many are outstanding, how many bytes they bring.
//
//   mr::detail::read_meter meter;
//   {
//     mr::detail::read_meter::running read(meter, file.name());      // on any thread that reads
//     read.brought(file.read_at(0, buffer));
//   }
//   const mr::detail::read_meter::figures now = meter.snapshot();
//   now.levels.busy_ns();   now.levels.mean_outstanding();   now.service_ns.quantile(0.99);
//
// Costs two clock readings and two short locks per read, about 0.15 us. Errors: none. Threads: any number may read and
// take snapshots at once. Lifetime: a `running` belongs to its thread, and must end before the meter does.
#pragma once

#include <millrace/base/clock.hpp>
#include <millrace/measure/distribution.hpp>
#include <millrace/measure/read_levels.hpp>
#include <millrace/measure/span_ring.hpp>

#include <bit>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns a text like "31.2 s".
inline std::string seconds_text(std::uint64_t ns) {
  return std::to_string(ns / 1'000'000'000) + "." + std::to_string(ns / 100'000'000 % 10) + " s";
}

/// Measures the reads of a source.
class read_meter {
 public:
  /// The figures of all reads so far.
  struct figures {
    std::uint64_t busy_ns = 0;   ///< time of all reads together, including those under way
    std::uint64_t bytes = 0;
    read_levels levels{};
    distribution service_ns{};   ///< time of each read

    figures& operator-=(const figures& earlier) noexcept {
      busy_ns -= std::min(busy_ns, earlier.busy_ns);
      bytes -= std::min(bytes, earlier.bytes);
      levels -= earlier.levels;
      service_ns -= earlier.service_ns;
      return *this;
    }
  };

  /// Measures one read, from its construction to end() or its destruction.
  class running {
   public:
    /// `of` names what is read; its text has to live as long as the read.
    explicit running(read_meter& meter, std::string_view of = {}) noexcept
        : meter_(&meter), start_(meter.begin(steady_now_ns(), of)) {}
    /// The same for a caller that has already read the clock.
    running(read_meter& meter, std::uint64_t at_ns, std::string_view of = {}) noexcept
        : meter_(&meter), start_(meter.begin(at_ns, of)) {}
    running(const running&) = delete;
    running& operator=(const running&) = delete;
    ~running() {
      if (meter_) end(steady_now_ns());
    }
    void end(std::uint64_t at_ns) noexcept { std::exchange(meter_, nullptr)->end(start_, {at_ns, bytes_}); }
    std::size_t brought(std::size_t bytes) noexcept {
      bytes_ += bytes;
      return bytes;
    }

   private:
    friend class read_meter;
    struct moment {
      std::uint64_t at_ns, summed_ns;
      unsigned lane;   // the lowest number that no other read under way uses
    };
    read_meter* meter_;
    moment start_;
    std::size_t bytes_ = 0;
  };

  figures snapshot() const noexcept {
    const std::lock_guard lock(mutex_);
    pass(steady_now_ns());
    return now_;
  }

  /// Returns a text like "2 reads under way, the longest for 31.2 s: train-000012.tar".
  std::string waits(std::uint64_t now) const {
    const std::lock_guard lock(mutex_);
    const named_start* const oldest = longest_read();
    if (!oldest) return "no read under way";
    std::string text = std::to_string(outstanding_) + (outstanding_ == 1 ? " read" : " reads") +
                       " under way, the longest for " + detail::seconds_text(now - std::min(now, oldest->at_ns));
    if (!oldest->of.empty()) text += ": " + std::string(oldest->of);
    return text;
  }
  /// Returns the longest read under way, like "train-000012.tar for 31.2 s"; empty if it has no name or there is none.
  std::string longest(std::uint64_t now) const {
    const std::lock_guard lock(mutex_);
    const named_start* const oldest = longest_read();
    if (!oldest || oldest->of.empty()) return {};
    return std::string(oldest->of) + " for " + detail::seconds_text(now - std::min(now, oldest->at_ns));
  }
  /// Returns the last reads as parallel lists; within a list, reads do not overlap.
  std::vector<std::vector<span_ring::span>> spans() const {
    std::vector<std::vector<span_ring::span>> all;
    for (const span_ring& lane : spans_) all.push_back(lane.snapshot());
    while (!all.empty() && all.back().empty()) all.pop_back();
    return all;
  }

 private:
  struct named_start {
    std::uint64_t at_ns = 0;
    std::string_view of{};
  };
  /// Returns the read that began first; null if no read is under way.
  const named_start* longest_read() const noexcept {
    const named_start* oldest = nullptr;
    for (unsigned lane = 0; lane < under_way_.size(); ++lane)
      if ((lanes_ >> lane & 1) != 0 && (!oldest || under_way_[lane].at_ns < oldest->at_ns)) oldest = &under_way_[lane];
    return oldest;
  }

  typename running::moment begin(std::uint64_t now, std::string_view of) noexcept {
    const std::lock_guard lock(mutex_);
    pass(now);
    ++outstanding_;
    const auto lane = static_cast<unsigned>(std::min(std::countr_one(lanes_), 63));
    lanes_ |= std::uint64_t{1} << lane;
    under_way_[lane] = {at_ns_, of};
    return {at_ns_, now_.busy_ns, lane};
  }
  struct ending {
    std::uint64_t at_ns;
    std::size_t bytes;
  };
  void end(const typename running::moment& start, const ending& e) noexcept {
    const std::lock_guard lock(mutex_);
    pass(e.at_ns);
    --outstanding_;
    lanes_ &= ~(std::uint64_t{1} << start.lane);
    if (start.lane < spans_.size()) spans_[start.lane].record({start.at_ns, at_ns_});
    const std::uint64_t took = std::max<std::uint64_t>(at_ns_ - start.at_ns, 1);
    const std::uint64_t mean = (now_.busy_ns - start.summed_ns + took / 2) / took;
    now_.levels.add(std::max<std::size_t>(1, static_cast<std::size_t>(mean)),
                    {.reads = 1, .read_ns = took, .bytes = e.bytes});
    now_.service_ns.add(took);
    now_.bytes += e.bytes;
  }

  void pass(std::uint64_t now) const noexcept {
    if (now <= at_ns_) return;   // another thread read the clock later, but came first
    if (at_ns_ != 0 && outstanding_ > 0) {
      now_.levels.add(outstanding_, {.ns = now - at_ns_});
      now_.busy_ns += (now - at_ns_) * outstanding_;
    }
    at_ns_ = now;
  }

  mutable std::mutex mutex_;
  mutable figures now_{};
  mutable std::uint64_t at_ns_ = 0;
  std::size_t outstanding_ = 0;
  std::uint64_t lanes_ = 0;   // one bit per lane: set if the lane is in use
  std::array<named_start, 64> under_way_;
  std::array<span_ring, 8> spans_;
};

}}}  // namespace millrace::detail
