// A 64-bit digest of bytes, and a sum of digests that does not depend on the order of adding.
//
//   mr::stream_digest whole;
//   whole.add(position, mr::digest_bytes(row));
//   whole.value();                                // equal for equal streams, whoever added what first
//
// A sum may be gone on with from its value. Two digests, or two positions, that change places do change it. Not
// cryptographic: it finds accidents, not attackers. Threads: none shared; ranks add up by adding their values.
#pragma once

#include <millrace/base/random.hpp>

#include <cstddef>
#include <cstring>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI {

/// Digest of a run of bytes; the length counts.
inline std::uint64_t digest_bytes(std::span<const std::byte> data, std::uint64_t seed = 0) noexcept {
  std::uint64_t state = combine_keys(seed, data.size());
  std::size_t at = 0;
  for (; at + 8 <= data.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, data.data() + at, 8);
    state = mix_bits(state ^ word) + 0x9e3779b97f4a7c15U;
  }
  std::uint64_t tail = 0;
  if (at < data.size()) std::memcpy(&tail, data.data() + at, data.size() - at);
  return mix_bits(state ^ tail);
}

/// Sum of (position, digest) pairs, modulo 2^64.
class stream_digest {
 public:
  constexpr explicit stream_digest(std::uint64_t value = 0) noexcept : sum_(value) {}

  /// What one pair adds, for those who add elsewhere.
  static constexpr std::uint64_t term(std::uint64_t position, std::uint64_t digest) noexcept {
    return mix_bits(combine_keys(position, 0) ^ digest);
  }
  constexpr void add(std::uint64_t position, std::uint64_t digest) noexcept { sum_ += term(position, digest); }
  constexpr void add(const stream_digest& other) noexcept { sum_ += other.sum_; }
  constexpr std::uint64_t value() const noexcept { return sum_; }

 private:
  std::uint64_t sum_ = 0;
};

}}  // namespace millrace
