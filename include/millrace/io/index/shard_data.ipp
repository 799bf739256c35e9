// Defines what shard_data.hpp declares.
#pragma once

#include <millrace/io/index/shard_data.hpp>

#include <millrace/base/text.hpp>
#include <millrace/io/file/at_once.hpp>

#include <numeric>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Fills in the folder that a storage has for indexes.
MILLRACE_INLINE shard_data_options with_index_folder(shard_data_options o) {
  if (!o.files.keeps()) o.files.cache_folder = o.files.storage->index_folder();
  return o;
}

MILLRACE_INLINE shard_data::shard_data(std::vector<std::string> names, shard_data_options options)
    : names_(std::move(names)),
      options_(with_index_folder(std::move(options))),
      shards_(names_.size()),
      idle_(names_.size()) {
  fingerprint_ = names_.size();
  auto found = find_shard_heads(
      names_, {.build = {.files = options_.files, .heads_only = true, .progress_file = options_.progress_file,
                         .older_of_damaged = options_.damaged_shards_at_most > 0, .entries = options_.entries},
               .set_index = options_.set_index});
  if (const std::uint64_t lost = found.counts.not_kept; lost > 0)
    tell_not_kept(std::to_string(lost) + " of " + std::to_string(names_.size()) +
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
    const std::uint64_t named = digest_bytes(detail::bytes_of(name), shards_[i].head.fingerprint);
    fingerprint_ = combine_keys(fingerprint_, combine_keys(named, shards_[i].head.shard.size_bytes));
  }
  stored_samples_ = std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
  if (options_.choice.given()) choose(std::exchange(options_.choice, {}));
}

MILLRACE_INLINE void shard_data::choose(const sample_choice& choice) {
  if (!options_.files.storage.is_local())
    at_once(names_.size(), stored_at_once, [this](std::size_t shard) { static_cast<void>(index(shard)); });
  choice_search search(choice);
  for (std::size_t i = 0; i < names_.size(); ++i) {
    chosen_.push_back(search.choose(index(i), names_[i]));
    counts_[i] = chosen_.back().size();
  }
  choice_ = search.checksum();
  keys_not_found_ = search.missing();
  const std::uint64_t positions = std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
  choice_text_ = std::to_string(positions) + " of " + std::to_string(stored_samples_) + " samples chosen";
  if (positions == 0 && stored_samples_ > 0)
    throw setup_error("no sample is chosen: .only, .without, .where or .repeats leave out all " +
                          std::to_string(stored_samples_) + (keys_not_found_.empty() ? "" : "; " + keys_not_found_),
                      "Compare the lists with the keys that examples/inspect shows");
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
    tell_not_kept("checksums that were learned cannot be kept and will be learned again", e.what());
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

MILLRACE_INLINE std::string shard_data::notice() const {
  std::string all = keys_not_found_;
  const auto add = [&all](const std::string& more) { all += (all.empty() ? "" : "\nmillrace: ") + more; };
  if (damaged_shards_ > 0)
    add(std::to_string(damaged_shards_) + " of " + std::to_string(names_.size()) + " shards are damaged: " +
        damaged_at_start_ + (damaged_shards_ > 1 ? ", ..." : ""));
  if (!touched_.empty())
    add("the times of " + std::to_string(touched_.size()) + " of " + std::to_string(names_.size()) +
        " shards were changed: got others, expected those of their indexes (" + printable(names_[touched_.front()]) +
        (touched_.size() > 1 ? ", ..." : "") +
        "). Check that no sample was changed; known checksums hold, so that reading such a sample is an error.");
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
  if (order.window <= 1 || samples == 0 || bytes_ / samples > largest_small_bytes) return of_entries;
  // A block is held from the first possible turn of its samples until the last one was taken. A lane may begin and
  // end inside a block.
  const std::uint64_t window = std::min(order.window, samples);
  // The factor 2 covers two things: a pool block is up to a quarter larger than its content, and threads overtake
  // each other.
  const std::uint64_t held = 2 * (window * (bytes_ / samples) + 3 * order.lanes * block_bytes);
  if (held > order.max_held_bytes) return of_entries;
  block_cache_.emplace(detail::block_cache::options{.limit_bytes = static_cast<std::size_t>(held)});
  return static_cast<std::size_t>(held) + of_entries;
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
  std::sort(all.begin(), all.end(), [](const wish& a, const wish& b) { return a.sample < b.sample; });
  // A call begins at the shard of its first wanted sample. Threads then begin at different shards, and do not wait
  // for the same block.
  const auto middle = std::find_if(all.begin(), all.end(), [&](const wish& w) {
    return w.shard() == wanted.front().shard;
  });
  std::rotate(all.begin(), middle, all.end());
  if (!options_.files.storage.is_local()) {
    open_together(asked, all);
    announce(asked, all, !begins);
  }
  for (std::size_t first = 0, end = 0; first < all.size(); first = end) {
    while (end < all.size() && all[end].shard() == all[first].shard()) ++end;
    const auto of_shard = std::span<const wish>(all).subspan(first, end - first);
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
    } catch (const error&) {   // reading meets it again
    }
  });
}

