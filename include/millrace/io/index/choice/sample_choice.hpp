// Selects samples of indexed shards by their keys, before any sample is read.
//
//   const mr::detail::sample_choice choice{.only = mr::key_list(keys), .repeats = weight_of};
//   mr::detail::choice_search search(choice);
//   const mr::detail::chosen_samples of_shard = search.choose(index, "train-003.tar");    // for each shard in order
//   of_shard.size();                          // positions that the shard has in a pass
//   of_shard.number(0);   of_shard.repeat(0);    // for position 0: the sample's number; its earlier uses
//
// The positions of a shard form rounds. The first round contains all chosen samples in the order of the shard. The
// second round contains the samples with two or more uses, and so on. Rounds separate the repeats of a sample.
// Memory: 4 bytes for each position; none if all samples of a shard are used once. Time: one search in each list for
// each sample. Errors: setup_error for a shard with 2^32 positions or more. Threads: a choice_search belongs to one
// thread; chosen_samples are immutable.
#pragma once

#include <millrace/io/index/choice/key_list.hpp>
#include <millrace/io/index/format/shard_index.hpp>
#include <millrace/io/tar/format/required_fields.hpp>
#include <millrace/item/sample.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The options that select samples. By default a run uses each sample once.
struct sample_choice {
  std::optional<key_list> only{};
  key_list without{};
  std::function<bool(std::string_view key, std::string_view shard)> where{};
  std::function<std::size_t(std::string_view key, std::string_view shard)> repeats{};
  required_fields having{};   // fields that a sample must have

  /// Returns whether an option is set.
  bool is_set() const noexcept { return only || !without.empty() || where || repeats || !having.empty(); }
};

/// The samples of one shard that a run uses.
class chosen_samples {
 public:
  /// Chooses each sample of a shard once.
  explicit chosen_samples(std::uint32_t samples = 0) noexcept : all_(samples) {}
  /// Chooses each sample as many times as `times` states for it.
  explicit chosen_samples(const std::vector<std::uint32_t>& times);

  /// Returns the number of positions.
  std::uint64_t size() const noexcept { return rounds_.empty() ? all_ : numbers_.size(); }
  /// Returns which sample is at a position, as its number in the shard.
  std::uint32_t number(std::uint32_t position) const noexcept {
    return rounds_.empty() ? position : numbers_[position];
  }
  /// Returns how many earlier positions contain the same sample.
  std::uint32_t repeat(std::uint32_t position) const noexcept;
  /// Returns the identity of the sample at a position. Each repeat has its own identity.
  std::uint64_t id_of(std::uint64_t shard, std::uint32_t position) const noexcept;

 private:
  static constexpr std::uint64_t repeats_stream = ~std::uint64_t{3};   // distinct from the numbers of a stage's outputs

  std::uint32_t all_ = 0;
  std::vector<std::uint32_t> numbers_{}, rounds_{};   // rounds_: the end of each round; empty: every sample once
};

/// Selects samples of several shards, one shard after another.
class choice_search {
 public:
  /// `choice` must outlive the search.
  explicit choice_search(const sample_choice& choice);

  /// Returns the chosen samples of the next shard. `shard` is its name.
  chosen_samples choose(const shard_index& index, std::string_view shard);

  /// Returns a checksum over the shard's ordinal, the number and the uses of each sample so far; 0: all used once.
  std::uint64_t checksum() const noexcept { return every_sample_once_ ? 0 : checksum_ | 1; }
  /// Returns a sentence about listed keys that no shard so far contains, with examples of keys in the shards; empty if
  /// the shards contain all listed keys.
  std::string missing() const;
  /// Returns advice on missing keys.
  std::string advice() const;
  /// Returns "273 of 400 samples chosen (127 lack 'jpg')". Throws setup_error if all `samples` lack a required field.
  std::string text(std::uint64_t positions, std::uint64_t samples) const;

 private:
  struct key_search {
    const key_table* keys;
    std::vector<bool> matched;
  };

  static key_search search_for(const std::shared_ptr<const key_table>& keys);
  static bool match(key_search& search, std::string_view key, std::string_view shard);
  static std::string_view first_missing(const key_search& search) noexcept;
  static void append_missing(std::string& text, const char* option, const key_search& search);
  std::size_t times(std::string_view key, std::string_view shard);
  /// Determines, for each field of a shard, which requirements (bits of required_fields) it satisfies.
  void find_fields(const shard_index& index);
  bool has_fields(const shard_index& index, const indexed_sample& sample) const noexcept;

  const sample_choice* choice_;
  key_search only_, without_;
  std::vector<std::string> keys_;   // the first keys of the shards, for comparison with the keys of the lists
  std::vector<std::uint64_t> bits_;   // requirements that each field satisfies, indexed by the field's number
  std::uint64_t shard_ = 0, checksum_ = 0, lacking_ = 0;
  bool every_sample_once_ = true;
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/index/choice/impl/sample_choice.inl>
#endif
