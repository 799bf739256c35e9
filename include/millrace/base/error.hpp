// Defines every exception that Millrace throws, and the location that each exception contains.
//
//   try { for (auto& b : run) step(b); }
//   catch (const mr::data_error& e) {       // bad input
//     std::cerr << e.what() << '\n';        // message, shard, offset, key, stage, position, and advice
//     quarantine(e.where().shard, e.where().key);
//   }
//
// There are five kinds. The kind determines who has to correct the problem:
// - setup_error: the caller, because an option or a call is wrong.
// - data_error: the producer of the data. After a late_data_error, already delivered samples may also be wrong.
// - io_error: the operator of the machine or its storage.
// - stage_error: the author of a callable that threw an exception, which `cause()` returns.
// - conservation_error: the author of the source or of Millrace, because samples were lost or delivered twice.
//
// Message and hint are safe to print, even if they quote data. The names in where() are not escaped: pass them to
// printable() before you print them.
// Threads: any thread may copy and read an error.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

/// The location of an error. Messages omit empty strings and `unknown` numbers. If a source has no index and its epochs
/// have no fixed number of batches, `position` counts the rows of this rank from the start of the session.
struct error_location {
  static constexpr std::uint64_t unknown = ~std::uint64_t{0};

  std::string stage{};                    ///< "tar", "jpeg", "map 2", ...
  std::string shard{};                    ///< name of the shard, as specified by the user
  std::string key{};                      ///< the sample's key in the shard
  std::uint64_t offset_bytes = unknown;   ///< offset in the shard, or in the uncompressed stream of a compressed shard
  std::uint64_t position = unknown;       ///< position in the epoch, as in session::locate()

  /// Copies from `other` every member that is still unknown in this object.
  void complete(const error_location& other);
};

/// Returns an external name (a key, a path) in a form that is safe to print. Backslashes, and all bytes that are not
/// printable ASCII, become \xNN. A name longer than `max_bytes` is truncated, and its length is appended.
std::string printable(std::string_view name, std::size_t max_bytes = 1024);

/// The base class of all errors. An error contains a description of the problem, advice, and the location.
class error : public std::exception {
 public:
  error(std::string message, std::string hint, error_location where = {});
  error(const error&) = default;
  error(error&&) = default;
  error& operator=(const error&) = default;
  error& operator=(error&&) = default;
  MILLRACE_RARE ~error() override = default;

  const char* what() const noexcept override { return text_.c_str(); }
  const std::string& message() const noexcept { return message_; }   ///< the problem: got and expected values
  const std::string& hint() const noexcept { return hint_; }         ///< advice
  const error_location& where() const noexcept { return where_; }

  /// Sets the members of the location that are still unknown. The other members do not change.
  void locate(const error_location& more);
  /// Appends more text to the message.
  void add(std::string_view more);

 protected:
  void advise(std::string hint);

 private:
  void compose();

  std::string message_, hint_;
  error_location where_;
  std::string text_;
};

/// Reports a wrong option or call, which the caller has to correct.
class setup_error : public error {
 public:
  using error::error;
};

/// Reports wrong data: a damaged shard, a corrupt image, a label that is not a number.
class data_error : public error {
 public:
  using error::error;
};

/// Reports damage that is detected after samples were delivered, for example by a checksum at the end of a stream.
/// These samples may be wrong.
class late_data_error : public data_error {
 public:
  enum class suspect_samples {
    not_said,   ///< not set yet; the code that knows the order of the run sets it later
    none,       ///< no sample of the shard was delivered
    some,       ///< the first wrong sample is unknown, or was delivered before this session
    since       ///< samples from first_suspect() on
  };

  late_data_error(std::string message, error_location where);

  suspect_samples suspects() const noexcept { return suspects_; }
  /// Returns the position of the first sample that may be wrong, or error_location::unknown.
  std::uint64_t first_suspect() const noexcept { return first_; }

  bool is_exact() const noexcept { return exact_; }   ///< false if the first wrong sample may be after first_suspect()

  /// Sets the samples that may be wrong. Replaces the hint by advice about the point from which to resume.
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

/// Reports that an epoch did not deliver exactly the planned samples, because of a bug in a source or in Millrace
/// itself.
class conservation_error : public error {
 public:
  using error::error;
};

/// Reports that the user's callable threw an exception that is not a millrace::error. `cause()` returns that exception.
class stage_error : public error {
 public:
  stage_error(std::string message, std::exception_ptr cause, error_location where);

  std::exception_ptr cause() const noexcept { return cause_; }

 private:
  std::exception_ptr cause_;
};

namespace detail {

/// Reports that a sample is lost because its shard cannot be opened, or ends before the sample.
class lost_shard_error : public data_error {
 public:
  using data_error::data_error;
};

/// Like std::make_exception_ptr(), but compilers generate half as much code.
template <class Error>
MILLRACE_RARE std::exception_ptr exception_of(Error failure) noexcept {
  try {
    throw Error(std::move(failure));
  } catch (...) {
    return std::current_exception();
  }
}

/// Converts a millrace::error to a lost_shard_error. Returns any other exception unchanged.
std::exception_ptr as_lost_shard(const std::exception_ptr& failure);

/// Returns whether an error is an io_error.
bool is_error_of_storage(const std::exception_ptr& failure) noexcept;

/// Returns a form of the text that is safe to print, even if the text quotes external data. Control characters (except
/// line feeds and tabs), marks that change the text direction, and bytes that are not valid UTF-8 become \xNN.
std::string printable_text(std::string_view text);

/// Returns `failure`. If `failure` is a late_data_error whose suspect samples are not set, this function sets them.
std::exception_ptr late_error_with_suspects(std::exception_ptr failure, late_data_error::suspect_samples samples,
                                            std::uint64_t first = error_location::unknown, bool exact = true);

}   // namespace detail

/// Returns the current exception as an error whose location is completed from `where`. A std::bad_alloc becomes an
/// io_error; any other foreign exception becomes the cause of a stage_error. If memory for the new exception cannot be
/// allocated, returns the current exception unchanged. Call this function only inside a catch block.
std::exception_ptr located_exception(const error_location& where) noexcept;

namespace detail {

/// The same as located_exception(where()). If where() throws, returns the current exception unchanged.
template <class Where>
MILLRACE_RARE std::exception_ptr error_located_by(const Where& where) noexcept {
  const std::exception_ptr original = std::current_exception();
  try {
    return located_exception(where());
  } catch (...) {
    return original;
  }
}

}   // namespace detail

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/base/impl/error.inl>
#endif
