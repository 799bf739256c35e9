// Texts about a column for reports and errors, whatever its type.
//
//   mr::detail::shape_text(shape);                                        // "[224, 224, 3]"
//   mr::detail::column_text({.name = "example::pixels", .rows = 256, .row = shape, .dtype = "u8"});
//
// Errors: none. Threads: pure functions.
#pragma once

#include <millrace/base/error.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The properties of a column in a report.
struct column_facts {
  std::string_view name;
  bool ragged = false;
  std::size_t rows = 0;
  std::span<const std::size_t> row;   ///< shape of a row
  std::string_view dtype;
};

/// Returns a shape as text: "[224, 224, 3]".
inline std::string shape_text(std::span<const std::size_t> shape) {
  std::string text = "[";
  for (std::size_t d = 0; d < shape.size(); ++d) text += (d ? ", " : "") + std::to_string(shape[d]);
  return text + "]";
}
/// Returns "example::pixels [256, 224, 224, 3] u8".
inline std::string column_text(const column_facts& c) {
  std::string text = std::string(c.name) + (c.ragged ? " up to [" : " [") + std::to_string(c.rows);
  for (const std::size_t extent : c.row) text += ", " + std::to_string(extent);
  return text + "] " + std::string(c.dtype);
}
/// Throws the data_error of a row whose shape differs from that of the first sample.
[[noreturn]] inline void throw_other_shape(std::string_view column, std::span<const std::size_t> here,
                                           std::span<const std::size_t> first) {
  throw data_error("the column " + std::string(column) + " has shape " + shape_text(here) + " here, but " +
                       shape_text(first) + " in the first sample of the run",
                   "Give every sample the same shape in map(), for example by a crop or resize to a fixed size; use "
                   "mr::ragged for variable lengths");
}

}}}  // namespace millrace::detail
