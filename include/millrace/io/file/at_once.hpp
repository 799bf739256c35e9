// Asks a storage for many things at once: most of the time passes on the way.
//
//   mr::detail::at_once(names.size(), 32, [&](std::size_t i) { found[i] = at->find(names[i]); });
//
// Errors: that of the lowest number. The others are done all the same. Threads: starts up to `max_threads`, less one,
// and waits for them; too few are enough.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

class notice_outlet;

/// The same for a list of names before the first batch: reports when it takes long (sync/slow_step.hpp).
struct at_once_options {
  const char* what;                    ///< for the report: "looks up files in the storage"
  std::span<const std::string> names;
  std::size_t max_threads = 32;
  notice_outlet* notices = nullptr;   ///< receives the report; null: a line on stderr
  std::uint64_t report_after_ns = 10'000'000'000;
};
void at_once(const at_once_options& o, const std::function<void(std::size_t)>& act);

/// Calls `act` with every number below `count`, on up to `max_threads` threads.
void at_once(std::size_t count, std::size_t max_threads, const std::function<void(std::size_t)>& act);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/file/impl/at_once.inl>
#endif
