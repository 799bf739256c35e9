// Defines what notice_outlet.hpp declares.
#pragma once

#include <millrace/sync/notice_outlet.hpp>

#include <cstdio>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE void notice_outlet::deliver(const notice& n) noexcept {
  const auto print = [&n] { std::fprintf(stderr, "millrace: %s\n", n.text.c_str()); };
  try {
    const std::lock_guard lock(mutex_);
    if (!to_) return print();
    to_(n);
  } catch (const std::exception& e) {
    print();
    std::fprintf(stderr, "millrace: the notice function threw: %s\n", e.what());
  } catch (...) {
    print();
    std::fprintf(stderr, "millrace: the notice function threw an exception\n");
  }
}

}}}  // namespace millrace::detail
