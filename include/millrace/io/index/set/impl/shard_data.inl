// Definitions for shard_data.hpp.
#pragma once

#include <millrace/io/index/set/shard_data.hpp>

#include <millrace/base/digest.hpp>
#include <millrace/base/radix_sort.hpp>
#include <millrace/base/text.hpp>
#include <millrace/io/file/at_once.hpp>

#include <numeric>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE shard_data::shard_data(std::vector<std::string> names, shard_data_options options,
                                       notice_outlet* at_start)
    : names_(std::move(names)),
      options_(std::move(options)), notices_(options_.notice), shards_(names_.size()),
      damaged_(options_.damaged_shards_at_most), idle_(names_.size()) {
  if (!options_.files.keeps()) options_.files.cache_folder = options_.files.storage->index_folder();
  fingerprint_ = names_.size();
  notice_outlet& notices = at_start ? *at_start : notices_;
  auto found = find_shard_heads(
      names_, {.build = {.files = options_.files, .heads_only = true, .notices = &notices,
                         .older_of_damaged = options_.damaged_shards_at_most > 0, .entries = options_.entries,
                         .plain_only = true},
               .set_index = options_.set_index});
  if (const std::uint64_t lost = found.counts.not_kept; lost > 0)
    tell_not_kept(notices, std::to_string(lost) + " of " + std::to_string(names_.size()) +
                      " indexes cannot be kept and will be made again at the next start",
                  found.why_not_kept);
  touched_ = std::move(found.touched);
  for (const std::size_t shard : found.damaged) shards_[shard].damaged = true;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    shards_[i].head = found.heads[i];
    shards_[i].index = std::move(found.indexes[i]);
    shards_[i].known_checksums = shards_[i].head.known_checksums;
    check(i);
    counts_.push_back(shards_[i].head.samples);
    bytes_ += shards_[i].head.shard.size_bytes;
    const std::string_view name = std::string_view(names_[i]).substr(names_[i].rfind('/') + 1);
    const std::uint64_t named = digest_bytes(bytes_of(name), shards_[i].head.fingerprint);
    fingerprint_ = combine_keys(fingerprint_, combine_keys(named, shards_[i].head.shard.size_bytes));
  }
  stored_samples_ = std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
  if (options_.choice.given()) choose(std::exchange(options_.choice, {}), notices);
}

MILLRACE_INLINE void shard_data::choose(const sample_choice& choice, notice_outlet& notices) {
  if (!options_.files.storage.is_local())
    at_once({.step = "reads indexes", .names = names_, .max_threads = stored_at_once, .notices = &notices},
            [this](auto i) { index(i); });
  choice_search search(choice);
  for (std::size_t i = 0; i < names_.size(); ++i) {
    chosen_.push_back(search.choose(index(i), names_[i]));
    counts_[i] = chosen_.back().size();
  }
  choice_ = search.checksum();
  keys_not_found_ = search.missing();
  const std::uint64_t positions = std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
  choice_text_ = search.text(positions, stored_samples_);
  if (positions == 0 && stored_samples_ > 0)
    throw setup_error("no sample is chosen: .only, .without, .where or .repeats leave out all " +
                          std::to_string(stored_samples_) + (keys_not_found_.empty() ? "" : "; " + keys_not_found_),
                      search.advice());
}

MILLRACE_INLINE std::uint64_t shard_data::id_of(const located_sample& s, std::uint64_t first_shard) const noexcept {
  if (chosen_.empty()) return sample_id(first_shard + s.shard, s.index);
  return chosen_[s.shard].id_of(first_shard + s.shard, static_cast<std::uint32_t>(s.index));
}

MILLRACE_INLINE std::uint64_t shard_data::size_bytes() const noexcept {
  if (chosen_.empty() || stored_samples_ == 0) return bytes_;
  const std::uint64_t positions = std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
  return static_cast<std::uint64_t>(static_cast<double>(bytes_) * static_cast<double>(positions) /
                                    static_cast<double>(stored_samples_));
}

