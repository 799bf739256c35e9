// Defines what pnm.hpp declares.
#pragma once

#include <millrace/image/pnm.hpp>

#include <millrace/base/error.hpp>
#include <millrace/image/pixel_rows.hpp>
#include <millrace/item/record.hpp>

#include <array>
#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

namespace pnm_files {

/// The numbers of a header.
struct header {
  std::size_t width = 0, height = 0, channels = 0, largest = 0;
  std::size_t data_at = 0;

  std::size_t sample_bytes() const noexcept { return largest > 255 ? 2 : 1; }
  std::size_t row_bytes() const noexcept { return width * channels * sample_bytes(); }
};

[[noreturn]] MILLRACE_INLINE void fail(const bytes& file, const std::string& problem) {
  error_location at{.stage = "pnm"};
  at.complete(location_of(file));
  throw data_error("the PNM " + problem, "Fetch the file again, or leave the sample out", at);
}

/// Reads blanks, comments and a number of at most 65,535. Returns 0 if there is none.
MILLRACE_INLINE std::size_t number_of(std::span<const std::byte> file, std::size_t& at) noexcept {
  const auto now = [&] { return at < file.size() ? std::to_integer<char>(file[at]) : '\0'; };
  for (bool comment = false; at < file.size(); ++at) {
    if (comment) comment = now() != '\n' && now() != '\r';
    else if (now() == '#') comment = true;
    else if (now() != ' ' && (now() < '\t' || now() > '\r')) break;
  }
  std::size_t number = 0;
  for (; now() >= '0' && now() <= '9'; ++at) {
    number = 10 * number + static_cast<std::size_t>(now() - '0');
    if (number > 65'535) return 0;
  }
  return number;
}

MILLRACE_INLINE header read_header(const bytes& file) {
  if (!is_pnm(file)) fail(file, "begins with other bytes than P5 or P6: plain text and bitmaps are not read");
  header h{.channels = std::span<const std::byte>(file)[1] == std::byte{'6'} ? 3U : 1U};
  std::size_t at = 2;
  h.width = number_of(file, at);
  h.height = number_of(file, at);
  h.largest = number_of(file, at);
  if (h.width == 0 || h.height == 0 || h.largest == 0)
    fail(file, "has a header without width, height and maxval, each from 1 to 65535");
  h.data_at = at + 1;   // one blank
  if (h.data_at > file.size() || (file.size() - h.data_at) / h.row_bytes() < h.height)
    fail(file, "is cut: got " + std::to_string(file.size()) + " bytes, expected " +
                   std::to_string(h.data_at + h.row_bytes() * h.height));
  return h;
}

/// Gives rows from the file itself.
class rows final : public pixel_rows {
 public:
  explicit rows(const bytes& file) : file_(file), header_(read_header(file)) {
    for (std::size_t value = 0; value <= 255; ++value)
      scaled_[value] = scaled(value < header_.largest ? value : header_.largest);
  }

  void start(const plane_box& box) override {
    at_ = header_.data_at + box.top * header_.row_bytes() + box.left * header_.channels * header_.sample_bytes();
  }

  void next(std::span<std::uint8_t> rgbx) override {
    std::size_t at = at_;
    for (std::size_t x = 0; x < rgbx.size(); x += 4)
      for (std::size_t c = 0; c < 3; ++c) {
        if (c < header_.channels) rgbx[x + c] = sample(at);
        else rgbx[x + c] = rgbx[x];
      }
    at_ += header_.row_bytes();
  }

 private:
  std::uint8_t scaled(std::size_t value) const noexcept {
    return static_cast<std::uint8_t>((2 * 255 * value + header_.largest) / (2 * header_.largest));
  }

  std::uint8_t sample(std::size_t& at) const noexcept {
    const auto byte = [&] { return std::to_integer<std::size_t>(file_[at++]); };
    if (header_.sample_bytes() == 1) return scaled_[byte()];
    const std::size_t high = byte(), value = high << 8 | byte();
    return scaled(value < header_.largest ? value : header_.largest);
  }

  const std::span<const std::byte> file_;
  const header header_;
  std::array<std::uint8_t, 256> scaled_{};
  std::size_t at_ = 0;
};

MILLRACE_INLINE void render(std::span<const picture_job> jobs, scratch& s) {
  for (const picture_job& job : jobs) {
    rows from(*job.data);
    render_rows(job, from, s);
  }
}

inline constexpr picture_format format{.name = "pnm", .render = render};

}  // namespace pnm_files

MILLRACE_INLINE bool is_pnm(std::span<const std::byte> file) noexcept {
  return file.size() > 2 && file[0] == std::byte{'P'} && (file[1] == std::byte{'5'} || file[1] == std::byte{'6'});
}

}  // namespace detail

MILLRACE_INLINE picture pnm(bytes data, const pnm_options& options) {
  const detail::pnm_files::header found = detail::pnm_files::read_header(data);
  detail::picture_file file{.format = &detail::pnm_files::format, .header = {},
                            .options = {.max_pixels = options.max_pixels}};
  file.header.width = found.width;
  file.header.height = found.height;
  file.header.components = static_cast<int>(found.channels);
  return {std::move(data), file};
}

}}  // namespace millrace
