// on_damage: lets a run continue after damaged samples, instead of ending at the first one.
//
//   const mr::damage_options rule{.policy = mr::damage::replace, .at_most = 1000};
//   mr::session run{std::move(flow), {.epochs = 90, .on_damage = rule}};
//   for (auto& b : run) train_step(b.get<&example::pixels>(), b.valid());      // u8 [B]: 0 for rows without a sample
//
// A sample is damaged if its source cannot read it, or if a stage throws a data_error for it. The row of a damaged
// sample is filled when its batch closes. `mask` fills it with zeros, and b.valid() is 0 there. `replace` copies the
// nearest good row of the same global batch at a distance of a multiple of 48 rows (another number with
// session_options::lanes). b.replaced() is 1 there. A row is masked if no such row is good. A global batch of at most
// 48 rows has none.
// Therefore batches are full, ranks stay even, and no later sample moves. A masked row counts as a row of the batch.
// A shard that cannot be opened, or that ends early, is lost from there. Its samples are damaged if an index or a
// sidecar file of the shard (sizes.json, a DALI index) states their number. Otherwise the pass has fewer samples.
// Beyond one of the limits the run ends, with an error that shows the first five damaged samples. Each rank counts
// separately, from the start of its session, in the order of its rows: the same data produce the same error.
// Threads: a value.
#pragma once

#include <millrace/base/version.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// The treatment of a damaged sample.
enum class damage : std::uint8_t {
  fail,      ///< ends with its error, after all batches before it
  replace,   ///< copies a good row over its row
  mask       ///< fills its row with zeros
};

/// How much damage a run accepts.
struct damage_options {
  damage policy = damage::fail;
  std::optional<std::uint64_t> at_most{};      ///< damaged samples
  double at_most_share = 0.01;                 ///< of all rows so far, if more than ten are damaged
  std::uint64_t in_a_row = 100;                ///< damaged samples without a good one between them
  std::uint64_t shards_at_most = 10;           ///< lost shards; their samples do not count for the other limits
  /// Start of the name of the quarantine list: "run1/quarantine" is run1/quarantine-0.jsonl on rank 0. Empty: no list.
  /// The list has a line for each damaged sample (run/quarantine_list.hpp).
  std::string quarantine{};
  std::vector<std::string> stages{};           ///< stages whose every exception is damage, as errors name them: "map 1"
};

}}  // namespace millrace
