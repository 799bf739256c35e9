// A list of uncompressed shards whose samples can be read in any order. Owns the names, indexes and open files of the
// shards.
//
//   mr::detail::shard_data data(names, {.reader = {.fields = {"jpg", "cls"}}});
//   data.counts(); // number of samples in each shard
//   std::size_t good = data.read(samples, records, failure);     // records[i] is samples[i] for i < good
//   data.fingerprint();   // digest of names, sizes and members, for resume points
//
// Indexes: missing and damaged indexes are built and stored (index_build.hpp). The constructor reads only the heads of
// the indexes (their first parts, of fixed size). The rest of an index is read together with the first sample of its
// shard. If an index cannot be stored, for example on a full disk, the run continues.
//
// Reading: samples that are neighbors in a shard are read together (indexed_reader.hpp). The first read of a payload
// records its checksum, and all later reads check it. Up to 128 files stay open between reads.
// expect() decides whether samples are read in blocks of neighbors (block_cache.hpp). On a local disk, only small
// samples are read in blocks.
// Entry points (positions where a decoder may start) are read with their field, if the index has them
// (entry_files.hpp).
//
// Damage: a shard that is already damaged when the constructor runs is an error, unless damaged_shards_at_most allows
// it. If an allowed shard has an index from before the damage, the set contains all samples of the shard, and reading
// an unreadable sample is an error. Without such an index, the set contains only the samples before the damage.
// notices() reports damaged shards.
// Errors: the errors of build_indexes(), shard_reader and indexed_reader; data_error for a shard that was replaced
// after the constructor returned.
// Threads: any number may call read() concurrently.
#pragma once

#include <millrace/io/file/metered_file.hpp>
#include <millrace/io/file/file_list.hpp>
#include <millrace/io/index/choice/sample_choice.hpp>
#include <millrace/io/index/entries/entry_files.hpp>
#include <millrace/io/index/read/block_cache.hpp>
#include <millrace/io/index/read/block_size.hpp>
#include <millrace/io/index/read/indexed_reader.hpp>
#include <millrace/io/index/set/damaged_shards.hpp>
#include <millrace/io/index/set/indexed_shard.hpp>
#include <millrace/io/index/set/shared_reads.hpp>
#include <millrace/io/index/set/shard_heads.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/item/sample.hpp>

#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The shards that failed after the storage's last retry. The current read requests no more samples of these shards.
class abandoned_shards {
 public:
  void record(std::size_t shard, std::exception_ptr error) { all_.emplace_back(shard, std::move(error)); }
  /// Returns the error of a shard, or null if the shard is not in the list.
  std::exception_ptr of(std::size_t shard) const noexcept {
    for (const auto& [number, error] : all_)
      if (number == shard) return error;
    return nullptr;
  }

 private:
  std::vector<std::pair<std::size_t, std::exception_ptr>> all_;
};

/// Options of shard_data.
struct shard_data_options {
  indexed_reader_options reader{};
  index_file_options files{};
  std::string set_index{};                  ///< name of the set index; empty for the default
  notice_function notice{};                 ///< receives progress, stalls, and failures to store indexes
  bool strict = false;                      ///< treats a shard without an end marker as an error
  sample_choice choice{};                   ///< selects samples; used only in the constructor
  std::size_t damaged_shards_at_most = 0;   ///< maximum number of damaged shards that the constructor accepts
  entry_maker entries{};                    ///< builds missing entry points; may be empty
};

/// The shards of one data set, read by means of their indexes.
class shard_data {
  struct open_shard;

 public:
  using item = record;

  /// Loads the heads of all indexes. The comment at the top of this header lists the errors. `startup_notices` receives
  /// the notices of the constructor. If it is null, shard_data_options::notice receives them.
  explicit shard_data(name_list names, shard_data_options options = {}, notice_outlet* startup_notices = nullptr);

  shard_data(const shard_data&) = delete;
  shard_data& operator=(const shard_data&) = delete;
  /// Writes the learned checksums to the index files.
  ~shard_data();

  /// Adds the number of shards without an end marker to `counts`.
  void report(event_counts& counts) const noexcept {
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (shards_[i].head.without_end_marker) report_missing_end_marker(counts, names_.view(i));
  }
  /// Adds to `counts` the events of reads since the last call (shared_reads::report()).
  void report_reads(event_counts& counts) const { shared()->report(counts); }

