// Definitions for file_kind.hpp.
#pragma once

#include <millrace/base/file_kind.hpp>

#include <millrace/base/crc32c.hpp>
#include <millrace/base/text.hpp>

#include <algorithm>
#include <array>
#include <bitset>
#include <cstring>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

namespace file_kind_marks {

using namespace std::string_view_literals;

/// A signature of at least five bytes, which needs no other check.
struct mark {
  file_kind kind;
  std::string_view text;
};

inline constexpr std::array<mark, 27> marks{{
    {file_kind::npy, "\x93NUMPY"sv},
    {file_kind::megatron_index, "MMIDIDX\0\0"sv},
    {file_kind::megatron_index, "TNTIDX\0\0"sv},
    {file_kind::xz, "\xfd"
                    "7zXZ\0"sv},
    {file_kind::lzip, "LZIP\1"sv},
    {file_kind::snappy, "\xff\x06\0\0sNaPpY"sv},
    {file_kind::seven_zip, "7z\xbc\xaf\x27\x1c"sv},
    {file_kind::rar, "Rar!\x1a\x07"sv},
    {file_kind::arrow, "ARROW1\0\0"sv},
    {file_kind::hdf5, "\x89HDF\r\n\x1a\n"sv},
    {file_kind::sqlite, "SQLite format 3\0"sv},
    {file_kind::gguf, "GGUF\1\0\0\0"sv},
    {file_kind::gguf, "GGUF\2\0\0\0"sv},
    {file_kind::gguf, "GGUF\3\0\0\0"sv},
    {file_kind::png, "\x89PNG\r\n\x1a\n"sv},
    {file_kind::gif, "GIF87a"sv},
    {file_kind::gif, "GIF89a"sv},
    {file_kind::tiff, "II*\0\x08\0\0\0"sv},
    {file_kind::tiff, "MM\0*\0\0\0\x08"sv},
    {file_kind::flac, "fLaC\0\0\0\x22"sv},
    {file_kind::flac, "fLaC\x80\0\0\x22"sv},
    {file_kind::ogg, "OggS\0\2"sv},
    {file_kind::pdf, "%PDF-1."sv},
    {file_kind::pdf, "%PDF-2."sv},
    {file_kind::git_lfs_pointer, "version https://git-lfs"sv},
    {file_kind::pickle, "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"sv},   // torch.save() before 1.6
    {file_kind::zip, "PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"sv},                        // without a member
}};

/// The front of a file as numbers. Bytes after the end of the front are read as 0xff.
struct reader {
  std::span<const std::byte> front;
  std::uint64_t file_bytes;

