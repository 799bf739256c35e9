// A list of plain shards whose samples can be read in any order: names, indexes and open files.
//
//   mr::detail::shard_data data(names, {.reader = {.fields = {"jpg", "cls"}}});
//   data.counts();                                              // number of samples of each shard
//   std::size_t good = data.read(wanted, records, failure);     // records[i] is wanted[i] for i < good
//   data.fingerprint();                                         // digest of names, sizes and members: for resuming
//
// Missing indexes are made and kept (index_build.hpp). The constructor reads only the heads of indexes. The rest is
// read with a shard's first sample; an index found damaged then is made again. Neighbors in a shard are read together
// (indexed_reader.hpp). Checksums are learned at the first read and checked at all later ones. At most 128 files stay
// open between reads.
// Small samples are read in whole blocks of neighbors (block_cache.hpp), on two conditions. expect() has said how far
// apart neighbors are in the order, and the allowed memory holds them until their turn.
// Indexes that cannot be kept (a full disk, a read-only folder) are reported once; the run goes on without them.
// Errors at the start name the shard: those of build_indexes(), and setup_error for a compressed shard. A damaged shard
// gives the data_error of shard_reader; with `strict`, so does one without an end marker.
// Errors later: those of indexed_reader, and data_error for a shard that was replaced since the start.
// Threads: any number may call read() at the same time.
#pragma once

#include <millrace/base/text.hpp>
#include <millrace/io/file/byte_source.hpp>
#include <millrace/io/index/block_cache.hpp>
#include <millrace/io/index/index_build.hpp>
#include <millrace/io/index/indexed_reader.hpp>
#include <millrace/item/sample.hpp>

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Options of shard_data.
struct shard_data_options {
  indexed_reader_options reader{};
  index_file_options files{};
  int progress_file = -1;          ///< as in index_build_options; also gets the report of indexes not kept
  bool strict = false;             ///< makes a shard without an end marker an error
};

/// The order in which samples will be requested.
struct expected_order {
  std::uint64_t window = 0;           ///< how far a shuffle moves a sample, in samples of all lanes read here
  std::uint64_t lanes = 1;            ///< lanes that are read at the same time
  std::size_t max_held_bytes = 0;    ///< limit for samples read before their turn
};

/// The shards of one data set, read by their indexes.
class shard_data {
 public:
  using item = record;

  /// Loads the heads of all indexes. Throws the errors described at the top of the file.
  explicit shard_data(std::vector<std::string> names, shard_data_options options = {})
      : names_(std::move(names)),
        options_(std::move(options)),
        shards_(names_.size()),
        idle_(names_.size()) {
    fingerprint_ = names_.size();
    auto found = build_indexes(
        names_, {.files = options_.files, .heads_only = true, .progress_file = options_.progress_file});
    if (const std::uint64_t lost = found.counts.not_kept; lost > 0)
      tell_not_kept(std::to_string(lost) + " of " + std::to_string(names_.size()) +
                        " indexes cannot be kept and will be made again at the next start",
                    found.why_not_kept);
    touched_ = std::move(found.touched);
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
  }

  shard_data(const shard_data&) = delete;
  shard_data& operator=(const shard_data&) = delete;
  /// Writes the learned checksums to the index files.
  ~shard_data() {
    for (std::size_t i = 0; i < names_.size(); ++i) try {
        const auto& index = shards_[i].index;
        if (index && index->known_checksums() > shards_[i].known_checksums)
          keep_index(index_path(names_[i], options_.files), *index);
      } catch (const error& e) {
        tell_not_kept("checksums that were learned cannot be kept and will be learned again", e.what());
      }
  }

  /// Counts the shards without an end marker.
  void report(event_counts& counts) const noexcept {
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (shards_[i].head.without_end_marker) report_missing_end_marker(counts, names_[i]);
  }

  /// Returns the number of samples of each shard.
  const std::vector<std::uint64_t>& counts() const noexcept { return counts_; }
  /// Returns the path of a shard.
  const std::string& name(std::size_t shard) const noexcept { return names_[shard]; }
  /// Returns the shard, the key and the offset of a sample.
  error_location location_of(const located_sample& s) const {
    const indexed_sample found = index(static_cast<std::size_t>(s.shard)).sample(static_cast<std::uint32_t>(s.index));
    return {.shard = names_[s.shard], .key = std::string(found.key), .offset_bytes = found.offset_bytes};
  }
  /// Returns the size of all shards together, headers included.
  std::uint64_t size_bytes() const noexcept { return bytes_; }
  /// Returns a digest of names, sizes and members. Folders, times and payloads are not in it: notice() reports changed
  /// times, and reading checks payloads.
  std::uint64_t fingerprint() const noexcept { return fingerprint_; }

