// Copies OpenCV images into batches, and images of a batch into cv::Mat objects.
//
//   struct example { mr::mat_pixels pixels; std::int32_t label; };
//   example prepare(const mr::record& r) { return {mr::mat_pixels(my_decode(r["webp"])), ...}; }     // a cv::Mat
//   cv::imwrite("first.png", mr::to_mat(b.get<&example::pixels>()[0]));
//
// Opt-in: needs OpenCV's core module.
// Shape: [rows, columns, 3 or 1] u8. OpenCV stores three channels in the order B, G, R. Batches store them in the order
// R, G, B. Therefore the copy into the batch reverses the channels.
// Errors: data_error if a Mat is empty, is not 8-bit, or does not have 3 or 1 channels. setup_error for a view of GPU
// memory. Threads: the rules of cv::Mat, whose copies share their pixels.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/item/tensor/tensor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#if !__has_include(<opencv2/core.hpp>)
#error "millrace: OpenCV is not installed (apt-get install libopencv-core-dev), or -I/usr/include/opencv4 is missing"
#endif
#include <opencv2/core.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// Copies an image. If the image has three channels, reverses their order. Both images must have the same size and
/// type.
inline void copy_opencv_reversed(const cv::Mat& from, cv::Mat to) {
  if (from.channels() == 1) return from.copyTo(to);
  constexpr std::array<int, 6> pairs = {0, 2, 1, 1, 2, 0};
  cv::mixChannels(&from, 1, &to, 1, pairs.data(), 3);
}

}   // namespace detail

/// An OpenCV image as a column of a batch, [rows, columns, 3 or 1] u8. The Mat may be a crop, whose rows are not
/// contiguous.
class mat_pixels {
 public:
  using element = std::uint8_t;
  static constexpr const char* rendering = "copy";

  /// Accepts an 8-bit image of 3 or 1 channels. Throws data_error if the image is empty or has another type.
  explicit mat_pixels(cv::Mat picture) : picture_(std::move(picture)) {
    const bool fits = !picture_.empty() && picture_.dims == 2 && picture_.depth() == CV_8U &&
                      (picture_.channels() == 3 || picture_.channels() == 1);
    if (!fits)
      throw data_error(picture_.empty() ? "a cv::Mat is empty: OpenCV could not decode the image"
                                        : "a cv::Mat has the wrong type: got " + cv::typeToString(picture_.type()) +
                                              ", expected 8UC3 (B, G, R) or 8UC1",
                       "Check the file, or decode it to 8 bits");
  }

  /// Returns the unchanged image. The channels are in the order B, G, R.
  const cv::Mat& mat() const noexcept { return picture_; }
  /// Returns [rows, columns, channels].
  std::array<std::size_t, 3> shape() const {
    return {static_cast<std::size_t>(picture_.rows), static_cast<std::size_t>(picture_.cols),
            static_cast<std::size_t>(picture_.channels())};
  }
  /// Writes the pixels into a row of the batch, in the order R, G, B.
  void render(std::span<std::uint8_t> row) const {
    detail::copy_opencv_reversed(picture_, cv::Mat(picture_.rows, picture_.cols, picture_.type(), row.data()));
  }

 private:
  cv::Mat picture_;
};

/// Returns a copy of one image of a batch, [height, width, 3 or 1] u8. The channels of the Mat are B, G, R. Throws
/// setup_error if the image does not have 3 or 1 channels, or is in GPU memory.
template <class T>
  requires std::is_same_v<std::remove_const_t<T>, std::uint8_t>
cv::Mat to_mat(const tensor_view<T, 3>& picture) {
  const auto pixels = picture.host();
  const auto [height, width, channels] = picture.shape;
  if (channels != 3 && channels != 1)
    throw setup_error("an image of shape " + to_string(picture.shape) + " cannot be copied to a cv::Mat",
                      "Pass [height, width, 3 or 1]");
  const int type = channels == 3 ? CV_8UC3 : CV_8UC1;
  cv::Mat copy(static_cast<int>(height), static_cast<int>(width), type);
  detail::copy_opencv_reversed(cv::Mat(copy.rows, copy.cols, type, const_cast<std::uint8_t*>(pixels.data())), copy);
  return copy;
}

}}   // namespace millrace