  unsigned u8(std::size_t at) const noexcept { return at < front.size() ? std::to_integer<unsigned>(front[at]) : 0xff; }
  unsigned u16(std::size_t at) const noexcept { return u8(at) | u8(at + 1) << 8; }
  std::uint32_t u32(std::size_t at) const noexcept { return u16(at) | std::uint32_t{u16(at + 2)} << 16; }
  std::uint64_t u64(std::size_t at) const noexcept { return u32(at) | std::uint64_t{u32(at + 4)} << 32; }
  std::string_view text(std::size_t at, std::size_t bytes) const noexcept {
    const std::string_view all(reinterpret_cast<const char*>(front.data()), front.size());
    return at < all.size() ? all.substr(at, bytes) : std::string_view();
  }
};

/// Checks a header of RFC 1952: the method is 8, and three reserved flags are 0. Compressors write 0, 2 or 4 into the
/// byte before the number of the system.
MILLRACE_RARE bool is_gzip(const reader& r) noexcept {
  const unsigned extra = r.u8(8), system = r.u8(9);
  return r.u16(0) == 0x8b1f && r.u8(2) == 8 && r.u8(3) < 0x20 && (extra == 0 || extra == 2 || extra == 4) &&
         (system <= 13 || system == 255) && r.file_bytes >= 18;
}

/// Checks a frame of RFC 8878: the reserved bit is 0, and the first block has a valid type and at most 128 KiB.
MILLRACE_RARE bool is_zstd_frame(const reader& r, std::size_t at) noexcept {
  if (r.u32(at) != 0xfd2fb528) return false;
  const unsigned flags = r.u8(at + 4), single = flags >> 5 & 1, size_code = flags >> 6;
  constexpr unsigned id_bytes[] = {0, 1, 2, 4};
  const unsigned size_bytes = size_code == 0 ? single : 1u << size_code;
  const std::size_t block = at + 5 + (1 - single) + id_bytes[flags & 3] + size_bytes;
  const std::uint32_t head = r.u16(block) | r.u8(block + 2) << 16;
  return (flags & 8) == 0 && (head >> 1 & 3) != 3 && (head >> 3) <= 128u << 10;
}

/// Checks a frame of the LZ4 frame format 1.6: version 1, reserved bits 0, a block size of 64 KiB to 4 MiB. Also
/// accepts legacy frames, with blocks of 8 MiB.
MILLRACE_RARE bool is_lz4_frame(const reader& r, std::size_t at) noexcept {
  const unsigned flags = r.u8(at + 4), block = r.u8(at + 5);
  if (r.u32(at) == 0x184d2204) return (flags & 0xc2) == 0x40 && (block & 0x8f) == 0 && block >= 0x40;
  const std::uint32_t bytes = r.u32(at + 4);
  return r.u32(at) == 0x184c2102 && bytes > 0 && bytes <= (8u << 20) + (64u << 10) && bytes + 8 <= r.file_bytes;
}

/// Returns the kind of a file that begins with a skippable frame, as written by pzstd and other compressors.
MILLRACE_RARE file_kind kind_after_skippable_frame(const reader& r) noexcept {
  const std::uint32_t mark = r.u32(0), bytes = r.u32(4);
  if (mark >> 4 != 0x184d2a5 || bytes > r.front.size()) return file_kind::unknown;
  const std::size_t next = 8 + bytes;
  return is_zstd_frame(r, next) ? file_kind::zstd : is_lz4_frame(r, next) ? file_kind::lz4 : file_kind::unknown;
}

/// Checks a local header: the version is at most 6.3, the compression method is known, and the name fits into the file.
MILLRACE_RARE bool is_zip(const reader& r) noexcept {
  constexpr std::array<unsigned, 9> methods{0, 8, 9, 12, 14, 93, 95, 98, 99};
  return r.u32(0) == 0x04034b50 && r.u16(4) <= 63 &&
         std::find(methods.begin(), methods.end(), r.u16(8)) != methods.end() && r.u16(26) > 0 && r.u16(26) < 4096;
}

/// Checks the first page: its type, then its size, as fields of the Thrift compact protocol.
MILLRACE_RARE bool is_parquet(const reader& r) noexcept {
  return r.text(0, 4) == "PAR1" && r.u8(4) == 0x15 && r.u8(5) <= 6 && r.u8(5) % 2 == 0 && r.u8(6) == 0x15;
}

/// Checks the first message of a stream: a marker, the size of the metadata, and a FlatBuffers table with its list of
/// fields.
MILLRACE_RARE bool is_arrow_stream(const reader& r) noexcept {
  const std::uint32_t metadata = r.u32(4), root = r.u32(8);
  if (r.u32(0) != 0xffffffff || metadata % 8 != 0 || metadata + std::uint64_t{8} > r.file_bytes) return false;
  if (root < 4 || root > 256) return false;
  const std::size_t table = 8 + root;
  const std::uint32_t back = r.u32(table);   // distance to the list, which is before the table
  if (back < 4 || back > table - 12) return false;
  const unsigned list_bytes = r.u16(table - back), table_bytes = r.u16(table - back + 2);
  return list_bytes >= 4 && list_bytes <= 64 && list_bytes % 2 == 0 && table_bytes >= 4 && table_bytes <= 256;
}

/// Checks a length and its masked CRC-32C, as TensorFlow writes them.
MILLRACE_RARE bool is_tfrecord(const reader& r) noexcept {
  if (r.front.size() < 12 || r.file_bytes < 16 || r.u64(0) > r.file_bytes - 16) return false;
  const std::uint32_t crc = crc32c(r.front.first(8));
  return r.u32(8) == (crc >> 15 | crc << 17) + 0xa282ead8;
}

/// Checks the size of a JSON header and the beginning of the header.
MILLRACE_RARE bool is_safetensors(const reader& r) noexcept {
  return r.file_bytes > 12 && r.u64(0) <= std::min<std::uint64_t>(r.file_bytes - 8, 100'000'000) && r.u64(0) >= 4 &&
         r.text(8, 2) == "{\"" && r.u8(10) >= 0x20 && r.u8(10) < 0x7f && r.u8(11) >= 0x20 && r.u8(11) < 0x7f;
}

/// Checks the first meta page of LMDB: page number 0, the flag of meta pages, the magic number and the version.
MILLRACE_RARE bool is_lmdb(const reader& r) noexcept {
  return r.u32(16) == 0xbeefc0de && r.u32(20) >= 1 && r.u32(20) <= 999 && r.u32(0) == 0 && (r.u16(10) & 8) != 0;
}

/// Checks the header of a .beton file of version 2: a number of fields, a page size that is a power of two, a number of
/// samples, and the offset of the table of allocations.
MILLRACE_RARE bool is_ffcv(const reader& r) noexcept {
  const std::uint32_t page = r.u32(4);
  return r.u16(0) == 2 && r.u16(2) >= 1 && r.u16(2) <= 64 && page >= 1u << 20 && (page & (page - 1)) == 0 &&
         r.u64(8) < std::uint64_t{1} << 40 && r.u64(16) >= 24 && r.u64(16) <= r.file_bytes;
}

/// Checks that a file begins with a number of samples of at least 16, then the offset of each sample and of the end.
MILLRACE_RARE bool is_offset_table(const reader& r) noexcept {
  const std::uint64_t samples = r.u32(0), table = 4 * (samples + 2);
  const std::size_t visible = r.front.size() / 4;
  if (samples < 16 || visible < 18 || table > r.file_bytes) return false;
  if (r.u32(4) < table || r.u32(4) > table + 65536) return false;
  const auto offsets = static_cast<std::size_t>(std::min<std::uint64_t>(samples + 1, visible - 1));
  for (std::size_t i = 1; i < offsets; ++i)
    if (r.u32(4 + 4 * i) < r.u32(4 * i)) return false;
  const std::uint32_t last = r.u32(4 * offsets);
  return offsets > samples ? last == r.file_bytes : last > r.u32(4) && last <= r.file_bytes;
}

/// Checks that a pickle begins with a frame (protocols 4 and 5), or with a list, a dictionary, a tuple or a global name
/// (protocols 2 and 3).
MILLRACE_RARE bool is_pickle(const reader& r) noexcept {
  const unsigned protocol = r.u8(1);
  if (r.u8(0) != 0x80 || protocol < 2 || protocol > 5) return false;
  if (protocol >= 4) return r.u8(2) == 0x95 && r.u64(3) > 0 && r.file_bytes > 11 && r.u64(3) <= r.file_bytes - 11;
  const unsigned first = r.u8(2);
  if (first == ']' || first == '}' || first == ')') return r.u8(3) == 'q' && r.u8(4) == 0;
  const std::string_view text = r.text(3, 64), name = text.substr(0, text.find('\n'));   // of a Python module
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || c == '_' || c == '.'; };
  return first == 'c' && name.size() >= 4 && name.size() < text.size() && std::all_of(name.begin(), name.end(), fits);
}

