// Defines what surroundings.hpp declares.
#pragma once

#include <millrace/adapt/remote/store/surroundings.hpp>

#include <millrace/base/clock.hpp>
#include <millrace/base/text_file.hpp>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE bool surroundings::is_on(const char* name) const {
  const std::string value = ascii_lower(variable(name));
  return value == "1" || value == "true" || value == "yes" || value == "on";
}

MILLRACE_INLINE std::optional<std::string> read_small_file(const std::string& path, std::size_t max_bytes) {
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

MILLRACE_INLINE surroundings process_surroundings(small_fetch fetch) {
  return {.variable = [](const char* name) {
            const char* const value = std::getenv(name);
            return std::string(value ? value : "");
          },
          .read_file = [](const std::string& path) { return read_small_file(path); },
          .fetch = std::move(fetch),
          .now_seconds = [] { return read_clock_ns(CLOCK_REALTIME) / 1'000'000'000; },
          .sleep = [](double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }};
}

}}}  // namespace millrace::detail
