// Watches reads while they run: how long each took, how many were outstanding, how much they brought.
//
//   mr::read_meter meter;
//   { mr::read_meter::running r(meter);  r.brought(file.read(...)); }      // on whichever thread reads
//   mr::read_meter::figures now = meter.snapshot();
//   now.levels.busy_ns();  now.levels.mean_outstanding();  now.service_ns.quantile(0.99);
//
// A read takes two looks at the clock and two short locks more, some 0.15 us. Errors: none. Threads: any number read
// and look at once; a running read belongs to its thread, and must end before the meter does.
#pragma once

#include <millrace/base/clock.hpp>
#include <millrace/sync/distribution.hpp>
#include <millrace/sync/read_levels.hpp>

#include <mutex>

namespace millrace::inline MILLRACE_ABI {

class read_meter {
 public:
  struct figures {
    std::uint64_t busy_ns = 0;   ///< of all reads together, those under way too
    std::uint64_t bytes = 0;
    read_levels levels{};
    distribution service_ns{};   ///< of a read

    figures& operator-=(const figures& earlier) noexcept {
      busy_ns -= std::min(busy_ns, earlier.busy_ns);
      bytes -= std::min(bytes, earlier.bytes);
      levels -= earlier.levels;
      service_ns -= earlier.service_ns;
      return *this;
    }
  };

  class running {
   public:
    explicit running(read_meter& meter) noexcept : meter_(&meter), start_(meter.begin()) {}
    running(const running&) = delete;
    running& operator=(const running&) = delete;
    ~running() { meter_->end(start_, bytes_); }
    std::size_t brought(std::size_t bytes) noexcept {
      bytes_ += bytes;
      return bytes;
    }

   private:
    friend class read_meter;
    struct moment {
      std::uint64_t at_ns, summed_ns;
    };
    read_meter* meter_;
    moment start_;
    std::size_t bytes_ = 0;
  };

  figures snapshot() const noexcept {
    const std::lock_guard lock(mutex_);
    pass();
    return now_;
  }

 private:
  running::moment begin() noexcept {
    const std::lock_guard lock(mutex_);
    pass();
    ++outstanding_;
    return {at_ns_, now_.busy_ns};
  }
  void end(const running::moment& start, std::size_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    pass();
    --outstanding_;
    const std::uint64_t took = std::max<std::uint64_t>(at_ns_ - start.at_ns, 1);
    const std::uint64_t mean = (now_.busy_ns - start.summed_ns + took / 2) / took;
    now_.levels.add(std::max<std::size_t>(1, static_cast<std::size_t>(mean)),
                    {.reads = 1, .read_ns = took, .bytes = bytes});
    now_.service_ns.add(took);
    now_.bytes += bytes;
  }

  void pass() const noexcept {
    const auto now = static_cast<std::uint64_t>(read_clock_ns(CLOCK_MONOTONIC));
    if (at_ns_ != 0) now_.levels.add(outstanding_, {.ns = now - at_ns_});
    if (at_ns_ != 0) now_.busy_ns += (now - at_ns_) * outstanding_;
    at_ns_ = now;
  }

  mutable std::mutex mutex_;
  mutable figures now_{};
  mutable std::uint64_t at_ns_ = 0;
  std::size_t outstanding_ = 0;
};

}  // namespace millrace::inline MILLRACE_ABI