/// Checks a header of llm.c and of trainers that adopted its format: a magic number, a version, a number of tokens, and
/// zeros up to 256 words.
MILLRACE_RARE bool is_llm_c(const reader& r) noexcept {
  constexpr std::size_t words = 256, used = 16;
  const std::uint32_t magic = r.u32(0);
  if ((magic != 20240520 && magic != 20240801 && magic != 20240522) || r.u32(4) > 255) return false;
  if (r.file_bytes < 4 * words || r.front.size() < 128) return false;
  for (std::size_t i = used; i < std::min(words, r.front.size() / 4); ++i)
    if (r.u32(4 * i) != 0) return false;
  return true;
}

MILLRACE_RARE file_kind media_kind(const reader& r) noexcept {
  if (r.text(0, 4) == "RIFF" && r.text(8, 4) == "WAVE") return file_kind::wav;
  if (r.text(0, 4) == "RIFF" && r.text(8, 4) == "WEBP") return file_kind::webp;
  if (r.text(4, 4) == "ftyp" && r.u8(0) == 0 && r.u8(1) == 0 && r.u8(2) < 4) return file_kind::iso_media;
  if (r.u16(0) == 0xd8ff && r.u8(2) == 0xff) {
    const bool tables = r.u8(3) == 0xdb && r.u8(4) == 0 && (r.u8(5) == 0x43 || r.u8(5) == 0x84);
    if (tables || r.text(6, 4) == "JFIF" || r.text(6, 4) == "Exif") return file_kind::jpeg;
  }
  return file_kind::unknown;
}

