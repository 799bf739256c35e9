// The origin of a report: which program, with which command, on which machine, and when.
//
//   mr::detail::run_origin o = mr::detail::run_origin::now();      // of this process
//   o.program;    // "train_images"
//   o.date;       // "2026-11-23 08:36:04 UTC"
//   o.command;    // "build/train_images --epochs 3"
//   o.machine;    // "AMD EPYC, 6.3 GB, Linux 6.1.0 on node7"
//
// All text is plain ASCII, whatever arguments and names hold. A command line may hold secrets: clear
// run_report::origin.command before you pass a report on. On systems other than Linux, unknown members are empty.
// Errors: none. Threads: any.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/format.hpp>
#include <millrace/base/machine.hpp>

#include <string>
#include <string_view>
#include <time.h>

#if defined(__unix__)
#include <sys/utsname.h>
#endif

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Program, date, command and machine of a run.
struct run_origin {
  std::string program{};   ///< name without its folder
  std::string date{};      ///< time of the report, UTC
  std::string command{};   ///< the first 2,000 characters
  std::string machine{};   ///< processor, memory, system and host name

  /// Returns the origin of this process.
  static run_origin now();
};

/// Returns the text behind `word` and a colon in a file of such lines; empty if there is no such line.
inline std::string line_after(const char* path, std::string_view word) {
  std::string found;
  if (std::FILE* file = std::fopen(path, "re")) {
    char line[512];
    while (found.empty() && std::fgets(line, sizeof line, file)) {
      const std::string_view text = line;
      const std::size_t colon = text.find(':');
      if (text.starts_with(word) && colon != std::string_view::npos)
        found = text.substr(std::min(text.find_first_not_of(" \t", colon + 1), text.size()));
    }
    std::fclose(file);
  }
  while (!found.empty() && found.back() == '\n') found.pop_back();
  return found;
}

/// Returns the arguments of this process, each followed by a zero byte.
inline std::string arguments_of_this_process() {
  std::string all;
  if (std::FILE* file = std::fopen("/proc/self/cmdline", "re")) {
    char piece[4096];
    while (const std::size_t length = std::fread(piece, 1, sizeof piece, file)) all.append(piece, length);
    std::fclose(file);
  }
  return all;
}

/// Returns the arguments as one line that a shell would take again, if they are plain ASCII. Keeps 2,000 characters.
inline std::string command_of(std::string_view arguments) {
  constexpr std::size_t most = 2'000;
  constexpr std::string_view for_a_shell = " \t\n\"'\\$&;|<>()*?[]{}#~`!";
  std::string command;
  while (!arguments.empty()) {
    const std::size_t end = std::min(arguments.find('\0'), arguments.size());
    const std::string_view argument = arguments.substr(0, end);
    const bool plain = !argument.empty() && argument.find_first_of(for_a_shell) == std::string_view::npos;
    command += command.empty() ? "" : " ";
    command += plain ? printable(argument) : "'" + printable(argument) + "'";
    arguments.remove_prefix(std::min(end + 1, arguments.size()));
  }
  if (command.size() <= most) return command;
  command.resize(most);
  return command + " ...";
}

inline run_origin run_origin::now() {
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
    o.machine += ", " + detail::bytes_text(static_cast<double>(usable_memory_bytes())) + ", " +
                 printable(std::string(system.sysname) + " " + system.release + " on " + system.nodename);
  }
#endif
  return o;
}

}}}  // namespace millrace::detail
