// Definitions for error.hpp.
#pragma once

#include <millrace/base/error.hpp>

#include <millrace/base/text.hpp>

#include <new>
#include <stdexcept>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_RARE void error_location::complete(const error_location& other) {
  if (stage.empty()) stage = other.stage;
  if (shard.empty()) shard = other.shard;
  if (key.empty()) key = other.key;
  if (offset_bytes == unknown) offset_bytes = other.offset_bytes;
  if (position == unknown) position = other.position;
}

MILLRACE_RARE std::string printable(std::string_view name, std::size_t max_bytes) {
  std::string safe;
  for (const char c : name.substr(0, max_bytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '\\') {
      safe += c;
    } else {
      safe += "\\x";
      safe += detail::hex(byte, 2);
    }
  }
  if (name.size() > max_bytes) safe += "... (" + std::to_string(name.size()) + " bytes)";
  return safe;
}

MILLRACE_RARE error::error(std::string message, std::string hint, error_location where)
    : message_(detail::printable_text(message)), hint_(detail::printable_text(hint)), where_(std::move(where)) {
  compose();
}

MILLRACE_RARE void error::locate(const error_location& more) {
  where_.complete(more);
  compose();
}

MILLRACE_RARE void error::add(std::string_view more) {
  message_ += detail::printable_text(more);
  compose();
}

MILLRACE_RARE void error::advise(std::string hint) {
  hint_ = detail::printable_text(hint);
  compose();
}

MILLRACE_RARE void error::compose() {
  std::string text = "millrace: " + message_;
  std::string details;
  const auto detail = [&details](std::string_view name, const std::string& value) MILLRACE_RARE_CODE {
    details += details.empty() ? " (" : ", ";
    details += name;
    details += value;
  };
  if (!where_.shard.empty()) detail("shard ", printable(where_.shard));
  if (where_.offset_bytes != error_location::unknown) detail("offset ", std::to_string(where_.offset_bytes));
  if (!where_.key.empty()) detail("key ", printable(where_.key));
  if (!where_.stage.empty()) detail("stage ", printable(where_.stage));
  if (where_.position != error_location::unknown) detail("position ", std::to_string(where_.position));
  if (!details.empty()) text += details + ")";
  if (!hint_.empty()) text += ". " + hint_;
  text_ = std::move(text);
}

MILLRACE_RARE late_data_error::late_data_error(std::string message, error_location where)
    : data_error(std::move(message), "Copy or download the shard again", std::move(where)) {
  suspect(suspect_samples::not_said);
}

MILLRACE_RARE void late_data_error::suspect(suspect_samples samples, std::uint64_t first, bool exact) {
  suspects_ = samples;
  first_ = first;
  exact_ = exact;
  const std::string since = std::to_string(first) + (exact ? " (its first sample)" : " (its first sample or earlier)");
  advise(samples == suspect_samples::none ? "No sample of the shard was delivered. Copy or download the shard again"
         : samples == suspect_samples::since
             ? "Samples of this shard delivered since position " + since +
                   " may be wrong: resume from a point before this position, with a good copy of the shard"
             : "Samples of this shard that were already delivered may be wrong: resume from a point before its "
               "first sample, with a good copy of the shard");
}

MILLRACE_RARE stage_error::stage_error(std::string message, std::exception_ptr cause, error_location where)
    : error(std::move(message), "Correct the callable of this stage; cause() returns its exception", std::move(where)),
      cause_(std::move(cause)) {}

namespace detail {

MILLRACE_RARE std::exception_ptr as_lost_shard(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const error& e) {
    return detail::exception_of(lost_shard_error(e.message(), e.hint(), e.where()));
  } catch (...) {
    return failure;
  }
}

MILLRACE_RARE bool is_error_of_storage(const std::exception_ptr& failure) noexcept {
  try {
    std::rethrow_exception(failure);
  } catch (const io_error&) {
    return true;
  } catch (...) {
    return false;
  }
}

MILLRACE_RARE std::string printable_text(std::string_view text) {
  std::string safe;
  const auto escape = [&safe](std::string_view bytes) MILLRACE_RARE_CODE {
    for (const char c : bytes) {
      safe += "\\x";
      safe += hex(static_cast<unsigned char>(c), 2);
    }
  };
  const auto add = [&](std::string_view good) MILLRACE_RARE_CODE {
    for (std::size_t i = 0; i < good.size(); ++i) {
      const auto code = static_cast<unsigned char>(good[i]);
      const std::string_view three = good.substr(i, 3);
      const bool turns = (three >= "\xe2\x80\xa8" && three <= "\xe2\x80\xae") ||
                         (three >= "\xe2\x81\xa6" && three <= "\xe2\x81\xa9");
      const bool above_ascii = code == 0xc2 && static_cast<unsigned char>(good[i + 1]) < 0xa0;   // U+0080 to U+009F
      if ((code < 0x20 && code != '\n' && code != '\t') || code == 0x7f) {
        escape(good.substr(i, 1));
      } else if (turns || above_ascii) {
        escape(good.substr(i, turns ? 3 : 2));
        i += turns ? 2 : 1;
      } else {
        safe += good[i];
      }
    }
  };
  for (;;) {
    const std::size_t good = utf8_prefix_bytes(text);
    add(text.substr(0, good));
    if (good == text.size()) return safe;
    escape(text.substr(good, 1));
    text.remove_prefix(good + 1);
  }
}

MILLRACE_RARE std::exception_ptr late_error_with_suspects(std::exception_ptr failure,
                                                          late_data_error::suspect_samples samples, std::uint64_t first,
                                                          bool exact) {
  try {
    std::rethrow_exception(failure);
  } catch (late_data_error& late) {
    if (late.suspects() == late_data_error::suspect_samples::not_said) late.suspect(samples, first, exact);
  } catch (...) {}
  return failure;
}

}   // namespace detail

MILLRACE_RARE std::exception_ptr located_exception(const error_location& where) noexcept {
  const std::exception_ptr original = std::current_exception();
  try {
    try {
      throw;
    } catch (error& e) {
      e.locate(where);
      return original;
    } catch (const std::bad_alloc&) {
      return detail::exception_of(io_error("memory is exhausted: the system refused an allocation",
                                           "Allow the process more memory, or lower session_options::memory_bytes",
                                           where));
    } catch (const std::exception& foreign) {
      return detail::exception_of(stage_error(foreign.what(), original, where));
    } catch (...) {
      return detail::exception_of(stage_error("an exception of unknown type", original, where));
    }
  } catch (...) {
    return original;   // memory ran out while composing the message
  }
}

}}   // namespace millrace
