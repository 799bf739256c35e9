// Every exception that Millrace throws, and the place that it names.
//
//   try { for (auto& b : run) step(b); }
//   catch (const mr::data_error& e) {       // bad input
//     std::cerr << e.what() << '\n';        // message, shard, offset, key, stage, position, and what to do
//     quarantine(e.where().shard, e.where().key);
//   }
//
// Five kinds, told apart by who has to act: setup_error (the caller: an option or a call is wrong), data_error (whoever
// made the data; late_data_error where samples before it may be wrong too), io_error (the machine or its storage),
// stage_error (the user's own callable threw; `cause()` has it), conservation_error (whoever wrote the source, or
// Millrace: samples were lost or came twice on the way).
// Errors are values: they may be copied and read from any thread.
#pragma once

#include <millrace/base/version.hpp>

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

/// Where something went wrong. Empty strings and `unknown` numbers are not printed.
struct error_location {
  static constexpr std::uint64_t unknown = ~std::uint64_t{0};

  std::string stage{};                    ///< "tar", "jpeg", "map 2", ...
  std::string shard{};                    ///< as the user named it
  std::string key{};                      ///< the sample's key in the shard
  std::uint64_t offset_bytes = unknown;   ///< in the shard; for compressed shards in the uncompressed stream
  std::uint64_t position = unknown;       ///< in the run's order of samples

  /// Takes over from `other` whatever is still unknown here.
  void complete(const error_location& other) {
    if (stage.empty()) stage = other.stage;
    if (shard.empty()) shard = other.shard;
    if (key.empty()) key = other.key;
    if (offset_bytes == unknown) offset_bytes = other.offset_bytes;
    if (position == unknown) position = other.position;
  }
};

/// A name from outside (a key, a path) made safe to print: control characters and invalid bytes become \xNN.
inline std::string printable(std::string_view name) {
  constexpr char hex[] = "0123456789abcdef";
  std::string safe;
  safe.reserve(name.size());
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '\\') {
      safe += c;
    } else {
      safe += "\\x";
      safe += hex[byte >> 4];
      safe += hex[byte & 15];
    }
  }
  return safe;
}

/// The base of all errors: one sentence of what happened, one of what to do, and the place.
class error : public std::exception {
 public:
  error(std::string message, std::string hint, error_location where = {})
      : message_(std::move(message)), hint_(std::move(hint)), where_(std::move(where)) {
    compose();
  }

  const char* what() const noexcept override { return text_.c_str(); }
  const std::string& message() const noexcept { return message_; }   ///< what was found and what was expected
  const std::string& hint() const noexcept { return hint_; }         ///< what to do about it
  const error_location& where() const noexcept { return where_; }

  /// Fills in what the thrower could not know; what is known already stays.
  void locate(const error_location& more) {
    where_.complete(more);
    compose();
  }
  /// Adds to the message what the thrower could not know.
  void add(std::string_view more) {
    message_ += more;
    compose();
  }

 protected:
  void advise(std::string hint) {
    hint_ = std::move(hint);
    compose();
  }

 private:
  void compose() {
    text_ = "millrace: " + message_;
    std::string details;
    const auto detail = [&details](std::string_view name, const std::string& value) {
      details += details.empty() ? " (" : ", ";
      details += name;
      details += value;
    };
    if (!where_.shard.empty()) detail("shard ", printable(where_.shard));
    if (where_.offset_bytes != error_location::unknown) detail("offset ", std::to_string(where_.offset_bytes));
    if (!where_.key.empty()) detail("key ", printable(where_.key));
    if (!where_.stage.empty()) detail("stage ", where_.stage);
    if (where_.position != error_location::unknown) detail("position ", std::to_string(where_.position));
    if (!details.empty()) text_ += details + ")";
    if (!hint_.empty()) text_ += ". " + hint_;
  }

  std::string message_, hint_;
  error_location where_;
  std::string text_;
};

/// The caller has to change an option or a call.
class setup_error : public error {
 public:
  using error::error;
};

/// The data is not what it should be: a damaged shard, a corrupt image, a label that is no number.
class data_error : public error {
 public:
  using error::error;
};

/// Damage that only the end of a stream betrays (a checksum): samples that were delivered before may be wrong.
class late_data_error : public data_error {
 public:
  enum class suspect_samples {
    not_said,    ///< by whoever knows the order of the run
    none,        ///< no sample of the shard was delivered
    some,        ///< since a position that nobody knows, or before this session
    since        ///< since first_suspect()
  };

  late_data_error(std::string message, error_location where)
      : data_error(std::move(message), "Copy or download the shard again", std::move(where)) {
    suspect(suspect_samples::not_said);
  }

  suspect_samples suspects() const noexcept { return suspects_; }
  /// The position of the first sample that may be wrong; place::unknown if that is not known.
  std::uint64_t first_suspect() const noexcept { return first_; }

  bool is_exact() const noexcept { return exact_; }   ///< that position is one of the shard's

  /// Says which samples may be wrong, and where to go on.
  void suspect(suspect_samples which, std::uint64_t first = error_location::unknown, bool exact = true) {
    suspects_ = which;
    first_ = first;
    exact_ = exact;
    const std::string since = std::to_string(first) + (exact ? " (its first)" : " (its first, or one before it)");
    advise(which == suspect_samples::none ? "No sample of it was delivered. Copy or download the shard again"
           : which == suspect_samples::since
               ? "Samples of this shard delivered since position " + since +
                     " may be wrong: go on from a resume point before it, with a good copy of the shard"
               : "Samples of this shard that were delivered before may be wrong: go on from a resume point before its "
                 "first, with a good copy of the shard");
  }

 private:
  suspect_samples suspects_ = suspect_samples::not_said;
  std::uint64_t first_ = error_location::unknown;
  bool exact_ = true;
};

/// The machine failed: a file cannot be opened or read, memory cannot be had.
class io_error : public error {
 public:
  using error::error;
};

/// At its end an epoch has not delivered what was planned: an error of a source, or of Millrace itself.
class conservation_error : public error {
 public:
  using error::error;
};

/// The user's own callable threw something that is no millrace::error. `cause()` is what it threw.
class stage_error : public error {
 public:
  stage_error(std::string message, std::exception_ptr cause, error_location where)
      : error(std::move(message), "The callable given to this stage threw; see cause()", std::move(where)),
        cause_(std::move(cause)) {}

  std::exception_ptr cause() const noexcept { return cause_; }

 private:
  std::exception_ptr cause_;
};

/// Has `why`, if it is a late_data_error of which nobody has said so yet, say which samples may be wrong. Gives `why`.
inline std::exception_ptr with_suspects(std::exception_ptr why, late_data_error::suspect_samples which,
                                        std::uint64_t first = error_location::unknown, bool exact = true) {
  try {
    std::rethrow_exception(why);
  } catch (late_data_error& late) {
    if (late.suspects() == late_data_error::suspect_samples::not_said) late.suspect(which, first, exact);
  } catch (...) {
  }
  return why;
}

/// To be called inside a catch block: the current exception as one of the above, completed with `where`.
inline std::exception_ptr located_exception(const error_location& where) {
  try {
    throw;
  } catch (error& known) {
    known.locate(where);
    return std::current_exception();
  } catch (const std::exception& foreign) {
    return std::make_exception_ptr(stage_error(foreign.what(), std::current_exception(), where));
  } catch (...) {
    return std::make_exception_ptr(stage_error("an exception of unknown type", std::current_exception(), where));
  }
}

}}  // namespace millrace
