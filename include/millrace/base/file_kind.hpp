// Recognizes files of well-known formats by their first bytes.
//
//   const auto kind = mr::detail::kind_of_file({.front = first_bytes, .file_bytes = size});
//   if (kind != mr::detail::file_kind::unknown) fail("got " + std::string(name_of(kind)) + ", expected ...");
//
// A reader of raw numbers accepts any bytes, so it must not reject raw data accidentally. Therefore a signature counts
// only if random bytes have it with a probability below 2^-36: short signatures need a plausible header after them.
// `front` is text if it has at least 32 printable bytes (16 if they are digits and separators), which vary like text.
// Pass 1,024 bytes of the front if the file has them: the signature of a tar archive is at offset 257.
// Errors: none. Threads: pure functions. Cost: about 20 ns for data of an unknown kind; no allocation.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A format of files. `offset_table` is a count and offsets, as in shards of MosaicML (MDS) and litData.
enum class file_kind : std::uint8_t {
  unknown,
  npy, llm_c, megatron_index,                                                // arrays of numbers
  gzip, zstd, xz, bzip2, lz4, lzip, snappy,                                  // compressed streams
  zip, tar, seven_zip, rar,                                                  // archives
  parquet, arrow, avro, hdf5, sqlite, lmdb, ffcv, tfrecord, offset_table,                // data sets and tables
  safetensors, gguf, pickle,                                                 // weights and Python objects
  jpeg, png, gif, webp, tiff, wav, flac, ogg, iso_media, pdf,                // media
  git_lfs_pointer, html, xml, json, text                                     // texts
};

/// The properties that identify a file.
struct file_head {
  std::span<const std::byte> front;   ///< its first bytes
  std::uint64_t file_bytes;           ///< its size
};

/// Returns the kind of a file; `unknown` if it is not recognized.
file_kind kind_of_file(const file_head& file) noexcept;

/// Returns the name of a kind with its article: "a gzip stream".
std::string_view name_of(file_kind kind) noexcept;

constexpr bool is_compressed(file_kind k) noexcept { return k >= file_kind::gzip && k <= file_kind::snappy; }
constexpr bool is_archive(file_kind k) noexcept { return k >= file_kind::zip && k <= file_kind::rar; }
constexpr bool is_textual(file_kind k) noexcept { return k >= file_kind::git_lfs_pointer; }

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/base/impl/file_kind.inl>
#endif
