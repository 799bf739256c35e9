// Reads the samples of one shard in order, grouped as WebDataset groups them.
//
//   mr::block_pool pool;
//   mr::shard_reader shard(std::make_unique<mr::file_source>("train-000.tar"), pool, {.fields = {"jpg;png", "cls"}});
//   while (auto record = shard.next()) use(*record);
//   shard.counters().samples;
//
// Consecutive members with the same key (member_name.hpp) form one sample. A key that comes back later is a new sample.
// Field names are lowered (A-Z only). The reader skips and counts links, folders, devices, dot files, names without a
// dot and the __metadata__ folders. The same field twice in a sample is an error, if the field is wanted.
// Errors: data_error, or the source's io_error, with the shard, the offset and the last good key. Every further call
// throws the same error. On damage, the reader first delivers every complete sample before it. A sample is complete
// when the header of a member with another key follows it. The following member may be damaged, as long as the name in
// its header is certain. A sample that is still open at the damage is not delivered.
// A shard without an end marker is whole. Two cases are errors: options.strict is set, or a file beside the shard
// counts more samples (counted_beside.hpp).
// Threads: one at a time. Lifetime: the pool outlives the reader. Memory: each payload is copied once, into the
// record's block. Once sizes repeat, only libarchive and zlib allocate.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/io/tar/counted_beside.hpp>
#include <millrace/io/tar/member_name.hpp>
#include <millrace/io/tar/tar_reader.hpp>
#include <millrace/io/tar/wanted_fields.hpp>
#include <millrace/item/record_builder.hpp>
#include <millrace/measure/event_counts.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

using detail::event_counts;

/// Options of shard_reader.
struct shard_reader_options {
  /// The wanted fields, each a name or alternatives such as "jpg;png"; default: all. Other fields are not read into
  /// memory.
  std::vector<std::string> fields{};
  /// A larger member is an error before any memory is taken for it. In bytes, default 1 GiB.
  std::uint64_t max_member_bytes = std::uint64_t{1} << 30;
  /// Makes a shard without an end marker (two blocks of 512 zeros) an error. Default: it is whole.
  bool strict = false;
  /// For a caller that opens the same shard repeatedly: true once report() has counted its missing marker. May be null.
  std::atomic<bool>* missing_marker_told = nullptr;
};

namespace detail {

/// Counts of a shard's content. Each member is counted when the reader meets it.
struct shard_counters {
  std::uint64_t samples = 0;               ///< delivered samples
  std::uint64_t payload_bytes = 0;         ///< bytes read into records
  std::uint64_t unwanted_fields = 0;       ///< fields that are not in options.fields
  std::uint64_t metadata_members = 0;      ///< members in a __folder__
  std::uint64_t dot_files = 0;
  std::uint64_t names_without_dot = 0;
  std::uint64_t not_regular = 0;           ///< links, folders, devices
  std::uint64_t unconverted_names = 0;     ///< see tar_reader::unconverted_names()
  std::uint64_t missing_end_markers = 0;   ///< 1 if the shard was read to its end and has no marker
};

/// Counts a shard without an end marker, and leaves a line about the first such shard of a run.
inline void report_missing_end_marker(event_counts& counts, const std::string& shard) noexcept {
  counts.count("shards that ended without a marker");
  counts.tell("the shard " + printable(shard) + " ended without an end marker (two blocks of 512 zeros): all of its "
              "samples are delivered. Others like it are only counted; `.strict = true` makes it an error");
}

/// The start of a reader inside a plain shard: the offset of the first header of a sample.
struct shard_start {
  std::uint64_t offset_bytes = 0;
  std::uint64_t samples_before = 0;
  std::string last_key{};             ///< key of the previous sample, for messages
};

}  // namespace detail

/// The samples of one shard.
class shard_reader {
 public:
  /// Opens the shard. Throws setup_error if a wanted field has upper-case letters, data_error if the shard is empty.
  shard_reader(std::unique_ptr<byte_source> source, block_pool& pool, shard_reader_options options = {},
                     detail::shard_start start = {})
      : tar_(std::make_unique<detail::tar_reader>(
            std::move(source), pool,
              detail::tar_reader_options{.start_bytes = start.offset_bytes, .strict = options.strict})),
        builder_(pool),
        wanted_(options.fields),
        missing_marker_told_(options.missing_marker_told),
        max_member_bytes_(options.max_member_bytes),
        samples_before_(start.samples_before),
        last_key_(std::move(start.last_key)) {}

  /// Returns the next sample; nothing at the end of the shard. Throws the errors described at the top of the file.
  std::optional<record> next() {
    if (failure_) std::rethrow_exception(failure_);
    if (ended_) return std::nullopt;
    try {
      return advance();
    } catch (error& known) {
      std::optional<record> last;
      if (ends_open_sample(known)) last = deliver();
      known.add(last_good());
      failure_ = std::current_exception();
      if (last) return last;
    } catch (...) {
      failure_ = std::current_exception();
    }
    std::rethrow_exception(failure_);
  }

