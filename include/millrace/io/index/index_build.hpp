// Loads the indexes of many shards, and makes and keeps the missing ones.
//
//   auto all = mr::detail::build_indexes(shards, {.files = {.cache_folder = "/scratch/indexes"}, .progress_file = 2});
//   all.indexes[k]->samples();                       // samples of shards[k]; 0 for a compressed one: see state()
//   all.counts.built;
//   // after heads_only, where indexes[k] may be null
//   auto one = mr::detail::index_of(shards[k], all.heads[k], options);
//
// With heads_only, only the head of an index is read, if the head says that the index is good and the shard whole.
// 1,281 indexes then take 10 ms instead of 70 ms. index_of() reads the rest later. It makes the index again if its file
// turns out to be damaged.
// If a shard has another time than its index but the same size, the index is made again with the known checksums.
// Reading a sample that was changed in place is then an error.
// Several shards are handled in parallel. Several processes may do this for the same shards, and share the kept files.
// An index that cannot be kept (a read-only folder) is still used, and counted. A damaged shard is not an error here:
// its index records the damage. A shard without an end marker is whole, and its index records that.
// Errors: io_error for the first shard in the list that cannot be read, or that changes during the scan. data_error for
// a shard without an end marker if a file beside it counts more samples. setup_error for a shard beyond the limits of
// an index (shard_index.hpp).
// Threads: starts its own and waits for them.
// Progress is written only to progress_file, and only after the first second. A terminal gets at most four lines a
// second, anything else one line every ten seconds.
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

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Options of build_indexes().
struct index_build_options {
  index_file_options files{};
  bool keep = true;              ///< writes new indexes to files; else they stay in memory
  bool heads_only = false;       ///< reads only the heads of good indexes of whole shards
  unsigned threads = 0;          ///< default 0: one for each usable core, at most eight
  int progress_file = -1;        ///< a file descriptor, such as 2 for stderr; default -1: none
};

/// How many shards had which outcome; the last three count other things.
struct index_build_counts {
  std::uint64_t loaded = 0;              ///< shards with a good index
  std::uint64_t built = 0;               ///< shards without an index
  std::uint64_t rebuilt_stale = 0;       ///< shards whose index was made for another size, time or version
  std::uint64_t rebuilt_damaged = 0;     ///< shards whose index was damaged
  std::uint64_t not_kept = 0;            ///< shards whose index could not be written
  std::uint64_t compressed = 0;          ///< compressed shards, which can have no index
  std::uint64_t damaged_shards = 0;
  std::uint64_t samples = 0;             ///< samples of all shards
  std::uint64_t scanned_bytes = 0;       ///< total size of the scanned shards
  std::uint64_t scanned_members = 0;     ///< members of the scanned shards
};

/// The result of build_indexes().
struct shard_indexes {
  std::vector<std::shared_ptr<shard_index>> indexes{};   ///< one for each shard, in list order
  std::vector<index_summary> heads{};                    ///< one for each shard; with heads_only its index may be null
  index_build_counts counts{};
  std::vector<std::size_t> touched{};                    ///< shards with the size of their index but another time
  std::string why_not_kept{};                            ///< the reason for the first index that was not kept
};

/// One run of build_indexes().
class index_builder {
 public:
  index_builder(std::span<const std::string> shards, const index_build_options& options)
      : shards_(shards), options_(options), terminal_(options.progress_file >= 0 && ::isatty(options.progress_file)) {
    result_.indexes.resize(shards.size());
    result_.heads.resize(shards.size());
  }

  shard_indexes run() {
    if (options_.keep && !options_.files.cache_folder.empty())
      posix_files::make_folder(options_.files.cache_folder.c_str());   // a failure shows when an index is written
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
        const index_summary head = summarize_index(kept_at, identity);
        if (head.state == index_file_state::good && head.shard_is_whole) return add_head(shard, head);
      }
      known = load_index(kept_at, identity);
    } catch (const io_error&) {   // an unreadable index is made again; keep_index() then reports the reason
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

  /// Overwrites the line on a terminal; elsewhere writes a new line every ten seconds.
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
    // A failure to show the progress is ignored.
    [[maybe_unused]] const auto written =
        posix_files::write(options_.progress_file, text, static_cast<std::size_t>(length));
    shown_ns_ = now_ns;
    shown_once_ = true;
  }

  std::span<const std::string> shards_;
  const index_build_options& options_;
  bool terminal_;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::size_t> failed_from_{~std::size_t{0}};   // no shard after this one is started
  std::mutex mutex_;                                        // guards all members below
  shard_indexes result_;
  std::exception_ptr failure_;
  std::size_t done_ = 0;
  const std::int64_t start_ns_ = read_clock_ns(CLOCK_MONOTONIC);
  std::int64_t shown_ns_ = start_ns_;
  bool shown_once_ = false;
};

/// Loads or makes the index of each shard. Throws the errors described at the top of the file.
inline shard_indexes build_indexes(std::span<const std::string> shards, const index_build_options& options = {}) {
  return detail::index_builder(shards, options).run();
}

/// Returns the index whose head was read before. Throws data_error if the shard has changed since then.
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

}}}  // namespace millrace::detail
