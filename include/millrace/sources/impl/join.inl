// Definitions for join.hpp.
#pragma once

#include <millrace/sources/join.hpp>

#include <millrace/base/digest.hpp>
#include <millrace/base/error.hpp>
#include <millrace/base/radix_sort.hpp>
#include <millrace/base/text.hpp>
#include <millrace/io/file/file_list.hpp>
#include <millrace/item/record_builder.hpp>

#include <algorithm>
#include <map>
#include <numeric>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The keys of one set, sorted by their hashes.
class joined_data::key_table {
 public:
  key_table(const joined_data& of, std::size_t set) : of_(&of), set_(of.sets_[set].get()) {
    const auto& counts = set_->counts();
    all_.reserve(std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
    for (std::size_t shard = 0; shard < counts.size(); ++shard)
      for (std::uint64_t i = 0; i < counts[shard]; ++i)
        all_.push_back({hash(*set_, shard, set_->sample_of({shard, i}).key), packed(shard, i)});
    radix_sort(all_, [](const entry& e) { return e.hash; });
  }

  std::size_t size() const noexcept { return all_.size(); }

  /// Returns the place of the partner of a sample of the first set, or `none` if it has no partner. Throws setup_error
  /// if it has several partners.
  std::uint64_t find(const located_sample& s) const {
    const shard_data& first = *of_->sets_[0];
    const std::string_view key = first.sample_of(s).key;
    const std::uint64_t hashed = hash(first, s.shard, key);
    auto at = std::lower_bound(all_.begin(), all_.end(), hashed,
                               [](const entry& e, std::uint64_t value) { return e.hash < value; });
    std::uint64_t match = none;
    for (; at != all_.end() && at->hash == hashed; ++at) {
      const located_sample other = unpacked(at->place);
      if (set_->sample_of(other).key != key) continue;
      if (of_->options_.same_shard_names && file_name(*set_, other.shard) != file_name(first, s.shard)) continue;
      if (match == none) match = at->place;
      else check_same_sample(unpacked(match), other, key);
    }
    return match;
  }

  /// Returns the first keys of a set.
  static std::string examples(const shard_data& set) {
    std::string text;
    std::size_t count = 0;
    for (std::size_t shard = 0; shard < set.counts().size(); ++shard)
      for (std::uint64_t i = 0; i < set.counts()[shard] && count < 3; ++i, ++count)
        text += (text.empty() ? "'" : ", '") + printable(set.sample_of({shard, i}).key, 100) + "'";
    return text.empty() ? "(none)" : text;
  }

 private:
  struct entry {
    std::uint64_t hash, place;
  };

  static std::string_view file_name(const shard_data& set, std::uint64_t shard) {
    const std::string_view path = set.name(static_cast<std::size_t>(shard));
    return path.substr(path.rfind('/') + 1);   // without a slash, npos + 1 is 0
  }
  std::uint64_t hash(const shard_data& set, std::uint64_t shard, std::string_view key) const {
    const std::uint64_t seed = of_->options_.same_shard_names ? digest_bytes(bytes_of(file_name(set, shard)))
                                                              : std::uint64_t{0};
    return digest_bytes(bytes_of(key), seed);
  }
  /// Throws setup_error unless `a` and `b` are repeats of the same sample (shards_options::repeats).
  void check_same_sample(const located_sample& a, const located_sample& b, std::string_view key) const {
    const std::uint64_t first = set_->sample_of(a).offset_bytes, second = set_->sample_of(b).offset_bytes;
    if (a.shard == b.shard && first == second) return;
    const auto place = [this](const located_sample& s, std::uint64_t offset) {
      return printable(set_->name(static_cast<std::size_t>(s.shard))) + " at offset " + std::to_string(offset);
    };
    throw setup_error("the key '" + printable(key) + "' of join() is ambiguous: got two samples in " +
                          of_->name_of(number()) + ", one in " + place(a, first) + ", one in " + place(b, second) +
                          ", expected one",
                      of_->options_.same_shard_names
                          ? "Use a different key for each sample"
                          : "Use a different key for each sample. If keys repeat in every shard, and the shards of "
                            "all sets have the same file names, set join_options::same_shard_names");
  }
  std::size_t number() const noexcept {
    return static_cast<std::size_t>(
        std::find_if(of_->sets_.begin() + 1, of_->sets_.end(), [this](const auto& set) { return set.get() == set_; }) -
        of_->sets_.begin());
  }

  const joined_data* of_;
  const shard_data* set_;
  std::vector<entry> all_;
};

MILLRACE_INLINE joined_data::joined_data(std::vector<std::shared_ptr<shard_data>> sets, join_options options,
                                         notice_outlet& notices)
    : shard_sets(std::move(sets)), options_(std::move(options)), places_(sets_.size()), facts_(sets_.size()) {
  if (options_.prefixes.size() > sets_.size())
    throw setup_error("join_options::prefixes has too many texts: got " + std::to_string(options_.prefixes.size()) +
                          " for " + std::to_string(sets_.size()) + " sets",
                      "Pass one text for each set, in the order of the sets");
  for (std::size_t i = 0; i < sets_.size(); ++i) {
    sets_[i]->load_indexes(notices);
    const auto& counts = sets_[i]->counts();
    facts_[i].samples = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  }
  check_fields();
  places_[0].reserve(static_cast<std::size_t>(facts_[0].samples));
  for (std::size_t shard = 0; shard < sets_[0]->counts().size(); ++shard)
    for (std::uint64_t i = 0; i < sets_[0]->counts()[shard]; ++i) places_[0].push_back(packed(shard, i));
  for (std::size_t i = 1; i < sets_.size(); ++i) find_partners(i);
  if (options_.missing == missing::skip) skip_missing();
  count_shards();
}

MILLRACE_INLINE std::string joined_data::name_of(std::size_t set) const {
  const shard_data& data = *sets_[set];
  return "set " + std::to_string(set + 1) + " (" + printable(data.name(0)) +
         (data.counts().size() > 1 ? ", ...)" : ")");
}

MILLRACE_INLINE void joined_data::check_fields() const {
  std::map<std::string, std::size_t> owner;
  for (std::size_t set = 0; set < sets_.size(); ++set) {
    const std::string prefix = set < options_.prefixes.size() ? options_.prefixes[set] : std::string();
    for (const std::string_view field : sets_[set]->fields()) {
      const auto [at, is_new] = owner.emplace(prefix + std::string(field), set);
      if (is_new) continue;
      throw setup_error("join() would create records with two fields '" + printable(at->first) + "': got one from " +
                            name_of(at->second) + " and one from " + name_of(set) + ", expected different names",
                        "Choose the fields of each set by shards_options::fields, or rename the fields of a set by "
                        "join_options::prefixes, such as {\"\", \"b.\"}");
    }
  }
}

MILLRACE_INLINE void joined_data::find_partners(std::size_t set) {
  const key_table keys(*this, set);
  auto& places = places_[set];
  places.reserve(places_[0].size());
  std::vector<std::vector<bool>> used;
  for (const std::uint64_t samples : sets_[set]->counts()) used.emplace_back(static_cast<std::size_t>(samples));
  facts_[set].unused = facts_[set].samples;
  for (const std::uint64_t place : places_[0]) {
    places.push_back(keys.find(unpacked(place)));
    if (places.back() != none) {
      const located_sample match = unpacked(places.back());
      auto bit = used[static_cast<std::size_t>(match.shard)][static_cast<std::size_t>(match.index)];
      facts_[set].unused -= bit ? 0 : 1;
      bit = true;
      continue;
    }
    if (facts_[set].missing++ > 0) continue;
    const error_location first = sets_[0]->location_of(unpacked(place));
    facts_[set].first_missing = "'" + printable(first.key) + "' in " + printable(first.shard);
  }
  check_partners(set, keys);
}

MILLRACE_INLINE void joined_data::check_partners(std::size_t set, const key_table& keys) const {
  const std::uint64_t missing = facts_[set].missing;
  if (missing == 0) return;
  if (missing == facts_[0].samples)
    throw setup_error("the sets of join() have no key in common: " + name_of(0) + " has keys such as " +
                          key_table::examples(*sets_[0]) + "; " + name_of(set) + " has " +
                          (keys.size() == 0 ? "no samples" : "keys such as " + key_table::examples(*sets_[set])),
                      keys.size() == 0 ? "Check the pattern and the options of the set that has no samples"
                                       : "Write both sets with the same keys. examples/inspect --keys shows all keys");
  if (options_.missing != missing::error) return;
  throw setup_error(std::to_string(missing) + " of " + std::to_string(facts_[0].samples) + " samples of " + name_of(0) +
                        " have no partner in " + name_of(set) + ": the first is " + facts_[set].first_missing,
                    "Set join_options::missing to skip or partial: skip omits these samples, and partial delivers them "
                    "without the fields of the other set");
}

MILLRACE_INLINE void joined_data::skip_missing() {
  std::size_t complete = 0;
  for (std::size_t i = 0; i < places_[0].size(); ++i) {
    const bool is_missing = std::any_of(places_.begin(), places_.end(), [i](const auto& p) { return p[i] == none; });
    if (is_missing) continue;
    for (auto& places : places_) places[complete] = places[i];
    ++complete;
  }
  skipped_ = places_[0].size() - complete;
  if (complete == 0)
    throw setup_error("join() has no sample: no key is in all " + std::to_string(sets_.size()) + " sets",
                      "Set join_options::missing to partial, or join fewer sets");
  for (auto& places : places_) {
    places.resize(complete);
    places.shrink_to_fit();
  }
}

MILLRACE_INLINE void joined_data::count_shards() {
  counts_.assign(sets_[0]->counts().size(), 0);
  for (const std::uint64_t place : places_[0]) ++counts_[static_cast<std::size_t>(place >> 32)];
  std::uint64_t samples = 0;
  for (const std::uint64_t count : counts_) first_of_.push_back(std::exchange(samples, samples + count));
  std::uint64_t others = sets_.size();
  for (std::size_t set = 0; set < sets_.size(); ++set) {
    std::uint64_t before = none - 1, partners = 0;
    for (const std::uint64_t place : places_[set]) {
      partners = combine_keys(partners, place);
      if (place == none) continue;
      ++facts_[set].used;
      facts_[set].neighbors += place == before + 1 || (place & ~upper_half) == 0;
      before = place;
    }
    others = combine_keys(combine_keys(others, set == 0 ? 0 : sets_[set]->fingerprint()), partners);
  }
  fingerprint_ = (combine_keys(0, sets_[0]->fingerprint()) & upper_half) | (others >> 32);
}

MILLRACE_INLINE std::string joined_data::choice_text() const {
  std::string all;
  for (std::size_t i = 0; i < sets_.size(); ++i)
    if (const std::string& one = sets_[i]->choice_text(); !one.empty())
      all += (all.empty() ? "set " : ", set ") + std::to_string(i + 1) + ": " + one;
  return all;
}

MILLRACE_INLINE std::uint64_t joined_data::size_bytes() const noexcept {
  double all = 0;
  for (std::size_t i = 0; i < sets_.size(); ++i)
    if (facts_[i].samples > 0)
      all += static_cast<double>(sets_[i]->size_bytes()) * static_cast<double>(facts_[i].used) /
             static_cast<double>(facts_[i].samples);
  return static_cast<std::uint64_t>(all);
}

MILLRACE_INLINE std::optional<other_piece> joined_data::other_piece_of(const error_location& sample) const {
  for (const auto& set : sets_)
    if (auto piece = set->other_piece_of(sample)) return piece;
  return std::nullopt;
}

MILLRACE_INLINE void joined_data::check_same(std::uint64_t then) const {
  const std::uint64_t difference = then ^ fingerprint_;
  if (difference == 0) return;
  const char* const problem = (difference & upper_half) == 0
                                  ? "the shards of the first set of join() are the same, but another set, the choice "
                                    "of samples or the partners are different"
                                  : "the first set of join() has other shards";
  throw setup_error("the resume point belongs to another run: " + std::string(problem),
                    "Join the same sets with the same options, or start without the resume point. If the "
                    "global batch stays the same, the numbers of workers and of ranks may change");
}

MILLRACE_INLINE std::size_t joined_data::expect(const expected_order& order) {
  std::size_t cached_bytes = 0;
  for (std::size_t i = 0; i < sets_.size(); ++i) {
    const set_facts& f = facts_[i];
    // Reading neighboring samples together is useful only if most of them are joined samples.
    const bool is_near = 8 * f.neighbors >= 7 * f.used && 2 * f.used >= f.samples;
    cached_bytes += sets_[i]->expect(
        {.window = is_near ? order.window : 1,
         .lanes = order.lanes,
         .max_held_bytes = order.max_held_bytes - std::min(order.max_held_bytes, cached_bytes)});
  }
  return cached_bytes;
}

MILLRACE_INLINE void joined_data::expect_shards(std::span<const std::size_t> shards) const {
  sets_[0]->expect_shards(shards);
  for (std::size_t set = 1; set < sets_.size(); ++set) {
    if (sets_[set]->is_local()) continue;
    std::vector<std::size_t> needed;
    std::vector<bool> announced(sets_[set]->counts().size());
    for (const std::size_t shard : shards)
      for (std::uint64_t i = 0; i < counts_[shard]; ++i) {
        const std::uint64_t place = places_[set][static_cast<std::size_t>(first_of_[shard] + i)];
        if (place == none || announced[static_cast<std::size_t>(place >> 32)]) continue;
        needed.push_back(static_cast<std::size_t>(place >> 32));
        announced[needed.back()] = true;
      }
    sets_[set]->expect_shards(needed);
  }
}

MILLRACE_INLINE std::size_t joined_data::read(std::span<const located_sample> samples, std::span<record> records,
                                              std::exception_ptr& failure) {
  const std::size_t sets = sets_.size(), count = samples.size();
  std::vector<record> parts(sets * count);   // all of the first set, then all of the second set
  std::vector<std::exception_ptr> failures(sets);
  std::vector<std::size_t> good(sets);
  const auto read_one_set = [&](std::size_t set) {
    good[set] = read_set(set, samples, std::span(parts).subspan(set * count, count), failures[set]);
  };
  if (std::all_of(sets_.begin(), sets_.end(), [](const auto& set) { return set->is_local(); }))
    for (std::size_t set = 0; set < sets; ++set) read_one_set(set);
  else run_concurrently(sets, sets, read_one_set);
  std::vector<record> of_sample(sets);
  for (std::size_t i = 0; i < count; ++i) {
    bool is_complete = true;
    for (std::size_t set = 0; set < sets; ++set) {
      of_sample[set] = std::move(parts[set * count + i]);
      if (of_sample[set].empty())
        is_complete &= places_[set][static_cast<std::size_t>(first_of_[samples[i].shard] + samples[i].index)] == none;
    }
    if (is_complete) records[i] = record_join{.parts = of_sample, .prefixes = options_.prefixes}.run(pool_);
  }
  const auto lowest = static_cast<std::size_t>(std::min_element(good.begin(), good.end()) - good.begin());
  if (good[lowest] < count) failure = failures[lowest];
  return good[lowest];
}

MILLRACE_INLINE std::size_t joined_data::read_set(std::size_t set, std::span<const located_sample> samples,
                                                  std::span<record> records, std::exception_ptr& failure) {
  std::vector<located_sample> located;
  std::vector<std::size_t> rows;
  located.reserve(samples.size());
  rows.reserve(samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::uint64_t place = places_[set][static_cast<std::size_t>(first_of_[samples[i].shard] + samples[i].index)];
    if (place == none) continue;
    located.push_back(unpacked(place));
    rows.push_back(i);
  }
  if (rows.empty()) return samples.size();
  const auto read = [&](std::span<record> to) {
    return sets_[set]->read(located, {.records = to, .failure = failure, .reads = reads_});
  };
  if (rows.size() == samples.size()) return read(records);
  std::vector<record> loaded(rows.size());
  const std::size_t good = read(loaded);
  for (std::size_t i = 0; i < rows.size(); ++i) records[rows[i]] = std::move(loaded[i]);
  return good < rows.size() ? rows[good] : samples.size();
}

MILLRACE_INLINE bool joined_data::is_given_up(const std::exception_ptr& failure) const noexcept {
  return std::any_of(sets_.begin(), sets_.end(), [&](const auto& set) { return set->is_given_up(failure); });
}

MILLRACE_INLINE std::string joined_data::describe(const exact_order&) const {
  std::string text = "join of " + std::to_string(sets_.size()) + " sets: " + std::to_string(places_[0].size()) +
                     " samples";
  if (skipped_ > 0) text += " (" + std::to_string(skipped_) + " skipped)";
  for (std::size_t i = 1; i < sets_.size(); ++i) {
    const set_facts& f = facts_[i];
    text += ", set " + std::to_string(i + 1) + " has partners of " + std::to_string(facts_[0].samples - f.missing) +
            " of " + std::to_string(facts_[0].samples);
    if (f.missing > 0) text += " (the first without one is " + f.first_missing + ")";
    if (f.unused > 0) text += " and " + std::to_string(f.unused) + " unused samples";
  }
  return text;
}

MILLRACE_INLINE joined_source::joined_source(std::vector<shards_source> sets, join_options options)
    : sets_(std::move(sets)), options_(std::move(options)), joined_(std::make_shared<joined>()) {
  if (sets_.size() < 2)
    throw setup_error("join() has too few sets: got " + std::to_string(sets_.size()) + ", expected at least 2",
                      "Pass a vector of two or more shards(...)");
}

MILLRACE_INLINE bool joined_source::uses_index(const index_use& use) const {
  const std::lock_guard lock(joined_->mutex);
  std::shared_ptr<joined_data>& data = joined_->data[use.tolerates_damage];
  if (data) return true;
  std::vector<std::shared_ptr<shard_data>> sets;
  for (const shards_source& set : sets_) {
    const auto fail = [&](const std::string& reason) {
      throw setup_error(
          "join() needs an index of each set, but set " + std::to_string(sets.size() + 1) + " has none: " + reason,
          "Decompress the shards to plain tars, and do not set .index = mr::index::off");
    };
    try {
      if (!set.uses_index(use)) fail(set.why_streamed().empty() ? ".index is off" : set.why_streamed());
    } catch (const compressed_shard& e) {
      fail(e.message());
    }
    sets.push_back(set.data(use.tolerates_damage));
  }
  data = std::make_shared<joined_data>(std::move(sets), options_, use.notices);
  return true;
}

MILLRACE_INLINE owner<planned_run> joined_source::plan(const indexed_run_options& o) const {
  const std::lock_guard lock(joined_->mutex);
  return make_owner<planned>(joined_->data[o.tolerates_damage], o);
}

#ifdef MILLRACE_COMPILED
template class indexed_source<joined_data, exact_order>;
template class indexed_run<joined_data>;
template class reorder_buffer<indexed_source<joined_data, exact_order>>;
template class read_stage_base<indexed_source<joined_data, exact_order>>;
template class shard_read_stage<indexed_source<joined_data, exact_order>>;
#endif

}}}   // namespace millrace::detail
