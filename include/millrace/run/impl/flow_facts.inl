// Definitions for flow_facts.hpp.
#pragma once

#include <millrace/run/flow_facts.hpp>

#include <millrace/base/error.hpp>

#include <algorithm>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE void check_session_flow(const flow_facts& f) {
  // All batches of bucket() may be short, and pad_last cannot fill them up.
  if (f.buckets && f.pad_last)
    throw setup_error("pad_last cannot complete the last batch, because the batches of bucket() have different sizes: "
                      "got batch({.pad_last = true}), expected batch({.pad_last = false})",
                      "Omit pad_last, or bucket()");
  if (f.has_index && !f.one_row_per_sample)
    throw setup_error("a flow from a source with an index needs one row for each sample, but this flow has expand, "
                      "filter, pack, take, bucket, or a shuffle that is not directly after the source",
                      "Omit that stage, or use a source without an index");
}

MILLRACE_RARE std::shared_ptr<sample_names> sample_names_for(const flow_facts& f) {
  if (!f.settings.keys) return nullptr;
  if (f.joins_samples)
    throw setup_error("the rows of pack() have no keys, because each row combines several samples: got "
                      "batch({.keys = true}), expected batch({.keys = false})",
                      "Remove .keys from batch(), or remove pack()");
  return make_shared_object<sample_names>();
}

MILLRACE_RARE damage_rule damage_rule_for(const flow_facts& f, const session_options& o) {
  if (o.on_damage.policy == damage::fail) return {};
  if (!f.one_row_per_sample)
    throw setup_error("on_damage needs one row for each sample, but the flow has expand, filter, pack, take, bucket, "
                      "or a shuffle that is not directly after the source",
                      "Omit on_damage, or that stage");
  constexpr std::size_t usual_lanes = 48;   // a multiple of every usual number of ranks; rows are copied in lanes
  const std::size_t lanes = o.lanes.value_or(0) > 0 ? *o.lanes : usual_lanes;
  const std::size_t ranks = o.world.value().size;
  damage_rule rule{.policy = o.on_damage.policy, .in_a_row = o.on_damage.in_a_row, .stages = o.on_damage.stages};
  if (f.has_index) {
    if (rule.policy == damage::replace && lanes % ranks != 0)
      throw setup_error("on_damage = replace does not support this number of lanes: got " + std::to_string(lanes) +
                            " lanes, expected a multiple of the " + std::to_string(ranks) + " ranks",
                        "Set session_options::lanes to a multiple of the number of ranks, or use mask");
    rule.donor_step = std::max<std::size_t>(1, lanes / ranks);
  } else if (ranks > 1) {
    throw setup_error("on_damage on several ranks needs an index: without an index, the ranks would have different "
                      "numbers of batches if a shard is lost",
                      "Use shards() with uncompressed tars, which have an index, or use one rank");
  }
  return rule;
}

MILLRACE_RARE std::string damage_notice(const damage_rule& rule, std::size_t rows, const world& mine) {
  if (rule.policy != damage::replace || 2 * rule.donor_step <= rows) return {};
  const std::size_t lanes = rule.donor_step * mine.size, fitting = rows / 2 * mine.size;
  return "on_damage = replace finds no row to copy in some lanes, and masks their damaged rows: got a batch of " +
         std::to_string(rows * mine.size) + " rows over all ranks, expected at least twice the " +
         std::to_string(lanes) + " lanes. " +
         (fitting > 0 ? "Set session_options::lanes to " + std::to_string(fitting) : "Use larger batches");
}

MILLRACE_RARE indexed_run_options indexed_options(const flow_facts& f, const planning_options& o) {
  return {.seed = f.seed,
          .window = f.window,
          .rows = f.rows,
          .drop_last = f.drop_last,
          .allow_empty = f.allow_empty || f.pad_last,
          .world = o.session.world.value(),
          .lanes = o.session.lanes.value_or(0),
          .tolerates_damage = o.session.on_damage.policy != damage::fail,
          .grown = o.session.grown,
          .resume = o.session.resume,
          .first_epoch = o.session.first_epoch,
          .epochs = o.session.epochs,
          .stride = f.stride,
          .epoch_batches = o.session.epoch_batches.value_or(0),
          .bytes_at_once = std::min(std::size_t{4} << 20, o.budget_bytes / 128),
          .max_held_bytes = std::min(std::size_t{256} << 20, o.budget_bytes / 8)};
}

MILLRACE_RARE owner<replayed_run> select_replayed_run(const flow_facts& f, const planning_options& o,
                                                      source_facts source) {
  const shard_order order({.seed = f.seed,
                           .shards = f.settings.shards,
                           .shuffled = f.window > 0,
                           .window = std::max<std::size_t>(1, f.window),
                           // A pass that loses a damaged shard is shorter than others.
                           .equal_epochs = source.same_every_pass && o.session.on_damage.policy == damage::fail});
  return make_owner<replayed_run>(replayed_run_options{.order = order.settings(),
                                                       .data_set = source.data_set,
                                                       .times = source.times,
                                                       .rows = f.rows,
                                                       .drop_last = f.drop_last,
                                                       .grown = o.session.grown,
                                                       .resume = o.session.resume,
                                                       .first_epoch = o.session.first_epoch,
                                                       .epochs = o.session.epochs,
                                                       .epoch_batches = o.session.epoch_batches.value_or(0),
                                                       .from = f.from,
                                                       .one_row = f.one_row_per_sample,
                                                       .take = f.take,
                                                       .takes = f.takes,
                                                       .packs = f.packs,
                                                       .packing = f.packing,
                                                       .stride = f.stride,
                                                       .buckets = f.buckets,
                                                       .world = o.session.world.value(),
                                                       .max_lanes = source.max_lanes,
                                                       .why_streamed = std::move(source.why_streamed)});
}

}}}   // namespace millrace::detail
