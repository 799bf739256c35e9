// What travels between the stages of a running flow: an item, its identity, and where it came from.
//
//   sample<record> s{.item = r, .epoch = 2, .id = mr::sample_id(shard_ordinal, index)};
//
// The id is what randomness depends on: it names the sample in the data set, not its place in the epoch. The pass is
// the other half of it: a sample that an epoch meets twice, in two passes through the data, draws other numbers then.
// The origin (a record, if there was one) is kept to the end so that an error can name shard and key.
#pragma once

#include <millrace/base/random.hpp>
#include <millrace/item/record.hpp>

#include <concepts>
#include <cstdint>
#include <exception>
#include <optional>
#include <type_traits>

namespace millrace { inline namespace MILLRACE_ABI {

/// Identity of the `index`-th sample of a shard; `part` counts in the list as the user gave it.
constexpr std::uint64_t sample_id(std::uint64_t shard, std::uint64_t index) noexcept {
  return combine_keys(combine_keys(0, shard), index);
}
/// Identity of the `child`-th item that a stage made of `parent`.
constexpr std::uint64_t child_id(std::uint64_t parent, std::uint64_t child) noexcept {
  return combine_keys(parent, child);
}

/// A sample's name in the data set.
struct located_sample {
  std::uint64_t shard = 0;    ///< in the list as the user gave it
  std::uint64_t index = 0;   ///< in the part, among those that were counted

  std::uint64_t id() const noexcept { return sample_id(shard, index); }
  friend bool operator==(const located_sample&, const located_sample&) = default;
};

namespace detail {
template <class T>
concept names_its_origin = requires(const T& item) {
  { item.origin() } -> std::same_as<record>;
};
template <class T>
concept has_origin = std::is_base_of_v<record, T> || names_its_origin<T>;
}  // namespace detail

/// The record that an item is or names, as its origin; nothing for other types.
template <class T>
record origin_of(const T& item) noexcept {
  if constexpr (detail::names_its_origin<T>) return item.origin();
  else if constexpr (detail::has_origin<T>) return item;
  else return {};
}

template <class T>
struct sample {
  enum class kind : std::uint8_t { item, void_row, batch_end, epoch_end, failed };

  kind what = kind::item;
  std::optional<T> item{};
  std::uint64_t epoch = 0;
  std::uint64_t pass = 0;     ///< through the data set: what draws numbers takes it for the epoch
  std::uint64_t id = 0;
  std::uint64_t digest = 0;   ///< what it adds to the digest of the run, if it has one
  std::uint64_t place = 0;    ///< of the source's sample, in the order of its pass; what it is made into keeps it
  std::uint64_t held = 0;     ///< what a packing stage behind the source held when that sample came to it
  record origin{};
  std::exception_ptr error{};

  /// Before the item is moved away: a record is its own origin.
  void keep_origin() {
    if constexpr (detail::has_origin<T>)
      if (item && origin.empty()) origin = origin_of(*item);
  }
};

/// Bytes that an item keeps alive, for memory budgets: exact for records, by size() for containers.
template <class T>
std::size_t held_bytes_of(const T& item) noexcept {
  if constexpr (requires { item.held_bytes(); }) return item.held_bytes();
  else if constexpr (requires { item.size() * sizeof(*item.data()); })
    return sizeof(T) + item.size() * sizeof(*item.data());
  else return sizeof(T);
}

}}  // namespace millrace
