// A running digest of what was delivered: which sample lay at which position, and what was in it.
//
//   delivery_digest seen(from.digest);                  // goes on where a resume point stands; 0 at the start
//   seen.add({.epoch = 3, .position = p, .sample = id, .payload = crc});
//   whole.add(other_rank);                              // ranks add up, in any order
//   seen.value();
//
// The wrapping sum of a hash of each delivery, so neither the order of adding nor who added counts; but two payloads,
// or two samples, that have changed places do. Equal digests: the same data in the same order, as sure as 64 bits are.
// Not cryptographic. `payload` is the CRC-32C of a sample's bytes, or of several fields what combine_payloads() makes.
// Errors: none. Threads: not shared.
#pragma once

#include <millrace/base/random.hpp>

#include <cstdint>

namespace millrace::inline MILLRACE_ABI {

/// What one delivery was.
struct delivered_sample {
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;   ///< in the epoch, of all ranks together
  std::uint64_t sample = 0;     ///< its id: sample_id(part, index)
  std::uint64_t payload = 0;
};

/// One number for the fields of a sample, from that of the fields before and the next one's CRC-32C; starts with 0.
constexpr std::uint64_t combine_payloads(std::uint64_t before, std::uint32_t crc) noexcept {
  return combine_keys(before, crc);
}

class delivery_digest {
 public:
  constexpr delivery_digest() = default;
  explicit constexpr delivery_digest(std::uint64_t value) noexcept : sum_(value) {}

  constexpr void add(const delivered_sample& d) noexcept {
    sum_ += combine_keys(combine_keys(combine_keys(combine_keys(0, d.epoch), d.position), d.sample), d.payload);
  }
  constexpr void add(const delivery_digest& other) noexcept { sum_ += other.sum_; }
  constexpr std::uint64_t value() const noexcept { return sum_; }

 private:
  std::uint64_t sum_ = 0;
};

}  // namespace millrace::inline MILLRACE_ABI
