// The indexes of many shards: those that are there are loaded, the others are made and kept.
//
//   auto all = mr::build_indexes(shards, {.files = {.cache_folder = "/scratch/indexes"}, .progress_file = 2});
//   all.indexes[k]->samples();                       // of shards[k]; 0 for a compressed one: see state()
//   all.counts.built;
//   auto one = mr::index_of(shards[k], all.heads[k], options);    // after heads_only, where indexes[k] may be null
//
// With heads_only, of an index that is good as far as its head says no more than that is read: 1,281 indexes take 10 ms
// instead of 70. index_of() reads the rest, and makes the index again if its file turns out to be damaged.
// An index that is of another time than its shard, and of the same size, is made again with the checksums that it has,
// so that a sample that was changed in place is an error when it is read.
// Several shards are looked at at a time; several processes may do so for the same shards, and share what they keep.
// An index that cannot be kept (a folder that is read-only) is used all the same, and counted. A shard that is damaged
// is no error here: its index says so. One that ends without an end marker is whole, and its index says that.
// Errors: io_error for the first shard in the list that cannot be read, or that changes meanwhile; data_error for one
// without an end marker of which a file beside it counts more samples than it has. Threads: makes its own, and waits
// for them. Progress is written to nowhere unless a file is named, and only of what takes longer than a second: at most
// four times a second to a terminal, every ten seconds to anything else.
#pragma once

#include <millrace/base/clock.hpp>
#include <millrace/base/machine.hpp>
#include <millrace/io/index/index_file.hpp>
#include <millrace/io/index/tar_index_scan.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <unistd.h>

namespace millrace { inline namespace MILLRACE_ABI {

struct index_build_options {
  index_file_options files{};
  bool keep = true;              ///< write what was made; else it lives in memory alone
  bool heads_only = false;       ///< of whole shards with a good index
  unsigned threads = 0;          ///< 0: one for each usable core, eight at most
  int progress_file = -1;        ///< a descriptor, such as that of stderr; -1: none
};

/// Of shards, unless it says otherwise.
struct index_build_counts {
  std::uint64_t loaded = 0;              ///< had a good index
  std::uint64_t built = 0;               ///< had none
  std::uint64_t rebuilt_stale = 0;       ///< had one of another state of the shard, or of another time
  std::uint64_t rebuilt_damaged = 0;     ///< had one that was damaged
  std::uint64_t not_kept = 0;            ///< have one in memory that could not be written
  std::uint64_t compressed = 0;          ///< can have none
  std::uint64_t damaged_shards = 0;
  std::uint64_t samples = 0;
  std::uint64_t scanned_bytes = 0;       ///< size of the shards that were scanned
  std::uint64_t scanned_members = 0;     ///< of the same: headers
};

/// What build_indexes() gives.
struct shard_indexes {
  std::vector<std::shared_ptr<shard_index>> indexes{};   ///< one for each shard, in the order of the list
  std::vector<index_summary> heads{};                    ///< of the same; with heads_only the index may be null
  index_build_counts counts{};
  std::vector<std::size_t> touched{};                    ///< shards of another time than their index, of the same size
  std::string why_not_kept{};                            ///< the first reason
};

namespace detail {

class index_builder {
 public:
  index_builder(std::span<const std::string> shards, const index_build_options& options)
      : shards_(shards), options_(options), terminal_(options.progress_file >= 0 && ::isatty(options.progress_file)) {
    result_.indexes.resize(shards.size());
    result_.heads.resize(shards.size());
  }

  shard_indexes run() {
    if (options_.keep && !options_.files.cache_folder.empty())
      posix_files::make_folder(options_.files.cache_folder.c_str());   // if it fails, so does writing into it
    std::size_t count = options_.threads > 0 ? options_.threads : std::min(usable_cores(), 8U);
    count = std::min(count, shards_.size());
    std::vector<std::thread> others;
    const auto join = [&others] {
      for (auto& other : others) other.join();
    };
    try {
      while (others.size() + 1 < count) others.emplace_back([this] { work(); });
    } catch (...) {
      failed_from_ = 0;
      join();
      throw;
    }
    work();
    join();
    if (failure_) std::rethrow_exception(failure_);
    if (shown_once_) show_progress(true);
    std::sort(result_.touched.begin(), result_.touched.end());
    return std::move(result_);
  }

 private:
  void work() noexcept {
    block_pool pool;
    for (;;) {
      const std::size_t shard = next_.fetch_add(1);
      if (shard >= shards_.size() || shard > failed_from_) return;
      try {
        look_at(shard, pool);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (failure_ && shard > failed_from_) continue;
        failed_from_ = shard;
        failure_ = std::current_exception();
      }
    }
  }

