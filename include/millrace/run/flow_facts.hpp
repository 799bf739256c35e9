// Describes a flow independently of the types of its stages, and checks whether its stages and options are compatible.
//
//   const mr::detail::flow_facts facts = mr::detail::facts_of(flow);          // run/session_order.hpp
//   mr::detail::check_session_flow(facts);
//   const auto rule = mr::detail::damage_rule_for(facts, options);
//
// Errors: setup_error for stages, ranks and options that are incompatible. Threads: the functions are pure; any thread
// may call them.
#pragma once

#include <millrace/item/owner.hpp>
#include <millrace/read/run/indexed_run_options.hpp>
#include <millrace/read/run/replayed_run.hpp>
#include <millrace/run/session_options.hpp>
#include <millrace/stages/to_device.hpp>
#include <millrace/work/batch/damage_rule.hpp>
#include <millrace/work/segment/sample_names.hpp>

#include <memory>
#include <optional>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The settings of a run that its flow determines.
struct run_settings {
  to_device_options device{.device = host_device()};
  std::size_t batch_rows = 0;
  std::size_t prefetch_batches = 0;   ///< 0 if the size of a batch determines the number
  std::size_t shards = 0;             ///< number of shards of the source
  bool keys = false;                  ///< whether batches have the keys of their rows
};

/// Facts about a flow.
struct flow_facts {
  run_settings settings{};
  std::uint64_t seed = 0;
  /// Whether an index determines the order: the result of is_planned() (run/session_order.hpp). Until that function is
  /// called, `true` means only that an index is possible.
  bool has_index = false;
  std::size_t window = 0;   ///< window of a shuffle directly after the source, in samples; else 0
  /// Maximum number of samples per pass, set by a take() directly after the source or its shuffle; else `endless`.
  std::uint64_t take = endless;
  bool one_row_per_sample = true, packs = false, buckets = false, takes = false, joins_samples = false;
  position::packing_limits packing{};   ///< the limits of the last packing stage
  replay_start from = replay_start::sample;
  std::size_t rows = 1;   ///< rows per batch
  bool drop_last = true, pad_last = false, allow_empty = false;
  std::optional<std::size_t> stride{};   ///< mix_rows_options::stride
};

/// The settings of the session, for planning a run. `session` is a result of checked() (run/session_errors.hpp).
struct planning_options {
  const session_options& session;
  std::size_t budget_bytes;
};

/// Throws setup_error for stages and options that are incompatible.
void check_session_flow(const flow_facts& f);
/// Returns the object that names the samples; null if batches have no keys.
std::shared_ptr<sample_names> sample_names_for(const flow_facts& f);
/// Returns the damage_rule of a session. Throws setup_error if the flow, the source or the number of ranks does not
/// support the damage policy of the session.
damage_rule damage_rule_for(const flow_facts& f, const session_options& o);
/// Returns a warning if some lanes (interleaved parts of the order) have fewer than two rows in a batch. In such a
/// lane, no other row can replace a damaged row. Returns an empty string if no warning is necessary.
std::string damage_notice(const damage_rule& rule, std::size_t rows, const world& mine);
/// Returns the options of a run over a source with an index.
indexed_run_options indexed_options(const flow_facts& f, const planning_options& o);
/// Facts about a source without an index.
struct source_facts {
  std::uint64_t data_set;   ///< the result of fingerprint_of() (read/run/data_identity.hpp)
  std::uint32_t times;      ///< the result of file_times_of() (read/run/data_identity.hpp)
  std::size_t max_lanes;
  bool same_every_pass;         ///< whether all passes have the same samples
  std::string why_streamed{};   ///< the reason why the source has no index; may be empty
};
/// Returns a run over a source without an index.
owner<replayed_run> select_replayed_run(const flow_facts& f, const planning_options& o, source_facts source);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/run/impl/flow_facts.inl>
#endif
