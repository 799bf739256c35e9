// Definitions for pack.hpp.
#pragma once

#include <millrace/stages/pack.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE const pack_options& checked(const pack_options& o) {
  if (o.length == 0)
    throw setup_error("pack() has empty rows: got a length of 0 tokens, expected at least 1",
                      "Set pack_options::length");
  return o;
}

MILLRACE_INLINE best_fit_packing::best_fit_packing(const pack_best_fit_options& o)
    : open_rows_(std::max<std::size_t>(1, o.open_rows)),
      options_(std::make_unique<const pack_options>(checked({.length = o.length, .separator = o.separator,
                                                             .padding = o.padding, .segments = o.segments,
                                                             .positions = o.positions}))) {}

MILLRACE_INLINE best_fit_packing::best_fit_packing(const best_fit_packing& other)
    : open_rows_(other.open_rows_), options_(std::make_unique<const pack_options>(*other.options_)) {}

MILLRACE_INLINE std::size_t best_fit_packing::max_outputs(std::span<const std::uint32_t> document) const {
  return (document.size() + 1) / options_->length + 2;
}

}  // namespace detail

MILLRACE_INLINE detail::pack_stage<detail::packing> pack(const pack_options& options) {
  return {{{}, detail::packing(options)}};
}

MILLRACE_INLINE detail::pack_stage<detail::best_fit_packing> pack_best_fit(const pack_best_fit_options& options) {
  return {{{}, detail::best_fit_packing(options)}};
}

}}  // namespace millrace