MILLRACE_RARE bool begins_with(std::string_view text, std::string_view word) noexcept {
  if (text.size() < word.size()) return false;
  for (std::size_t i = 0; i < word.size(); ++i)
    if ((text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] - 'A' + 'a') : text[i]) != word[i]) return false;
  return true;
}

/// Returns whether printable bytes vary as in a text. The highest bytes of binary numbers hardly differ.
MILLRACE_RARE bool is_varied(std::string_view text, bool digits) noexcept {
  const std::size_t stride = digits ? 1 : 4;
  for (std::size_t first = 0; first < stride; ++first) {
    std::bitset<256> values;
    for (std::size_t i = first; i < text.size(); i += stride) values.set(static_cast<unsigned char>(text[i]));
    if (values.count() < 3) return false;
  }
  return true;
}

MILLRACE_RARE file_kind text_kind(const reader& r) noexcept {
  std::string_view text = r.text(0, r.front.size());
  bool digits = true, ascii = true;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0x7f || (byte < 0x20 && (byte < '\t' || byte > '\r'))) return file_kind::unknown;
    digits = digits && ((byte >= '0' && byte <= '9') || " \t\r\n,;.-+[](){}"sv.find(c) != std::string_view::npos);
    ascii = ascii && byte < 0x80;
  }
  const bool enough = text.size() >= (digits ? 16u : 32u) && is_varied(text, digits);   // without a mark
  constexpr std::size_t longest_cut = 3;   // of a character at the end of the front
  const std::size_t cut = r.file_bytes > text.size() ? longest_cut : 0;
  if (!ascii && utf8_prefix_bytes(text) + cut < text.size()) return file_kind::unknown;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  if (begins_with(text, "<!doctype html") || begins_with(text, "<html") || begins_with(text, "<head"))
    return file_kind::html;
  if (begins_with(text, "<?xml")) return file_kind::xml;
  if (!enough) return file_kind::unknown;
  return text.starts_with('{') || text.starts_with('[') ? file_kind::json : file_kind::text;
}

}   // namespace file_kind_marks

