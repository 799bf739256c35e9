// Definitions for pnm.hpp.
#pragma once

#include <millrace/image/pnm/pnm.hpp>

#include <millrace/base/error.hpp>
#include <millrace/image/jpeg/jpeg_header.hpp>
#include <millrace/image/render/picture_job.hpp>
#include <millrace/item/record.hpp>

#include <array>
#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

namespace pnm_headers {

class pnm_reader {
 public:
  explicit pnm_reader(std::span<const std::byte> file) noexcept : file_(file) {}

  char now() const noexcept { return at_ < file_.size() ? std::to_integer<char>(file_[at_]) : '\0'; }
  bool is_blank() const noexcept { return now() == ' ' || (now() >= '\t' && now() <= '\r'); }

  /// Reads blanks and comments, of which there must be at least one, then a number. Returns 0 unless it is in 1..65535.
  std::size_t number() noexcept {
    if (!is_blank() && now() != '#') return 0;
    for (bool comment = false; at_ < file_.size(); ++at_) {
      if (comment) comment = now() != '\n' && now() != '\r';
      else if (now() == '#') comment = true;
      else if (!is_blank()) break;
    }
    std::size_t number = 0;
    for (; now() >= '0' && now() <= '9'; ++at_) {
      number = 10 * number + static_cast<std::size_t>(now() - '0');
      if (number > 65'535) return 0;
    }
    return number;
  }

  std::size_t at() const noexcept { return at_; }

 private:
  std::span<const std::byte> file_;
  std::size_t at_ = 2;   // after "P5"
};

}   // namespace pnm_headers

MILLRACE_INLINE std::optional<pnm_header> read_pnm_header(std::span<const std::byte> file) noexcept {
  if (file.size() < 2 || file[0] != std::byte{'P'}) return std::nullopt;
  if (file[1] != std::byte{'5'} && file[1] != std::byte{'6'}) return std::nullopt;
  pnm_header h{.channels = file[1] == std::byte{'6'} ? 3U : 1U};
  pnm_headers::pnm_reader read(file);
  for (std::size_t* const number : {&h.width, &h.height, &h.largest})
    if ((*number = read.number()) == 0) return std::nullopt;
  if (!read.is_blank()) return std::nullopt;
  h.data_at = read.at() + 1;
  return h;
}

namespace pnm_files {

[[noreturn]] MILLRACE_INLINE void fail(const bytes& file, const std::string& problem) {
  error_location at{.stage = "pnm"};
  at.complete(location_of(file));
  throw data_error("the PNM " + problem, "Fetch the file again, or leave the sample out", at);
}

MILLRACE_INLINE pnm_header read_header(const bytes& file) {
  const std::string_view format = sniff_format(file);
  if (!file.text().starts_with('P') || (!format.empty() && !format.starts_with("a PNM"))) {
    error_location at{.stage = "pnm"};
    at.complete(location_of(file));
    throw data_error(other_format_message(file, "a PNM"), hint_on_format(file).advice, at);
  }
  if (!is_pnm(file)) fail(file, "does not begin with P5 or P6: plain-text PNM and bitmaps are not supported");
  const auto h = read_pnm_header(file);
  if (!h) fail(file, "has an invalid header: expected width, height and maxval, each from 1 to 65535, then one blank");
  if (file.size() - h->data_at < h->data_bytes())
    fail(file, "is truncated: got " + std::to_string(file.size()) + " bytes, expected " +
                   std::to_string(h->data_at + h->data_bytes()));
  return *h;
}

/// Delivers rows directly from the file.
class pnm_rows final : public picture_job_rows {
 public:
  explicit pnm_rows(const bytes& file) : file_(file), header_(read_header(file)) {
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
  const pnm_header header_;
  std::array<std::uint8_t, 256> scaled_{};
  std::size_t at_ = 0;
};

MILLRACE_INLINE void render(std::span<const picture_job> jobs, scratch& s) {
  for (const picture_job& job : jobs) {
    pnm_rows from(*job.data);
    render_rows(job, from, s);
  }
}

inline constexpr picture_format format{.name = "pnm", .render = render};

}   // namespace pnm_files

MILLRACE_INLINE bool is_pnm(std::span<const std::byte> file) noexcept {
  return file.size() > 2 && file[0] == std::byte{'P'} && (file[1] == std::byte{'5'} || file[1] == std::byte{'6'});
}

}   // namespace detail

MILLRACE_INLINE picture pnm(bytes data, const pnm_options& options) {
  const detail::pnm_header header = detail::pnm_files::read_header(data);
  detail::picture_file file{.format = &detail::pnm_files::format, .header = {}, .options = {.limits = options.limits}};
  file.header.width = header.width;
  file.header.height = header.height;
  file.header.components = static_cast<int>(header.channels);
  return {std::move(data), file};
}

}}   // namespace millrace
