// Defines what sample_choice.hpp declares.
#pragma once

#include <millrace/io/index/sample_choice.hpp>

#include <millrace/base/error.hpp>
#include <millrace/base/random.hpp>

#include <algorithm>
#include <limits>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE chosen_samples::chosen_samples(const std::vector<std::uint32_t>& times) {
  if (std::all_of(times.begin(), times.end(), [](std::uint32_t t) { return t == 1; })) {
    all_ = static_cast<std::uint32_t>(times.size());
    return;
  }
  std::vector<std::uint32_t> left;   // samples that are wanted once more
  for (std::uint32_t number = 0; number < times.size(); ++number)
    if (times[number] > 0) left.push_back(number);
  rounds_.push_back(static_cast<std::uint32_t>(left.size()));
  for (std::uint32_t round = 1; !left.empty(); ++round) {
    numbers_.insert(numbers_.end(), left.begin(), left.end());
    rounds_.back() = static_cast<std::uint32_t>(numbers_.size());
    std::erase_if(left, [&](std::uint32_t number) { return times[number] <= round; });
    if (!left.empty()) rounds_.push_back(0);
  }
}

MILLRACE_INLINE std::uint32_t chosen_samples::repeat(std::uint32_t position) const noexcept {
  if (rounds_.size() <= 1) return 0;
  return static_cast<std::uint32_t>(std::upper_bound(rounds_.begin(), rounds_.end(), position) - rounds_.begin());
}

MILLRACE_INLINE std::uint64_t chosen_samples::id_of(std::uint64_t shard, std::uint32_t position) const noexcept {
  const std::uint64_t id = sample_id(shard, number(position));
  const std::uint32_t earlier = repeat(position);
  return earlier == 0 ? id : combine_keys(combine_keys(id, repeats_stream), earlier);
}

MILLRACE_INLINE choice_search::choice_search(const sample_choice& choice)
    : choice_(&choice),
      only_(seek(choice.only ? choice.only->keys() : nullptr)),
      without_(seek(choice.without.keys())) {}

MILLRACE_INLINE chosen_samples choice_search::choose(const shard_index& index, std::string_view shard) {
  std::vector<std::uint32_t> often(index.samples());
  std::uint64_t all = 0;
  for (std::uint32_t number = 0; number < index.samples(); ++number) {
    const std::size_t wanted = times(index.sample(number).key, shard);
    all += wanted;
    if (wanted > std::numeric_limits<std::uint32_t>::max() || all > std::numeric_limits<std::uint32_t>::max())
      throw setup_error("the samples of " + printable(shard) + " are chosen 2^32 times or more together",
                        "Let .repeats return smaller numbers");
    often[number] = static_cast<std::uint32_t>(wanted);
    if (wanted != 1) every_sample_once_ = false;
    if (wanted > 0) checksum_ += mix_bits(combine_keys(combine_keys(shard_, number), wanted));
  }
  ++shard_;
  return chosen_samples(often);
}

MILLRACE_INLINE std::string choice_search::missing() const {
  std::string text;
  tell_missing(text, ".only", only_);
  tell_missing(text, ".without", without_);
  return text;
}

MILLRACE_INLINE choice_search::sought choice_search::seek(const std::shared_ptr<const key_table>& keys) {
  return {keys.get(), std::vector<bool>(keys ? keys->size() : 0)};
}

MILLRACE_INLINE bool choice_search::finds(sought& in, std::string_view key, std::string_view shard) {
  const std::size_t entry = in.keys ? in.keys->find(key, shard) : key_table::none;
  if (entry == key_table::none) return false;
  in.found[entry] = true;
  return true;
}

MILLRACE_INLINE void choice_search::tell_missing(std::string& text, const char* option, const sought& of) {
  const auto lost = static_cast<std::size_t>(std::count(of.found.begin(), of.found.end(), false));
  if (lost == 0) return;
  const auto first = static_cast<std::size_t>(std::find(of.found.begin(), of.found.end(), false) - of.found.begin());
  text += (text.empty() ? "" : ". ") + std::string("no shard has ") + std::to_string(lost) + " of the " +
          std::to_string(of.found.size()) + " keys of " + option + ": '" + printable(of.keys->key(first)) + "'" +
          (lost > 1 ? ", ..." : "");
}

MILLRACE_INLINE std::size_t choice_search::times(std::string_view key, std::string_view shard) {
  if (finds(without_, key, shard)) return 0;
  if (choice_->only && !finds(only_, key, shard)) return 0;
  if (choice_->where && !choice_->where(key, shard)) return 0;
  return choice_->repeats ? choice_->repeats(key, shard) : 1;
}

}}}  // namespace millrace::detail
