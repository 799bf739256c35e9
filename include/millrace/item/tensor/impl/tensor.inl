// Definitions for tensor.hpp.
#pragma once

#include <millrace/item/tensor/tensor.hpp>

#include <millrace/base/error.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE std::string shape_text(std::span<const std::size_t> shape) {
  std::string text = "[";
  for (std::size_t d = 0; d < shape.size(); ++d) text += (d ? ", " : "") + std::to_string(shape[d]);
  return text + "]";
}

MILLRACE_RARE std::string column_text(const column_facts& of) {
  std::string text = std::string(of.name) + (of.ragged ? " up to [" : " [") + std::to_string(of.rows);
  for (const std::size_t extent : of.row) text += ", " + std::to_string(extent);
  return text + "] " + std::string(of.dtype);
}

MILLRACE_RARE void throw_other_shape(std::string_view column, std::span<const std::size_t> here,
                                     std::span<const std::size_t> first) {
  throw data_error("the column " + std::string(column) + " has shape " + shape_text(here) + " here, but " +
                       shape_text(first) + " in the first sample of the run",
                   "Give every sample the same shape in map(), for example by a crop or resize to a fixed size; use "
                   "mr::ragged for variable lengths");
}

}}}   // namespace millrace::detail