  /// Returns the location of another part of a sample whose members are not adjacent in its shard.
  std::optional<other_piece> other_piece_of(const error_location& sample) const {
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (names_.view(i) == sample.shard) return find_other_piece_of_sample(index(i), sample.key, sample.offset_bytes);
    return std::nullopt;
  }

  /// Returns the number of samples in each shard. With a choice, returns the number of chosen samples, including
  /// repeats.
  const std::vector<std::uint64_t>& counts() const noexcept { return counts_; }
  /// Returns the identity of a sample. The identity does not depend on the choice. Each repeat has its own identity.
  std::uint64_t id_of(const located_sample& s, std::uint64_t first_shard = 0) const noexcept;
  /// Returns whether the options of sample_choice select the samples of this set.
  bool chooses() const noexcept { return !selection_.empty(); }
  /// Returns a checksum of the chosen samples, or 0 if each sample is used once.
  std::uint64_t choice() const noexcept { return choice_; }
  /// Returns a phrase such as "12811 of 1281167 samples chosen", or "" without a choice.
  const std::string& choice_text() const noexcept { return choice_text_; }
  /// Loads the indexes of all shards of a storage, concurrently. Does nothing for local shards.
  void load_indexes(notice_outlet& notices) const {
    if (!is_local_)
      run_concurrently(
          {.step = "reads indexes", .names = names_, .max_threads = max_stored_requests, .notices = &notices},
          [this](auto i) { index(i); });
  }
  /// Returns the key, the offset and the members of a sample. The result is valid as long as this object exists.
  indexed_sample sample_of(const located_sample& s) const {
    const auto shard = static_cast<std::size_t>(s.shard);
    return index(shard).sample(stored_number(shard, static_cast<std::uint32_t>(s.index)));
  }
  /// Returns the names of the selected fields in all shards. Loads the indexes.
  std::set<std::string_view> fields() const {
    const selected_fields selected(options_.reader.fields);
    std::set<std::string_view> all;
    for (std::size_t i = 0; i < names_.size(); ++i)
      for (std::uint32_t field = 0; field < index(i).fields(); ++field)
        if (selected.contains(index(i).field_name(field))) all.insert(index(i).field_name(field));
    return all;
  }
  /// Returns whether the shards are local files.
  bool is_local() const noexcept { return is_local_; }
  /// Returns a phrase about the time, requests and memory of the constructor. Returns "" for fewer than 10,000 shards.
  std::string start_text() const;
  /// Returns the path of a shard. The result is valid as long as this object exists.
  std::string_view name(std::size_t shard) const noexcept { return names_.view(shard); }
  /// Returns the shard, the key and the offset of a sample.
  error_location location_of(const located_sample& s) const;
  /// Returns the size of all shards including headers. With a choice, multiplies this size by the ratio of chosen
  /// samples to all samples.
  std::uint64_t size_bytes() const noexcept;
  /// Returns a digest of names, sizes and members. The digest excludes folders, times and payloads.
  std::uint64_t fingerprint() const noexcept { return fingerprint_; }

  /// Returns the notices to show at the start, or nothing if the set has no problems.
  std::vector<notice> notices() const;

  /// Returns the default meter of sample reads. This meter does not count reads of indexes.
  read_meter& reads() const noexcept { return reads_; }

  /// Closes the files that this set keeps open. Later reads use the memory and the files of `with`.
  void share(std::shared_ptr<shared_reads> with) {
    const std::lock_guard lock(mutex_);
    if (shared_) shared_->files.remove_all(this);
    if (shared_.use_count() == 1) with->returning.add(shared_->returning);   // no other set uses shared_
    shared_ = std::move(with);
  }

  /// Decides whether read() reads blocks of neighboring samples. Call expect() before the first read(). Returns the
  /// maximum bytes of cached blocks and entry points.
  std::size_t expect(const expected_order& order);

  /// Announces to the storage that these shards will be opened in this order. Later calls announce more shards.
  void expect_shards(std::span<const std::size_t> shards) const;

