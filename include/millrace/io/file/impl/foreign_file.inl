// Definitions for foreign_file.hpp.
#pragma once

#include <millrace/io/file/foreign_file.hpp>

#include <millrace/base/text.hpp>

#include <algorithm>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

namespace foreign_files {

/// A front that is shorter than a chunk is the complete file. Otherwise the size of the file is unknown.
MILLRACE_RARE file_kind kind_of_front(std::string_view front) noexcept {
  constexpr std::size_t inspected_bytes = 1'024, chunk_bytes = std::size_t{64} << 10;
  const std::string_view begin = front.substr(0, inspected_bytes);
  const std::uint64_t file_bytes = front.size() < chunk_bytes ? front.size() : std::uint64_t{1} << 62;
  return kind_of_file({.front = std::as_bytes(std::span(begin)), .file_bytes = file_bytes});
}

/// Returns whether the file is a list of shards: its first line ends like the name of a shard.
MILLRACE_RARE bool lists_shards(std::string_view front) noexcept {
  std::string_view line = front.substr(0, front.find('\n'));
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  return line.ends_with(".tar") || line.ends_with(".tar.gz") || line.ends_with(".tgz") || line.ends_with(".tar.zst");
}

MILLRACE_RARE bool is_text(std::string_view front) noexcept {
  return front.find('\0') == std::string_view::npos && utf8_prefix_bytes(front) + 3 >= front.size();
}

}   // namespace foreign_files

MILLRACE_RARE std::string advice_on(file_kind kind) {
  using enum file_kind;
  switch (kind) {
    case zip:
    case seven_zip:
    case rar: return "Unpack it, and pack its files into tar shards (examples/pack_folder)";
    case parquet:
    case arrow:
    case avro:
    case hdf5:
    case sqlite:
    case lmdb:
    case ffcv:
    case tfrecord:
    case offset_table:
    case pickle: return "Read it with its own library, and write its samples into tar shards (mr::shard_writer)";
    case npy: return "Pack arrays as .npy fields of tar shards (mr::array), or read tokens with mr::token_files()";
    case llm_c:
    case megatron_index: return "Read tokens with mr::token_files()";
    case safetensors:
    case gguf: return "It contains model weights: pass the names of training data instead";
    case jpeg:
    case png:
    case gif:
    case webp:
    case tiff: return "Read loose images with mr::files(), or pack them into tar shards (examples/pack_folder)";
    case git_lfs_pointer: return "Fetch the file that the pointer refers to: git lfs pull";
    case html:
    case xml: return "The server returned a web page: check the URL and the login, and download the file again";
    case json:
    case text: return "Read lines of text with mr::lines()";
    case lzip:
    case snappy: return "Decompress it, or compress it with gzip or zstd";
    case gzip:
    case zstd:
    case xz:
    case bzip2:
    case lz4: return "It was compressed twice: decompress it once";
    case tar: return "Read tar shards with mr::shards()";
    case wav:
    case flac:
    case ogg:
    case iso_media:
    case pdf:
    case unknown: break;
  }
  return "Pack such files into tar shards (examples/pack_folder)";
}

MILLRACE_RARE std::optional<foreign_file> foreign_to_shards(std::string_view front) {
  const file_kind kind = foreign_files::kind_of_front(front);
  if (foreign_files::lists_shards(front) && foreign_files::is_text(front))
    return foreign_file{"a list of shards",
                        "Read its lines into a std::vector<std::string>, and pass that vector instead of the list"};
  if (kind == file_kind::unknown || kind == file_kind::tar) return std::nullopt;
  return foreign_file{std::string(name_of(kind)), advice_on(kind)};
}

MILLRACE_RARE std::optional<foreign_file> foreign_to_lines(std::string_view front) {
  const file_kind kind = foreign_files::kind_of_front(front);
  // A text may begin with the signature of another format. A Git LFS pointer contains only the text of its format.
  const bool pointer = kind == file_kind::git_lfs_pointer && front.find("\noid sha256:") != std::string_view::npos;
  const bool binary = kind != file_kind::unknown && !is_textual(kind) &&
                      !foreign_files::is_text(front.substr(0, 1'024));
  if (!pointer && !binary) return std::nullopt;
  return foreign_file{std::string(name_of(kind)), advice_on(kind)};
}

}}}   // namespace millrace::detail
