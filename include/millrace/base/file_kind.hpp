// Recognizes files of well-known formats by their first bytes.
//
//   const auto kind = mr::detail::kind_of_file({.front = first_bytes, .file_bytes = size});
//   if (kind != mr::detail::file_kind::unknown) fail("got " + std::string(name_of(kind)) + ", expected ...");
//
// Raw numbers must not be mistaken for another format. Therefore kind_of_file() uses only signatures that are very
// improbable in random bytes. After a short signature, it also requires a plausible header. A text that does not begin
// like HTML or XML must have at least 32 bytes, or at least 16 if all are digits or separators. The bytes of such a
// text must also vary, because the highest bytes of binary numbers are often equal. The signature of a tar archive is
// at offset 257. Therefore pass the first 1,024 bytes, or the complete file if it is shorter.
// Errors: none. Threads: the functions are pure; any thread may call them. Cost: about 20 ns for data of an unknown
// kind; no allocation.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// clang-format off
/// A file format. A file of the kind `offset_table` begins with a count and offsets, such as a shard of MosaicML (MDS)
/// or litData.
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
// clang-format on

/// The properties of a file from which kind_of_file() determines its kind.
struct file_head {
  std::span<const std::byte> front;   ///< first bytes of the file
  std::uint64_t file_bytes;           ///< size of the file
};

/// Returns the kind of a file; `unknown` if the format is not recognized.
file_kind kind_of_file(const file_head& file) noexcept;

/// Returns the name of a kind with its article, such as "a gzip stream".
std::string_view name_of(file_kind kind) noexcept;

constexpr bool is_compressed(file_kind k) noexcept { return k >= file_kind::gzip && k <= file_kind::snappy; }
constexpr bool is_archive(file_kind k) noexcept { return k >= file_kind::zip && k <= file_kind::rar; }
constexpr bool is_textual(file_kind k) noexcept { return k >= file_kind::git_lfs_pointer; }

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/base/impl/file_kind.inl>
#endif
