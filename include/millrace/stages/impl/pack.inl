// Definitions for pack.hpp.
#pragma once

#include <millrace/stages/pack.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE const pack_options& checked(const pack_options& o) {
  if (o.length == 0)
    throw setup_error("pack() has empty rows: got a length of 0 tokens, expected at least 1",
                      "Set pack_options::length to the number of tokens in a row");
  return o;
}

MILLRACE_INLINE best_fit_packing::best_fit_packing(const pack_best_fit_options& o)
    : open_rows_(std::max<std::size_t>(1, o.open_rows)),
      options_(std::make_unique<const pack_options>(checked({.length = o.length,
                                                             .separator = o.separator,
                                                             .padding = o.padding,
                                                             .segments = o.segments,
                                                             .positions = o.positions}))) {}

MILLRACE_INLINE best_fit_packing::best_fit_packing(const best_fit_packing& other)
    : open_rows_(other.open_rows_), options_(std::make_unique<const pack_options>(*other.options_)) {}

MILLRACE_INLINE std::size_t best_fit_packing::max_outputs(std::span<const std::uint32_t> document) const {
  return (document.size() + 1) / options_->length + 2;
}

MILLRACE_INLINE void check_cost_options(const cost_options& o) {
  if (o.max_cost == 0)
    throw setup_error("pack() has empty rows: got a max_cost of 0, expected at least 1",
                      "Set cost_options::max_cost to the cost of a full row");
}

MILLRACE_INLINE void throw_cost(const std::string& cost, std::size_t max_cost) {
  throw data_error("an item does not fit into a row of pack(): got cost " + cost + ", expected 0 to max_cost " +
                       std::to_string(max_cost),
                   "Shorten the item in map(), or drop it by filter(), before pack()");
}

}   // namespace detail

MILLRACE_INLINE detail::pack_stage<detail::packing> pack(const pack_options& options) {
  return {{{}, detail::packing(options)}};
}

MILLRACE_INLINE detail::pack_stage<detail::best_fit_packing> pack_best_fit(const pack_best_fit_options& options) {
  return {{{}, detail::best_fit_packing(options)}};
}

}}   // namespace millrace
