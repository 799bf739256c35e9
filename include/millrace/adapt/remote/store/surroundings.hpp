// The places in which credentials are looked for: the environment, files, the network; and the time of day. The tests
// hand in their own.
//
//   const auto around = mr::detail::process_surroundings(fetch);
//   around.variable("AWS_REGION");                       // empty if it is not set
//   around.read_file("/var/run/secrets/token");          // nothing if it cannot be read
//
// Errors: those of the functions. Threads: any; nobody may change the environment meanwhile.
#pragma once

#include <millrace/adapt/remote/store/small_http.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The world around a process, as functions.
struct surroundings {
  std::function<std::string(const char* name)> variable{};
  std::function<std::optional<std::string>(const std::string& path)> read_file{};
  small_fetch fetch{};
  std::function<std::int64_t()> now_seconds{};   ///< since 1970
  std::function<void(double seconds)> sleep{};

  /// Returns whether a variable is set to what means yes.
  bool is_on(const char* name) const;
};

/// Returns the file's bytes; nothing if it cannot be read or has more than `max_bytes`.
std::optional<std::string> read_small_file(const std::string& path, std::size_t max_bytes = 1 << 20);
/// Returns those of this process.
surroundings process_surroundings(small_fetch fetch);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/store/impl/surroundings.inl>
#endif
