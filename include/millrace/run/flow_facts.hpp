// The facts about a flow that a session needs, independent of the types of its stages, and the rules about them.
//
//   const mr::detail::flow_facts facts = mr::detail::facts_of(flow);          // run/session_order.hpp
//   mr::detail::check_flow(facts);
//   const auto rule = mr::detail::damage_rule_for(facts, options);
//
// Errors: setup_error for stages, ranks and options that are incompatible. Threads: pure functions.
#pragma once

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

/// The settings of a flow for its run.
struct run_settings {
  to_device_options device{.device = host_device()};
  std::size_t batch_rows = 0;
  std::size_t prefetch_batches = 0;   ///< 0: chosen by the size of a batch
  std::size_t shards = 0;             ///< of the source
  bool keys = false;                  ///< batches carry the keys of their rows
};

/// Facts about a flow.
struct flow_facts {
  run_settings settings{};
  std::uint64_t seed = 0;
  bool has_index = false;            ///< the order is computed from an index; at first: it may be
  std::size_t window = 0;            ///< of a shuffle directly after the source, in samples; 0: none
  std::uint64_t take = endless;      ///< limit per pass of a take() directly after the source
  bool one_row_per_sample = true, packs = false, buckets = false, takes = false, joins_samples = false;
  replay_start from = replay_start::sample;
  std::size_t rows = 1;              ///< of a batch
  bool drop_last = true, pad_last = false, allow_empty = false;
  std::optional<std::size_t> stride{};   ///< of mixed rows
};

/// The session's part of a plan; its options are checked().
struct planning_options {
  const session_options& session;
  std::size_t budget_bytes;
};

/// Throws setup_error for stages and options that are incompatible.
void check_flow(const flow_facts& f);
/// Returns the names of the samples if batches have keys, else null.
std::shared_ptr<sample_names> names_for(const flow_facts& f);
/// Returns the damage_rule of a session. Throws setup_error for a flow, a source or ranks that do not allow one.
damage_rule damage_rule_for(const flow_facts& f, const session_options& o);
/// Returns a warning if a lane has less than two rows in a batch, so that no row can be copied; else an empty text.
std::string damage_notice(const damage_rule& rule, std::size_t rows, const world& mine);
/// Returns the options of a run over a source with an index.
indexed_run_options indexed_options(const flow_facts& f, const planning_options& o);
/// Facts about a source without an index.
struct source_facts {
  std::uint64_t data_set;   ///< fingerprint_of()
  std::uint32_t times;      ///< times_of()
  std::size_t max_lanes;
  bool same_every_pass;     ///< all passes have the same samples
  std::string why_streamed{};   ///< as in replayed_run_options
};
/// Returns a run over a source without an index.
std::unique_ptr<replayed_run> replayed_run_for(const flow_facts& f, const planning_options& o,
                                               source_facts source);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/run/impl/flow_facts.inl>
#endif
