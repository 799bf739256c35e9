// Definitions for token_files.hpp.
#pragma once

#include <millrace/sources/token_files.hpp>

#include <algorithm>
#include <bit>
#include <iterator>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

namespace token_options {

MILLRACE_INLINE token_window_rule windows_of(const token_files_options& o) noexcept {
  return {
      .length = o.length, .stride = o.stride.value_or(o.length), .keep_short = o.keep_short, .documents = o.documents};
}
MILLRACE_INLINE token_layout_options layout_of(const token_files_options& o) noexcept {
  return {.token_bytes = o.token_bytes.value_or(0), .header_bytes = o.header_bytes};
}

}   // namespace token_options

MILLRACE_INLINE token_reader::token_reader(const std::string& name, const token_files_options& options,
                                           const std::optional<token_windows>& cached)
    : file_(open_file(options.storage, name)), max_id_(max_id_of(options.vocabulary.value_or(0))) {
  constexpr std::size_t usual_bytes = std::size_t{256} << 10;
  if (cached && cached->layout().tokens * cached->layout().type.bytes == size_of_open(options.storage, *file_))
    windows_ = *cached;
  else
    windows_ = read_token_windows({.at = options.storage, .name = name, .file = *file_},
                                  token_options::layout_of(options), token_options::windows_of(options));
  piece_bytes_ = windows_.is_sparse() ? 0 : usual_bytes;
}

MILLRACE_INLINE std::optional<packed> token_reader::next() {
  if (next_ == windows_.count()) return std::nullopt;
  packed window = window_of(bytes_at(windows_.place(next_)),
                            {.of = windows_, .number = next_, .max_id = max_id_, .file = file_->name()});
  ++next_;
  return window;
}

MILLRACE_INLINE std::span<const std::byte> token_reader::bytes_at(const byte_range& place) {
  const auto size = static_cast<std::size_t>(place.size_bytes);
  if (place.offset_bytes < buffer_at_ || place.offset_bytes + size > buffer_at_ + buffer_.size()) {
    const token_layout& l = windows_.layout();
    const std::uint64_t left = l.first_byte + l.tokens * l.type.bytes - place.offset_bytes;
    buffer_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(std::max(size, piece_bytes_), left)));
    buffer_at_ = place.offset_bytes;
    // If the file ends too early, the source throws an error.
    static_cast<void>(read_fully(*file_, buffer_at_, buffer_));
  }
  return std::span<const std::byte>(buffer_).subspan(static_cast<std::size_t>(place.offset_bytes - buffer_at_), size);
}

MILLRACE_INLINE void token_reader::report(event_counts& counts) const noexcept { windows_.report(counts); }

MILLRACE_INLINE token_files_source::token_files_source(std::vector<std::string> names,
                                                       const token_files_options& options)
    : files_(std::move(names), options.storage), options_(options) {
  if (options.length == 0)
    throw setup_error("token_files() has empty windows: got a length of 0 tokens, expected at least 1",
                      "Set token_files_options::length");
  if (options.stride == std::size_t{0})
    throw setup_error("token_files() has an invalid stride: got 0 tokens, expected at least 1",
                      "Omit the stride to use the window length");
  if (options.documents && (options.token_bytes || options.header_bytes || options.keep_short))
    throw setup_error("token_files() has options that exclude each other: got documents together with token_bytes, "
                      "header_bytes or keep_short",
                      "Omit token_bytes, header_bytes and keep_short: the .idx file states the type of the tokens, and "
                      "where each document begins");
  if (const std::size_t bytes = options.token_bytes.value_or(1); bytes > 8 || !std::has_single_bit(bytes))
    throw setup_error(
        "token_files() does not support this token size: got " + std::to_string(bytes) +
            " bytes, expected 1, 2, 4 or 8",
        "Set token_bytes to the size of a token, or omit it if the header or the name of the file states the size");
}

MILLRACE_INLINE token_reader token_files_source::open(std::size_t shard, std::uint64_t) const {
  if (!options_.documents) return {files_.name(shard), options_};
  std::optional<token_windows> cached;
  {
    const std::lock_guard lock(cached_->mutex);
    cached_->of.resize(files_.size());
    cached = cached_->of[shard];
  }
  token_reader reader(files_.name(shard), options_, cached);
  if (!cached) {
    const std::lock_guard lock(cached_->mutex);
    cached_->of[shard] = reader.windows();
  }
  return reader;
}

MILLRACE_INLINE auto token_files_source::plan(const indexed_run_options& o) const -> owner<planned_run> {
  const token_data_options data{.windows = token_options::windows_of(options_),
                                .layout = token_options::layout_of(options_),
                                .max_id = max_id_of(options_.vocabulary.value_or(0))};
  return make_owner<planned>(std::make_shared<token_data>(files_, data), o);
}

MILLRACE_INLINE bool is_token_name(std::string_view name) noexcept {
  constexpr std::string_view endings[] = {".u16", ".u32", ".bin", ".npy", ".u8", ".u64", ".i8", ".i16", ".i32", ".i64"};
  return !name.starts_with('.') && std::any_of(std::begin(endings), std::end(endings),
                                               [name](std::string_view end) { return name.ends_with(end); });
}

}   // namespace detail

#ifdef MILLRACE_COMPILED
namespace detail {

template class ticket_input<packed>;
template class jitter_order<packed>;
template class indexed_source<token_data, exact_order>;
template class indexed_run<token_data>;
template class reorder_buffer<indexed_source<token_data, exact_order>>;
template class read_stage_base<indexed_source<token_data, exact_order>>;
template class shard_read_stage<indexed_source<token_data, exact_order>>;

}   // namespace detail
#endif

}}   // namespace millrace
