// One record of a log: measured values, their step and their time.
//
//   out.push({.step = 1200, .epoch = 3, .values = {{"loss", 0.41}, {"learning_rate", 0.1}}});
//   if (auto loss = r.find("loss")) use(*loss);
//
// A row with a message and no values is a line of text. Errors: none. Threads: not synchronized. Lifetime: a row owns
// all its content.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// The unit of a value. The unit affects only how the value is printed.
enum class quantity_unit : std::uint8_t {
  plain,        ///< for example a mean or a learning rate
  count,        ///< an integer
  per_second,   ///< printed as name/s
  share         ///< 0..1, printed in percent
};

/// One metric's name and value.
struct quantity {
  std::string name{};
  double value = 0;
  quantity_unit unit = quantity_unit::plain;
};

/// An image as the bytes of a JPEG or PNG file. Sinks that cannot show images ignore it.
struct encoded_image {
  std::string name{};
  std::vector<std::byte> file{};
  std::size_t width = 0;
  std::size_t height = 0;
};

/// The values, images and message of one step.
struct row {
  std::uint64_t step = 0;
  std::optional<std::uint64_t> epoch{};
  std::int64_t unix_ns = 0;   ///< time of the values since 1970; 0 for the time of push() or offer()
  std::vector<quantity> values{};
  std::uint64_t nonfinite = 0;   ///< NaN and infinite values that were excluded from `values`
  std::vector<encoded_image> images{};
  std::string message{};

  /// Returns the value with this name; std::nullopt if the row has no such value.
  std::optional<double> find(std::string_view name) const noexcept;

  /// Replaces each byte that is not valid UTF-8 with U+FFFD, in all text of the row.
  void clean_text();

  /// Returns the approximate size of the row. The log uses this size to limit its queue.
  std::size_t held_bytes() const noexcept;
};

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/train/impl/row.inl>
#endif