MILLRACE_INLINE void shard_data::announce(request& asked, std::span<const wish> wishes, bool in_blocks) {
  std::vector<std::uint32_t> numbers;
  for (std::size_t first = 0, end = 0; first < wishes.size(); first = end) {
    const std::size_t shard = wishes[first].shard();
    while (end < wishes.size() && wishes[end].shard() == shard) ++end;
    const std::uint32_t length = in_blocks ? block_samples(shard) : 0;
    numbers.clear();
    for (std::size_t i = first; i < end; ++i) {
      const std::uint32_t block = wishes[i].number() / std::max(length, 1U);
      if (length <= 1) numbers.push_back(stored_number(shard, wishes[i].number()));
      else if ((i == first || wishes[i - 1].number() / length != block) && !block_cache_->has({shard, block}))
        for (std::uint64_t n = std::uint64_t{block} * length; n < counts_[shard] && n / length == block; ++n)
          numbers.push_back(stored_number(shard, static_cast<std::uint32_t>(n)));
    }
    if (!numbers.empty()) try {
        auto opened = take(shard, asked);
        opened->reader.announce(numbers);
        asked.ready.push_back(std::move(opened));
      } catch (const error&) {   // reading meets it again
      }
  }
}

MILLRACE_INLINE void shard_data::tell_not_kept(const std::string& what, std::string_view why) {
  if (!std::exchange(told_not_kept_, true)) tell_index_trouble(options_.progress_file, what, why);
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

MILLRACE_INLINE void shard_data::open_shard::watch_in(read_meter& reads) noexcept {
  file.watch_in(reads);
  if (entries) entries->watch_in(reads);
}

MILLRACE_INLINE std::uint32_t shard_data::block_samples(std::size_t shard) const noexcept {
  const std::uint64_t samples = std::max<std::uint64_t>(1, counts_[shard]);
  const std::uint64_t sample_bytes = shards_[shard].head.shard.size_bytes / samples;
  if (!block_cache_ || sample_bytes > largest_small_bytes) return 0;
  return static_cast<std::uint32_t>(block_bytes / std::max<std::uint64_t>(1, sample_bytes));
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
  if (!missing.empty()) read_now(asked, missing);   // finds the error of each of them
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
  try {
    auto opened = take(shard, asked);
    static_cast<void>(opened->reader.read(numbers, records));
    if (opened->entries) entries_.count(opened->reader.counters(), opened->told);
    give_back(shard, std::move(opened), asked);
  } catch (const error&) {
    // An error of the whole shard. read_now() meets it again for the samples that are wanted.
  }
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
  if (state == shard_index::shard_state::compressed)
    throw setup_error("the shard " + printable(names_[shard]) + " is compressed: it cannot be read sample by sample",
                      "Unpack it to plain tar, or use shards()");
  if ((state != shard_index::shard_state::damaged && !shards_[shard].damaged) || allow_damage(shard)) return;
  if (options_.damaged_shards_at_most > 0)
    throw data_error("too many shards are damaged: got " + std::to_string(damaged_shards_) + ", expected at most " +
                         std::to_string(options_.damaged_shards_at_most) + "; " + damaged_at_start_,
                     "Copy the shards again, or raise indexed_shards_options::damaged_shards_at_most",
                     {.stage = "index", .shard = names_[shard]});
  const auto file = open_file(options_.files.storage, names_[shard]);
  indexed_reader(*file, *shards_[shard].index, pool_, options_.reader).throw_damage();
}

MILLRACE_INLINE bool shard_data::allow_damage(std::size_t shard) {
  if (++damaged_shards_ > options_.damaged_shards_at_most) return false;
  const bool older = shards_[shard].damaged;
  shards_[shard].damaged = true;
  if (damaged_shards_ == 1)
    damaged_at_start_ = printable(names_[shard]) + " has " + (older ? "all its " : "only the first ") +
                        std::to_string(shards_[shard].index->samples()) + " samples in the order" +
                        (older ? ", and those that cannot be read are damaged"
                               : "; an older index would know the rest");
  return true;
}

MILLRACE_INLINE std::unique_ptr<shard_data::open_shard> shard_data::take(std::size_t shard, read_meter& reads) {
  {
    const std::lock_guard lock(mutex_);
    if (idle_[shard]) {
      --open_;
      idle_[shard]->watch_in(reads);
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

MILLRACE_INLINE void shard_data::give_back(std::size_t shard, std::unique_ptr<open_shard> opened, request& asked) {
  if (options_.files.storage.is_local()) return give_back(shard, std::move(opened));
  asked.ready.push_back(std::move(opened));
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
