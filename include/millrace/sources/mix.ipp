// Defines what mix.hpp declares.
#pragma once

#include <millrace/sources/mix.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE std::unique_ptr<mix_source::planned> mix_source::plan(const indexed_run_options& o) const {
  if (o.window > 0)
    throw setup_error("a shuffle behind mix() would move samples out of their sources' turns",
                      "Put shuffle behind each source: weighted{indexed_shards(...) | shuffle({...}), 0.7}");
  return std::make_unique<planned>(data_, o);
}

MILLRACE_INLINE std::vector<source_count> mix_source::delivered(const planned& run, std::uint64_t batches) const {
  std::vector<source_count> all;
  for (const mix_source_spec& s : data_->rule().sources) all.push_back({s.name, 0});
  if (batches == 0) return all;
  const position from = run.start(), to = run.after(batches - 1);
  for (std::uint64_t epoch = from.epoch; epoch <= to.epoch; ++epoch) {
    const auto counts = run.order().counts_of(run.own_ranks(), epoch, epoch == from.epoch ? from.next_position : 0,
                                              epoch == to.epoch ? to.next_position : run.order().positions());
    for (std::size_t i = 0; i < all.size(); ++i) all[i].samples += counts[i];
  }
  return all;
}

MILLRACE_INLINE std::string mix_source::describe(const planned& run) const {
  const mix_plan& order = run.order();
  std::string shares, ends = data_->rule().sources[order.measure()].name;
  for (std::size_t i = 0; i < order.sources(); ++i)
    shares += (i > 0 ? " : " : "") + std::to_string(order.shares()[i]);
  const bool chosen = order.settings().epoch_batches != exact_order_options::exact_pass;
  switch (order.settings().on_exhausted) {
    case exhausted::stop: ends += " runs out first and ends the epoch"; break;
    case exhausted::reweight: ends = "the others go on when one runs out, " + ends + " last"; break;
    case exhausted::repeat:
      ends = "sources that run out begin anew" + (chosen ? "" : ", an epoch is a pass of " + ends);
  }
  return "mix " + shares + " of " + std::to_string(order.sources()) + " sources: " + ends +
         (chosen ? "" : " (" + std::to_string(order.batches()) + " batches)");
}

}  // namespace detail

}}  // namespace millrace
