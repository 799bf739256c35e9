// What a session tells a source that knows its samples beforehand (sources/indexed_shards.hpp): source.plan(options).
//
//   auto run = source.plan({.seed = 7, .window = 8192, .rows = 256, .world = mine, .resume = text, .epochs = 90});
//
// Light: sessions over other sources need no more than this of it.
#pragma once

#include <millrace/order/world.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI {

struct indexed_run_options {
  std::uint64_t seed = 0;
  std::size_t window = 0;       ///< of the shuffle, in samples; 0: none
  std::size_t rows = 1;         ///< of this rank's batches
  bool drop_last = true;
  millrace::world world{};
  std::size_t lanes = 48;
  std::string resume{};
  std::uint64_t epochs = 1;
  std::uint64_t epoch_batches = 0;   ///< 0: an epoch is one exact pass; exact_order_options::endless: there is but one
  std::size_t bytes_at_once = std::size_t{4} << 20;   ///< read together by one thread
  std::size_t most_held_bytes = 0;                    ///< of small samples whose neighbours' turn came first

  std::size_t global_batch() const noexcept { return rows * (world.size > 0 ? world.size : 1); }
};

}}  // namespace millrace
