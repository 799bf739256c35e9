// Defines every exception that Millrace throws, and the error location that it carries.
//
//   try { for (auto& b : run) step(b); }
//   catch (const mr::data_error& e) {       // bad input
//     std::cerr << e.what() << '\n';        // message, shard, offset, key, stage, position, and advice
//     quarantine(e.where().shard, e.where().key);
//   }
//
// There are five kinds, by the party that has to act:
// - setup_error: the caller; an option or a call is wrong.
// - data_error: the producer of the data. late_data_error: earlier samples may be wrong, too.
// - io_error: the operator of the machine or its storage.
// - stage_error: the author of a callable that threw; `cause()` is the exception.
// - conservation_error: the author of the source, or Millrace; samples were lost or delivered twice.
// Message and hint are safe to print, even if they quote data. where() contains the unescaped names; printable()
// escapes them.
// Threads: errors are values; they may be copied and read from any thread.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI {

/// The place of an error. Empty strings and `unknown` numbers are not printed.
struct error_location {
  static constexpr std::uint64_t unknown = ~std::uint64_t{0};

  std::string stage{};                    ///< "tar", "jpeg", "map 2", ...
  std::string shard{};                    ///< as the user named it
  std::string key{};                      ///< the sample's key in the shard
  std::uint64_t offset_bytes = unknown;   ///< offset in the shard; for compressed shards in the uncompressed stream
  std::uint64_t position = unknown;       ///< position in the run's order of samples

  /// Copies from `other` every member that is still unknown here.
  void complete(const error_location& other);
};

/// Returns an external name (a key, a path), safe to print: backslashes and all bytes except printable ASCII become
/// \xNN. A name longer than `max_bytes` is cut, and its length is appended.
std::string printable(std::string_view name, std::size_t max_bytes = 1024);

/// The base of all errors: a sentence about the problem, one with advice, and the location.
class error : public std::exception {
 public:
  error(std::string message, std::string hint, error_location where = {});

  const char* what() const noexcept override { return text_.c_str(); }
  const std::string& message() const noexcept { return message_; }   ///< the problem: got and expected values
  const std::string& hint() const noexcept { return hint_; }         ///< advice
  const error_location& where() const noexcept { return where_; }

  /// Fills in the members of the location that the thrower did not know; known ones stay.
  void locate(const error_location& more);
  /// Appends further facts to the message.
  void add(std::string_view more);

 protected:
  void advise(std::string hint);

 private:
  void compose();

  std::string message_, hint_;
  error_location where_;
  std::string text_;
};

/// Reports a wrong option or call: the caller has to change it.
class setup_error : public error {
 public:
  using error::error;
};

/// Reports wrong data: a damaged shard, a corrupt image, a label that is not a number.
class data_error : public error {
 public:
  using error::error;
};

/// Reports damage that is detected only at the end of a stream (a checksum): samples delivered earlier may be wrong.
class late_data_error : public data_error {
 public:
  enum class suspect_samples {
    not_said,    ///< not yet determined by the code that knows the order of the run
    none,        ///< no sample of the shard was delivered
    some,        ///< samples since an unknown position, or from before this session
    since        ///< samples since first_suspect()
  };

  late_data_error(std::string message, error_location where);

  suspect_samples suspects() const noexcept { return suspects_; }
  /// Returns the position of the first sample that may be wrong; error_location::unknown if it is unknown.
  std::uint64_t first_suspect() const noexcept { return first_; }

  bool is_exact() const noexcept { return exact_; }   ///< false: first_suspect() may be before the shard's first sample

  /// Sets which samples may be wrong, and writes the hint for resuming.
  void suspect(suspect_samples samples, std::uint64_t first = error_location::unknown, bool exact = true);

 private:
  suspect_samples suspects_ = suspect_samples::not_said;
  std::uint64_t first_ = error_location::unknown;
  bool exact_ = true;
};

/// Reports a failure of the machine: a file cannot be opened or read, memory cannot be allocated.
class io_error : public error {
 public:
  using error::error;
};

/// Reports that an epoch did not deliver the planned samples: a bug in a source, or in Millrace itself.
class conservation_error : public error {
 public:
  using error::error;
};

/// Reports that the user's callable threw something other than a millrace::error. `cause()` is that exception.
class stage_error : public error {
 public:
  stage_error(std::string message, std::exception_ptr cause, error_location where);

  std::exception_ptr cause() const noexcept { return cause_; }

 private:
  std::exception_ptr cause_;
};

namespace detail {

/// Reports that a sample is lost with the rest of its shard, which cannot be opened or ends before it.
class lost_shard_error : public data_error {
 public:
  using data_error::data_error;
};

/// Returns a millrace::error as a lost_shard_error; any other exception unchanged.
std::exception_ptr as_lost_shard(const std::exception_ptr& failure);

/// Returns whether an error is an io_error.
bool is_error_of_storage(const std::exception_ptr& failure) noexcept;

/// Returns a text that may quote external data, safe to print. Control characters except ends of lines and tabs, marks
/// that change the text direction, and bytes that are not UTF-8 become \xNN.
std::string printable_text(std::string_view text);

/// Returns `failure`. If it is a late_data_error whose suspect samples are not set yet, sets them first.
std::exception_ptr with_suspects(std::exception_ptr failure, late_data_error::suspect_samples samples,
                                 std::uint64_t first = error_location::unknown, bool exact = true);

}  // namespace detail

/// Returns the current exception as an error with its location completed from `where`. A std::bad_alloc becomes an
/// io_error, any other exception the cause of a stage_error. If memory for that is exhausted, it returns the current
/// exception unchanged. Call it inside a catch block only.
std::exception_ptr located_exception(const error_location& where) noexcept;

namespace detail {

/// As located_exception(where()), even if memory for the location is exhausted.
template <class Where>
std::exception_ptr located_by(const Where& where) noexcept {
  const std::exception_ptr original = std::current_exception();
  try {
    return located_exception(where());
  } catch (...) {
    return original;
  }
}

}  // namespace detail

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/base/impl/error.inl>
#endif