  /// Returns the name of the source.
  std::string_view shard() const noexcept { return tar_->shard(); }
  /// Returns the counts so far.
  detail::shard_counters counters() const noexcept {
    detail::shard_counters now = counters_;
    now.unconverted_names = tar_->unconverted_names();
    now.missing_end_markers = tar_->ended_without_marker();
    return now;
  }
  /// Adds the counts of skipped members, raw names and a missing end marker to `counts`.
  void report(event_counts& counts) const noexcept {
    const detail::shard_counters now = counters();
    const auto add = [&counts](const char* what, std::uint64_t times) {
      if (times > 0) counts.count(what, times);
    };
    add("metadata members passed over", now.metadata_members);
    add("dot files passed over", now.dot_files);
    add("names without a dot passed over", now.names_without_dot);
    add("links, folders and devices passed over", now.not_regular);
    add("member names that are no UTF-8", now.unconverted_names);
    if (now.missing_end_markers == 0 || (missing_marker_told_ && missing_marker_told_->exchange(true))) return;
    report_missing_end_marker(counts, std::string(shard()));
  }

 private:
  std::optional<record> advance() {
    for (;;) {
      if (!waiting_) waiting_ = tar_->next();
      if (!waiting_) {
        if (tar_->ended_without_marker()) check_count();
        ended_ = true;
        if (!std::exchange(sample_open_, false)) return std::nullopt;
        return deliver();
      }
      const detail::member_name name = detail::split_member_name(waiting_->name);
      if (!waiting_->regular || name.kind != detail::member_name::kind_of_name::sample) {
        count_passed_over(name);
      } else {
        if (sample_open_ && name.key != builder_.key()) {
          // The member stays in waiting_: even if its payload is damaged, this sample is delivered.
          sample_open_ = false;
          return deliver();
        }
        if (!sample_open_) begin_sample(name.key);
        take_field(name.field);
      }
      waiting_.reset();
    }
  }

  /// Returns whether the open sample is complete despite the damage. In a damaged compressed stream no name is certain.
  bool ends_open_sample(const error& damage) {
    return sample_open_ && !waiting_ && tar_->certain_name() &&
           detail::begins_other_sample(*tar_->certain_name(), builder_.key()) &&
           !dynamic_cast<const late_data_error*>(&damage) && std::exchange(sample_open_, false);
  }

  /// Throws data_error if a file beside a shard without an end marker counts more samples.
  void check_count() const {
    const auto told = detail::counted_beside(std::string(shard()));
    const std::uint64_t found = samples_before_ + counters_.samples + (sample_open_ ? 1 : 0);
    if (told.samples > found)
      throw detail::fewer_than_counted(told, found, {.stage = "tar", .shard = std::string(shard()), .key = {},
                                                     .offset_bytes = tar_->end_marker_at()});
  }

  void begin_sample(std::string_view key) {
    builder_.begin(tar_->shard(), key, waiting_->offset_bytes);
    sample_open_ = true;
  }

  record deliver() {
    last_key_ = builder_.key();
    ++counters_.samples;
    return builder_.finish();
  }

  void take_field(std::string_view written) {
    field_.assign(written);
    for (char& c : field_)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (!wanted_.contains(field_)) {
      ++counters_.unwanted_fields;
      return;
    }
    if (builder_.has(field_))
      throw data_error("the sample '" + printable(builder_.key()) + "' has the field '" + printable(field_) +
                           "' twice (expected: every field once; upper and lower case are the same)",
                       "Give each sample a key of its own, and write the shard again", where());
    if (waiting_->size_bytes > max_member_bytes_)
      throw data_error("the member '" + printable(waiting_->name) + "' has " + std::to_string(waiting_->size_bytes) +
                           " bytes (expected: at most " + std::to_string(max_member_bytes_) + ")",
                       "Raise max_member_bytes if that is right; else the shard is damaged", where());
    tar_->read(builder_.add_field(field_, static_cast<std::size_t>(waiting_->size_bytes)));
    counters_.payload_bytes += waiting_->size_bytes;
  }

  void count_passed_over(const detail::member_name& name) noexcept {
    using enum detail::member_name::kind_of_name;
    if (!waiting_->regular) ++counters_.not_regular;
    else if (name.kind == metadata) ++counters_.metadata_members;
    else if (name.kind == dot_file) ++counters_.dot_files;
    else ++counters_.names_without_dot;
  }

  error_location where() const {
    return {.stage = "tar", .shard = std::string(tar_->shard()), .key = {}, .offset_bytes = waiting_->offset_bytes};
  }
  std::string last_good() const {
    return samples_before_ + counters_.samples == 0 ? ", before the first sample was complete"
                                                    : ", after the last good key '" + printable(last_key_) + "'";
  }
  std::unique_ptr<detail::tar_reader> tar_;
  record_builder builder_;
  detail::wanted_fields wanted_;
  std::atomic<bool>* missing_marker_told_;
  std::uint64_t max_member_bytes_;
  std::uint64_t samples_before_;
  std::string last_key_;
  detail::shard_counters counters_;
  std::optional<detail::tar_member> waiting_;   ///< the member whose header was read last, not yet handled
  std::string field_;
  bool sample_open_ = false;
  bool ended_ = false;
  std::exception_ptr failure_;
};

}}  // namespace millrace
