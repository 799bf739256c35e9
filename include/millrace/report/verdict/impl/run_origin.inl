// Definitions for run_origin.hpp.
#pragma once

#include <millrace/report/verdict/run_origin.hpp>

#include <millrace/base/error.hpp>
#include <millrace/base/format.hpp>
#include <millrace/base/machine.hpp>

#include <sys/utsname.h>
#include <time.h>

#include <ctime>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE std::string line_after(const char* path, std::string_view word) {
  std::string value;
  if (const auto file = open_text(path)) {
    char line[512];
    while (value.empty() && std::fgets(line, sizeof line, file.get())) {
      const std::string_view text = line;
      const std::size_t colon = text.find(':');
      if (text.starts_with(word) && colon != std::string_view::npos)
        value = text.substr(std::min(text.find_first_not_of(" \t", colon + 1), text.size()));
    }
  }
  while (!value.empty() && value.back() == '\n') value.pop_back();
  return value;
}

MILLRACE_INLINE std::string arguments_of_this_process() {
  std::string all;
  if (const auto file = open_text("/proc/self/cmdline")) {
    char piece[4096];
    while (const std::size_t length = std::fread(piece, 1, sizeof piece, file.get())) all.append(piece, length);
  }
  return all;
}

MILLRACE_INLINE std::string command_of(std::string_view arguments) {
  constexpr std::size_t most = 2'000;
  constexpr std::string_view for_a_shell = " \t\n\"'\\$&;|<>()*?[]{}#~`!";
  std::string command;
  while (!arguments.empty()) {
    const std::size_t end = std::min(arguments.find('\0'), arguments.size());
    const std::string_view argument = arguments.substr(0, end);
    const bool plain = !argument.empty() && argument.find_first_of(for_a_shell) == std::string_view::npos;
    command += command.empty() ? "" : " ";
    const std::string escaped = printable(argument, argument.size());
    command += plain ? escaped : "'" + escaped + "'";
    arguments.remove_prefix(std::min(end + 1, arguments.size()));
  }
  if (command.size() <= most) return command;
  command.resize(most);
  return command + " ...";
}

}   // namespace detail

MILLRACE_INLINE run_origin run_origin::now() {
  run_origin o;
  const std::string arguments = detail::arguments_of_this_process();
  const std::string path = arguments.substr(0, arguments.find('\0'));
  o.program = printable(path.substr(path.rfind('/') + 1));
  o.command = detail::command_of(arguments);
  const std::time_t seconds = std::time(nullptr);
  std::tm utc{};
  char date[40] = "";
  if (::gmtime_r(&seconds, &utc)) std::strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S UTC", &utc);
  o.date = date;
  o.machine = printable(detail::line_after("/proc/cpuinfo", "model name"));
#if defined(__unix__)
  utsname system{};
  if (::uname(&system) == 0) {
    if (o.machine.empty()) o.machine = printable(system.machine);
    o.machine += ", " + detail::bytes_text(static_cast<double>(detail::usable_memory_bytes())) + ", " +
                 printable(std::string(system.sysname) + " " + system.release + " on " + system.nodename);
  }
#endif
  return o;
}

}}   // namespace millrace