MILLRACE_INLINE shard_data::~shard_data() {
  std::optional<std::string> cleaned;
  for (std::size_t i = 0; i < names_.size(); ++i) try {
      keep_learned(i, cleaned);
    } catch (...) {
      // There is no memory even to say that they cannot be kept.
    }
}

MILLRACE_INLINE void shard_data::keep_learned(std::size_t shard, std::optional<std::string>& cleaned) {
  try {
    const auto& index = shards_[shard].index;
    if (!index || !options_.files.keeps() || shards_[shard].damaged || index->entries().in_storage) return;
    if (index->known_checksums() <= shards_[shard].known_checksums) return;
    const std::string path = index_path(names_[shard], options_.files);
    std::string folder = path.substr(0, path.rfind('/') + 1);   // without a slash, npos + 1 is 0
    if (std::exchange(cleaned, folder) != folder) remove_abandoned_indexes(path);
    keep_index(path, *index);
  } catch (const std::exception& e) {
    tell_not_kept(notices_, "checksums that were learned cannot be kept and will be learned again", e.what());
  }
}

MILLRACE_INLINE void shard_data::report(event_counts& counts) const noexcept {
  for (std::size_t i = 0; i < names_.size(); ++i)
    if (shards_[i].head.without_end_marker) report_missing_end_marker(counts, names_[i]);
}

MILLRACE_INLINE error_location shard_data::location_of(const located_sample& s) const {
  const auto shard = static_cast<std::size_t>(s.shard);
  const indexed_sample found = index(shard).sample(stored_number(shard, static_cast<std::uint32_t>(s.index)));
  return {.shard = names_[s.shard], .key = std::string(found.key), .offset_bytes = found.offset_bytes};
}

MILLRACE_INLINE std::vector<notice> shard_data::notices() const {
  std::vector<notice> all = damaged_.notices(names_.size());
  if (!keys_not_found_.empty()) all.push_back({.severity = notice_severity::warning, .text = keys_not_found_});
  if (!touched_.empty())
    all.push_back({.severity = notice_severity::warning,
                   .text = "the times of " + std::to_string(touched_.size()) + " of " + std::to_string(names_.size()) +
                           " shards were changed: got others, expected those of their indexes (" +
                           printable(names_[touched_.front()]) + (touched_.size() > 1 ? ", ..." : "") + "). Check that "
                           "no sample was changed; known checksums hold, so reading a changed sample is an error."});
  return all;
}

MILLRACE_INLINE void shard_data::expect_shards(std::span<const std::size_t> shards) const {
  const storage& at = options_.files.storage;
  if (at.is_local()) return;
  std::vector<std::string> names;
  names.reserve(shards.size());
  for (const std::size_t shard : shards) names.push_back(names_[shard]);
  at->expect(names);
}

MILLRACE_INLINE std::size_t shard_data::expect(const expected_order& order) {
  const bool stored = std::any_of(shards_.begin(), shards_.end(), [](const known_shard& s) {
    return s.head.entries_in_storage && (s.head.entry_bytes > 0 || s.head.of_set_index);
  });
  const std::size_t of_entries =
      stored ? entries_.limit({.lanes = order.lanes, .max_held_bytes = order.max_held_bytes}) : 0;
  std::uint64_t samples = 0;
  for (const std::uint64_t count : counts_) samples += count;
  const block_size size = block_size::choose(order, {.samples = samples,
                                                     .sample_bytes = bytes_ / std::max<std::uint64_t>(samples, 1),
                                                     .is_local = options_.files.storage.is_local()});
  if (size.held_bytes == 0) return of_entries;
  block_bytes_ = size.bytes;
  block_cache_.emplace(block_cache::options{.limit_bytes = static_cast<std::size_t>(size.held_bytes)});
  return static_cast<std::size_t>(size.held_bytes) + of_entries;
}

