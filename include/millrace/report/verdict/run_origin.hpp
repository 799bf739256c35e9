// The origin of a report: program, command line, machine and date.
//
//   mr::run_origin o = mr::run_origin::now();      // of this process
//   o.program;    // "train_images"
//   o.date;       // "2026-11-23 08:36:04 UTC"
//   o.command;    // "build/train_images --epochs 3"
//   o.machine;    // "AMD EPYC, 6.3 GB, Linux 6.1.0 on node7"
//
// All text is converted to plain ASCII. A command line may contain secrets. Clear run_report::origin.command before you
// publish a report. On systems other than Linux, members may be empty.
// Errors: none. Threads: any thread.
#pragma once

#include <millrace/base/machine.hpp>

#include <string>
#include <string_view>

#if defined(__unix__)
#endif

namespace millrace { inline namespace MILLRACE_ABI {

/// Program, date, command and machine of a run.
struct run_origin {
  std::string program{};   ///< name of the program without its folder
  std::string date{};      ///< time of the report, UTC
  std::string command{};   ///< the first 2,000 characters
  std::string machine{};   ///< processor, memory, system and host name

  /// Returns the origin of this process.
  static run_origin now();
};

namespace detail {

/// Returns the value of `word` in a file with lines of the form "word: value"; empty if no line has the word.
std::string line_after(const char* path, std::string_view word);

/// Returns the arguments of this process, each followed by a zero byte.
std::string arguments_of_this_process();

/// Returns the arguments as one line of at most 2,000 characters. If the arguments are plain ASCII, a shell accepts the
/// line.
std::string command_of(std::string_view arguments);

}   // namespace detail

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/report/verdict/impl/run_origin.inl>
#endif
