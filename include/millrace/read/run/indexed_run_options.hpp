// The options that a session passes to a source whose samples are known in advance (sources/shards.hpp).
//
//   auto run = source.plan({.seed = 7, .window = 8192, .rows = 256, .world = mine, .resume = text, .epochs = 90});
//
// Sessions over other sources include only this small header.
#pragma once

#include <millrace/item/world.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

class notice_outlet;

/// The request of a session to a source that may use an index.
struct index_use {
  bool one_row_per_sample;     ///< a requirement of an exact order
  bool tolerates_damage;       ///< the session has on_damage
  notice_outlet& notices;      ///< outlet of the session
};

/// Options of one run over an indexed data set.
struct indexed_run_options {
  std::uint64_t seed = 0;
  std::size_t window = 0;       ///< shuffle window in samples; 0: no shuffle
  std::size_t rows = 1;         ///< rows per batch on this rank
  bool drop_last = true;        ///< drop an incomplete last batch of an exact pass
  bool allow_empty = false;     ///< allow the last batch to have fewer rows than there are ranks
  millrace::world world{};
  std::size_t lanes = 0;        ///< 0: as in the resume point, else chosen from samples, shards and window
  bool tolerates_damage = false;   ///< as in index_use
  bool grown = false;           ///< accepts the resume point of a run over fewer samples
  std::string resume{};         ///< text of the resume point; empty: begin at the start
  std::uint64_t first_epoch = 0;   ///< where a run without a resume point begins
  std::uint64_t epochs = 1;     ///< epochs since the start of the run, not of the session
  std::optional<std::size_t> stride{};   ///< stride of mixed rows: read/run/row_stride.hpp
  std::uint64_t epoch_batches = 0;   ///< batches of an epoch; 0: one exact pass; exact_order_options::endless: no end
  std::size_t bytes_at_once = std::size_t{4} << 20;   ///< bytes that one thread reads at a time
  std::size_t max_held_bytes = 0;                    ///< maximum bytes of small samples read early

  /// Returns the number of rows of a batch over all ranks.
  std::size_t global_batch() const noexcept { return rows * (world.size > 0 ? world.size : 1); }
};

}}}  // namespace millrace::detail
