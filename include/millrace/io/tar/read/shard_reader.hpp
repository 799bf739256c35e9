// Reads the samples of one shard in order. Forms the same samples as WebDataset.
//
//   mr::block_pool pool;
//   mr::shard_reader shard(std::make_unique<mr::file_source>("train-000.tar"), pool, {.fields = {"jpg;png", "cls"}});
//   while (auto record = shard.next()) use(*record);
//   shard.counters().samples;
//
// Consecutive members with the same key (member_name.hpp) form one sample. A key that occurs again later begins a new
// sample, and is counted. Field names are converted to lower case (A-Z only). The reader skips links, folders, devices,
// dot files, names without a dot, and all members of folders such as __metadata__. Skipped members are counted. A
// selected field that occurs twice in a sample is an error.
// Errors: data_error, or the source's io_error, with the shard, the offset, and the key of the last complete sample. A
// repeated field or an exceeded limit is the error of one sample: the next call returns the next sample. After any
// other error, every later call throws the same error.
// On damage, the reader first delivers every complete sample before the damage. A sample is complete if a header with
// another key follows. Only the name in this header must be intact. The open sample is the sample whose members the
// reader is reading. If the damage precedes the next key, the open sample is not delivered.
// A shard without an end marker is an error if options.strict is set, or if a sidecar file states more samples
// (declared_samples.hpp). Otherwise the shard counts as complete.
// Threads: one thread at a time. Lifetime: the pool must outlive the reader. Memory: each record has one block of
// memory from the pool. Payloads of 32 KiB or more are read directly into this block. Shorter payloads are copied to
// the block. Later records reuse the blocks of destroyed records.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/limits.hpp>
#include <millrace/io/file/byte_source.hpp>
#include <millrace/io/file/storage.hpp>
#include <millrace/io/tar/format/member_name.hpp>
#include <millrace/io/tar/format/required_fields.hpp>
#include <millrace/io/tar/format/tar_member.hpp>
#include <millrace/io/tar/read/returning_keys.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/item/record_builder.hpp>
#include <millrace/measure/values/event_counts.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of shard_reader.
struct shard_reader_options {
  /// The selected fields. Each entry is a name, or alternatives such as "jpg;png". By default all fields are selected.
  /// Fields that are not selected are not read into memory.
  std::vector<std::string> fields{};
  /// The fields that a sample must have. They need not be selected. A sample that lacks one of these fields is counted,
  /// but not delivered.
  required_fields having{};
  shard_limits limits{};   ///< limits for the content of a shard
  /// If true, a shard without an end marker (two blocks of 512 zeros) is an error. If false, the shard counts as
  /// complete, unless a sidecar file states more samples.
  bool strict = false;
};

/// Counts of a shard's content. A member is counted when its header is read.
struct shard_counters {
  std::uint64_t samples = 0;            ///< samples, including lacking_samples and samples with an error
  std::uint64_t payload_bytes = 0;      ///< bytes read into records
  std::uint64_t unwanted_fields = 0;    ///< fields that are not in options.fields
  std::uint64_t metadata_members = 0;   ///< members of folders such as __metadata__
  std::uint64_t dot_files = 0;
  std::uint64_t names_without_dot = 0;
  std::uint64_t not_regular = 0;           ///< links, folders, devices
  std::uint64_t unconverted_names = 0;     ///< names that libarchive could not convert to the locale's character set
  std::uint64_t missing_end_markers = 0;   ///< 1 if the shard was read to its end, and has no end marker
  std::uint64_t lacking_samples = 0;       ///< samples that lack a field of options.having; they are not delivered
  std::uint64_t returning_keys = 0;        ///< samples with the key of an earlier sample; see returning_keys.hpp
};

class shard_reader;

