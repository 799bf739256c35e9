// Definitions for sample_choice.hpp.
#pragma once

#include <millrace/io/index/choice/sample_choice.hpp>

#include <millrace/base/error.hpp>
#include <millrace/base/random.hpp>

#include <algorithm>
#include <limits>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE chosen_samples::chosen_samples(const std::vector<std::uint32_t>& times) {
  if (std::all_of(times.begin(), times.end(), [](std::uint32_t t) { return t == 1; })) {
    all_ = static_cast<std::uint32_t>(times.size());
    return;
  }
  std::vector<std::uint32_t> left;   // samples that occur in later rounds
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

MILLRACE_RARE choice_search::choice_search(const sample_choice& choice)
    : choice_(&choice),
      only_(search_for(choice.only ? choice.only->keys() : nullptr)),
      without_(search_for(choice.without.keys())) {}

MILLRACE_INLINE chosen_samples choice_search::choose(const shard_index& index, std::string_view shard) {
  constexpr std::size_t shown_keys = 3;
  for (std::uint32_t number = 0; number < index.samples() && keys_.size() < shown_keys; ++number)
    keys_.emplace_back(index.sample(number).key);
  std::vector<std::uint32_t> counts(index.samples());
  std::uint64_t all = 0;
  find_fields(index);
  for (std::uint32_t number = 0; number < index.samples(); ++number) {
    const indexed_sample sample = index.sample(number);
    const bool is_lacking = !has_fields(index, sample);
    const std::size_t count = is_lacking ? 0 : times(sample.key, shard);
    lacking_ += is_lacking;
    all += count;
    if (count > std::numeric_limits<std::uint32_t>::max() || all > std::numeric_limits<std::uint32_t>::max())
      throw setup_error("the samples of " + printable(shard) + " are chosen 2^32 times or more in total",
                        "Return smaller numbers from .repeats");
    counts[number] = static_cast<std::uint32_t>(count);
    if (count != 1) every_sample_once_ = false;
    if (count > 0) checksum_ += mix_bits(combine_keys(combine_keys(shard_, number), count));
  }
  ++shard_;
  return chosen_samples(counts);
}

MILLRACE_RARE std::string choice_search::text(std::uint64_t positions, std::uint64_t samples) const {
  const std::string fields = choice_->having.text();
  if (samples > 0 && lacking_ == samples)
    throw setup_error("no sample is chosen: 0 of " + std::to_string(samples) + " samples have " + fields,
                      "Compare .having with the fields that examples/inspect lists");
  return std::to_string(positions) + " of " + std::to_string(samples) + " samples chosen" +
         (fields.empty() ? "" : " (" + std::to_string(lacking_) + " lack " + fields + ")");
}

MILLRACE_INLINE void choice_search::find_fields(const shard_index& index) {
  if (choice_->having.empty()) return;
  bits_.assign(index.fields(), 0);
  for (std::uint32_t field = 0; field < index.fields(); ++field)
    bits_[field] = choice_->having.bits_of(index.field_name(field));
}

MILLRACE_INLINE bool choice_search::has_fields(const shard_index& index, const indexed_sample& sample) const noexcept {
  if (choice_->having.empty()) return true;
  std::uint64_t present = 0;
  for (std::uint32_t m = sample.first_member; m < sample.end_member; ++m) present |= bits_[index.field_of(m)];
  return present == choice_->having.all_bits();
}

MILLRACE_RARE std::string choice_search::missing() const {
  std::string text;
  append_missing(text, ".only", only_);
  append_missing(text, ".without", without_);
  if (text.empty() || keys_.empty()) return text;
  text += ". Keys of the shards are";
  for (std::size_t i = 0; i < keys_.size(); ++i) text += (i == 0 ? " '" : ", '") + printable(keys_[i], 100) + "'";
  return text + ", ...";
}

MILLRACE_RARE std::string choice_search::advice() const {
  const std::string_view absent = first_missing(only_).empty() ? first_missing(without_) : first_missing(only_);
  const std::string_view of_shard = keys_.empty() ? std::string_view() : std::string_view(keys_.front());
  const auto has = [&](std::string_view key) {   // among the first keys
    return std::find(keys_.begin(), keys_.end(), key) != keys_.end();
  };
  if (absent.starts_with("\xef\xbb\xbf")) return "Write the list without a byte order mark (BOM)";
  if (absent.ends_with('\r')) return "Write the list with LF line endings, not CRLF";
  if (absent.find_first_of(",\t") != std::string_view::npos && of_shard.find_first_of(",\t") == std::string_view::npos)
    return "Write one key in each line of the list, without other columns";
  if (!absent.empty() && (absent.front() == ' ' || absent.back() == ' '))
    return "Write the list without spaces around the keys";
  if (of_shard.starts_with("./") && !absent.starts_with("./")) return "Begin the keys with ./, as in the shards";
  if (!of_shard.starts_with("./") && absent.starts_with("./")) return "Write the keys without ./";
  const std::size_t name = absent.rfind('/') + 1;   // without a slash, npos + 1 is 0
  if (const std::size_t dot = absent.find('.', name);
      dot != std::string_view::npos && (dot > name || has(absent.substr(0, dot))))
    return "Write the keys without the extension: a key ends at the first dot of the file name";
  return "Compare the lists with the keys that examples/inspect --keys shows";
}

MILLRACE_RARE std::string_view choice_search::first_missing(const key_search& search) noexcept {
  const auto at = std::find(search.matched.begin(), search.matched.end(), false);
  return at == search.matched.end() ? std::string_view()
                                    : search.keys->key(static_cast<std::size_t>(at - search.matched.begin()));
}

MILLRACE_RARE choice_search::key_search choice_search::search_for(const std::shared_ptr<const key_table>& keys) {
  return {keys.get(), std::vector<bool>(keys ? keys->size() : 0)};
}

MILLRACE_INLINE bool choice_search::match(key_search& search, std::string_view key, std::string_view shard) {
  const std::size_t entry = search.keys ? search.keys->find(key, shard) : key_table::none;
  if (entry == key_table::none) return false;
  search.matched[entry] = true;
  return true;
}

MILLRACE_RARE void choice_search::append_missing(std::string& text, const char* option, const key_search& search) {
  const auto count = static_cast<std::size_t>(std::count(search.matched.begin(), search.matched.end(), false));
  if (count == 0) return;
  const auto first = static_cast<std::size_t>(std::find(search.matched.begin(), search.matched.end(), false) -
                                              search.matched.begin());
  text += (text.empty() ? "" : ". ") + std::string("no shard has ") + std::to_string(count) + " of the " +
          std::to_string(search.matched.size()) + " keys of " + option + ": '" + printable(search.keys->key(first)) +
          "'" + (count > 1 ? ", ..." : "");
}

MILLRACE_INLINE std::size_t choice_search::times(std::string_view key, std::string_view shard) {
  if (match(without_, key, shard)) return 0;
  if (choice_->only && !match(only_, key, shard)) return 0;
  if (choice_->where && !choice_->where(key, shard)) return 0;
  return choice_->repeats ? choice_->repeats(key, shard) : 1;
}

}}}   // namespace millrace::detail
