// A list of sample keys, which selects or excludes samples of an indexed data set.
//
//   const mr::key_list few = std::vector<std::string>{"n01440764/0017", "n01440764/0020"};
//   mr::shards("train-{000..146}.tar", {.only = few});
//   few.contains("n01440764/0017", "train-003.tar");       // true: these keys match in every shard
//
// A key may be bound to one shard. It then matches only in shards with that file name, in any folder. mr::keys_from()
// of sources/keys_from.hpp reads lists from files. Duplicate keys count once.
// Memory: the text of the keys, and 24 bytes per key. Errors: none. Threads: immutable; copies share the keys.
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

/// The keys of a key_list, sorted by their hashes.
class key_table {
 public:
  static constexpr std::size_t none = ~std::size_t{0};

  /// Adds a key; `shard` is the path of the shard to which the key is bound, or empty. Call sort() after the last
  /// add().
  void add(std::string_view key, std::string_view shard);
  /// Sorts the keys, and removes redundant ones.
  void sort();

  std::size_t size() const noexcept { return entries_.size(); }
  /// Returns the number of an entry for this key in this shard; `none` if no entry matches. `shard` is a path or a file
  /// name.
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

}  // namespace detail

/// Keys of samples. Each key matches in every shard or in one shard.
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
  /// Returns whether the list has no key.
  bool empty() const noexcept { return size() == 0; }
  /// Returns whether the sample with this key in this shard is in the list; `shard` is a path or a file name.
  bool contains(std::string_view key, std::string_view shard) const noexcept {
    return keys_ && keys_->find(key, shard) != detail::key_table::none;
  }
  /// Returns the keys; null if there are none.
  const std::shared_ptr<const detail::key_table>& keys() const noexcept { return keys_; }

 private:
  std::shared_ptr<const detail::key_table> keys_;
};

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/io/index/choice/impl/key_list.inl>
#endif
