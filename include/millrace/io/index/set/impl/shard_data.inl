// Definitions for shard_data.hpp.
#pragma once

#include <millrace/io/index/set/shard_data.hpp>

#include <millrace/base/clock.hpp>
#include <millrace/base/digest.hpp>
#include <millrace/base/radix_sort.hpp>
#include <millrace/base/text.hpp>

#include <numeric>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE shard_data::shard_data(name_list names, shard_data_options options, notice_outlet* startup_notices)
    : names_(std::move(names)),
      options_(std::move(options)),
      notices_(options_.notice),
      damaged_(options_.damaged_shards_at_most),
      is_local_(options_.files.storage.is_local()),
      shards_(names_.size()) {
  if (!options_.files.can_store()) options_.files.cache_folder = options_.files.storage->index_folder();
  const std::uint64_t started_ns = steady_now_ns();
  fingerprint_ = names_.size();
  notice_outlet& notices = startup_notices ? *startup_notices : notices_;
  auto heads = find_shard_heads(names_, {.build = {.files = options_.files,
                                                   .heads_only = true,
                                                   .notices = &notices,
                                                   .older_of_damaged = options_.damaged_shards_at_most > 0,
                                                   .entries = options_.entries,
                                                   .plain_only = true},
                                         .set_index = options_.set_index});
  if (const std::uint64_t failed = heads.counts.not_stored; failed > 0)
    report_not_stored(notices,
                      std::to_string(failed) + " of " + std::to_string(names_.size()) +
                          " indexes cannot be stored and will be built again at the next start",
                      heads.store_failure);
  touched_ = std::move(heads.touched);
  for (const std::size_t shard : heads.damaged) shards_[shard].set_damaged();
  counts_.reserve(names_.size());
  for (std::size_t i = 0; i < names_.size(); ++i) {
    shards_[i].head = heads.heads[i];
    if (heads.indexes[i]) shards_[i].set_index(std::move(heads.indexes[i]));
    check(i);
    counts_.push_back(shards_[i].head.samples);
    bytes_ += shards_[i].head.shard.size_bytes;
    const std::string_view name = names_.view(i).substr(names_.view(i).rfind('/') + 1);
    const std::uint64_t named = digest_bytes(bytes_of(name), shards_[i].head.fingerprint);
    fingerprint_ = combine_keys(fingerprint_, combine_keys(named, shards_[i].head.shard.size_bytes));
  }
  stored_samples_ = std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
  index_requests_ = heads.requests;
  start_ns_ = steady_now_ns() - started_ns;
  if (options_.choice.is_set()) choose(std::exchange(options_.choice, {}), notices);
}

MILLRACE_RARE void shard_data::choose(const sample_choice& choice, notice_outlet& notices) {
  load_indexes(notices);
  choice_search search(choice);
  for (std::size_t i = 0; i < names_.size(); ++i) {
    selection_.push_back(search.choose(index(i), names_[i]));
    counts_[i] = selection_.back().size();
  }
  choice_ = search.checksum();
  missing_keys_ = search.missing();
  const std::uint64_t positions = std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
  choice_text_ = search.text(positions, stored_samples_);
  if (positions == 0 && stored_samples_ > 0)
    throw setup_error("no sample is chosen: .only, .without, .where or .repeats exclude all " +
                          std::to_string(stored_samples_) + " samples" +
                          (missing_keys_.empty() ? "" : "; " + missing_keys_),
                      search.advice());
}

MILLRACE_INLINE std::uint64_t shard_data::id_of(const located_sample& s, std::uint64_t first_shard) const noexcept {
  if (selection_.empty()) return sample_id(first_shard + s.shard, s.index);
  return selection_[s.shard].id_of(first_shard + s.shard, static_cast<std::uint32_t>(s.index));
}

MILLRACE_INLINE std::uint64_t shard_data::size_bytes() const noexcept {
  if (selection_.empty() || stored_samples_ == 0) return bytes_;
  const std::uint64_t positions = std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
  return static_cast<std::uint64_t>(static_cast<double>(bytes_) * static_cast<double>(positions) /
                                    static_cast<double>(stored_samples_));
}

MILLRACE_RARE shard_data::~shard_data() {
  if (shared_) shared_->files.remove_all(this);
  std::optional<std::string> cleaned;
  for (std::size_t i = 0; i < names_.size(); ++i) try {
      store_learned(i, cleaned);
    } catch (...) {
      // No memory to report the failure.
    }
}

