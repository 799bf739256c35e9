// Defines what mix.hpp declares.
#pragma once

#include <millrace/sources/mix.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE std::unique_ptr<mix_source::planned> mix_source::plan(const indexed_run_options& o) const {
  if (o.window > 0)
    throw setup_error("a shuffle behind mix() would move samples out of their sources' turns",
                      "Put shuffle behind each source: weighted{indexed_shards(...) | shuffle({...}), 0.7}");
  return std::make_unique<planned>(data_, o);
}

}  // namespace detail

}}  // namespace millrace