namespace detail {

class tar_reader;

/// Counts a shard without an end marker, and posts a notice about the first such shard of a run.
void report_missing_end_marker(event_counts& counts, std::string_view shard) noexcept;

/// The place in a plain shard at which a reader starts.
struct shard_start {
  std::uint64_t offset_bytes = 0;
  std::uint64_t samples_before = 0;
  std::string last_key{};   ///< key of the previous sample, for messages
  storage sidecars{};       ///< the storage of the shard's sidecar files
  /// A flag that all readers of the same shard share: true if one of them has counted the missing end marker. With this
  /// flag, report() counts the marker once, even if the shard is opened repeatedly. Null if the shard is opened once.
  std::atomic<bool>* warned_missing_marker = nullptr;
};

/// Opens a shard at `start`. start.offset_bytes must be the offset of a sample's first header.
shard_reader open_shard_at(shard_start start, std::unique_ptr<byte_source> source, block_pool& pool,
                           shard_reader_options options = {});

}   // namespace detail

/// The samples of one shard.
class shard_reader {
 public:
  /// Opens the shard. Throws setup_error if a selected field has upper-case letters. Throws data_error if the shard is
  /// empty.
  shard_reader(std::unique_ptr<byte_source> source, block_pool& pool, shard_reader_options options = {});
  shard_reader(shard_reader&&) noexcept;
  shard_reader& operator=(shard_reader&&) noexcept;
  ~shard_reader();

  /// Returns the next sample, or nothing at the end of the shard. The comment at the top of this header lists the
  /// errors.
  std::optional<record> next();
  /// Returns whether the last next() threw the error of one sample. If true, the next call returns the following
  /// sample.
  bool can_continue() const noexcept { return sample_failed_; }

  /// Returns the name of the source.
  std::string_view shard() const noexcept;
  /// Returns the counts so far.
  shard_counters counters() const noexcept;
  /// Adds all counters except samples, payload_bytes and unwanted_fields to `counts`.
  void report(event_counts& counts) const noexcept;

 private:
  friend shard_reader detail::open_shard_at(detail::shard_start, std::unique_ptr<byte_source>, block_pool&,
                                            shard_reader_options);
  shard_reader(std::unique_ptr<byte_source> source, block_pool& pool, shard_reader_options options,
               detail::shard_start start);

  std::optional<record> advance();

  /// Returns whether the open sample is complete despite the damage.
  bool ends_open_sample();
  /// Records the current error. If the open sample is complete, returns the sample; otherwise throws the error.
  std::optional<record> fail(error& e, bool sample_is_complete);

  /// Called for a shard without an end marker. Throws data_error if a sidecar file states more samples than were read.
  void check_count() const;
  void begin_sample(std::string_view key);
  /// Ends the open sample. Returns nothing if the sample lacks a required field.
  std::optional<record> deliver();
  void read_field(std::string_view name);
  /// Throws data_error if the waiting member exceeds a limit. Called before memory is allocated for it.
  void check_limits() const;
  void count_skipped(const detail::member_name& name) noexcept;
  error_location where() const;
  std::string last_good() const;
  detail::owner<detail::tar_reader> tar_;
  record_builder builder_;
  detail::selected_fields selected_;
  required_fields having_;
  std::uint64_t present_ = 0;   // bit i is set if the open sample satisfies entry i of having_
  std::atomic<bool>* warned_missing_marker_;
  shard_limits limits_;
  std::uint64_t sample_bytes_ = 0;   // bytes of the open sample
  std::uint64_t samples_before_;
  storage sidecars_;
  std::string last_key_;
  detail::key_memory keys_;
  shard_counters counters_;
  std::optional<detail::tar_member> waiting_;   ///< the member whose header was read last, until it is processed
  std::string field_;
  bool sample_open_ = false;
  bool bad_sample_ = false;      // the current error concerns only the open sample
  bool sample_failed_ = false;   // the last next() threw the error of one sample
  bool skips_sample_ = false;    // whether to skip the next members that have the key of a failed sample
  bool ended_ = false;
  std::exception_ptr failure_;
};

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/io/tar/read/impl/shard_reader.inl>
#endif
