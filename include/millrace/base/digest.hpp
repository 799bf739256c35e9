// Computes a 64-bit digest of bytes, and a sum of digests that does not depend on the order of adding.
//
//   mr::detail::stream_digest stream;
//   stream.add(position, mr::detail::digest_bytes(row));
//   stream.value();                               // equal for equal streams, in any order of the calls
//
// To continue an earlier sum, pass its value to the constructor. The digest detects accidental changes, but not
// attacks. Errors: none. Threads: not synchronized. If several threads or ranks each have a stream_digest, the sum of
// the values is the digest of all streams together.
#pragma once

#include <millrace/base/random.hpp>

#include <cstddef>
#include <cstring>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns the digest of a sequence of bytes. The digest also depends on the length.
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

/// Sums (position, digest) pairs, modulo 2^64.
class stream_digest {
 public:
  constexpr explicit stream_digest(std::uint64_t value = 0) noexcept : sum_(value) {}

  /// Returns the summand for one pair, for callers that compute the sum themselves.
  static constexpr std::uint64_t term(std::uint64_t position, std::uint64_t digest) noexcept {
    return mix_bits(combine_keys(position, 0) ^ digest);
  }
  constexpr void add(std::uint64_t position, std::uint64_t digest) noexcept { sum_ += term(position, digest); }
  constexpr void add(const stream_digest& other) noexcept { sum_ += other.sum_; }
  constexpr std::uint64_t value() const noexcept { return sum_; }

 private:
  std::uint64_t sum_ = 0;
};

}}}   // namespace millrace::detail