MILLRACE_INLINE std::size_t shard_data::read(std::span<const located_sample> wanted, std::span<record> records,
                                             std::exception_ptr& failure) {
  return read(wanted, {.records = records, .failure = failure, .reads = reads_});
}

MILLRACE_INLINE std::size_t shard_data::read(std::span<const located_sample> wanted, const buffer& to) {
  request asked{.records = to.records, .good = wanted.size(), .failure = to.failure, .reads = to.reads};
  // The trainer waits for the first samples, so the first call does not read their neighbors too.
  const bool begins = !begun_.exchange(true);
  std::vector<wish> all(wanted.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = {wanted[i].shard << 32 | wanted[i].index, i};
  radix_sort(all, [](const wish& w) { return w.sample; });
  // A call begins at the shard of its first wanted sample. Threads then begin at different shards, and do not wait
  // for the same block.
  const auto middle = std::find_if(all.begin(), all.end(), [&](const wish& w) {
    return w.shard() == wanted.front().shard;
  });
  std::rotate(all.begin(), middle, all.end());
  if (!options_.files.storage.is_local()) {
    open_together(asked, all);
    announce(asked, all, !begins);
    for (auto& mine : std::exchange(asked.reserved, {})) {
      const block_name name = mine.name();
      block_cache_->fill(std::move(mine), [&](std::vector<record>& records) { read_block(asked, name, records); });
    }
  }
  for (std::size_t first = 0, end = 0; first < all.size(); first = end) {
    while (end < all.size() && all[end].shard() == all[first].shard()) ++end;
    const auto of_shard = std::span<const wish>(all).subspan(first, end - first);
    if (fail_given_up(asked, of_shard)) continue;
    if (!begins && block_samples(all[first].shard()) > 1) read_by_blocks(asked, of_shard);
    else read_now(asked, of_shard);
  }
  for (auto& opened : asked.ready) {
    const std::size_t shard = opened->shard;
    give_back(shard, std::move(opened));
  }
  return asked.good;
}

MILLRACE_INLINE void shard_data::open_together(request& asked, std::span<const wish> wishes) {
  std::vector<std::size_t> news;
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    const std::size_t shard = wishes[i].shard();
    if ((i == 0 || wishes[i - 1].shard() != shard) && !shards_[shard].is_loaded()) news.push_back(shard);
  }
  if (news.size() < 2) return;
  std::mutex mutex;
  at_once(news.size(), stored_at_once, [&](std::size_t i) {
    try {
      auto opened = take(news[i], asked.reads);
      const std::lock_guard lock(mutex);
      asked.ready.push_back(std::move(opened));
    } catch (const error&) {   // reading meets it again, unless the storage gave up
      const std::lock_guard lock(mutex);
      note_given_up(asked, news[i]);
    }
  });
}

MILLRACE_INLINE void shard_data::announce(request& asked, std::span<const wish> wishes, bool in_blocks) {
  std::vector<std::uint32_t> numbers;
  for (std::size_t first = 0, end = 0; first < wishes.size(); first = end) {
    const std::size_t shard = wishes[first].shard();
    while (end < wishes.size() && wishes[end].shard() == shard) ++end;
    if (asked.given_up.of(shard)) continue;
    const std::uint32_t length = in_blocks ? block_samples(shard) : 0;
    numbers.clear();
    for (std::size_t i = first; i < end; ++i) {
      const std::uint32_t block = wishes[i].number() / std::max(length, 1U);
      if (length <= 1) numbers.push_back(stored_number(shard, wishes[i].number()));
      else if (i == first || wishes[i - 1].number() / length != block) {
        auto mine = block_cache_->reserve({shard, block});
        if (!mine) continue;
        asked.reserved.push_back(std::move(*mine));
        for (std::uint64_t n = std::uint64_t{block} * length; n < counts_[shard] && n / length == block; ++n)
          numbers.push_back(stored_number(shard, static_cast<std::uint32_t>(n)));
      }
    }
    if (!numbers.empty()) try {
        auto opened = take(shard, asked);
        opened->reader.announce(numbers);
        asked.ready.push_back(std::move(opened));
      } catch (const error&) {   // reading meets it again, unless the storage gave up
        note_given_up(asked, shard);
      }
  }
}

