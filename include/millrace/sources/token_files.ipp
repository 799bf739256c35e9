// Defines what token_files.hpp declares.
#pragma once

#include <millrace/sources/token_files.hpp>

#include <millrace/io/file/unique_fd.hpp>

#include <sys/mman.h>

#include <bit>
#include <cstring>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE mapped_file::mapped_file(const std::string& path) {
  unique_fd file;
  do file = unique_fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  while (!file && errno == EINTR);
  struct ::stat status {};
  void* at = nullptr;
  const bool opened = file && ::fstat(file.get(), &status) == 0;
  if (opened && status.st_size > 0)
    at = ::mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_PRIVATE, file.get(), 0);
  const int reason = errno;
  if (!opened || at == MAP_FAILED)
    throw io_error("cannot map the file: " + reason_of(reason), "Check the file, its permissions and its storage",
                   {.stage = "tokens", .shard = path});
  if (at) bytes_ = {static_cast<const std::byte*>(at), static_cast<std::size_t>(status.st_size)};
  if (at) ::madvise(at, bytes_.size(), MADV_SEQUENTIAL);
}

MILLRACE_INLINE mapped_file::~mapped_file() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MILLRACE_INLINE token_reader::token_reader(const std::string& path, const token_files_options& options)
    : options_(options), file_(path), token_bytes_(token_bytes_of(path, options)) {
  static_assert(std::endian::native == std::endian::little);
  const std::size_t bytes = file_.bytes().size();
  if (bytes % token_bytes_ != 0)
    throw data_error("the file has " + std::to_string(bytes) + " bytes (expected: a multiple of the " +
                         std::to_string(token_bytes_) + " that a token has)",
                     "Write it again, or set token_files_options::token_bytes", {.stage = "tokens", .shard = path});
  tokens_ = bytes / token_bytes_;
}

MILLRACE_INLINE std::optional<packed> token_reader::next() {
  const std::size_t length = options_.length, left = tokens_ - std::min(at_, tokens_);
  const std::size_t count = left >= length ? length : options_.keep_short ? left : 0;
  if (count == 0 || end_ == tokens_) return std::nullopt;
  packed window;
  window.ids.resize(count);
  const std::byte* const from = file_.bytes().data() + at_ * token_bytes_;
  if (token_bytes_ == 4) {
    std::memcpy(window.ids.data(), from, count * 4);
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      std::uint16_t token;
      std::memcpy(&token, from + 2 * i, sizeof token);
      window.ids[i] = token;
    }
  }
  end_ = at_ + count;
  at_ += options_.stride > 0 ? options_.stride : length;
  return window;
}

MILLRACE_INLINE void token_reader::report(event_counts& counts) const noexcept {
  if (end_ < tokens_) counts.count("tokens behind the last whole window of a file", tokens_ - end_);
}

MILLRACE_INLINE std::size_t token_reader::token_bytes_of(const std::string& path, const token_files_options& o) {
  return o.token_bytes > 0 ? o.token_bytes : path.ends_with(".u32") ? 4 : 2;
}

MILLRACE_INLINE token_files_source::token_files_source(std::vector<std::string> names,
                                                       const token_files_options& options)
    : names_(std::move(names)), options_(options) {
  if (options.length == 0)
    throw setup_error("token_files() was asked for windows of 0 tokens", "Set token_files_options::length");
  if (options.token_bytes != 0 && options.token_bytes != 2 && options.token_bytes != 4)
    throw setup_error("token_files() was asked for tokens of " + std::to_string(options.token_bytes) + " bytes",
                      "Tokens have 2 or 4 bytes; 0 lets the file's name decide");
}

MILLRACE_INLINE bool names_tokens(std::string_view name) noexcept {
  return !name.starts_with('.') && (name.ends_with(".u16") || name.ends_with(".u32") || name.ends_with(".bin"));
}

}  // namespace detail

}}  // namespace millrace
