// on_damage: lets a run continue after damaged samples, instead of ending at the first damaged sample.
//
//   const mr::damage_options rule{.policy = mr::damage::replace, .at_most = 1000};
//   mr::session run{std::move(flow), {.epochs = 90, .on_damage = rule}};
//   for (auto& b : run) train_step(b.get<&example::pixels>(), b.valid());      // u8 [B]: 0 for rows without a sample
//
// A sample is damaged if its source cannot read it, or if a stage throws a data_error for it. The row of a damaged
// sample is filled after all other rows of its batch:
// - `mask` fills the row with zeros, and sets its flag in b.valid() to 0.
// - `replace` copies the nearest good row of the batch over the damaged row, and sets the flag of the damaged row in
//   b.replaced() to 1. With an index, only rows at certain distances are copied: multiples of session_options::lanes
//   (by default 48), counted in rows of the global batch. If the batch has no good row at such a distance, `replace`
//   masks the damaged row.
//
// Therefore batches are full, all ranks have equal batches, and the other samples keep their positions. b.size() counts
// masked rows, too.
// If a shard cannot be opened or ends early, its remaining samples are lost. If an index or a sidecar file of the shard
// (sizes.json, a DALI index) contains the number of samples, the rows of lost samples are filled like damaged rows.
// Otherwise the pass has fewer samples. If a limit of damage_options is exceeded, the run ends with an error that lists
// the first five damaged samples. Each rank counts its own damaged samples from the start of its session, in the order
// of its rows. Therefore the same data produce the same error.
// Threads: not synchronized.
#pragma once

#include <millrace/base/version.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// The treatment of a damaged sample.
enum class damage : std::uint8_t {
  fail,      ///< delivers all earlier batches, then ends the run with the sample's error
  replace,   ///< copies a good row over the sample's row
  mask       ///< fills the sample's row with zeros
};

/// The policy for damaged samples, and the limits for damage.
struct damage_options {
  damage policy = damage::fail;
  std::optional<std::uint64_t> at_most{};   ///< maximum number of damaged samples
  double at_most_share = 0.01;              ///< maximum damaged share of rows; checked from the 11th damaged row on
  std::uint64_t in_a_row = 100;             ///< maximum number of consecutive damaged samples
  std::uint64_t shards_at_most = 10;        ///< maximum number of lost shards; the other limits ignore their samples
  /// Prefix of the path of the quarantine list: with "run1/quarantine", rank 0 writes run1/quarantine-0.jsonl. If the
  /// prefix is empty, no list is written. The list has a line for each damaged sample (run/quarantine_list.hpp).
  std::string quarantine{};
  std::vector<std::string> stages{};   ///< names of stages, such as "map 1", whose exceptions all count as damage
};

}}   // namespace millrace
