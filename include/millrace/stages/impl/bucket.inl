// Defines what bucket.hpp declares.
#pragma once

#include <millrace/stages/bucket.hpp>

#include <millrace/item/column/columns.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE void check(const bucket_options& o) {
  const auto not_ascending = [](std::size_t a, std::size_t b) { return a >= b; };
  if (o.boundaries.empty() || o.boundaries.front() == 0 ||
      std::adjacent_find(o.boundaries.begin(), o.boundaries.end(), not_ascending) != o.boundaries.end())
    throw setup_error("bucket() needs ascending boundaries from 1 on",
                      "Say .boundaries = {16, 64, 256}, for instance");
  if (o.tokens != 0 && o.tokens < o.boundaries.back())
    throw setup_error("bucket() allows a batch " + std::to_string(o.tokens) + " tokens, fewer than one row of " +
                          std::to_string(o.boundaries.back()),
                      "Set bucket_options::tokens to a multiple of the last boundary");
  if (o.flush_every == 0) throw setup_error("bucket({.flush_every = 0}) fills none", "Choose many batches' rows");
}

}  // namespace detail

}}  // namespace millrace
