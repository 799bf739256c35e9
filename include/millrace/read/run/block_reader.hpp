// Reads the samples of one block (consecutive positions of a rank) of an indexed_source together.
//
//   mr::detail::block_reader<mr::detail::shard_data> reader(data, plan.positions(), samples);
//   while (auto record = reader.next()) use(*record);
//
// Errors: if a sample cannot be read, next() first returns all samples before it, and then throws the error of the
// sample. Threads: not thread-safe.
#pragma once

#include <millrace/item/record.hpp>
#include <millrace/measure/values/event_counts.hpp>
#include <millrace/read/run/single_reader.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Reads the samples of one block.
template <class Data>
class block_reader {
 public:
  using item = typename Data::item;

  block_reader(std::shared_ptr<Data> data, std::uint64_t positions, std::vector<ordered_sample> samples)
      : data_(std::move(data)), positions_(positions), samples_(std::move(samples)) {}

  /// Returns the next record, or nothing at the end of the block. Throws the error of a sample that cannot be read.
  std::optional<item> next();
  /// After an error of next(): returns the location of the sample that cannot be read.
  error_location failed() const;
  /// After an error of next(): skips the sample that cannot be read. The following next() returns the sample after it.
  void skip();
  /// Stores in `s` the identity of the last sample that was returned or skipped. `s` must contain the item.
  void stamp(sample<item>& s) const;
  /// Adds to `counts` the events of the data set since the last call of report() on any reader.
  void report(event_counts& counts) const
    requires requires(const Data& d, event_counts& to) { d.report_reads(to); }
  {
    data_->report_reads(counts);
  }

 private:
  static constexpr std::size_t prefetched = 16;   // stamp() prefetches the record that is this number of records ahead

  void read();
  /// Finds the next sample that cannot be read. Reads the sample of each empty record again, because the sample before
  /// it may be the one that cannot be read.
  void find_failure();

  std::shared_ptr<Data> data_;
  std::uint64_t positions_;
  std::vector<ordered_sample> samples_;
  std::vector<item> records_;
  std::size_t good_ = 0, at_ = 0;
  std::exception_ptr failure_;
};

template <class Data>
MILLRACE_INLINE auto block_reader<Data>::next() -> std::optional<item> {
  if (at_ == 0 && !samples_.empty()) read();
  if (at_ + prefetched < good_) records_[at_ + prefetched].prefetch_held_bytes();
  if (at_ < good_) return std::move(records_[at_++]);
  if (failure_) std::rethrow_exception(failure_);
  return std::nullopt;
}

template <class Data>
MILLRACE_INLINE error_location block_reader<Data>::failed() const {
  try {
    return data_->location_of(samples_[at_].sample);
  } catch (const error&) {
    return {};   // the index of the shard cannot be read either
  }
}

template <class Data>
MILLRACE_INLINE void block_reader<Data>::skip() {
  good_ = ++at_;
  find_failure();
}

template <class Data>
MILLRACE_INLINE void block_reader<Data>::find_failure() {
  failure_ = nullptr;
  for (; good_ < records_.size(); ++good_) {
    if (!records_[good_].empty()) continue;
    const std::span one(&samples_[good_].sample, 1);
    static_cast<void>(data_->read(one, std::span(&records_[good_], 1), failure_));
    if (failure_) return;
  }
}

template <class Data>
MILLRACE_INLINE void block_reader<Data>::stamp(sample<item>& s) const {
  const ordered_sample& last = samples_[at_ - 1];
  if (set_identity(s, last, data_->id_of(last.sample), positions_))
    s.digest = digest_term(last, s.id, s.item->checksums());
}

template <class Data>
MILLRACE_INLINE void block_reader<Data>::read() {
  std::vector<located_sample> located;
  located.reserve(samples_.size());
  for (const auto& s : samples_) located.push_back(s.sample);
  records_.resize(located.size());
  good_ = data_->read(located, records_, failure_);
  if (!failure_) return;
  if constexpr (requires(const Data& d) { d.is_given_up(failure_); })
    if (data_->is_given_up(failure_)) return;
  find_failure();
}

}}}   // namespace millrace::detail
