// Definitions for png_rows.hpp.
#pragma once

#include <millrace/image/png/png_rows.hpp>

#include <millrace/base/text.hpp>
#include <millrace/image/png/adler.hpp>

#include <algorithm>
#include <cstring>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE void png_rows::begin(std::span<const std::byte> file, const png_header& header, const reading& how) {
  pieces_ = png_image_data(file, header.data_at, how.check_sums);
  zip_.begin(pieces_);
  undo_ = unfilter(header.filter_bytes());
  how_ = how;
  file_bytes_ = file.size();
  stored_bytes_ = file.size() - header.data_at;
  status_ = inflate_status::more;
  adler_ = 1;
  out_ = read_ = nullptr;
  window_bytes_ = 0;
}

MILLRACE_INLINE void png_rows::expect(std::uint64_t bytes) const {
  if (bytes / max_inflation <= stored_bytes_) return;
  throw_bad_png("the PNG is too short for its declared size: got " + std::to_string(stored_bytes_) +
                " bytes of image data, expected enough for " + std::to_string(bytes) + " bytes of rows");
}

MILLRACE_INLINE void png_rows::begin_rows(const part& rows) {
  const std::size_t stride = rows.row_bytes + 1;
  expect(stride);
  part_ = rows;
  row_ = ready_next_ = ready_count_ = 0;
  // Long rows are unfiltered one by one, which needs less memory.
  max_unfiltered_ = rows.row_bytes > long_row_bytes ? 2 : unfilter::max_rows + 1;
  unfiltered_stride_ = rows.row_bytes + slack_bytes;
  unfiltered_next_ = 0;
  std::uint8_t* const memory = unfiltered_.at_least((max_unfiltered_ + 1) * unfiltered_stride_);
  above_ = memory + max_unfiltered_ * unfiltered_stride_;
  above_in_window_ = false;
  std::memset(memory + max_unfiltered_ * unfiltered_stride_, 0, unfiltered_stride_);
  // The window must contain the source of matches, or the row above and a part of the next one, plus new bytes. The
  // more new bytes it has, the less often the required bytes are moved to its front.
  const std::size_t window = inflater::window_bytes + 2 * stride + 8 * inflated_at_once;
  if (window_bytes_ >= window) return;
  // Later passes have longer rows. The contents are copied to the larger window.
  const std::size_t used = static_cast<std::size_t>(out_ - window_.get()), unread = available();
  png_memory larger;
  if (window_bytes_ > 0) {
    std::memcpy(larger.at_least(window + inflater::slack_bytes), window_.get(), used);
    window_ = std::move(larger);
    out_ = window_.get() + used;
    read_ = out_ - unread;
  } else {
    out_ = read_ = window_.at_least(window + inflater::slack_bytes);
  }
  window_bytes_ = window;
}

MILLRACE_INLINE const std::uint8_t* png_rows::next() {
  if (row_ == part_.rows) return nullptr;
  if (ready_next_ == ready_count_) unfilter_next_rows();
  ++row_;
  return ready_[ready_next_++];
}

MILLRACE_INLINE void png_rows::unfilter_next_rows() {
  const std::size_t stride = part_.row_bytes + 1;
  while (available() < stride)
    if (!inflate_more()) fail();
  const unsigned filter = *read_;
  if (filter >= unfilter::filters)
    throw_bad_png("the PNG has a damaged " + place() + ": got filter " + std::to_string(filter) + ", expected 0 to 4");
  const auto filtered = [&](std::size_t k) -> const std::uint8_t* { return read_ + k * stride + 1; };
  const std::size_t most = std::min({max_unfiltered_ - 1, part_.rows - row_, available() / stride});
  std::size_t count = 1;
  if (filter == 0 || filter == unfilter::paeth)
    while (count < most && read_[count * stride] == filter) ++count;
  if (filter == 0) {
    for (std::size_t k = 0; k < count; ++k) ready_[k] = filtered(k);
  } else {
    filtered_row rows[unfilter::max_rows];
    for (std::size_t k = 0; k < count; ++k) {
      std::uint8_t* const to = next_unfiltered_row();
      rows[k] = filtered_row{
          .from = filtered(k), .above = k == 0 ? above_ : ready_[k - 1], .to = to, .bytes = part_.row_bytes};
      ready_[k] = to;
    }
    if (count > 1) undo_.paeth_rows({rows, count});
    else undo_(filter, rows[0]);
  }
  ready_next_ = 0;
  ready_count_ = count;
  above_ = ready_[count - 1];
  above_in_window_ = filter == 0;
  read_ += count * stride;
}

MILLRACE_INLINE bool png_rows::inflate_more() noexcept {
  if (status_ != inflate_status::more) return false;
  const std::size_t missing = (part_.rows - row_) * (part_.row_bytes + 1) - available();
  const std::size_t now = std::min(missing, inflated_at_once);
  make_room(now);
  const std::uint8_t* const before = out_;
  status_ = zip_.run(window_.get(), out_, out_ + now);
  if (how_.to_the_end && how_.check_sums) adler_ = adler({before, static_cast<std::size_t>(out_ - before)}, adler_);
  return out_ != before;
}

MILLRACE_INLINE void png_rows::make_room(std::size_t bytes) noexcept {
  std::uint8_t* const begin = window_.get();
  const std::size_t used = static_cast<std::size_t>(out_ - begin);
  if (used + bytes <= window_bytes_) return;   // `used` may be larger: the last bytes may be beyond the limit
  const std::uint8_t* const unused = above_in_window_ ? above_ : read_;
  const std::size_t before = std::min(used - std::min(used, inflater::window_bytes),
                                      static_cast<std::size_t>(unused - begin));
  std::memmove(begin, begin + before, used - before);
  out_ -= before;
  read_ -= before;
  if (above_in_window_) above_ -= before;
}

MILLRACE_INLINE std::string png_rows::place() const {
  return "row " + std::to_string(row_) + " of " + std::to_string(part_.rows) +
         (part_.pass == 0 ? "" : " in pass " + std::to_string(part_.pass) + " of 7");
}

MILLRACE_INLINE void png_rows::fail() const {
  if (status_ == inflate_status::ended)
    throw_bad_png("the PNG has too few bytes: its compressed data ends inside " + place());
  if (status_ != inflate_status::cut_short)
    throw_bad_png("the PNG's compressed data is damaged at " + place() + ": got " + describe(status_));
  switch (pieces_.ending()) {
    case png_image_data::end::bad_crc: throw_bad_png(png_crc_text(pieces_.bad_chunk()) + ", at " + place());
    case png_image_data::end::other_chunk:
      throw_bad_png("the PNG has too few bytes: its chunks of image data end inside " + place());
    default:
      throw_bad_png("the PNG is truncated: it ends after " + std::to_string(file_bytes_) + " bytes, inside " + place());
  }
}

MILLRACE_INLINE void png_rows::check_end() {
  // Other readers accept more output than rows too. The checksum is then not available.
  inflate_status last = available() > 0 ? inflate_status::more : status_;
  if (last == inflate_status::more && available() == 0) last = zip_.finish();
  if (last == inflate_status::ended && how_.check_sums && zip_.checksum() != adler_)
    throw_bad_png("the PNG's pixels have a wrong Adler-32: got " + hex(adler_, 8) + ", expected " +
                  hex(zip_.checksum(), 8));
  pieces_.check_remaining_chunks();
  if (last != inflate_status::more && last != inflate_status::ended)
    throw_bad_png("the PNG's compressed data is damaged after its last row: got " + std::string(describe(last)));
}

}}}   // namespace millrace::detail
