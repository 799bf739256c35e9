// Counts what a transfer_engine does.
//
//   log.sent(running);   log.ended(attempt, running);   log.failed(mr::detail::failure_kind::busy);
//   const mr::remote_figures now = log.figures();
//
// Errors: none. Threads: any.
#pragma once

#include <millrace/adapt/remote/transfer/fetch_attempt.hpp>
#include <millrace/adapt/remote/transfer/remote_figures.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The figures of a transfer_engine.
class transfer_log {
 public:
  void sent(bool is_hedge, std::size_t in_flight);
  void ended(const fetch_attempt& attempt, std::size_t in_flight);
  void failed(failure_kind kind);
  void redirected();
  void given_up();
  remote_figures figures() const;

 private:
  mutable std::mutex mutex_;   // guards all members below
  remote_figures figures_{};
  std::uint64_t first_bytes_ = 0;
  double first_byte_seconds_ = 0, body_seconds_ = 0, body_bytes_ = 0;
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/transfer/impl/transfer_log.inl>
#endif
