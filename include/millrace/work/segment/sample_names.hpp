// Creates the names of samples for batches with keys. A name is the key of the record, or a generated name:
//
//   shards()                     the key:                               "n01440764/0017"
//   lines()                      file and line number:                  "corpus-0017.txt.gz:12"
//   from(), token_files()        key() of the item; without key(), the shard and the number in the shard, from 0:
//                                "books.u16:3"; "2:3" if shards have no name, "3" if the only shard has no name
//   a source of mix()            as above; if its shards have no names, the name of the source: "photos:3"
//   outputs of expand()          the name of the input, and the number of the output:   "n01440764/0017#2"
//
// If a sample has such a name, the errors of the sample contain this name. A name uses about 300 bytes until the
// sample's row is rendered. Only sessions whose batches have keys create names.
// Threads: any number of threads may call the functions concurrently. Errors: std::bad_alloc.
#pragma once

#include <millrace/item/sample.hpp>

#include <concepts>
#include <cstring>
#include <string>
#include <type_traits>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Creates the names of samples.
class sample_names {
 public:
  /// Returns a record that has shard, key and offset, but no fields.
  record make(std::string_view shard, std::string_view key, std::uint64_t offset_bytes = error_location::unknown) {
    block_ref block = pool_.take(sizeof(record_head) + key.size() + shard.size());
    std::byte* const base = block.get()->data();
    const record_head head{.key_at = sizeof head,
                           .key_size = key.size(),
                           .shard_at = sizeof head + key.size(),
                           .shard_size = shard.size(),
                           .fields_at = 0,
                           .field_count = 0,
                           .offset_bytes = offset_bytes,
                           .head_at = 0,
                           .held_bytes = block.get()->capacity_bytes};
    std::memcpy(base, &head, sizeof head);
    if (!key.empty()) std::memcpy(base + head.key_at, key.data(), key.size());
    if (!shard.empty()) std::memcpy(base + head.shard_at, shard.data(), shard.size());
    const auto* const lasting = reinterpret_cast<const record_head*>(base);
    block.get()->head = lasting;
    return record(lasting);
  }

  /// Returns the name of an output of expand(). `parent` is the name of the input, and `child` is the number of the
  /// output.
  record child(const record& parent, std::uint64_t child) {
    return make(parent.shard(), std::string(parent.key()) + "#" + std::to_string(child), parent.offset_bytes());
  }

  /// Stores the name of a sample in `s.origin`. If the sample has no key, its name is the result of `fallback()`.
  template <class T, class Fallback>
  void name(sample<T>& s, const Fallback& fallback) {
    if constexpr (!std::is_base_of_v<record, T>) {
      if (!s.origin.empty()) return;
      s.keep_origin();
      if constexpr (requires {
                      { s.item->key() } -> std::convertible_to<std::string_view>;
                    })
        s.origin = make(s.origin.shard(), s.item->key(), s.origin.offset_bytes());
      else if (s.origin.key().empty()) s.origin = make({}, fallback());
    }
  }

  /// Returns the name of a sample from its shard and index. If the shards of a source have no names, `unnamed` replaces
  /// the name of the shard.
  template <class Source>
  static std::string name_in(const Source& source, const located_sample& at, const std::string& unnamed = {}) {
    std::string shard = unnamed;
    if constexpr (requires { source.shard_name(at.shard); }) shard = source.shard_name(at.shard);
    else if (source.shards() > 1) shard += (shard.empty() ? "" : ":") + std::to_string(at.shard);
    return (shard.empty() ? shard : shard + ":") + std::to_string(at.index);
  }

 private:
  block_pool pool_;
};

}}}   // namespace millrace::detail
