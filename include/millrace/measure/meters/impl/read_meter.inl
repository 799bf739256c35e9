// Definitions for read_meter.hpp.
#pragma once

#include <millrace/measure/meters/read_meter.hpp>

#include <millrace/base/clock.hpp>

#include <array>
#include <bit>
#include <new>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE std::string seconds_text(std::uint64_t ns) {
  return std::to_string(ns / 1'000'000'000) + "." + std::to_string(ns / 100'000'000 % 10) + " s";
}

MILLRACE_INLINE read_meter::statistics& read_meter::statistics::operator-=(const statistics& earlier) noexcept {
  busy_ns -= std::min(busy_ns, earlier.busy_ns);
  bytes -= std::min(bytes, earlier.bytes);
  levels -= earlier.levels;
  service_ns -= earlier.service_ns;
  return *this;
}

MILLRACE_INLINE read_meter::running::running(read_meter& meter, std::string_view of) noexcept
    : meter_(&meter), start_(meter.begin(steady_now_ns(), of)) {}

MILLRACE_INLINE read_meter::running::running(read_meter& meter, std::uint64_t at_ns, std::string_view of) noexcept
    : meter_(&meter), start_(meter.begin(at_ns, of)) {}

MILLRACE_INLINE read_meter::running::~running() {
  if (meter_) end(steady_now_ns());
}

MILLRACE_INLINE std::size_t read_meter::running::record_bytes(std::size_t bytes) noexcept {
  bytes_ += bytes;
  return bytes;
}

MILLRACE_INLINE read_meter::statistics read_meter::snapshot() const noexcept {
  const std::lock_guard lock(mutex_);
  pass(steady_now_ns());
  return now_;
}

MILLRACE_RARE std::string read_meter::waits(std::uint64_t now) const {
  const std::lock_guard lock(mutex_);
  const named_start* const oldest = longest_read();
  if (!oldest) return "no read in progress";
  std::string text = std::to_string(outstanding_) + (outstanding_ == 1 ? " read" : " reads") +
                     " in progress, the longest for " + seconds_text(now - std::min(now, oldest->at_ns));
  if (!oldest->of.empty()) text += ": " + std::string(oldest->of);
  return text;
}

MILLRACE_RARE std::string read_meter::longest(std::uint64_t now) const {
  const std::lock_guard lock(mutex_);
  const named_start* const oldest = longest_read();
  if (!oldest || oldest->of.empty()) return {};
  return std::string(oldest->of) + " for " + seconds_text(now - std::min(now, oldest->at_ns));
}

MILLRACE_INLINE std::vector<std::vector<span_ring::span>> read_meter::spans() const {
  std::vector<std::vector<span_ring::span>> all;
  const std::array<span_ring, 8>* const lanes = [&] {
    const std::lock_guard lock(mutex_);
    return spans_.get();
  }();
  if (!lanes) return all;
  for (const span_ring& lane : *lanes) all.push_back(lane.snapshot());
  while (!all.empty() && all.back().empty()) all.pop_back();
  return all;
}

MILLRACE_INLINE const read_meter::named_start* read_meter::longest_read() const noexcept {
  const named_start* oldest = nullptr;
  for (unsigned lane = 0; lane < current_.size(); ++lane)
    if ((lanes_ >> lane & 1) != 0 && (!oldest || current_[lane].at_ns < oldest->at_ns)) oldest = &current_[lane];
  return oldest;
}

MILLRACE_INLINE read_meter::running::moment read_meter::begin(std::uint64_t now, std::string_view of) noexcept {
  const std::lock_guard lock(mutex_);
  if (!spans_) spans_.reset(new (std::nothrow) std::array<span_ring, 8>());   // without memory, no spans are recorded
  pass(now);
  ++outstanding_;
  const auto lane = static_cast<unsigned>(std::min(std::countr_one(lanes_), 63));
  lanes_ |= std::uint64_t{1} << lane;
  current_[lane] = {at_ns_, of};
  return {at_ns_, now_.busy_ns, lane};
}

MILLRACE_INLINE void read_meter::end(const running::moment& start, const ending& e) noexcept {
  const std::lock_guard lock(mutex_);
  pass(e.at_ns);
  --outstanding_;
  lanes_ &= ~(std::uint64_t{1} << start.lane);
  if (spans_ && start.lane < spans_->size()) (*spans_)[start.lane].record({start.at_ns, at_ns_});
  const std::uint64_t took = std::max<std::uint64_t>(at_ns_ - start.at_ns, 1);
  const std::uint64_t mean = (now_.busy_ns - start.summed_ns + took / 2) / took;
  now_.levels.add(std::max<std::size_t>(1, static_cast<std::size_t>(mean)),
                  {.reads = 1, .read_ns = took, .bytes = e.bytes});
  now_.service_ns.add(took);
  now_.bytes += e.bytes;
}

MILLRACE_INLINE void read_meter::pass(std::uint64_t now) const noexcept {
  if (now <= at_ns_) return;   // another thread read the clock later, but arrived first
  if (at_ns_ != 0 && outstanding_ > 0) {
    now_.levels.add(outstanding_, {.ns = now - at_ns_});
    now_.busy_ns += (now - at_ns_) * outstanding_;
  }
  at_ns_ = now;
}

}}}   // namespace millrace::detail