MILLRACE_INLINE void shard_data::tell_not_kept(notice_outlet& to, const std::string& what, std::string_view why) {
  if (!std::exchange(told_not_kept_, true)) tell_index_trouble(to, what, why);
}

MILLRACE_INLINE shard_data::open_shard::open_shard(const shard_data& of, std::size_t shard_number, block_pool& pool,
                                                   read_meter& reads)
    : shard(shard_number),
      file(of.options_.files.storage, of.names_[shard], reads),
      entries(of.entries_.open({.files = of.options_.files, .shard = of.names_[shard], .number = shard},
                               of.index(shard), reads)),
      reader(file, of.index(shard), pool, of.options_.reader, entries.get()) {
  if (!of.options_.files.storage.is_local())
    of.shards_[shard].check_same(of.names_[shard], static_cast<const stored_file&>(file.file()).identity());
}

MILLRACE_INLINE std::uint32_t shard_data::block_samples(std::size_t shard) const noexcept {
  const std::uint64_t samples = std::max<std::uint64_t>(1, counts_[shard]);
  const std::uint64_t sample_bytes = shards_[shard].head.shard.size_bytes / samples;
  if (!block_cache_ || sample_bytes > block_size::largest_sample(options_.files.storage.is_local())) return 0;
  return static_cast<std::uint32_t>(block_bytes_ / std::max<std::uint64_t>(1, sample_bytes));
}

MILLRACE_INLINE void shard_data::read_by_blocks(request& asked, std::span<const wish> wishes) {
  const std::size_t shard = wishes.front().shard();
  const std::uint32_t length = block_samples(shard);
  std::vector<std::uint32_t> offsets;
  std::vector<record*> places;
  std::vector<wish> missing;
  for (std::size_t first = 0, end = 0; first < wishes.size(); first = end) {
    const std::uint32_t block = wishes[first].number() / length;
    offsets.clear();
    places.clear();
    for (end = first; end < wishes.size() && wishes[end].number() / length == block; ++end) {
      offsets.push_back(wishes[end].number() % length);
      places.push_back(&asked.records[wishes[end].position]);
    }
    block_cache_->take({.shard = shard, .number = block}, offsets, places,
                       [&](std::vector<record>& records) { read_block(asked, {shard, block}, records); });
    for (; first < end; ++first)
      if (asked.records[wishes[first].position].empty()) missing.push_back(wishes[first]);
  }
  if (!missing.empty() && !fail_given_up(asked, missing)) read_now(asked, missing);   // finds the error of each of them
}

