// Asks a storage for many things at once: most of the time passes on the way.
//
//   mr::detail::at_once(names.size(), 32, [&](std::size_t i) { found[i] = at->find(names[i]); });
//
// Errors: that of the lowest number. The others are done all the same. Threads: starts up to `max_threads`, less one,
// and waits for them; too few are enough.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <functional>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Calls `act` with every number below `count`, on up to `max_threads` threads.
void at_once(std::size_t count, std::size_t max_threads, const std::function<void(std::size_t)>& act);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/file/at_once.ipp>
#endif
