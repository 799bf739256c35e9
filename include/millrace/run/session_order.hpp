// Derives the facts about a flow from its type, and plans its run. With an index, the plan is the order of the samples.
// Without an index, the plan is the order of the shards.
//
//   mr::detail::flow_facts facts = mr::detail::facts_of(flow);
//   facts.has_index = mr::detail::is_planned<decltype(flow)>(source, false, notices);
//   const auto run = mr::detail::planned_run_for<decltype(flow)>(source, facts,
//                                                                {.session = options, .budget_bytes = budget});
//   // *run is the result of source.plan() for a source with an index, else a replayed_run
//
// Errors: setup_error for ranks and resume points that the source does not support. Threads: any thread may call the
// functions.
#pragma once

#include <millrace/flow/stage.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/read/stage/shard_read_stage.hpp>
#include <millrace/run/flow_facts.hpp>
#include <millrace/run/pipeline_builder.hpp>

#include <concepts>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A source with an index: its samples are known before the run.
template <class Source>
concept has_index = requires(const Source& source, const indexed_run_options& o) {
  { source.plan(o) } -> std::convertible_to<owner<planned_run>>;
};

/// A source with an index that can also be read as a stream. Flows that change the number of rows read the stream.
template <class Source>
concept also_streams = has_index<Source> && requires { requires Source::also_streams; };

/// A source that loads its indexes at the start of a session: uses_index() reads or builds the indexes, and returns
/// whether the source uses them.
template <class Source>
concept loads_at_start = requires(const Source& source, const index_use& use) {
  { source.uses_index(use) } -> std::same_as<bool>;
};

/// A source that decides at the start of a session whether it uses an index.
template <class Source>
concept decides_at_start = also_streams<Source> && loads_at_start<Source>;

/// A source that can reach a later pass only by reading all earlier passes.
template <class Source>
concept begins_at_pass_0 = requires { requires Source::begins_at_pass_0; };

/// Returns the maximum number of lanes (interleaved parts of the order): 1 for a source that allows only one reader at
/// a time, else `limit`. A result of 0 means one lane for each rank.
template <class Source>
constexpr std::size_t max_lanes(std::size_t limit) {
  if constexpr (requires { requires Source::one_reader_at_a_time; }) return 1;
  else return limit;
}

template <class Skipped, class First, class... Rest>
auto skip_stage(stage_list<First, Rest...>&& stages) {
  if constexpr (std::is_same_v<First, Skipped>) return std::move(stages.rest);
  else return std::move(stages);
}
/// Returns the stages that the session runs. Omits a shuffle directly after the source, and a take directly after the
/// source or this shuffle, because the order of the samples implements both.
template <class... Stages>
auto skip_planned_stages(stage_list<Stages...>&& stages) {
  return skip_stage<take_stage>(skip_stage<shuffle_stage>(std::move(stages)));
}

template <class Flow>
constexpr replay_start replay_start_of_flow() {
  using stages = decltype(skip_planned_stages(std::declval<Flow>().stages));
  if constexpr (begins_at_pass_0<typename Flow::source_type>) return replay_start::run;
  else return replay_start_of<typename Flow::source_type::item>(static_cast<const stages*>(nullptr));
}

/// Returns the window of a shuffle directly after the source, in samples; 0 without such a shuffle.
template <class First, class... Rest>
std::size_t leading_window(const stage_list<First, Rest...>& stages) {
  if constexpr (std::is_same_v<First, shuffle_stage>) return std::max<std::size_t>(1, stages.first.options.window);
  else return 0;
}

/// Returns the maximum number of samples per pass, set by a take() directly after the source or its shuffle; `endless`
/// without such a stage.
template <class... Stages>
std::uint64_t leading_take(const stage_list<Stages...>&) {
  return endless;
}
template <class... Rest>
std::uint64_t leading_take(const stage_list<take_stage, Rest...>& stages) {
  return stages.first.count;
}
template <class... Rest>
std::uint64_t leading_take(const stage_list<shuffle_stage, take_stage, Rest...>& stages) {
  return stages.rest.first.count;
}

/// Copies the settings of `stage` to `f`, if `stage` is a batch, pack, mix_rows, prefetch or to_device stage. If a flow
/// has several stages of one kind, the settings of the last stage are used.
template <class Stage>
void add_order_settings(const Stage& stage, flow_facts& f) {
  if constexpr (is_batch<Stage>) {
    f.rows = std::max<std::size_t>(1, stage.options.size);
    f.drop_last = drops_last(stage.options);
    f.pad_last = stage.options.pad_last;
    f.allow_empty = stage.options.allow_empty;
    f.settings.batch_rows += stage.options.size;
    f.settings.keys = stage.options.keys;
  } else if constexpr (requires { stage.expanding.limits(); }) {
    f.packing = stage.expanding.limits();
  } else if constexpr (mixes_rows<Stage>) {
    f.stride = stage.options.stride.value_or(0);
  } else if constexpr (std::is_same_v<Stage, prefetch_stage>) {
    f.settings.prefetch_batches = stage.options.batches.value_or(0);
  } else if constexpr (std::is_same_v<Stage, to_device_stage>) {
    f.settings.device = stage.options;
  }
}

