// Selects samples of indexed shards by key and by fields, before any sample is read.
//
//   const mr::detail::sample_choice choice{.only = mr::key_list(keys), .repeats = weight_of};
//   mr::detail::choice_search search(choice);
//   const mr::detail::chosen_samples of_shard = search.choose(index, "train-003.tar");    // for each shard in order
//   of_shard.size();                          // number of positions of the shard in a pass (one traversal of the data)
//   of_shard.number(0);   of_shard.repeat(0);    // for position 0: the sample's number in the shard; its earlier uses
//
// The positions of a shard form rounds. The first round contains all chosen samples in the order of the shard. The
// second round contains the samples with two or more uses, and so on. Therefore the uses of a sample are far apart.
// Memory: 4 bytes for each position, or none if all samples of a shard are used once. Time: one search in each list for
// each sample. Errors: setup_error for a shard with 2^32 positions or more. Threads: one thread at a time uses a
// choice_search. A chosen_samples is immutable.
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

/// The options that select samples. Without options, a run uses each sample once.
struct sample_choice {
  std::optional<key_list> only{};
  key_list without{};
  std::function<bool(std::string_view key, std::string_view shard)> where{};
  std::function<std::size_t(std::string_view key, std::string_view shard)> repeats{};
  required_fields having{};   // fields that a sample must have

  /// Returns whether an option is set.
  bool is_set() const noexcept { return only || !without.empty() || where || repeats || !having.empty(); }
};

/// The samples that a run uses from one shard.
class chosen_samples {
 public:
  /// Chooses each sample of a shard once.
  explicit chosen_samples(std::uint32_t samples = 0) noexcept : all_(samples) {}
  /// Chooses sample i of a shard times[i] times.
  explicit chosen_samples(const std::vector<std::uint32_t>& times);

  /// Returns the number of positions.
  std::uint64_t size() const noexcept { return rounds_.empty() ? all_ : numbers_.size(); }
  /// Returns the sample at a position, as its number in the shard.
  std::uint32_t number(std::uint32_t position) const noexcept {
    return rounds_.empty() ? position : numbers_[position];
  }
  /// Returns the number of earlier positions with the same sample.
  std::uint32_t repeat(std::uint32_t position) const noexcept;
  /// Returns the identity of the sample at a position. Each repeat has its own identity.
  std::uint64_t id_of(std::uint64_t shard, std::uint32_t position) const noexcept;

 private:
  // A constant that id_of() mixes into the identity of each repeat. Random streams (base/random.hpp) mix in the number
  // of a stage in the same way. Therefore the constant is a number that no stage has.
  static constexpr std::uint64_t repeats_stream = ~std::uint64_t{3};

  std::uint32_t all_ = 0;
  // numbers_ contains the sample at each position, and rounds_ the end of each round. Both vectors are empty if every
  // sample is used once.
  std::vector<std::uint32_t> numbers_{}, rounds_{};
};

/// Selects samples of several shards, shard after shard.
class choice_search {
 public:
  /// `choice` must outlive the search.
  explicit choice_search(const sample_choice& choice);

  /// Returns the chosen samples of the next shard. `shard` is the shard's name.
  chosen_samples choose(const shard_index& index, std::string_view shard);

  /// Returns a checksum of the choices so far. Returns 0 if all samples are used once.
  std::uint64_t checksum() const noexcept { return every_sample_once_ ? 0 : checksum_ | 1; }
  /// Returns a sentence about listed keys that no shard has contained so far. The sentence has examples of keys in the
  /// shards. Returns "" if the shards contain all listed keys.
  std::string missing() const;
  /// Returns advice on missing keys.
  std::string advice() const;
  /// Returns a text such as "273 of 400 samples chosen (127 lack 'jpg')". Throws setup_error if all `samples` lack a
  /// required field.
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
  /// Determines, for each field of a shard, the requirements of sample_choice::having that the field satisfies.
  void find_fields(const shard_index& index);
  bool has_fields(const shard_index& index, const indexed_sample& sample) const noexcept;

  const sample_choice* choice_;
  key_search only_, without_;
  std::vector<std::string> keys_;   // the first keys of the shards, for comparison with the keys of the lists
  // The result of find_fields(): for each field of the shard, the result of required_fields::bits_of().
  std::vector<std::uint64_t> bits_;
  std::uint64_t shard_ = 0, checksum_ = 0, lacking_ = 0;
  bool every_sample_once_ = true;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/index/choice/impl/sample_choice.inl>
#endif
