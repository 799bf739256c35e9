// Defines the members of the templates in block_reader.hpp.
#pragma once

#include <millrace/read/run/block_reader.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

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

}}}  // namespace millrace::detail
