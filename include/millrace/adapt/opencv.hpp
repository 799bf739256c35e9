// Pictures that OpenCV decoded into batches, and batches back to OpenCV, to look at them. Opt-in: needs OpenCV's core.
//
//   struct example { mr::mat_pixels pixels; std::int32_t label; };
//   example prepare(const mr::record& r) { return {mr::mat_pixels(my_decode(r["webp"])), ...}; }     // a cv::Mat
//   cv::imwrite("first.png", mr::to_mat(b.get<&example::pixels>()[0]));
//
// Shape: [rows, columns, 3 or 1] u8. OpenCV keeps three channels as B, G, R; batches hold R, G, B, as the networks and
// Millrace's own pictures do, and the order is turned round on the way, in the one copy that there is. Errors:
// data_error for a Mat that is empty, of another depth or of other channels; setup_error for a view on a GPU. Threads:
// as cv::Mat, whose copies share their pixels.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/item/tensor.hpp>

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

/// Three channels in reverse order, one as it is. Both have their size.
inline void copy_reversed(const cv::Mat& from, cv::Mat to) {
  if (from.channels() == 1) return from.copyTo(to);
  constexpr std::array<int, 6> pairs = {0, 2, 1, 1, 2, 0};
  cv::mixChannels(&from, 1, &to, 1, pairs.data(), 3);
}

}  // namespace detail

/// A column of a batch: a picture as OpenCV has it. Rows of the Mat may lie apart, as those of a crop do.
class mat_pixels {
 public:
  using element = std::uint8_t;
  static constexpr const char* rendering = "copy";

  explicit mat_pixels(cv::Mat picture) : picture_(std::move(picture)) {
    const bool fits = !picture_.empty() && picture_.dims == 2 && picture_.depth() == CV_8U &&
                      (picture_.channels() == 3 || picture_.channels() == 1);
    if (!fits)
      throw data_error(picture_.empty() ? "a cv::Mat is empty: OpenCV could not decode the picture"
                                        : "a cv::Mat of type " + cv::typeToString(picture_.type()) +
                                              " was given, expected 8UC3 (B, G, R) or 8UC1",
                       "Look at the file, or decode it to 8 bits");
  }

  const cv::Mat& mat() const noexcept { return picture_; }
  std::array<std::size_t, 3> shape() const {
    return {static_cast<std::size_t>(picture_.rows), static_cast<std::size_t>(picture_.cols),
            static_cast<std::size_t>(picture_.channels())};
  }
  void render(std::span<std::uint8_t> row) const {
    detail::copy_reversed(picture_, cv::Mat(picture_.rows, picture_.cols, picture_.type(), row.data()));
  }

 private:
  cv::Mat picture_;
};

/// One picture of a batch, [height, width, 3 or 1], as an owned Mat: B, G, R.
template <class T>
  requires std::is_same_v<std::remove_const_t<T>, std::uint8_t>
cv::Mat to_mat(const tensor_view<T, 3>& picture) {
  const auto pixels = picture.host();
  const auto [height, width, channels] = picture.shape;
  if (channels != 3 && channels != 1)
    throw setup_error("a picture of shape " + to_string(picture.shape) + " cannot become a cv::Mat",
                      "Give [height, width, 3 or 1]");
  const int type = channels == 3 ? CV_8UC3 : CV_8UC1;
  cv::Mat made(static_cast<int>(height), static_cast<int>(width), type);
  detail::copy_reversed(cv::Mat(made.rows, made.cols, type, const_cast<std::uint8_t*>(pixels.data())), made);
  return made;
}

}}  // namespace millrace
