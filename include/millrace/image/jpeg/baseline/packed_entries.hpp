// Packs the entries of a JPEG into a few bytes each, to be stored next to the file. An entry is an MCU (coding unit) at
// which decoding can begin, see jpeg_entry.hpp.
//
//   const mr::detail::packed_entries_file of{.file_bytes = n, .data_offset_bytes = h, .mcus = 768, .every = 4};
//   std::vector<std::byte> bytes = mr::detail::pack_entries(entries, of);
//   mr::detail::packed_entries p;
//   if (p.open(bytes, of)) stream.enter(p.at(17));       // entry of MCU 68
//
// A packed entry has its distance from the previous entry, and three predictors (the DC values of the components).
// Layout, in little-endian order:
// - u8 version (1), u8 MCUs between entries, u32 size of the file in bytes
// - four u8: widths in bits of a distance and of the predictors of three components
// - u16 minimum distance, three i16 minimum predictors
// - the distances of all entries; then, from the next byte on, the predictors, entry by entry
//
// Distances and predictors are packed from the lowest bit up, as differences from their minimum. The distance of an
// entry is the number of bits in the file between the previous entry and this entry. The distance of the first entry is
// counted from the end of the JPEG's headers (data_offset_bytes). The MCUs `every`, 2 * `every` and so on have entries.
// Therefore the number of entries is not stored.
// Errors: none. open() refuses most bytes that pack_entries() did not write. If it accepts such bytes, the entries have
// arbitrary values.
// Lifetime: packed_entries points into the bytes. Threads: one thread at a time. Requires a little-endian machine.
#pragma once

#include <millrace/image/jpeg/baseline/jpeg_entry.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Properties of a JPEG file that its entries must match.
struct packed_entries_file {
  std::size_t file_bytes = 0, data_offset_bytes = 0;
  std::int64_t mcus = 0;
  unsigned every = 0;   ///< MCUs between entries; open() ignores this value
};

struct packed_entries_layout {
  static constexpr std::uint8_t version = 1;
  static constexpr std::size_t header_bytes = 18, fields = 4;   // a distance, and three predictors
  static constexpr unsigned widest_distance = 32, widest_predictor = 17;

  static constexpr std::size_t bytes_of(std::size_t count, unsigned bits) noexcept { return (count * bits + 7) / 8; }
};

class packed_entries {
 public:
  /// Opens the packed entries of the file `of`. If `bytes` cannot be the entries of that file, returns false, and this
  /// object has no entries.
  bool open(std::span<const std::byte> bytes, const packed_entries_file& of) noexcept {
    count_ = 0;
    if (bytes.size() < layout::header_bytes || std::to_integer<unsigned>(bytes[0]) != layout::version) return false;
    bytes_ = reinterpret_cast<const std::uint8_t*>(bytes.data());
    size_bytes_ = bytes.size();
    every_ = bytes_[1];
    if (every_ == 0 || read<std::uint32_t>(2) != of.file_bytes) return false;
    const unsigned distance_bits = bytes_[6];
    for (std::size_t c = 0; c < 3; ++c) {
      predictor_bits_[c] = bytes_[7 + c];
      if (predictor_bits_[c] > layout::widest_predictor) return false;
      least_predictor_[c] = read<std::int16_t>(12 + 2 * c);
    }
    if (distance_bits > layout::widest_distance) return false;
    distance_bits_ = distance_bits;
    entry_bits_ = predictor_bits_[0] + predictor_bits_[1] + predictor_bits_[2];
    least_distance_ = read<std::uint16_t>(10);
    const auto count = static_cast<std::size_t>((of.mcus - 1) / every_);
    predictors_begin_ = layout::header_bytes + layout::bytes_of(count, distance_bits_);
    if (predictors_begin_ + layout::bytes_of(count, entry_bits_) != bytes.size()) return false;
    count_ = static_cast<std::int64_t>(count);
    number_ = 0;
    position_bits_ = std::uint64_t{of.data_offset_bytes} * 8;
    return true;
  }

  /// Returns the number of MCUs between entries.
  std::int64_t every() const noexcept { return every_; }
  /// Returns the number of the last entry; numbers begin at 1. Entry n belongs to MCU n * every().
  std::int64_t last() const noexcept { return count_; }

  /// Returns the position of an entry in the file. `number` must not be lower than in earlier calls.
  std::uint64_t position_bits(std::int64_t number) noexcept {
    for (; number_ < number; ++number_) {
      const auto at = layout::header_bytes * 8 + static_cast<std::size_t>(number_) * distance_bits_;
      position_bits_ += least_distance_ + field(at, distance_bits_);
    }
    return position_bits_;
  }