  void look_at(std::size_t shard, block_pool& pool) {
    const std::string& path = shards_[shard];
    const std::string kept_at = index_path(path, options_.files);
    const shard_identity identity = identify_shard(path);
    loaded_index known;
    try {
      if (options_.heads_only) {
        const index_summary head = summarise_index(kept_at, identity);
        if (head.state == index_file_state::good && head.shard_is_whole) return add_head(shard, head);
      }
      known = load_index(kept_at, identity);
    } catch (const io_error&) {   // one that cannot be read is made again, and then tells why it cannot be written
    }
    std::string why_not_kept;
    bool kept = true;
    if (known.state != index_file_state::good) {
      shard_index made = scan(path, identity, pool);
      if (known.state == index_file_state::touched) made.take_checksums_of(known.index);
      known.index = std::move(made);
      try {
        if (options_.keep) keep_index(kept_at, known.index);
      } catch (const io_error& trouble) {
        kept = false;
        why_not_kept = trouble.what();
      }
    }
    auto index = std::make_shared<shard_index>(std::move(known.index));
    const std::lock_guard lock(mutex_);
    if (!kept && result_.why_not_kept.empty()) result_.why_not_kept = why_not_kept;
    count(*index, known.state, kept);
    if (known.state == index_file_state::touched) result_.touched.push_back(shard);
    result_.heads[shard] = index_summary{
        .state = index_file_state::good, .samples = index->samples(), .members = index->members(),
        .known_checksums = static_cast<std::uint32_t>(index->known_checksums()), .fingerprint = index->fingerprint(),
        .shard_is_whole = index->state() == shard_index::shard_state::whole,
        .without_end_marker = index->facts().counters.missing_end_markers > 0, .shard = index->identity()};
    result_.indexes[shard] = std::move(index);
    ++done_;
    show_progress(false);
  }

  void add_head(std::size_t shard, const index_summary& head) {
    const std::lock_guard lock(mutex_);
    result_.heads[shard] = head;
    ++result_.counts.loaded;
    result_.counts.samples += head.samples;
    ++done_;
  }

  static shard_index scan(const std::string& path, const shard_identity& identity, block_pool& pool) {
    file_source source(path);
    shard_index index = scan_shard(source, pool);
    if (identify_shard(path) != identity)
      throw io_error("the shard was changed while its index was made",
                     "Wait until it is complete; write new shards under another name and rename them",
                     {.stage = "index", .shard = path});
    index.identify(identity);
    if (index.facts().counters.missing_end_markers > 0)
      if (const auto told = counted_beside(path); told.samples > index.samples())
        throw fewer_than_counted(told, index.samples(), {.stage = "index", .shard = path});
    return index;
  }

  void count(const shard_index& index, index_file_state before, bool kept) noexcept {
    index_build_counts& c = result_.counts;
    using enum index_file_state;
    if (index.state() == shard_index::shard_state::compressed) ++c.compressed;
    else ++(before == good ? c.loaded : before == stale || before == touched ? c.rebuilt_stale
            : before == damaged ? c.rebuilt_damaged : c.built);
    if (before != good) {
      c.scanned_bytes += index.identity().size_bytes;
      c.scanned_members += index.members();
    }
    c.not_kept += !kept;
    c.damaged_shards += index.state() == shard_index::shard_state::damaged;
    c.samples += index.samples();
  }

  /// A terminal's line is written over; elsewhere a line comes every ten seconds.
  void show_progress(bool last) {
    if (options_.progress_file < 0) return;
    const std::int64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
    const std::int64_t pause_ns = !shown_once_ ? 1'000'000'000 : terminal_ ? 250'000'000 : 10'000'000'000;
    if (!last && now_ns - shown_ns_ < pause_ns) return;
    const double seconds = static_cast<double>(now_ns - start_ns_) * 1e-9;
    char text[200];
    const int length = std::snprintf(
        text, sizeof text, "%sindexing: %zu of %zu shards, %llu samples; %.2f GB/s of shards, %.2f million headers/s%s",
        terminal_ ? "\r\x1b[K" : "", done_, shards_.size(), static_cast<unsigned long long>(result_.counts.samples),
        static_cast<double>(result_.counts.scanned_bytes) * 1e-9 / seconds,
        static_cast<double>(result_.counts.scanned_members) * 1e-6 / seconds, terminal_ && !last ? "" : "\n");
    // Progress that cannot be shown is no reason to stop.
    [[maybe_unused]] const auto written =
        posix_files::write(options_.progress_file, text, static_cast<std::size_t>(length));
    shown_ns_ = now_ns;
    shown_once_ = true;
  }

  std::span<const std::string> shards_;
  const index_build_options& options_;
  bool terminal_;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::size_t> failed_from_{~std::size_t{0}};   // no shard behind this one is begun
  std::mutex mutex_;                                        // of all below
  shard_indexes result_;
  std::exception_ptr failure_;
  std::size_t done_ = 0;
  const std::int64_t start_ns_ = read_clock_ns(CLOCK_MONOTONIC);
  std::int64_t shown_ns_ = start_ns_;
  bool shown_once_ = false;
};

}  // namespace detail

inline shard_indexes build_indexes(std::span<const std::string> shards, const index_build_options& options = {}) {
  return detail::index_builder(shards, options).run();
}

/// The index whose head was read before. data_error if the shard has changed since then.
inline std::shared_ptr<shard_index> index_of(const std::string& shard, const index_summary& head,
                                             index_build_options options = {}) {
  options.heads_only = false;
  options.threads = 1;
  auto found = build_indexes({&shard, 1}, options).indexes.front();
  if (found->identity() == head.shard && found->fingerprint() == head.fingerprint && found->samples() == head.samples)
    return found;
  throw data_error("the shard was changed since this program has started: it has other samples, another size or time",
                   "Write new shards under another name, and start again", {.stage = "index", .shard = shard});
}

}}  // namespace millrace
