// Definitions for notice_outlet.hpp.
#pragma once

#include <millrace/sync/notice_outlet.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE notice_outlet::notice_outlet(notice_function to) : to_(std::move(to)) {}

MILLRACE_INLINE void notice_outlet::deliver(const notice& n) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (!to_) return print_notice(n.text);
    to_(n);
  } catch (const std::exception& e) {
    print_notice(n.text);
    print_notice("the notice function threw: ", e.what());
  } catch (...) {
    print_notice(n.text);
    print_notice("the notice function threw an exception");
  }
}

MILLRACE_INLINE notice_outlet::~notice_outlet() = default;

}}}  // namespace millrace::detail