MILLRACE_RARE void shard_data::store_learned(std::size_t shard, std::optional<std::string>& cleaned) {
  try {
    shard_index* const index = shards_[shard].index();
    if (!index || !options_.files.can_store() || shards_[shard].is_damaged() || index->entries().in_storage) return;
    if (!shards_[shard].has_learned()) return;
    const std::string path = index_path(names_[shard], options_.files);
    std::string folder = path.substr(0, path.rfind('/') + 1);   // without a slash, npos + 1 is 0
    if (std::exchange(cleaned, folder) != folder) remove_abandoned_indexes(path);
    store_index(path, *index);
  } catch (const std::exception& e) {
    report_not_stored(notices_, "checksums cannot be stored in the index; later runs compute them again", e.what());
  }
}

MILLRACE_RARE error_location shard_data::location_of(const located_sample& s) const {
  const auto shard = static_cast<std::size_t>(s.shard);
  const indexed_sample sample = index(shard).sample(stored_number(shard, static_cast<std::uint32_t>(s.index)));
  return {.shard = names_[s.shard], .key = std::string(sample.key), .offset_bytes = sample.offset_bytes};
}

MILLRACE_RARE std::string shard_data::start_text() const {
  constexpr std::size_t many_shards = 10'000;
  // Bytes for the count and the order of a shard in exact_order and its cursor.
  constexpr std::uint64_t bytes_of_order = 44;
  if (names_.size() < many_shards) return {};
  const std::uint64_t bytes = names_.bytes() / names_.size() + sizeof(indexed_shard) + sizeof counts_[0] +
                              bytes_of_order;
  return std::to_string(names_.size()) + " shards, found in " + seconds_text(start_ns_) +
         (is_local_
              ? ""
              : " with " + std::to_string(index_requests_) + " index request" + (index_requests_ == 1 ? "" : "s")) +
         "; " + std::to_string(bytes) + " bytes of memory for each, and more for its index after its first use";
}