  /// Reads `samples` into `records`. Returns the number of samples before the first error. Stores this error in
  /// `failure`. Records after the first error are valid or empty.
  std::size_t read(std::span<const located_sample> samples, std::span<record> records, std::exception_ptr& failure) {
    return read(samples, {.records = records, .failure = failure, .reads = reads_});
  }
  /// Returns whether read() failed because a storage exhausted its retries. Such an error is final.
  bool is_given_up(const std::exception_ptr& failure) const noexcept {
    return !is_local_ && is_error_of_storage(failure);
  }
  /// The destination of a read.
  struct buffer {
    std::span<record> records;
    std::exception_ptr& failure;
    read_meter& reads;   ///< meter that records these reads
  };
  /// Works like read() above, but with the meter in `to`.
  std::size_t read(std::span<const located_sample> samples, const buffer& to);

  /// A requested sample.
  struct target {
    std::uint64_t sample = 0;   ///< the shard in the upper 32 bits, the number of the sample in the lower 32 bits
    std::size_t position = 0;   ///< index in read_request::records

    std::size_t shard() const noexcept { return static_cast<std::size_t>(sample >> 32); }
    std::uint32_t number() const noexcept { return static_cast<std::uint32_t>(sample); }
  };
  /// Samples to read from one or several sets.
  struct read_request {
    std::span<record> records;
    std::size_t good;              ///< number of records without an error, counted from the front
    std::exception_ptr& failure;   ///< error of the record after the good records
    read_meter& reads;
    std::shared_ptr<shared_reads> shared{};
    owner_list<open_shard> ready{};   ///< files whose reads were announced to the storage
    std::vector<block_cache::reservation> reserved{};
    abandoned_shards abandoned{};   ///< shards that a storage could not read
    /// Buffers of the functions that read samples of one shard. The samples are in the order of target::position.
    struct {
      std::vector<target> targets{};
      std::vector<std::uint32_t> numbers{};
      std::vector<record> records{};
    } one_shard{};
  };
  /// Reads `targets`, which must be in ascending order of target::sample. Several sets may read into the records of one
  /// request.
  void read(read_request& request, std::span<target> targets);

  /// Prefetches the memory that read() needs first.
  void prefetch() const noexcept {
    for (std::size_t line = 0; line < 3; ++line)
      __builtin_prefetch(reinterpret_cast<const char*>(&is_local_) + line * 64);
  }
  /// Prefetches the memory that read() needs next for a shard. Call it some time after prefetch().
  void prefetch_shard(std::size_t shard) const noexcept { shards_[shard].prefetch(); }
  /// Prefetches the state of the shard. Call it some time after prefetch_shard().
  void prefetch_state(std::size_t shard) const noexcept { shards_[shard].prefetch_state(); }

 private:
  /// Stores the learned checksums of a shard. A notice reports the first failure. `cleaned` is the folder from which
  /// abandoned temporary files were removed last. The function updates it.
  void store_learned(std::size_t shard, std::optional<std::string>& cleaned);
  void report_not_stored(notice_outlet& to, const std::string& problem, std::string_view reason);

  struct shard_use {
    std::size_t shard;
    shared_reads& shared;
    read_meter& reads;
  };
  struct open_shard final : idle_file {
    open_shard(const shard_data& data, const shard_use& use) : open_shard(data, data.names_[use.shard], use) {}
    /// Prepares the next read.
    void set_use(const shard_use& use) noexcept {
      file.set_meter(use.reads);
      if (entries) entries->set_meter(use.reads);
      reader.set_pool(use.shared.pool);
    }
    metered_file file;
    owner<entry_file> entries;   // null if the index has no entry points
    indexed_reader reader;
    reported_entries reported{};

   private:
    open_shard(const shard_data& data, const std::string& name, const shard_use& use);
  };

  /// Returns the number of samples in a block of a shard, or 0 if the shard is not read in blocks.
  std::uint32_t block_samples(std::size_t shard) const noexcept;
  void read_by_blocks(read_request& request, std::span<const target> targets);
  /// Announces the reads of all shards to a storage at once, so that the storage can fetch them concurrently.
  void announce(read_request& request, std::span<const target> targets, bool in_blocks);
  /// Concurrently opens the shards whose indexes are not loaded, and loads these indexes. Does nothing for a single
  /// such shard.
  void open_together(read_request& request, std::span<const target> targets);

