// The origin of a report: which program, with which command, on which machine, and when.
//
//   mr::run_origin o = mr::run_origin::now();      // of this process
//   o.program;    // "train_images"
//   o.date;       // "2026-11-23 08:36:04 UTC"
//   o.command;    // "build/train_images --epochs 3"
//   o.machine;    // "AMD EPYC, 6.3 GB, Linux 6.1.0 on node7"
//
// All text is converted to plain ASCII. A command line may contain secrets: clear run_report::origin.command before you
// publish a report. On systems other than Linux, unknown members are empty.
// Errors: none. Threads: any.
#pragma once

#include <millrace/base/machine.hpp>

#include <string>
#include <string_view>

#if defined(__unix__)
#endif

namespace millrace { inline namespace MILLRACE_ABI {

/// Program, date, command and machine of a run.
struct run_origin {
  std::string program{};   ///< name without its folder
  std::string date{};      ///< time of the report, UTC
  std::string command{};   ///< the first 2,000 characters
  std::string machine{};   ///< processor, memory, system and host name

  /// Returns the origin of this process.
  static run_origin now();
};

namespace detail {

/// Returns the text after `word` and a colon in a file of such lines; empty if there is no such line.
std::string line_after(const char* path, std::string_view word);

/// Returns the arguments of this process, each followed by a zero byte.
std::string arguments_of_this_process();

/// Returns the arguments as one line that a shell accepts, if they are plain ASCII. At most 2,000 characters.
std::string command_of(std::string_view arguments);

}  // namespace detail

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/report/verdict/impl/run_origin.inl>
#endif