MILLRACE_RARE std::vector<notice> shard_data::notices() const {
  std::vector<notice> all = damaged_.notices(names_.size());
  if (!missing_keys_.empty()) all.push_back({.severity = notice_severity::warning, .text = missing_keys_});
  if (!touched_.empty())
    all.push_back({.severity = notice_severity::warning,
                   .text = "the modification times of " + std::to_string(touched_.size()) + " of " +
                           std::to_string(names_.size()) + " shards differ from those in their indexes (" +
                           printable(names_[touched_.front()]) + (touched_.size() > 1 ? ", ..." : "") +
                           "). Check that "
                           "no sample was edited; checksums are checked, so reading an edited sample is an error"});
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

MILLRACE_RARE std::size_t shard_data::expect(const expected_order& order) {
  const bool stored = std::any_of(shards_.begin(), shards_.end(), [](const indexed_shard& s) {
    return s.head.entries_in_storage && (s.head.entry_bytes > 0 || s.head.of_set_index);
  });
  const std::size_t of_entries = stored ? entries_.limit({.lanes = order.lanes, .max_held_bytes = order.max_held_bytes})
                                        : 0;
  std::uint64_t samples = 0;
  for (const std::uint64_t count : counts_) samples += count;
  const block_size size = block_size::choose(
      order, {.samples = samples, .sample_bytes = bytes_ / std::max<std::uint64_t>(samples, 1), .is_local = is_local_});
  if (size.held_bytes == 0) return of_entries;
  block_bytes_ = size.bytes;
  block_cache_.emplace(block_cache::options{.limit_bytes = static_cast<std::size_t>(size.held_bytes)});
  return static_cast<std::size_t>(size.held_bytes) + of_entries;
}

MILLRACE_INLINE std::size_t shard_data::read(std::span<const located_sample> samples, const buffer& to) {
  std::vector<target> all(samples.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = {samples[i].shard << 32 | samples[i].index, i};
  radix_sort(all, [](const target& w) { return w.sample; });
  read_request r{.records = to.records, .good = samples.size(), .failure = to.failure, .reads = to.reads};
  read(r, all);
  return r.good;
}

MILLRACE_INLINE void shard_data::read(read_request& r, std::span<target> all) {
  if (all.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    if (const auto& now = shared_by(lock); r.shared != now) r.shared = now;
  }
  // The trainer waits for the first samples. Therefore the first call does not read their neighbors.
  const bool is_first = !begun_.load(std::memory_order_relaxed) && !begun_.exchange(true);
  if (all.front().shard() != all.back().shard()) {
    // A call begins at the shard of its first sample, so that threads begin at different shards.
    const auto first = std::min_element(all.begin(), all.end(),
                                        [](const target& a, const target& b) { return a.position < b.position; });
    const auto middle = std::find_if(all.begin(), all.end(),
                                     [shard = first->shard()](const target& w) { return w.shard() == shard; });
    std::rotate(all.begin(), middle, all.end());
  }
  if (!is_local_) {
    r.abandoned = {};   // of another set
    open_together(r, all);
    announce(r, all, !is_first);
    for (auto& reservation : std::exchange(r.reserved, {})) {
      const cached_block_name name = reservation.name();
      block_cache_->fill(std::move(reservation), [&](std::vector<record>& records) { read_block(r, name, records); });
    }
  }
  for (std::size_t first = 0, end = 0; first < all.size(); first = end) {
    while (end < all.size() && all[end].shard() == all[first].shard()) ++end;
    const auto of_shard = std::span<const target>(all).subspan(first, end - first);
    if (fail_abandoned(r, of_shard)) continue;
    if (!is_first && block_samples(all[first].shard()) > 1) read_by_blocks(r, of_shard);
    else read_now(r, of_shard);
  }
  while (!r.ready.empty()) keep(r.ready.extract(0), r);
}

MILLRACE_RARE void shard_data::open_together(read_request& r, std::span<const target> targets) {
  std::vector<std::size_t> unloaded;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const std::size_t shard = targets[i].shard();
    if ((i == 0 || targets[i - 1].shard() != shard) && !shards_[shard].is_loaded()) unloaded.push_back(shard);
  }
  if (unloaded.size() < 2) return;
  std::mutex mutex;
  run_concurrently(unloaded.size(), max_stored_requests, [&](std::size_t i) {
    try {
      auto opened = acquire({unloaded[i], *r.shared, r.reads});
      const std::lock_guard lock(mutex);
      r.ready.push_back(std::move(opened));
    } catch (const error&) {   // if the storage did not give up, the read reports the error
      const std::lock_guard lock(mutex);
      record_abandoned(r, unloaded[i]);
    }
  });
}

MILLRACE_RARE void shard_data::announce(read_request& r, std::span<const target> targets, bool in_blocks) {
  std::vector<std::uint32_t> numbers;
  for (std::size_t first = 0, end = 0; first < targets.size(); first = end) {
    const std::size_t shard = targets[first].shard();
    while (end < targets.size() && targets[end].shard() == shard) ++end;
    if (r.abandoned.of(shard)) continue;
    const std::uint32_t length = in_blocks ? block_samples(shard) : 0;
    numbers.clear();
    for (std::size_t i = first; i < end; ++i) {
      const std::uint32_t block = targets[i].number() / std::max(length, 1U);
      if (length <= 1) numbers.push_back(stored_number(shard, targets[i].number()));
      else if (i == first || targets[i - 1].number() / length != block) {
        auto reservation = block_cache_->reserve({shard, block});
        if (!reservation) continue;
        r.reserved.push_back(std::move(*reservation));
        for (std::uint64_t n = std::uint64_t{block} * length; n < counts_[shard] && n / length == block; ++n)
          numbers.push_back(stored_number(shard, static_cast<std::uint32_t>(n)));
      }
    }
    if (!numbers.empty()) try {
        auto opened = acquire(shard, r);
        opened->reader.announce(numbers);
        r.ready.push_back(std::move(opened));
      } catch (const error&) {   // if the storage did not give up, the read reports the error
        record_abandoned(r, shard);
      }
  }
}

MILLRACE_RARE void shard_data::report_not_stored(notice_outlet& to, const std::string& problem,
                                                 std::string_view reason) {
  if (!std::exchange(reported_not_stored_, true)) report_index_trouble(to, problem, reason);
}

MILLRACE_RARE shard_data::open_shard::open_shard(const shard_data& data, const std::string& name, const shard_use& use)
    : idle_file(use.shard),
      file(data.options_.files.storage, name, use.reads),
      entries(data.entries_.open(
          {.files = data.options_.files, .shard = name, .number = shard, .counts = use.shared.entries},
          data.index(shard), use.reads)),
      reader(file, data.index(shard), use.shared.pool, data.options_.reader, entries.get()) {
  if (!data.is_local_) data.shards_[shard].check_same(name, static_cast<const stored_file&>(file.file()).identity());
}

MILLRACE_INLINE std::uint32_t shard_data::block_samples(std::size_t shard) const noexcept {
  if (block_bytes_ == 0) return 0;
  const std::uint64_t samples = std::max<std::uint64_t>(1, counts_[shard]);
  const std::uint64_t sample_bytes = shards_[shard].head.shard.size_bytes / samples;
  if (sample_bytes > block_size::largest_sample(is_local_)) return 0;
  return static_cast<std::uint32_t>(block_bytes_ / std::max<std::uint64_t>(1, sample_bytes));
}

MILLRACE_INLINE void shard_data::read_by_blocks(read_request& r, std::span<const target> targets) {
  const std::size_t shard = targets.front().shard();
  const std::uint32_t length = block_samples(shard);
  std::vector<std::uint32_t> offsets;
  std::vector<record*> places;
  std::vector<target> missing;
  for (std::size_t first = 0, end = 0; first < targets.size(); first = end) {
    const std::uint32_t block = targets[first].number() / length;
    offsets.clear();
    places.clear();
    for (end = first; end < targets.size() && targets[end].number() / length == block; ++end) {
      offsets.push_back(targets[end].number() % length);
      places.push_back(&r.records[targets[end].position]);
    }
    block_cache_->take({.shard = shard, .number = block}, offsets, places,
                       [&](std::vector<record>& records) { read_block(r, {shard, block}, records); });
    for (; first < end; ++first)
      if (r.records[targets[first].position].empty()) missing.push_back(targets[first]);
  }
  // Reads again, which gets the error of each sample.
  if (!missing.empty() && !fail_abandoned(r, missing)) read_now(r, missing);
}

MILLRACE_INLINE void shard_data::read_block(read_request& r, const cached_block_name& block,
                                            std::vector<record>& records) {
  const auto shard = static_cast<std::size_t>(block.shard);
  const std::uint64_t first = std::uint64_t{block.number} * block_samples(shard);
  const std::uint64_t count = std::min<std::uint64_t>(block_samples(shard), counts_[shard] - first);
  std::vector<std::uint32_t> numbers(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = stored_number(shard, static_cast<std::uint32_t>(first + i));
  records.resize(numbers.size());
  if (r.abandoned.of(shard)) return;
  try {
    auto opened = acquire(shard, r);
    static_cast<void>(opened->reader.read(numbers, records));
    if (opened->entries) r.shared->entries.count(opened->reader.counters(), opened->reported);
    release(std::move(opened), r);
  } catch (const error&) {
    // The error concerns the complete shard. read_now() gets it again for the requested samples.
    record_abandoned(r, shard);
  }
}

MILLRACE_RARE bool shard_data::fail_abandoned(read_request& r, std::span<const target> targets) {
  const std::exception_ptr error = r.abandoned.of(targets.front().shard());
  if (!error) return false;
  for (const target& w : targets)
    if (w.position < r.good) {
      r.good = w.position;
      r.failure = error;
    }
  return true;
}

MILLRACE_INLINE void shard_data::read_now(read_request& r, std::span<const target> targets) {
  const std::size_t shard = targets.front().shard();
  auto& [in_order, numbers, records] = r.one_shard;
  // Reads in the order of the caller's list, so that the first failure in this order is reported.
  in_order.assign(targets.begin(), targets.end());
  std::sort(in_order.begin(), in_order.end(), [](const target& a, const target& b) { return a.position < b.position; });
  numbers.clear();
  for (const target& w : in_order) numbers.push_back(stored_number(shard, w.number()));
  records.clear();
  records.resize(numbers.size());
  std::size_t read = 0;
  std::exception_ptr failure;
  try {
    auto opened = acquire(shard, r);
    read = opened->reader.read(numbers, records);
    if (opened->entries) r.shared->entries.count(opened->reader.counters(), opened->reported);
    if (read < numbers.size()) failure = opened->reader.take_failure();
    release(std::move(opened), r);
  } catch (...) {
    failure = std::current_exception();
  }
  for (std::size_t i = 0; i < records.size(); ++i)
    if (!records[i].empty()) r.records[in_order[i].position] = std::move(records[i]);
  if (read < numbers.size() && in_order[read].position < r.good) {
    r.good = in_order[read].position;
    r.failure = failure;
  }
}

MILLRACE_RARE void shard_data::check(std::size_t shard) {
  if (options_.strict && shards_[shard].head.without_end_marker) {
    const auto file = open_file(options_.files.storage, names_[shard]);
    block_pool pool;
    indexed_reader(*file, index(shard), pool, options_.reader).throw_missing_end_marker();
  }
  shard_index* const own = shards_[shard].index();
  if (!own) return;
  const bool older = shards_[shard].is_damaged();
  if (own->state() != shard_index::shard_state::damaged && !older) return;
  shards_[shard].set_damaged();
  if (damaged_.allow({.shard = names_[shard], .samples = own->samples(), .is_complete = older})) return;
  damaged_.throw_if_allowed(names_[shard]);
  const auto file = open_file(options_.files.storage, names_[shard]);
  block_pool pool;
  indexed_reader(*file, *own, pool, options_.reader).throw_damage();
}

MILLRACE_INLINE owner<shard_data::open_shard> shard_data::acquire(std::size_t shard, read_request& r) {
  for (std::size_t i = 0; i < r.ready.size(); ++i)
    if (r.ready[i].shard == shard) return r.ready.extract(i);
  return acquire({shard, *r.shared, r.reads});
}

}}}   // namespace millrace::detail
