// An operation on the rendered pixels of an image, such as a change of the colors.
//
//   struct inversion final : mr::row_operation {
//     void run(const mr::rgb_row& row, mr::scratch&) const override {
//       for (std::uint8_t& value : row.pixels) value = static_cast<std::uint8_t>(255 - value);
//     }
//   };
//   const inversion invert;
//   invert.run({.pixels = pixels, .height = 224, .width = 224}, memory);
//
// The operation runs when the image is rendered, while the image's row is in the cache. Copies of a `picture` share the
// operation.
// Errors: the errors of the operation. Threads: any; each thread passes its own scratch.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/item/scratch.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI {

/// The pixels of a rendered image: u8 RGB, [height, width, 3].
struct rgb_row {
  std::span<std::uint8_t> pixels{};
  std::size_t height = 0, width = 0;
};

/// Changes the pixels of a rendered image in place.
class row_operation {
 public:
  virtual ~row_operation() = default;
  /// Changes the pixels. The result must depend only on the pixels and on the operation.
  virtual void run(const rgb_row& row, scratch& s) const = 0;
};

}}   // namespace millrace
