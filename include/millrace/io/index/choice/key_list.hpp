// A list of sample keys, which selects or excludes samples of an indexed data set.
//
//   const mr::key_list few = std::vector<std::string>{"n01440764/0017", "n01440764/0020"};
//   mr::shards("train-{000..146}.tar", {.only = few});
//   few.contains("n01440764/0017", "train-003.tar");       // true: a key without a shard matches in every shard
//
// A key may be bound to a shard. A bound key matches only in shards that have the file name of that shard; the folders
// of the shards are not compared. mr::keys_from() (sources/keys_from.hpp) reads lists from files. Duplicate keys count
// once.
// Memory: the text of the keys, and 24 bytes per key. Errors: setup_error for a key of 4 GiB or more. Threads:
// immutable. Lifetime: copies share the keys.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// The keys of a key_list, sorted by the hashes of the keys.
class key_table {
 public:
  static constexpr std::size_t none = ~std::size_t{0};

  /// Adds a key. `shard` is the path of the shard to which the key is bound, or "". Call sort() after the last add().
  void add(std::string_view key, std::string_view shard);
  /// Sorts the keys, and removes duplicates.
  void sort();

  std::size_t size() const noexcept { return entries_.size(); }
  /// Returns the number of the entry that matches this key and shard, or `none`. `shard` is a path or a file name.
  std::size_t find(std::string_view key, std::string_view shard) const noexcept;
  /// Returns the key of an entry.
  std::string_view key(std::size_t number) const noexcept { return key_of(entries_[number]); }

 private:
  static constexpr std::uint32_t any_shard = ~std::uint32_t{0};

  struct entry {
    std::uint64_t hash, at;   // at: offset of the key in text_
    std::uint32_t key_bytes, shard;
  };

  std::string_view key_of(const entry& e) const noexcept {
    return std::string_view(text_).substr(static_cast<std::size_t>(e.at), e.key_bytes);
  }

  std::string text_;
  std::map<std::string, std::uint32_t, std::less<>> shards_;   // file name and number of each shard
  std::vector<entry> entries_;
};

}   // namespace detail

/// A list of sample keys. Each key matches in every shard, or in one shard.
class key_list {
 public:
  /// Creates an empty list.
  key_list() = default;
  /// Creates a list of keys that match in every shard.
  key_list(const std::vector<std::string>& keys);
  /// Creates a list from a sorted table.
  explicit key_list(std::shared_ptr<const detail::key_table> keys) noexcept : keys_(std::move(keys)) {}

  /// Returns the number of keys.
  std::size_t size() const noexcept { return keys_ ? keys_->size() : 0; }
  /// Returns whether the list is empty.
  bool empty() const noexcept { return size() == 0; }
  /// Returns whether the list contains the sample with this key in this shard. `shard` is a path or a file name.
  bool contains(std::string_view key, std::string_view shard) const noexcept {
    return keys_ && keys_->find(key, shard) != detail::key_table::none;
  }
  /// Returns the keys. Returns null for a list that was created by the default constructor.
  const std::shared_ptr<const detail::key_table>& keys() const noexcept { return keys_; }

 private:
  std::shared_ptr<const detail::key_table> keys_;
};

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/io/index/choice/impl/key_list.inl>
#endif
