// Definitions for shard_reader.hpp.
#pragma once

#include <millrace/io/tar/read/shard_reader.hpp>

#include <millrace/io/tar/read/declared_samples.hpp>
#include <millrace/io/tar/read/tar_reader.hpp>

#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_RARE void report_missing_end_marker(event_counts& counts, std::string_view shard) noexcept {
  counts.count("shards that ended without a marker");
  try {
    counts.post({.kind = notice_kind::missing_end_marker,
                 .severity = notice_severity::warning,
                 .text = "the shard " + printable(shard) +
                         " ended without an end marker (two blocks of 512 zeros): "
                         "all of its samples are delivered. Further such shards are only counted; `.strict = true` "
                         "reports a missing marker as an error",
                 .where = {.stage = "tar", .shard = std::string(shard)}});
  } catch (const std::bad_alloc&) {
    // The event was counted. Only the notice is lost.
  }
}

MILLRACE_RARE shard_reader open_shard_at(shard_start start, std::unique_ptr<byte_source> source, block_pool& pool,
                                         shard_reader_options options) {
  return {std::move(source), pool, std::move(options), std::move(start)};
}

}   // namespace detail

MILLRACE_INLINE shard_reader::shard_reader(std::unique_ptr<byte_source> source, block_pool& pool,
                                           shard_reader_options options)
    : shard_reader(std::move(source), pool, std::move(options), {}) {}

MILLRACE_INLINE shard_reader::shard_reader(std::unique_ptr<byte_source> source, block_pool& pool,
                                           shard_reader_options options, detail::shard_start start)
    : tar_(detail::make_owner<detail::tar_reader>(
          std::move(source), pool,
          detail::tar_reader_options{.start_bytes = start.offset_bytes,
                                     .strict = options.strict,
                                     .max_expansion = options.limits.max_expansion})),
      builder_(pool),
      selected_(options.fields),
      having_(std::move(options.having)),
      warned_missing_marker_(start.warned_missing_marker),
      limits_(options.limits),
      samples_before_(start.samples_before),
      sidecars_(std::move(start.sidecars)),
      last_key_(std::move(start.last_key)) {}

MILLRACE_INLINE shard_reader::shard_reader(shard_reader&&) noexcept = default;
MILLRACE_INLINE shard_reader& shard_reader::operator=(shard_reader&&) noexcept = default;
MILLRACE_RARE shard_reader::~shard_reader() = default;

MILLRACE_INLINE std::string_view shard_reader::shard() const noexcept { return tar_->shard(); }

MILLRACE_INLINE std::optional<record> shard_reader::next() {
  sample_failed_ = false;
  if (failure_) std::rethrow_exception(failure_);
  if (ended_) return std::nullopt;
  try {
    return advance();
  } catch (late_data_error& e) {   // no dynamic_cast, because -fno-rtti disables it
    return fail(e, false);
  } catch (error& e) {
    if (std::exchange(bad_sample_, false)) {
      e.add(last_good());
      e.locate({.stage = {}, .shard = {}, .key = std::string(builder_.key())});
      waiting_.reset();
      sample_open_ = false;
      ++counters_.samples;   // sidecar files count this sample, too
      sample_failed_ = skips_sample_ = true;
      throw;
    }
    return fail(e, ends_open_sample());
  } catch (...) {
    failure_ = std::current_exception();
  }
  std::rethrow_exception(failure_);
}

MILLRACE_INLINE shard_counters shard_reader::counters() const noexcept {
  shard_counters now = counters_;
  now.unconverted_names = tar_->unconverted_names();
  now.missing_end_markers = tar_->ended_without_marker();
  now.returning_keys = keys_.returned();
  return now;
}

MILLRACE_RARE void shard_reader::report(event_counts& counts) const noexcept {
  const shard_counters now = counters();
  const auto add = [&counts](const char* event, std::uint64_t times) {
    if (times > 0) counts.count(event, times);
  };
  add("samples without the fields of .having", now.lacking_samples);
  add("metadata members passed over", now.metadata_members);
  add("dot files passed over", now.dot_files);
  add("names without a dot passed over", now.names_without_dot);
  add("links, folders and devices passed over", now.not_regular);
  add("member names that are not UTF-8", now.unconverted_names);
  if (now.returning_keys > 0) detail::report_returning_keys(counts, now.returning_keys, shard());
  if (now.missing_end_markers == 0 || (warned_missing_marker_ && warned_missing_marker_->exchange(true))) return;
  detail::report_missing_end_marker(counts, shard());
}

MILLRACE_INLINE std::optional<record> shard_reader::advance() {
  for (;;) {
    if (!waiting_) waiting_ = tar_->next();
    if (!waiting_) {
      if (tar_->ended_without_marker()) check_count();
      ended_ = true;
      if (!std::exchange(sample_open_, false)) return std::nullopt;
      return deliver();   // returns nothing at the end of the shard
    }
    const detail::member_name name = detail::split_member_name(waiting_->name);
    if (!waiting_->regular || name.kind != detail::member_name::kind_of_name::sample) {
      count_skipped(name);
    } else {
      if (sample_open_ && name.key != builder_.key()) {
        // The member stays in waiting_. Therefore this sample is delivered even if the payload of the member is
        // damaged.
        sample_open_ = false;
        if (std::optional<record> complete = deliver()) return complete;
      }
      skips_sample_ = skips_sample_ && name.key == builder_.key();
      if (!skips_sample_) {
        if (!sample_open_) begin_sample(name.key);
        read_field(name.field);
      }
    }
    waiting_.reset();
  }
}