  /// Returns an entry. `number` must not be lower than in earlier calls.
  jpeg_entry at(std::int64_t number) noexcept {
    const std::uint64_t position = position_bits(number);
    jpeg_entry e{.mcu = number * every_,
                 .offset_bytes = static_cast<std::size_t>(position / 8),
                 .bit = static_cast<unsigned>(position % 8)};
    std::size_t at = predictors_begin_ * 8 + static_cast<std::size_t>(number - 1) * entry_bits_;
    for (std::size_t c = 0; c < 3; ++c) {
      e.dc[c] = least_predictor_[c] + static_cast<int>(field(at, predictor_bits_[c]));
      at += predictor_bits_[c];
    }
    return e;
  }

 private:
  using layout = packed_entries_layout;

  template <class Integer>
  Integer read(std::size_t at) const noexcept {
    Integer value;
    std::memcpy(&value, bytes_ + at, sizeof value);
    return value;
  }

  /// Returns a field of at most 32 bits. The function reads 8 bytes, which are always available because the header
  /// alone is longer.
  std::uint64_t field(std::size_t at_bit, unsigned bits) const noexcept {
    const std::size_t at = std::min(at_bit / 8, size_bytes_ - 8);
    return read<std::uint64_t>(at) >> (at_bit - at * 8) % 64 & ((std::uint64_t{1} << bits) - 1);
  }

  const std::uint8_t* bytes_ = nullptr;
  std::size_t size_bytes_ = 0, predictors_begin_ = 0;
  std::int64_t every_ = 1, count_ = 0, number_ = 0;
  std::uint64_t position_bits_ = 0;   // position of entry number_
  unsigned distance_bits_ = 0, entry_bits_ = 0, least_distance_ = 0;
  std::array<unsigned, 3> predictor_bits_{};
  std::array<int, 3> least_predictor_{};
};

/// Packs the entries of the MCUs `every`, 2 * `every` and so on. The entries must be in this order. The result is empty
/// if the file is larger than 4 GiB, or if a value exceeds the range of the layout.
inline std::vector<std::byte> pack_entries(std::span<const jpeg_entry> entries, const packed_entries_file& of) {
  using layout = packed_entries_layout;
  constexpr std::uint64_t max_u32 = std::numeric_limits<std::uint32_t>::max();
  if (entries.empty() || of.file_bytes > max_u32 || of.every < 1 || of.every > 255) return {};
  std::array<std::int64_t, layout::fields> least, most;
  least.fill(std::numeric_limits<std::int64_t>::max());
  most.fill(std::numeric_limits<std::int64_t>::min());
  std::vector<std::array<std::int64_t, layout::fields>> values;
  std::int64_t before = static_cast<std::int64_t>(of.data_offset_bytes) * 8;
  for (const jpeg_entry& e : entries) {
    const auto position = static_cast<std::int64_t>(e.offset_bytes) * 8 + e.bit;
    values.push_back({position - before, e.dc[0], e.dc[1], e.dc[2]});
    before = position;
    for (std::size_t f = 0; f < layout::fields; ++f) {
      least[f] = std::min(least[f], values.back()[f]);
      most[f] = std::max(most[f], values.back()[f]);
    }
  }
  least[0] = std::min<std::int64_t>(least[0], std::numeric_limits<std::uint16_t>::max());
  std::array<unsigned, layout::fields> bits;
  for (std::size_t f = 0; f < layout::fields; ++f) {
    bits[f] = static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(most[f] - least[f])));
    const bool fits = f == 0 || (least[f] >= -32'768 && most[f] <= 32'767);
    if (!fits || bits[f] > (f == 0 ? layout::widest_distance : layout::widest_predictor)) return {};
  }
  std::vector<std::byte> bytes;
  const auto put = [&](std::int64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes.push_back(static_cast<std::byte>(value >> 8 * i & 255));
  };
  put(layout::version, 1);
  put(of.every, 1);
  put(static_cast<std::int64_t>(of.file_bytes), 4);
  for (const unsigned width : bits) put(width, 1);
  for (const std::int64_t value : least) put(value, 2);
  const auto put_fields = [&](std::size_t first, std::size_t end) {
    std::uint64_t buffer = 0;
    unsigned count = 0;
    for (const auto& value : values)
      for (std::size_t f = first; f < end; ++f) {
        buffer |= static_cast<std::uint64_t>(value[f] - least[f]) << count;
        for (count += bits[f]; count >= 8; count -= 8, buffer >>= 8) put(static_cast<std::int64_t>(buffer & 255), 1);
      }
    if (count > 0) put(static_cast<std::int64_t>(buffer), 1);
  };
  put_fields(0, 1);
  put_fields(1, layout::fields);
  return bytes;
}

}}}   // namespace millrace::detail
