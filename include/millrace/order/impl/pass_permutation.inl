// Definitions for pass_permutation.hpp.
#pragma once

#include <millrace/order/pass_permutation.hpp>

#include <millrace/base/random.hpp>

#include <numeric>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE pass_permutation::pass_permutation(const options& o) {
  const auto shuffle = [&o](auto& table) {
    table.resize(static_cast<std::size_t>(o.length));
    std::iota(table.begin(), table.end(), 0);
    rng random({.seed = o.seed, .epoch = o.pass, .sample = permutation_stream, .stage = permutation_stream});
    for (std::uint64_t i = o.length; i > 1; --i) std::swap(table[i - 1], table[random.below(i)]);
  };
  if (o.length > std::uint64_t{1} << 32) shuffle(wide_);
  else shuffle(narrow_);
}

}}}  // namespace millrace::detail
