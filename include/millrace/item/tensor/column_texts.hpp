// Texts about a column of any type, for reports and errors.
//
//   mr::detail::shape_text(shape);                                        // "[224, 224, 3]"
//   mr::detail::column_text({.name = "example::pixels", .rows = 256, .row = shape, .dtype = "u8"});
//
// Errors: none. Threads: the functions are pure; any thread may call them.
#pragma once

#include <millrace/base/version.hpp>

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
std::string shape_text(std::span<const std::size_t> shape);
/// Returns "example::pixels [256, 224, 224, 3] u8".
std::string column_text(const column_facts& of);
/// Throws the data_error for a row whose shape differs from that of the first sample.
[[noreturn]] void throw_other_shape(std::string_view column, std::span<const std::size_t> here,
                                    std::span<const std::size_t> first);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/item/tensor/impl/column_texts.inl>
#endif