MILLRACE_INLINE void shard_data::read_block(request& asked, const block_name& block,
                                            std::vector<record>& records) {
  const auto shard = static_cast<std::size_t>(block.shard);
  const std::uint64_t first = std::uint64_t{block.number} * block_samples(shard);
  const std::uint64_t count = std::min<std::uint64_t>(block_samples(shard), counts_[shard] - first);
  std::vector<std::uint32_t> numbers(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = stored_number(shard, static_cast<std::uint32_t>(first + i));
  records.resize(numbers.size());
  if (asked.given_up.of(shard)) return;
  try {
    auto opened = take(shard, asked);
    static_cast<void>(opened->reader.read(numbers, records));
    if (opened->entries) entries_.count(opened->reader.counters(), opened->told);
    give_back(shard, std::move(opened), asked);
  } catch (const error&) {
    // An error of the whole shard. read_now() meets it again for the samples that are wanted.
    note_given_up(asked, shard);
  }
}

MILLRACE_INLINE bool shard_data::fail_given_up(request& asked, std::span<const wish> wishes) {
  const std::exception_ptr why = asked.given_up.of(wishes.front().shard());
  if (!why) return false;
  for (const wish& w : wishes)
    if (w.position < asked.good) {
      asked.good = w.position;
      asked.failure = why;
    }
  return true;
}

MILLRACE_INLINE void shard_data::read_now(request& asked, std::span<const wish> wishes) {
  const std::size_t shard = wishes.front().shard();
  std::vector<std::uint32_t> numbers(wishes.size());
  std::vector<record> found(wishes.size());
  // Reads in the order of the caller's list, so that the first failure is the one to report.
  std::vector<wish> in_order(wishes.begin(), wishes.end());
  std::sort(in_order.begin(), in_order.end(), [](const wish& a, const wish& b) { return a.position < b.position; });
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = stored_number(shard, in_order[i].number());
  std::size_t read = 0;
  std::exception_ptr wrong;
  try {
    auto opened = take(shard, asked);
    read = opened->reader.read(numbers, found);
    if (opened->entries) entries_.count(opened->reader.counters(), opened->told);
    if (read < numbers.size()) wrong = opened->reader.take_failure();
    give_back(shard, std::move(opened), asked);
  } catch (...) {
    wrong = std::current_exception();
  }
  for (std::size_t i = 0; i < found.size(); ++i)
    if (!found[i].empty()) asked.records[in_order[i].position] = std::move(found[i]);
  if (read < numbers.size() && in_order[read].position < asked.good) {
    asked.good = in_order[read].position;
    asked.failure = wrong;
  }
}

MILLRACE_INLINE void shard_data::check(std::size_t shard) {
  if (options_.strict && shards_[shard].head.without_end_marker) {
    const auto file = open_file(options_.files.storage, names_[shard]);
    indexed_reader(*file, index(shard), pool_, options_.reader).throw_missing_end_marker();
  }
  if (!shards_[shard].index) return;
  const auto state = shards_[shard].index->state();
  const bool older = shards_[shard].damaged;
  if (state != shard_index::shard_state::damaged && !older) return;
  shards_[shard].damaged = true;
  if (damaged_.allow({.shard = names_[shard], .samples = shards_[shard].index->samples(), .knows_all = older})) return;
  damaged_.throw_if_allowed(names_[shard]);
  const auto file = open_file(options_.files.storage, names_[shard]);
  indexed_reader(*file, *shards_[shard].index, pool_, options_.reader).throw_damage();
}

MILLRACE_INLINE std::unique_ptr<shard_data::open_shard> shard_data::take(std::size_t shard, read_meter& reads) {
  {
    const std::lock_guard lock(mutex_);
    if (idle_[shard]) {
      --open_;
      idle_[shard]->set_meter(reads);
      return std::move(idle_[shard]);
    }
  }
  return std::make_unique<open_shard>(*this, shard, pool_, reads);
}

MILLRACE_INLINE std::unique_ptr<shard_data::open_shard> shard_data::take(std::size_t shard, request& asked) {
  const auto at = std::find_if(asked.ready.begin(), asked.ready.end(),
                               [shard](const auto& opened) { return opened->shard == shard; });
  if (at == asked.ready.end()) return take(shard, asked.reads);
  auto opened = std::move(*at);
  asked.ready.erase(at);
  return opened;
}

MILLRACE_INLINE void shard_data::give_back(std::size_t shard, std::unique_ptr<open_shard> opened) {
  const std::lock_guard lock(mutex_);
  if (idle_[shard]) return;
  if (open_ >= max_open) {
    while (!idle_[oldest_ % idle_.size()]) ++oldest_;
    idle_[oldest_ % idle_.size()].reset();
    --open_;
  }
  idle_[shard] = std::move(opened);
  ++open_;
}

}}}  // namespace millrace::detail