MILLRACE_RARE file_kind kind_of_file(const file_head& file) noexcept {
  using namespace file_kind_marks;
  const reader r{file.front, file.file_bytes};
  if (file.front.size() < 4) return file_kind::unknown;
  const char first = static_cast<char>(file.front[0]);
  for (const mark& m : marks)
    if (m.text[0] == first && r.text(0, m.text.size()) == m.text) return m.kind;
  if (r.text(257, 6) == "ustar\0"sv || r.text(257, 6) == "ustar ") return file_kind::tar;
  if (first == 'O' && r.text(0, 4) == "Obj\1" && r.text(4, 508).find("avro.") != std::string_view::npos)
    return file_kind::avro;
  if (first == 'B' && r.text(0, 3) == "BZh" && r.u8(3) >= '1' && r.u8(3) <= '9' &&
      (r.text(4, 6) == "1AY&SY" || r.text(4, 6) == "\x17\x72\x45\x38\x50\x90"sv))
    return file_kind::bzip2;
  if (is_gzip(r)) return file_kind::gzip;
  if (is_zstd_frame(r, 0)) return file_kind::zstd;
  if (is_lz4_frame(r, 0)) return file_kind::lz4;
  if (is_zip(r)) return file_kind::zip;
  if (is_llm_c(r)) return file_kind::llm_c;
  if (is_parquet(r)) return file_kind::parquet;
  if (is_arrow_stream(r)) return file_kind::arrow;
  if (is_pickle(r)) return file_kind::pickle;
  if (is_lmdb(r)) return file_kind::lmdb;
  if (is_ffcv(r)) return file_kind::ffcv;
  if (is_safetensors(r)) return file_kind::safetensors;
  if (const file_kind k = kind_after_skippable_frame(r); k != file_kind::unknown) return k;
  if (const file_kind k = media_kind(r); k != file_kind::unknown) return k;
  if (const file_kind k = text_kind(r); k != file_kind::unknown) return k;
  if (is_tfrecord(r)) return file_kind::tfrecord;
  return is_offset_table(r) ? file_kind::offset_table : file_kind::unknown;
}

MILLRACE_RARE std::string_view name_of(file_kind kind) noexcept {
  switch (kind) {
    case file_kind::unknown: break;
    case file_kind::npy: return "a NumPy .npy file";
    case file_kind::llm_c: return "a file of llm.c, with a header of 1,024 bytes";
    case file_kind::megatron_index: return "an .idx file of Megatron";
    case file_kind::gzip: return "a gzip stream";
    case file_kind::zstd: return "a Zstandard stream";
    case file_kind::xz: return "an xz stream";
    case file_kind::bzip2: return "a bzip2 stream";
    case file_kind::lz4: return "an LZ4 stream";
    case file_kind::lzip: return "an lzip stream";
    case file_kind::snappy: return "a Snappy stream";
    case file_kind::zip: return "a ZIP archive (as .npz files and torch.save() have)";
    case file_kind::tar: return "a tar archive";
    case file_kind::seven_zip: return "a 7z archive";
    case file_kind::rar: return "a RAR archive";
    case file_kind::parquet: return "a Parquet file";
    case file_kind::arrow: return "an Arrow file";
    case file_kind::avro: return "an Avro file";
    case file_kind::hdf5: return "an HDF5 file";
    case file_kind::sqlite: return "an SQLite database";
    case file_kind::lmdb: return "an LMDB database";
    case file_kind::ffcv: return "an FFCV .beton file";
    case file_kind::tfrecord: return "a TFRecord file";
    case file_kind::offset_table: return "a shard of MosaicML Streaming or litData";
    case file_kind::safetensors: return "a safetensors file";
    case file_kind::gguf: return "a GGUF file";
    case file_kind::pickle: return "a Python pickle";
    case file_kind::jpeg: return "a JPEG";
    case file_kind::png: return "a PNG";
    case file_kind::gif: return "a GIF";
    case file_kind::webp: return "a WebP";
    case file_kind::tiff: return "a TIFF";
    case file_kind::wav: return "a WAV file";
    case file_kind::flac: return "a FLAC file";
    case file_kind::ogg: return "an Ogg file";
    case file_kind::iso_media: return "an ISO media file (MP4, HEIF or AVIF)";
    case file_kind::pdf: return "a PDF";
    case file_kind::git_lfs_pointer: return "a Git LFS pointer";
    case file_kind::html: return "an HTML page";
    case file_kind::xml: return "an XML document";
    case file_kind::json: return "a JSON text";
    case file_kind::text: return "a text";
  }
  return "a file of an unknown kind";
}

}}}   // namespace millrace::detail
