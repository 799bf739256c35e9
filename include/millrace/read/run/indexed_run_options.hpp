// The options that a session passes to a source with an index (sources/shards.hpp). The samples of such a source are
// known at the start.
//
//   auto run = source.plan({.seed = 7, .window = 8192, .rows = 256, .world = mine, .resume = text, .epochs = 90});
//
// The header is small, because sessions over other sources include it, too.
#pragma once

#include <millrace/item/world.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

class notice_outlet;

/// The properties of a session that decide whether a source may use its index.
struct index_use {
  bool one_row_per_sample;   ///< whether each sample becomes one row, which an exact order requires
  bool tolerates_damage;     ///< whether the session has on_damage
  notice_outlet& notices;    ///< receives the notices of the session
};

/// Options of one run over an indexed data set.
struct indexed_run_options {
  std::uint64_t seed = 0;
  std::size_t window = 0;     ///< shuffle window in samples; 0 without a shuffle
  std::size_t rows = 1;       ///< rows per batch on this rank
  bool drop_last = true;      ///< drops an incomplete last batch; used only if an epoch is one pass
  bool allow_empty = false;   ///< allows a last global batch that leaves some ranks without a row
  millrace::world world{};
  /// Number of lanes (interleaved parts of the order). In a resumed run, 0 selects the number in the resume point. In a
  /// new run, 0 selects a number that depends on the data and the window.
  std::size_t lanes = 0;
  bool tolerates_damage = false;   ///< whether the session has on_damage
  bool grown = false;              ///< accepts the resume point of a run over fewer samples
  std::string resume{};            ///< text of the resume point; empty for a new run
  std::uint64_t first_epoch = 0;   ///< first epoch of a new run
  std::uint64_t epochs = 1;        ///< number of epochs of the run, including those before this session
  /// Distance between the two rows of a mixed pair (read/run/planned_run.hpp). Empty if rows are not mixed.
  std::optional<std::size_t> stride{};
  std::uint64_t epoch_batches = 0;   ///< batches of an epoch; 0: one pass; exact_order_options::endless: no end
  std::size_t bytes_at_once = std::size_t{4} << 20;   ///< target size of a block of samples, which one thread reads
  std::size_t max_held_bytes = 0;   ///< maximum memory for samples that are read before they are requested

  /// Returns the number of rows of a batch over all ranks.
  std::size_t global_batch() const noexcept { return rows * (world.size > 0 ? world.size : 1); }
};

}}}   // namespace millrace::detail