  /// Returns a line to show at the start; empty if all is well.
  std::string notice() const {
    if (touched_.empty()) return {};
    return "the times of " + std::to_string(touched_.size()) + " of " + std::to_string(names_.size()) +
           " shards were changed: got others, expected those of their indexes (" + printable(names_[touched_.front()]) +
           (touched_.size() > 1 ? ", ..." : "") +
           "). Check that no sample was changed; known checksums hold, so that reading such a sample is an error.";
  }

  /// Returns the meter of sample reads without a meter of their own. Reads of indexes are not in it.
  read_meter& reads() const noexcept { return reads_; }

  /// Decides whether to read small samples in blocks. Call it before the first read(). Returns the bytes that may be
  /// held in blocks; 0 if each sample is read when its turn comes.
  std::size_t expect(const expected_order& order) {
    std::uint64_t samples = 0;
    for (const std::uint64_t count : counts_) samples += count;
    if (order.window <= 1 || samples == 0 || bytes_ / samples > largest_small_bytes) return 0;
    // A block is held from the first possible turn of its samples until the last one was taken. A lane may begin and
    // end inside a block.
    const std::uint64_t window = std::min(order.window, samples);
    // The factor 2 covers two things: a pool block is up to a quarter larger than its content, and threads overtake
    // each other.
    const std::uint64_t held = 2 * (window * (bytes_ / samples) + 3 * order.lanes * block_bytes);
    if (held > order.max_held_bytes) return 0;
    block_cache_.emplace(detail::block_cache::options{.limit_bytes = static_cast<std::size_t>(held)});
    return static_cast<std::size_t>(held);
  }

  /// Reads the samples `wanted` into `records`. Returns how many at the front are good; `failure` is the error of the
  /// next one.
  std::size_t read(std::span<const located_sample> wanted, std::span<record> records, std::exception_ptr& failure) {
    return read(wanted, {.records = records, .failure = failure, .reads = reads_});
  }
  /// The destination of a read: the records, the error and the meter.
  struct buffer {
    std::span<record> records;
    std::exception_ptr& failure;
    read_meter& reads;   ///< meter of these reads
  };
  /// Reads as above, with a meter of its own.
  std::size_t read(std::span<const located_sample> wanted, const buffer& to) {
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
    for (std::size_t first = 0, end = 0; first < all.size(); first = end) {
      while (end < all.size() && all[end].shard() == all[first].shard()) ++end;
      const auto of_shard = std::span<const wish>(all).subspan(first, end - first);
      if (!begins && block_samples(all[first].shard()) > 1) read_by_blocks(asked, of_shard);
      else read_now(asked, of_shard);
    }
    return asked.good;
  }

 private:
  static constexpr std::size_t max_open = 128;

  /// Writes one line, once. It throws no error, because a run works without kept indexes.
  void tell_not_kept(const std::string& what, std::string_view why) {
    if (options_.progress_file < 0 || std::exchange(told_not_kept_, true)) return;
    const std::string_view who = "millrace: ";
    if (why.starts_with(who)) why.remove_prefix(who.size());
    const std::string line = std::string(who) + what + ": " + std::string(why) + "\n";
    // A failure to write the line is ignored.
    [[maybe_unused]] const auto written = posix_files::write(options_.progress_file, line.data(), line.size());
  }

  struct open_shard {
    open_shard(const shard_data& of, std::size_t shard, block_pool& pool, read_meter& reads)
        : file(of.names_[shard], reads), reader(file, of.index(shard), pool, of.options_.reader) {}
    metered_file file;
    indexed_reader reader;
  };

  static constexpr std::size_t block_bytes = std::size_t{256} << 10;
  static constexpr std::size_t largest_small_bytes = std::size_t{16} << 10;   // bytes of a sample, headers included

  struct wish {
    std::uint64_t sample = 0;   // the shard, then the number in the low 32 bits
    std::size_t position = 0;   // index in the caller's list

    std::size_t shard() const noexcept { return static_cast<std::size_t>(sample >> 32); }
    std::uint32_t number() const noexcept { return static_cast<std::uint32_t>(sample); }
  };
  struct request {
    std::span<record> records;
    std::size_t good;
    std::exception_ptr& failure;
    read_meter& reads;
  };

  /// Returns the samples in a block of that shard; 0 if it is not read in blocks.
  std::uint32_t block_samples(std::size_t shard) const noexcept {
    const std::uint64_t samples = std::max<std::uint64_t>(1, counts_[shard]);
    const std::uint64_t sample_bytes = shards_[shard].head.shard.size_bytes / samples;
    if (!block_cache_ || sample_bytes > largest_small_bytes) return 0;
    return static_cast<std::uint32_t>(block_bytes / std::max<std::uint64_t>(1, sample_bytes));
  }

