// Defines notices, which carry information that is not an error. A session, a source, a storage (such as remote files)
// or a log passes its notices to the function in its option `notice`.
//
//   mr::session run{std::move(flow), {.notice = [&](const mr::notice& n) {
//     if (n.severity == mr::notice_severity::loss) alarm(n.where.shard, n.text);
//     log << mr::text_of(n.kind) << ": " << n.text << '\n';
//   }}};
//   mr::session test{std::move(more), {.notice = mr::quiet}};   // prints only warnings, losses and stalls
//
// Without a function, each notice is printed to stderr as a line that begins with "millrace: ".
// `text` is safe to print, even if it quotes data. `text` may have several lines.
// Errors: if the function throws an exception, Millrace prints the notice and the exception to stderr, and the run
// continues.
// Threads: a session calls its function on the thread that creates, uses or destroys the session, and on a thread that
// reports stalls. A session never calls its function on two threads concurrently. The function must not request a batch
// of the session. The function of a storage or a source is called on any thread that uses the storage or source. The
// function of a log is called on the log's thread.
#pragma once

#include <millrace/base/error.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

/// The subject of a notice.
enum class notice_kind : std::uint8_t {
  start,      ///< device, threads, shapes and memory
  resume,     ///< the position at which a resumed run continues, and the samples that are read again
  order,      ///< the order is less random than the options suggest, or ranks get different numbers of samples
  setting,    ///< an option has less effect than requested
  progress,   ///< a step before the first batch is slow
  stall,      ///< no batch within session_options::stalls.after, or no progress of indexing
  missing_end_marker,   ///< a tar without an end marker, which may be truncated between two members
  damaged_sample,       ///< a damaged sample was replaced or masked
  lost_shard,           ///< the remaining samples of a shard were lost
  returning_keys,       ///< the members of a sample are not contiguous, so each part becomes a sample
  data,                 ///< other information about the data set
  tuning,               ///< a decision of mr::tuning() about the numbers of workers and of concurrent reads
  index,                ///< an index of a shard, or the checksums in it, cannot be stored
  keys,                 ///< access keys of a remote storage are refused or unreadable; Millrace searches for others
  cache,                ///< data of a remote file cannot be stored in the cache on this machine
  rows,                 ///< a feeder (a machine that computes rows) is not usable; the run continues without it
  log                   ///< a sink (an output, such as a file) of a log failed
};

/// The severity of a notice.
enum class notice_severity : std::uint8_t {
  info,      ///< no problem
  warning,   ///< the user should check the cause
  loss       ///< samples are missing, or differ from the stored samples
};

/// Information that is not an error.
struct notice {
  notice_kind kind = notice_kind::data;
  notice_severity severity = notice_severity::info;
  std::string text{};       ///< text without "millrace: " and without a final line break
  error_location where{};   ///< shard, key, offset and position, if known
};

namespace detail {

/// The names of the kinds, in the order of notice_kind.
inline constexpr std::array notice_texts{"start",
                                         "resume",
                                         "order",
                                         "setting",
                                         "progress",
                                         "stall",
                                         "missing end marker",
                                         "damaged sample",
                                         "lost shard",
                                         "returning keys",
                                         "data",
                                         "tuning",
                                         "index",
                                         "keys",
                                         "cache",
                                         "rows",
                                         "log"};
static_assert(notice_texts.size() == static_cast<std::size_t>(notice_kind::log) + 1);

// In the library, only the functions below write to stderr.
/// Prints a notice as a line.
void print_notice(std::string_view text, std::string_view more = {}) noexcept;
/// Returns whether stderr is a terminal.
bool prints_to_terminal() noexcept;
/// Prints a progress line to a terminal. Each line overwrites the previous line. If `last` is true, the next line does
/// not overwrite this line.
void print_progress(std::string_view text, bool last) noexcept;

/// The type of quiet.
struct quiet_notices {
  void operator()(const notice& n) const noexcept {
    if (n.severity != notice_severity::info || n.kind == notice_kind::stall) print_notice(n.text);
  }
};

}   // namespace detail

/// Returns the name of a kind, such as "lost shard".
constexpr const char* text_of(notice_kind k) noexcept { return detail::notice_texts[static_cast<std::size_t>(k)]; }

/// A value for every option with the name `notice`. Prints warnings, losses and stalls to stderr, and drops other
/// notices.
inline constexpr detail::quiet_notices quiet{};

/// The type of every option with the name `notice`. A value is a function that receives the notices, or `quiet`.
/// Without a value, all notices are printed to stderr.
class notice_function {
 public:
  notice_function() = default;
  notice_function(std::nullptr_t) noexcept {}
  /// Calls `f` for each notice.
  template <std::invocable<const notice&> Function>
  notice_function(Function f) : informs_(!std::is_same_v<Function, detail::quiet_notices>) {
    if constexpr (requires { f.operator bool(); })
      if (!f) return;
    function_ = std::make_shared<Function>(std::move(f));
    call_ = [](void* function, const notice& n) { (*static_cast<Function*>(function))(n); };
  }

  /// Returns whether a function is set.
  explicit operator bool() const noexcept { return function_ != nullptr; }
  /// Calls the function, which must be set. Copies of this object share the function.
  void operator()(const notice& n) const { call_(function_.get(), n); }
  /// Returns whether purely informational notices have an effect; false for `quiet`.
  bool informs() const noexcept { return informs_; }

 private:
  std::shared_ptr<void> function_{};
  void (*call_)(void*, const notice&) = nullptr;
  bool informs_ = true;
};

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/base/impl/notice.inl>
#endif