MILLRACE_INLINE bool shard_reader::ends_open_sample() {
  return sample_open_ && !waiting_ && tar_->certain_name() &&
         detail::begins_other_sample(*tar_->certain_name(), builder_.key()) && std::exchange(sample_open_, false);
}

MILLRACE_RARE std::optional<record> shard_reader::fail(error& e, bool sample_is_complete) {
  std::optional<record> last;
  if (sample_is_complete) last = deliver();
  e.add(last_good());
  failure_ = std::current_exception();
  if (!last) std::rethrow_exception(failure_);
  return last;
}

MILLRACE_RARE void shard_reader::check_count() const {
  const auto declared = detail::declared_samples(std::string(shard()), sidecars_);
  const std::uint64_t count = samples_before_ + counters_.samples + (sample_open_ ? 1 : 0);
  if (declared.samples > count)
    throw detail::fewer_than_declared(
        declared, count,
        {.stage = "tar", .shard = std::string(shard()), .key = {}, .offset_bytes = tar_->end_marker_at()});
}

MILLRACE_INLINE void shard_reader::begin_sample(std::string_view key) {
  builder_.begin(tar_->shard(), key, waiting_->offset_bytes);
  keys_.is_returning(key);
  sample_bytes_ = 0;
  present_ = 0;
  sample_open_ = true;
}

MILLRACE_INLINE std::optional<record> shard_reader::deliver() {
  last_key_ = builder_.key();
  ++counters_.samples;
  if (present_ != having_.all_bits()) {
    ++counters_.lacking_samples;
    return std::nullopt;
  }
  return builder_.finish();
}

MILLRACE_INLINE void shard_reader::read_field(std::string_view name) {
  field_.assign(name);
  for (char& c : field_)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  if (!having_.empty()) present_ |= having_.bits_of(field_);
  if (!selected_.contains(field_)) {
    ++counters_.unwanted_fields;
    return;
  }
  bad_sample_ = true;
  if (builder_.has(field_))
    throw data_error("the sample '" + printable(builder_.key()) + "' has the field '" + printable(field_) +
                         "' twice: expected each field once (names that differ only in case are the same)",
                     "If two samples have the same key, use different keys, and write the shard again", where());
  check_limits();
  bad_sample_ = false;
  tar_->check_payload();
  sample_bytes_ += waiting_->size_bytes + field_.size();
  tar_->read(builder_.add_field(field_, static_cast<std::size_t>(waiting_->size_bytes)));
  counters_.payload_bytes += waiting_->size_bytes;
}

MILLRACE_RARE void shard_reader::check_limits() const {
  const auto refuse = [this](const std::string& problem, std::uint64_t limit, const char* option) {
    throw data_error(problem + ", expected at most " + std::to_string(limit),
                     std::string("Raise ") + option +
                         " if your samples are intended to exceed this limit. Otherwise, the shard is damaged",
                     where());
  };
  const auto sample = [this] { return "the sample '" + printable(builder_.key()) + "' "; };
  const std::uint64_t size_bytes = waiting_->size_bytes;
  if (size_bytes > limits_.max_member_bytes)
    refuse("the member '" + printable(waiting_->name) + "' is too large: got " + std::to_string(size_bytes) + " bytes",
           limits_.max_member_bytes, "max_member_bytes");
  const std::uint64_t more = size_bytes + field_.size();
  if (more < size_bytes || sample_bytes_ > limits_.max_sample_bytes || more > limits_.max_sample_bytes - sample_bytes_)
    refuse(sample() + "is too large: got " + std::to_string(sample_bytes_ + more) + " bytes or more",
           limits_.max_sample_bytes, "max_sample_bytes");
  if (builder_.field_count() >= limits_.max_fields)
    refuse(sample() + "has too many fields: got more", limits_.max_fields, "max_fields");
}

MILLRACE_INLINE void shard_reader::count_skipped(const detail::member_name& name) noexcept {
  using enum detail::member_name::kind_of_name;
  if (!waiting_->regular) ++counters_.not_regular;
  else if (name.kind == metadata) ++counters_.metadata_members;
  else if (name.kind == dot_file) ++counters_.dot_files;
  else ++counters_.names_without_dot;
}

MILLRACE_RARE error_location shard_reader::where() const {
  return {.stage = "tar", .shard = std::string(tar_->shard()), .key = {}, .offset_bytes = waiting_->offset_bytes};
}

MILLRACE_RARE std::string shard_reader::last_good() const {
  return last_key_.empty() ? ", before the first good sample"
                           : ", after the last good key '" + printable(last_key_) + "'";
}

}}   // namespace millrace