template <class First, class... Rest>
constexpr bool has_one_row_per_sample(const stage_list<First, Rest...>*) {
  return (one_row_per_sample<Rest> && ...) && (one_row_per_sample<First> || std::is_same_v<First, shuffle_stage>);
}
/// Records the kinds of stages in the flow.
template <class... Stages>
void add_kinds(const stage_list<Stages...>* stages, flow_facts& f) {
  f.one_row_per_sample = has_one_row_per_sample(stages);
  f.packs = (is_packing<Stages> || ...);
  f.buckets = (is_bucket<Stages> || ...);
  f.takes = (std::is_same_v<Stages, take_stage> || ...);
  f.joins_samples = (joins_samples<Stages> || ...);
}

/// Whether the order of a flow may be computed before its samples are read.
template <class Flow>
constexpr bool may_be_planned() {
  using source = typename Flow::source_type;
  if constexpr (!has_index<source>) return false;
  else if constexpr (!also_streams<source>) return true;
  else return has_one_row_per_sample(static_cast<const decltype(Flow::stages)*>(nullptr));
}
/// Whether a flow may be read as a stream, without an index.
template <class Flow>
constexpr bool may_stream() {
  return !may_be_planned<Flow>() || decides_at_start<typename Flow::source_type>;
}

/// Returns whether the order of a flow is computed from an index. Throws the errors of the source.
template <class Flow, class Source>
bool is_planned(const Source& source, bool tolerates_damage, notice_outlet& notices) {
  if constexpr (loads_at_start<Source>)
    return source.uses_index(
        {.one_row_per_sample = may_be_planned<Flow>(), .tolerates_damage = tolerates_damage, .notices = notices});
  else return may_be_planned<Flow>();
}

/// Returns the facts about a flow.
template <class Flow>
flow_facts facts_of(const Flow& flow) {
  flow_facts f{.seed = flow.seed,
               .has_index = may_be_planned<Flow>(),
               .window = leading_window(flow.stages),
               .take = leading_take(flow.stages),
               .from = replay_start_of_flow<Flow>()};
  f.settings.shards = flow.source.shards();
  add_kinds(&flow.stages, f);
  for_each(flow.stages, [&](const auto& stage) { add_order_settings(stage, f); });
  return f;
}

/// Returns the run that reads a source as a stream.
template <class Source>
owner<replayed_run> select_streamed_run(const Source& source, const flow_facts& f, const planning_options& o) {
  source_facts of{.data_set = fingerprint_of(source),
                  .times = file_times_of(source),
                  .max_lanes = max_lanes<Source>(o.session.lanes.value_or(0)),
                  .same_every_pass = same_samples_each_pass<Source>};
  if constexpr (requires { source.why_streamed(); }) of.why_streamed = source.why_streamed();
  auto run = select_replayed_run(f, o, std::move(of));
  if constexpr (requires { source.keep_older_order(); })
    if (run->keeps_older_order()) source.keep_older_order();
  return run;
}

/// Returns the run over the source of a flow. Throws setup_error for incompatible stages.
template <class Flow, class Source>
owner<planned_run> planned_run_for(const Source& source, const flow_facts& f, const planning_options& o) {
  check_session_flow(f);
  if constexpr (may_be_planned<Flow>())
    if (f.has_index) return source.plan(indexed_options(f, o));
  if constexpr (may_stream<Flow>()) return select_streamed_run(source, f, o);
  else return nullptr;   // unreachable: a flow that cannot stream has an index
}

/// Returns the read stage (the part of the pipeline that reads shards) of `run`. `run` must be the result of
/// planned_run_for() for the same flow and facts.
template <class Flow, class Source>
owner<read_stage> read_stage_for(planned_run& run, const Source& source, const flow_facts& f,
                                 shard_read_stage_options o, sample_sink<typename Source::item>& first) {
  if constexpr (may_be_planned<Flow>())
    if (f.has_index) {
      if constexpr (requires { source.read_by_index(run, o, first); })
        return source.read_by_index(run, std::move(o), first);
      else return static_cast<typename Source::planned&>(run).read(source, std::move(o), first);
    }
  if constexpr (may_stream<Flow>()) return static_cast<replayed_run&>(run).read(source, std::move(o), first);
  else return nullptr;
}
}}}   // namespace millrace::detail
