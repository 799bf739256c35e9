// Functions that provide the inputs of a search for credentials: environment variables, files, network and time. Tests
// replace these functions.
//
//   const auto env = mr::detail::process_environment(fetch);
//   env.variable("AWS_REGION");                       // "" if the variable is not set
//   env.read_file("/var/run/secrets/token");          // nothing if the file cannot be read
//
// Errors: exceptions of the functions, which are the members of type std::function. Threads: any thread, if no thread
// changes the environment.
#pragma once

#include <millrace/adapt/remote/store/small_http.hpp>
#include <millrace/base/clock.hpp>
#include <millrace/base/machine.hpp>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The environment of a process, as functions.
struct key_environment {
  std::function<std::string(const char* name)> variable{};
  std::function<std::optional<std::string>(const std::string& path)> read_file{};
  small_fetch fetch{};
  std::function<std::int64_t()> now_seconds{};   ///< seconds since 1970
  std::function<void(double seconds)> sleep{};

  /// Returns whether the variable is set to a true value.
  bool is_on(const char* name) const {
    const std::string value = http_lower(variable(name));
    return value == "1" || value == "true" || value == "yes" || value == "on";
  }
};

/// Returns the bytes of a file, or nothing if it cannot be read or has more than `max_bytes`.
inline std::optional<std::string> read_credential_file(const std::string& path, std::size_t max_bytes = 1 << 20) {
  const auto file = open_text(path.c_str());
  if (!file) return std::nullopt;
  std::string text;
  char part[4096];
  while (const std::size_t count = std::fread(part, 1, sizeof part, file.get())) {
    text.append(part, count);
    if (text.size() > max_bytes) return std::nullopt;
  }
  if (std::ferror(file.get())) return std::nullopt;
  return text;
}
/// Returns the key_environment of this process.
inline key_environment process_environment(small_fetch fetch) {
  return {.variable =
              [](const char* name) {
                const char* const value = std::getenv(name);
                return std::string(value ? value : "");
              },
          .read_file = [](const std::string& path) { return read_credential_file(path); },
          .fetch = std::move(fetch),
          .now_seconds = [] { return read_clock_ns(CLOCK_REALTIME) / 1'000'000'000; },
          .sleep = [](double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }};
}

}}}   // namespace millrace::detail
