// Defines a notice: news of a run that is not an error. All news of a session go to session_options::notice.
//
//   mr::session run{std::move(flow), {.notice = [&](const mr::notice& n) {
//     if (n.severity == mr::notice_severity::loss) alarm(n.where.shard, n.text);
//     log << n.text << '\n';
//   }}};
//
// Without a function, each notice is a line on stderr that begins with "millrace: ".
// `text` is safe to print, whatever data it quotes. It may have several lines.
// Errors: an exception of the function does not end the run. The notice and the exception are printed to stderr.
// Threads: the function runs on the thread that creates, uses or destroys the session, and on a thread of the session
// that reports progress and stalls. Never two threads at once. The function must not request a batch of the session.
#pragma once

#include <millrace/base/error.hpp>

#include <cstdint>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI {

/// The subject of a notice.
enum class notice_kind : std::uint8_t {
  start,                ///< device, threads, shapes and memory; not sent with session_options::announce = false
  resume,               ///< where a resumed run continues, and what it reads again
  order,                ///< the order is less random or less even than the options suggest
  setting,              ///< an option does less than it says
  progress,             ///< a step before the first batch takes long
  stall,                ///< no batch for session_options::stalls.after
  missing_end_marker,   ///< a tar without an end marker: it may have been cut between two members
  damaged_sample,       ///< a damaged sample was replaced or masked
  lost_shard,           ///< the rest of a shard was lost
  returning_keys,       ///< the members of a sample are not next to each other: each piece is a sample
  data,                 ///< something else about the data set
  tuning                ///< a decision of mr::tuning()
};

/// How much a notice matters.
enum class notice_severity : std::uint8_t {
  info,      ///< nothing is wrong
  warning,   ///< someone should check
  loss       ///< samples are missing, or differ from the stored ones
};

/// News of a run that is not an error.
struct notice {
  notice_kind kind = notice_kind::data;
  notice_severity severity = notice_severity::info;
  std::string text{};           ///< without "millrace: " and without a line break at its end
  error_location where{};       ///< shard, key, offset and position, where the notice concerns one
};

}}  // namespace millrace