  void read_by_blocks(request& asked, std::span<const wish> wishes) {
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

  /// Reads a whole block. Records that cannot be read are left empty.
  void read_block(const request& asked, const block_name& block, std::vector<record>& records) {
    const auto shard = static_cast<std::size_t>(block.shard);
    const std::uint64_t first = std::uint64_t{block.number} * block_samples(shard);
    const std::uint64_t count = std::min<std::uint64_t>(block_samples(shard), counts_[shard] - first);
    std::vector<std::uint32_t> numbers(static_cast<std::size_t>(count));
    std::iota(numbers.begin(), numbers.end(), static_cast<std::uint32_t>(first));
    records.resize(numbers.size());
    try {
      auto opened = take(shard, asked.reads);
      static_cast<void>(opened->reader.read(numbers, records));
      give_back(shard, std::move(opened));
    } catch (const error&) {
      // An error of the whole shard. read_now() meets it again for the samples that are wanted.
    }
  }

  void read_now(request& asked, std::span<const wish> wishes) {
    const std::size_t shard = wishes.front().shard();
    std::vector<std::uint32_t> numbers(wishes.size());
    std::vector<record> found(wishes.size());
    // Reads in the order of the caller's list, so that the first failure is the one to report.
    std::vector<wish> in_order(wishes.begin(), wishes.end());
    std::sort(in_order.begin(), in_order.end(), [](const wish& a, const wish& b) { return a.position < b.position; });
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = in_order[i].number();
    std::size_t read = 0;
    std::exception_ptr wrong;
    try {
      auto opened = take(shard, asked.reads);
      read = opened->reader.read(numbers, found);
      if (read < numbers.size()) wrong = opened->reader.failure();
      give_back(shard, std::move(opened));
    } catch (...) {
      wrong = std::current_exception();
    }
    for (std::size_t i = 0; i < read; ++i) asked.records[in_order[i].position] = std::move(found[i]);
    if (read < numbers.size() && in_order[read].position < asked.good) {
      asked.good = in_order[read].position;
      asked.failure = wrong;
    }
  }

  struct known_shard {
    index_summary head{};
    std::shared_ptr<shard_index> index{};
    std::uint64_t known_checksums = 0;   // number of checksums in the index file
    std::once_flag loaded{};
  };

  /// Throws the error of a shard that cannot be used. A shard that is not whole has its index from the start.
  void check(std::size_t shard) {
    if (options_.strict && shards_[shard].head.without_end_marker) {
      file_source file(names_[shard]);
      indexed_reader(file, index(shard), pool_, options_.reader).throw_missing_end_marker();
    }
    if (!shards_[shard].index) return;
    const auto state = shards_[shard].index->state();
    if (state == shard_index::shard_state::compressed)
      throw setup_error("the shard " + printable(names_[shard]) + " is compressed: it cannot be read sample by sample",
                        "Unpack it to plain tar, or use shards()");
    if (state != shard_index::shard_state::damaged) return;
    file_source file(names_[shard]);
    indexed_reader(file, *shards_[shard].index, pool_, options_.reader).throw_damage();
  }

  shard_index& index(std::size_t shard) const {
    known_shard& s = shards_[shard];
    std::call_once(s.loaded, [&] {
      if (s.index) return;
      auto found = index_of(names_[shard], s.head, {.files = options_.files});
      s.known_checksums = found->known_checksums();
      s.index = std::move(found);
    });
    return *s.index;
  }

  std::unique_ptr<open_shard> take(std::size_t shard, read_meter& reads) {
    {
      const std::lock_guard lock(mutex_);
      if (idle_[shard]) {
        --open_;
        idle_[shard]->file.watch_in(reads);
        return std::move(idle_[shard]);
      }
    }
    return std::make_unique<open_shard>(*this, shard, pool_, reads);
  }

  /// Keeps one open file for each shard; closes another shard's file if too many are open.
  void give_back(std::size_t shard, std::unique_ptr<open_shard> opened) {
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

  const std::vector<std::string> names_;
  const shard_data_options options_;
  block_pool pool_;
  mutable read_meter reads_;
  mutable std::vector<known_shard> shards_;   // an index is loaded at its first use
  std::vector<std::uint64_t> counts_;   // samples of each shard
  std::uint64_t bytes_ = 0, fingerprint_ = 0;
  std::vector<std::size_t> touched_;    // shards whose time differs from that of their index
  std::optional<detail::block_cache> block_cache_;
  std::atomic<bool> begun_{false};
  std::mutex mutex_;
  std::vector<std::unique_ptr<open_shard>> idle_;
  std::size_t open_ = 0, oldest_ = 0;
  bool told_not_kept_ = false;   // used only by the constructor and the destructor
};

}}}  // namespace millrace::detail
