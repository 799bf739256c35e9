// Reads the samples of one block (consecutive positions of a rank) of an indexed_source one by one. This reader is for
// data sets whose samples are cheap to read.
//
//   mr::detail::single_reader<mr::detail::token_data> reader(data, plan.positions(), samples);
//   while (auto item = reader.next()) use(*item);
//
// Each reader owns one `Data::access`, whose constructor receives the samples of the block.
// Data::access::read(located_sample) returns an item, and checksum() returns the checksum of the last item.
// Errors: next() throws the errors of Data::access::read(). Threads: not thread-safe.
#pragma once

#include <millrace/base/digest.hpp>
#include <millrace/base/error.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/item/sample.hpp>
#include <millrace/order/exact_order.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A data set whose samples are read one by one, because it has a member type `access`.
template <class Data>
concept read_one_by_one = requires { typename Data::access; };

/// Sets the identity of a sample. Returns whether the sample has an item to deliver. A sample whose position is not
/// below `positions` becomes a void row, which is not delivered (indexed_source.hpp).
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
/// Returns the term of a sample in the digest of the run (a checksum of its delivered samples).
inline std::uint64_t digest_term(const ordered_sample& planned, std::uint64_t id, std::uint64_t checksums) noexcept {
  return stream_digest::term(combine_keys(combine_keys(0, planned.epoch), planned.position),
                             combine_keys(id, checksums));
}

/// Reads the samples of one block.
template <class Data>
class single_reader {
 public:
  using item = typename Data::item;

  single_reader(std::shared_ptr<Data> data, std::uint64_t positions, std::vector<ordered_sample> samples)
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

}}}   // namespace millrace::detail
