// Reads the samples of one block (consecutive positions of a rank) of an indexed_source together.
//
//   mr::detail::block_reader<mr::detail::shard_data> reader(data, plan.positions(), samples);
//   while (auto record = reader.next()) use(*record);
//
// Errors: if a sample cannot be read, next() first returns all samples before it, and then throws the error of the
// sample. Threads: not thread-safe.
#pragma once

#include <millrace/base/digest.hpp>
#include <millrace/base/error.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/item/record.hpp>
#include <millrace/item/sample.hpp>
#include <millrace/measure/values/event_counts.hpp>
#include <millrace/order/exact_order.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// single_block_reader reads the samples of a block one by one. It is for data sets whose samples are cheap to read.
//
// Each reader owns one `Data::access`, whose constructor receives the samples of the block.
// Data::access::read(located_sample) returns an item, and checksum() returns the checksum of the last item.
// Errors: next() throws the errors of Data::access::read(). Threads: not thread-safe.

/// A data set whose samples are read one by one, because it has a member type `access`.
template <class Data>
concept read_one_by_one = requires { typename Data::access; };

/// Sets the identity of a sample. Returns whether the sample has an item to deliver. `positions` is the number of
/// positions in an epoch. A sample whose position is not less than `positions` becomes a void row, which is not
/// delivered (indexed_source.hpp).
template <class Item>
bool set_identity(sample<Item>& s, const ordered_sample& planned, std::uint64_t id, std::uint64_t positions) {
  s.pass = planned.pass;
  s.id = id;
  if (planned.position >= positions) {
    s.what = sample<Item>::kind::void_row;
    if (s.item.is_error()) s.item.reset();
    return false;
  }
  return static_cast<bool>(s.item);
}
/// Returns the term that a sample adds to the digest of the run.
inline std::uint64_t digest_term(const ordered_sample& planned, std::uint64_t id, std::uint64_t checksums) noexcept {
  return stream_digest::term(combine_keys(combine_keys(0, planned.epoch), planned.position),
                             combine_keys(id, checksums));
}

/// Reads the samples of one block.
template <class Data>
class single_block_reader {
 public:
  using item = typename Data::item;

  single_block_reader(std::shared_ptr<Data> data, std::uint64_t positions, std::vector<ordered_sample> samples)
      : data_(std::move(data)), positions_(positions), samples_(std::move(samples)) {}

  /// Returns the next item, or nothing at the end of the block. Throws the error of a sample that cannot be read.
  std::optional<item> next() {
    if (at_ == samples_.size()) return std::nullopt;
    if (!access_) access_ = make_owner<typename Data::access>(*data_, samples_);
    std::optional<item> one(access_->read(samples_[at_].sample));
    ++at_;
    return one;
  }
  /// After an error of next(): returns the location of the sample that cannot be read.
  error_location failed() const { return data_->location_of(samples_[at_].sample); }
  /// After an error of next(): skips the sample that cannot be read.
  void skip() noexcept { ++at_; }
  /// Stores in `s` the identity of the last sample that was returned or skipped. `s` must contain the item.
  void stamp(sample<item>& s) const {
    const ordered_sample& last = samples_[at_ - 1];
    if (set_identity(s, last, data_->id_of(last.sample), positions_))
      s.digest = digest_term(last, s.id, access_->checksum());
  }
  /// Returns the name of the last sample, for batches with keys.
  std::string name() const { return data_->name_of(samples_[at_ - 1].sample); }

 private:
  std::shared_ptr<Data> data_;
  std::uint64_t positions_;
  std::vector<ordered_sample> samples_;
  owner<typename Data::access> access_;
  std::size_t at_ = 0;
};

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
  static constexpr std::size_t prefetched = 16;   // next() prefetches the record that is this number of records ahead

  void read();
  /// Finds the next sample that cannot be read. After a failure, the records of later samples may be empty, too.
  /// Therefore this function reads the sample of each empty record again.
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
