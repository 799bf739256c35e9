// exhausted: defines the behavior of a mix when one of its sources is exhausted.
//
//   auto flow = mr::mix({.on_exhausted = mr::exhausted::repeat}, mr::weighted{photos, 0.7},
//                       mr::weighted{drawings, 0.3});
//
// order/mix_plan.hpp describes the effect of each value. Errors: none. Threads: any thread may use the constants.
#pragma once

#include <millrace/base/version.hpp>

#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI {

/// The behavior of a mix when one of its sources is exhausted: end the epoch, repeat the source, or reweight the
/// others.
enum class exhausted : std::uint8_t { stop, repeat, reweight };

}}   // namespace millrace