  /// Reads a complete block. Leaves the records of unreadable samples empty.
  void read_block(read_request& request, const cached_block_name& block, std::vector<record>& records);
  void read_now(read_request& request, std::span<const target> targets);
  /// Records the current exception if a storage exhausted its retries for a shard.
  MILLRACE_RARE void record_abandoned(read_request& request, std::size_t shard) const {
    if (is_given_up(std::current_exception())) request.abandoned.record(shard, std::current_exception());
  }
  /// If the shard of `targets` is in request.abandoned, uses the error of the shard for these samples and returns true.
  /// Otherwise returns false.
  static bool fail_abandoned(read_request& request, std::span<const target> targets);

  /// Chooses samples of all shards. Loads the indexes for this.
  void choose(const sample_choice& choice, notice_outlet& notices);
  /// Returns the number of a sample in its shard.
  std::uint32_t stored_number(std::size_t shard, std::uint32_t number) const noexcept {
    return selection_.empty() ? number : selection_[shard].number(number);
  }

  /// Throws the error for a shard that cannot be used. A damaged shard already has a loaded index. Therefore a shard
  /// without a loaded index is not damaged.
  void check(std::size_t shard);
  shard_index& index(std::size_t shard) const {
    indexed_shard& own = shards_[shard];
    shard_index& index = own.is_loaded() ? *own.index() : own.load(names_[shard], options_.files);
    if (const std::uint64_t samples = own.exchange_returning_keys(); samples > 0) [[unlikely]]
      shared()->returning.add(samples, names_, shard);
    return index;
  }
  owner<open_shard> acquire(const shard_use& use) {
    auto idle_one = use.shared.files.reuse(this, use.shard);
    if (!idle_one) return make_owner<open_shard>(*this, use);
    owner<open_shard> opened(static_cast<open_shard*>(idle_one.release()));
    opened->set_use(use);
    return opened;
  }
  owner<open_shard> acquire(std::size_t shard, read_request& request);
  /// Keeps a local file open for later reads. Keeps a file of a storage at least until the end of the request.
  MILLRACE_RARE void release(owner<open_shard> opened, read_request& request) {
    if (is_local_) keep(std::move(opened), request);
    else request.ready.push_back(std::move(opened));
  }
  /// Keeps a shard's file open for later reads.
  void keep(owner<open_shard> opened, const read_request& request) {
    owner<idle_file> closed;              // destroyed after the lock is released
    const std::lock_guard lock(mutex_);   // share() must not run during files.keep()
    if (shared_ == request.shared) closed = request.shared->files.keep(this, std::move(opened));
  }

  std::shared_ptr<shared_reads> shared() const {
    const std::lock_guard lock(mutex_);
    return shared_by(lock);
  }
  std::shared_ptr<shared_reads>& shared_by(const std::lock_guard<std::mutex>&) const {
    if (!shared_) shared_ = make_shared_object<shared_reads>(128);
    return shared_;
  }

  const name_list names_;
  shard_data_options options_;
  notice_outlet notices_;
  mutable read_meter reads_;
  std::vector<std::uint64_t> counts_;   // number of samples in each shard
  std::uint64_t bytes_ = 0, stored_samples_ = 0, fingerprint_ = 0, choice_ = 0;
  std::string choice_text_, missing_keys_;
  damaged_shards damaged_;
  std::vector<std::size_t> touched_;   // shards whose modification time differs from the time in their index
  std::optional<block_cache> block_cache_;
  mutable entry_files entries_;
  std::uint64_t start_ns_ = 0, index_requests_ = 0;
  bool reported_not_stored_ = false;   // used only by the constructor and the destructor

  // Each read() needs the members below. prefetch() loads them.
  const bool is_local_;
  std::atomic<bool> begun_{false};
  mutable std::mutex mutex_;                       // guards shared_
  mutable std::shared_ptr<shared_reads> shared_;   // null before its first use
  mutable std::vector<indexed_shard> shards_;      // the rest of an index is loaded at its first use
  std::vector<chosen_samples> selection_;          // chosen samples of each shard; empty if all samples are used once
  std::uint64_t block_bytes_ = 0;                  // set by expect(); 0: each sample is read separately
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/index/set/impl/shard_data.inl>
#endif
