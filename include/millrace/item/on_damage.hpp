// on_damage: lets a run go on from damaged samples, instead of ending at the first one.
//
//   const mr::damage_options rule{.policy = mr::damage::replace, .at_most = 1000};
//   mr::session run{std::move(flow), {.epochs = 90, .on_damage = rule}};
//   for (auto& b : run) train_step(b.get<&example::pixels>(), b.valid());      // u8 [B]: 0 for rows without a sample
//
// A sample is damaged if its source cannot read it, or if a stage throws a data_error for it. The row of a damaged
// sample is filled when its batch closes. `mask` fills it with zeros, and b.valid() is 0 there. `replace` copies the
// nearest good row of the same global batch at a distance of a multiple of 48 rows. session_options::lanes sets another
// number. b.replaced() is 1 there. It masks a row where no such row is good. A global batch of no more than 48 rows has
// none.
// So batches are full, ranks stay even, and no later sample moves. A masked row counts as a row of the batch.
// A shard that cannot be opened, or that ends early, is lost from there on. Its samples are damaged if an index or a
// file beside the shard (sizes.json, a DALI index) tells how many they are. Otherwise the pass has fewer samples.
// Past one of the limits the run ends, with an error that shows the first five damaged samples. Each rank counts for
// itself, from the start of its session, in the order of its rows: the same data give the same error.
// Threads: a value.
#pragma once

#include <millrace/base/version.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// The row that a run makes of a damaged sample.
enum class damage : std::uint8_t {
  fail,      ///< ends with its error, after all batches before it
  replace,   ///< copies a good row over its row
  mask       ///< fills its row with zeros
};

/// How much damage a run takes.
struct damage_options {
  damage policy = damage::fail;
  std::optional<std::uint64_t> at_most{};      ///< damaged samples
  double at_most_share = 0.01;                 ///< of all rows so far, as soon as more than ten are damaged
  std::uint64_t in_a_row = 100;                ///< damaged samples without a good one between them
  std::uint64_t shards_at_most = 10;           ///< lost shards; their samples count in no other limit
  /// Start of the name of the quarantine list: "run1/quarantine" is run1/quarantine-0.jsonl on rank 0. Empty: no list.
  /// The list has a line for each damaged sample (run/quarantine_list.hpp).
  std::string quarantine{};
  std::vector<std::string> stages{};           ///< stages whose every exception is damage, as errors name them: "map 1"
};

}}  // namespace millrace
