// Chooses the order of a session's run: the order of the samples if the source has an index, else that of the shards.
//
//   mr::detail::shard_order order = mr::detail::order_for(source, flow);
//   auto run = mr::detail::planned_run_for(source, flow, {.session = options, .budget_bytes = budget});
//   // *run is what source.plan() made for a source with an index, else a replayed_run
//
// Errors: setup_error for stages, ranks and resume points that the source cannot serve. Threads: pure functions.
#pragma once

#include <millrace/read/indexed_run_options.hpp>
#include <millrace/read/replayed_run.hpp>
#include <millrace/read/shard_read_stage.hpp>
#include <millrace/run/pipeline_builder.hpp>
#include <millrace/run/session_options.hpp>

#include <memory>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A source with an index: it knows its samples before the run.
template <class Source>
concept has_index = requires(const Source& source, const indexed_run_options& o) { source.plan(o)->after(0); };

/// A source that can reach a later pass only through the earlier ones.
template <class Source>
concept begins_at_pass_0 = requires { requires Source::begins_at_pass_0; };

template <class Source>
struct planned_run_of {
  using type = replayed_run;
};
template <has_index Source>
struct planned_run_of<Source> {
  using type = typename Source::planned;
};

/// Returns the limit of lanes. Each lane has its own reader, so a source that allows one reader at a time has one lane.
template <class Source>
constexpr std::size_t max_lanes(std::size_t wanted) {
  if constexpr (requires { requires Source::one_reader_at_a_time; }) return 1;
  else return wanted;
}

template <class Skipped, class First, class... Rest>
auto skip_stage(std::tuple<First, Rest...> stages) {
  if constexpr (std::is_same_v<First, Skipped>)
    return std::apply([](auto&, auto&... rest) { return std::tuple(std::move(rest)...); }, stages);
  else return stages;
}
/// Returns the stages without a leading shuffle and a take directly behind it: the order does the work of these.
template <class... Stages>
auto skip_planned_stages(std::tuple<Stages...> stages) {
  return skip_stage<take_stage>(skip_stage<shuffle_stage>(std::move(stages)));
}

template <class Flow>
constexpr replay_start replay_start_of_flow() {
  using stages = decltype(skip_planned_stages(std::declval<Flow>().stages));
  if constexpr (begins_at_pass_0<typename Flow::source_type>) return replay_start::run;
  else return replay_start_of<typename Flow::source_type::item>(static_cast<const stages*>(nullptr));
}

struct planning_options {
  const session_options& session;
  std::size_t budget_bytes;
};

/// Returns the window of a shuffle directly behind the source, in samples; 0 if there is none.
template <class... Stages>
std::size_t leading_window(const std::tuple<Stages...>& stages) {
  if constexpr (std::is_same_v<std::tuple_element_t<0, std::tuple<Stages...>>, shuffle_stage>)
    return std::max<std::size_t>(1, std::get<0>(stages).options.window);
  else return 0;
}

/// Returns the samples of each pass that a take directly behind the source, or behind its shuffle, keeps; else endless.
template <class... Stages>
std::uint64_t leading_take(const std::tuple<Stages...>& stages) {
  using all = std::tuple<Stages...>;
  constexpr std::size_t at = std::is_same_v<std::tuple_element_t<0, all>, shuffle_stage> ? 1 : 0;
  if constexpr (std::is_same_v<std::tuple_element_t<at, all>, take_stage>) return std::get<at>(stages).count;
  else return endless;
}

/// Takes over what a stage says about batches and their rows.
template <class Stage>
void take_batch_options(const Stage& stage, indexed_run_options& o) {
  if constexpr (is_batch<Stage>) {
    o.rows = std::max<std::size_t>(1, stage.options.size);
    o.drop_last = drops_last(stage.options);
    o.allow_empty = stage.options.allow_empty || stage.options.pad_last;
  } else if constexpr (mixes_rows<Stage>) {
    o.stride = stage.options.stride;
  }
}

template <class First, class... Rest>
constexpr bool has_one_row_per_sample(const std::tuple<First, Rest...>&) {
  return (one_row_per_sample<Rest> && ...) && (one_row_per_sample<First> || std::is_same_v<First, shuffle_stage>);
}
template <class... Stages>
constexpr bool has_packing(const std::tuple<Stages...>&) {
  return (is_packing<Stages> || ...);
}
template <class... Stages>
constexpr bool has_buckets(const std::tuple<Stages...>&) {
  return (is_bucket<Stages> || ...);
}
template <class... Stages>
constexpr bool has_take(const std::tuple<Stages...>&) {
  return (std::is_same_v<Stages, take_stage> || ...);
}
template <class... Stages>
bool wants_keys(const std::tuple<Stages...>& stages) {
  const auto asks = [](const auto& stage) {
    if constexpr (is_batch<std::remove_cvref_t<decltype(stage)>>) return stage.options.keys;
    else return false;
  };
  return std::apply([&](const auto&... s) { return (asks(s) || ...); }, stages);
}
/// Throws setup_error for pad_last behind bucket(): all batches of it may be short, and they stay short.
template <class... Stages>
void check_padding(const std::tuple<Stages...>& stages) {
  const auto pads = [](const auto& stage) {
    if constexpr (is_batch<std::remove_cvref_t<decltype(stage)>>) return stage.options.pad_last;
    else return false;
  };
  if (has_buckets(stages) && std::apply([&](const auto&... s) { return (pads(s) || ...); }, stages))
    throw setup_error("bucket() sets the rows of each batch: got batch({.pad_last = true}), expected batches of one "
                      "size",
                      "Leave out pad_last, or bucket()");
}
/// Returns the names of the samples if batches have keys, else null. Throws setup_error if a stage joins samples.
template <class... Stages>
std::shared_ptr<sample_names> names_for(const std::tuple<Stages...>& stages) {
  if (!wants_keys(stages)) return nullptr;
  if ((joins_samples<Stages> || ...))
    throw setup_error("the rows of pack() have no keys, each is made of several samples: got batch({.keys = true}), "
                      "expected batch({.keys = false})",
                      "Leave out keys, or pack()");
  return std::make_shared<sample_names>();
}
/// Throws setup_error unless each sample becomes one row: an indexed source knows its positions before the run.
template <class Stages>
void check_rows(const Stages& stages) {
  if (!has_one_row_per_sample(stages))
    throw setup_error("an indexed source has one row for each sample, and expand, filter, take, bucket or a later "
                      "shuffle would change that",
                      "Use shards(), or leave out that stage");
}

