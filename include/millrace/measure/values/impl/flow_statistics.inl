// Definitions for flow_statistics.hpp.
#pragma once

#include <millrace/measure/values/flow_statistics.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE const char* name_of(stage_kind kind) noexcept {
  switch (kind) {
    case stage_kind::read: return "read";
    case stage_kind::unpack: return "unpack";
    case stage_kind::work: return "work";
    case stage_kind::copy: return "copy";
    case stage_kind::step: break;
  }
  return "step";
}

}   // namespace detail

MILLRACE_INLINE double stage_statistics::starved_share() const noexcept {
  const double all = static_cast<double>(busy_ns) + static_cast<double>(starved_ns) + static_cast<double>(blocked_ns);
  return all > 0 ? static_cast<double>(starved_ns) / all : 0;
}

MILLRACE_INLINE const stage_statistics* flow_statistics::find(stage_kind kind) const noexcept {
  for (const auto& s : stages)
    if (s.kind == kind) return &s;
  return nullptr;
}

MILLRACE_INLINE std::optional<double> flow_statistics::useful_share_of_other_readers() const noexcept {
  const stage_statistics* const read = find(stage_kind::read);
  if (!read || read->concurrency < 2 || in_turn_ns == 0 || in_turn_samples < 16 || passed_on_samples < 16) return {};
  const auto others = static_cast<double>(read->concurrency - 1);
  const double ahead = static_cast<double>(passed_on_samples) / static_cast<double>(in_turn_samples) - 1;
  if (ahead >= 0.5 * others) return {};
  return ahead > 0 ? ahead / others : 0;
}

MILLRACE_INLINE double flow_statistics::share(const stage_statistics& s, std::uint64_t ns) const noexcept {
  const double all = static_cast<double>(s.concurrency) * static_cast<double>(wall_ns);
  return all > 0 ? static_cast<double>(ns) / all : 0;
}

MILLRACE_INLINE double flow_statistics::data_wait_share() const noexcept {
  if (device_gap_ns && wall_ns > 0) return static_cast<double>(*device_gap_ns) / static_cast<double>(wall_ns);
  const stage_statistics* const trainer = find(stage_kind::step);
  return trainer ? trainer->starved_share() : 0;
}

}}   // namespace millrace