/// Returns the damage_rule of a session. Throws setup_error for a flow, a source or ranks that do not allow one.
template <class Source, class Flow>
damage_rule damage_rule_for(const Flow& flow, const session_options& o) {
  if (o.on_damage.policy == damage::fail) return {};
  if (!has_one_row_per_sample(flow.stages))
    throw setup_error("on_damage fills the row of a sample, and behind expand, filter, pack, take, bucket or a later "
                      "shuffle a sample has no row of its own",
                      "Leave out on_damage, or that stage");
  damage_rule rule{.policy = o.on_damage.policy, .in_a_row = o.on_damage.in_a_row, .stages = o.on_damage.stages};
  if constexpr (has_index<Source>) {
    if (rule.policy == damage::replace && o.lanes % o.world.size != 0)
      throw setup_error("on_damage = replace copies within a lane, and " + std::to_string(o.world.size) +
                            " ranks do not divide the " + std::to_string(o.lanes) + " lanes",
                        "Set session_options::lanes to a multiple of the ranks, or use mask");
    rule.donor_step = o.lanes / o.world.size;
  } else if (o.world.size > 1) {
    throw setup_error("on_damage on several ranks needs an index: a lost shard would make their shares uneven",
                      "Use indexed_shards() of millrace/shards.hpp, or one rank");
  }
  return rule;
}

/// Returns a warning if a lane has less than two rows in a batch, so that nothing can be copied; else an empty text.
inline std::string damage_notice(const damage_rule& rule, std::size_t rows, const world& mine) {
  if (rule.policy != damage::replace || 2 * rule.donor_step <= rows) return {};
  const std::size_t lanes = rule.donor_step * mine.size, fitting = rows / 2 * mine.size;
  return "on_damage = replace finds no row to copy in some lanes, and masks their damaged rows: got a batch of " +
         std::to_string(rows * mine.size) + " rows over all ranks, expected at least twice the " +
         std::to_string(lanes) + " lanes. " +
         (fitting > 0 ? "Set session_options::lanes to " + std::to_string(fitting) : "Use larger batches");
}

template <class Source, class Flow>
shard_order order_for(const Source& source, const Flow& flow) {
  const std::size_t window = leading_window(flow.stages);
  return shard_order({.seed = flow.seed,
                      .shards = source.shards(),
                      .shuffled = window > 0,
                      .window = std::max<std::size_t>(1, window)});
}

template <class Source, class Flow>
auto planned_run_for(const Source& source, const Flow& flow, const planning_options& o) {
  check_padding(flow.stages);
  indexed_run_options planned{.seed = flow.seed,
                              .window = leading_window(flow.stages),
                              .world = o.session.world,
                              .lanes = o.session.lanes,
                              .resume = o.session.resume,
                              .epochs = o.session.epochs,
                              .epoch_batches = o.session.epoch_batches,
                              .bytes_at_once = std::min(std::size_t{4} << 20, o.budget_bytes / 128),
                              .max_held_bytes = std::min(std::size_t{256} << 20, o.budget_bytes / 8)};
  std::apply([&](const auto&... s) { (take_batch_options(s, planned), ...); }, flow.stages);
  if constexpr (has_index<Source>) {
    check_rows(flow.stages);
    return source.plan(planned);
  } else {
    return std::make_unique<replayed_run>(replayed_run_options{.order = order_for(source, flow).settings(),
                                                               .data_set = fingerprint_of(source),
                                                               .times = times_of(source),
                                                               .rows = planned.rows,
                                                               .drop_last = planned.drop_last,
                                                               .resume = planned.resume,
                                                               .epochs = planned.epochs,
                                                               .epoch_batches = planned.epoch_batches,
                                                               .from = replay_start_of_flow<Flow>(),
                                                               .one_row = has_one_row_per_sample(flow.stages),
                                                               .take = leading_take(flow.stages),
                                                               .takes = has_take(flow.stages),
                                                               .packs = has_packing(flow.stages),
                                                               .stride = planned.stride,
                                                               .buckets = has_buckets(flow.stages),
                                                               .world = o.session.world,
                                                               .max_lanes = max_lanes<Source>(o.session.lanes),
                                                               .session_lanes = o.session.lanes});
  }
}

}}}  // namespace millrace::detail
