// Definitions for row_protocol.hpp.
#pragma once

#include <millrace/adapt/feeders/row_protocol.hpp>

#include <millrace/base/crc32c.hpp>
#include <millrace/base/digest.hpp>
#include <millrace/base/error.hpp>
#include <millrace/base/hex.hpp>
#include <millrace/base/text.hpp>

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The names of the lines of an identity, in their order.
inline constexpr std::array hello_names{"protocol", "library", "program", "order", "columns", "max_row_bytes"};
inline constexpr std::size_t max_hello_bytes = std::size_t{64} << 10, max_reason_bytes = 1'000;

/// Appends the GNU build id in a segment of notes, if it has one, as hexadecimal digits.
MILLRACE_INLINE void append_build_id(std::span<const char> notes, std::string& id) {
  ElfW(Nhdr) note;
  while (notes.size() >= sizeof note) {
    std::memcpy(&note, notes.data(), sizeof note);
    const char* const name = notes.data() + sizeof note;
    const char* const content = name + (note.n_namesz + 3) / 4 * 4;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0)
      for (std::size_t b = 0; b < note.n_descsz; ++b) id += hex(static_cast<unsigned char>(content[b]), 2);
    const auto size = static_cast<std::size_t>(content - notes.data()) + (note.n_descsz + 3) / 4 * 4;
    notes = notes.subspan(std::min(size, notes.size()));
  }
}

/// Returns the build id that the linker stored in the program or the shared library that contains this function, as
/// hexadecimal digits; empty if it has none.
MILLRACE_INLINE std::string build_id() {
  std::string id;
  ::dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* to) {
        const std::span headers(object->dlpi_phdr, object->dlpi_phnum);
        const auto here = reinterpret_cast<std::uintptr_t>(&build_id);
        if (std::none_of(headers.begin(), headers.end(), [&](const auto& h) {
              return h.p_type == PT_LOAD && here - (object->dlpi_addr + h.p_vaddr) < h.p_memsz;
            }))
          return 0;   // the next object
        for (const auto& h : headers)
          if (h.p_type == PT_NOTE)
            append_build_id({reinterpret_cast<const char*>(object->dlpi_addr + h.p_vaddr), h.p_memsz},
                            *static_cast<std::string*>(to));
        return 1;
      },
      &id);
  return id;
}

MILLRACE_INLINE run_identity identity_of(row_run run) {
  constexpr auto number = [](int part) { return std::to_string(part); };
  std::string version = number(MILLRACE_VERSION_MAJOR) + "." + number(MILLRACE_VERSION_MINOR) + "." +
                        number(MILLRACE_VERSION_PATCH);
  return {.library = "millrace " + version, .program = build_id(), .run = std::move(run)};
}

MILLRACE_INLINE std::string hello_text(const run_identity& of) {
  const std::array<std::string, hello_names.size()> values{
      "1", of.library, of.program, of.run.order, of.run.columns, std::to_string(of.run.max_row_bytes)};
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) text += std::string(hello_names[i]) + "=" + values[i] + "\n";
  return text;
}

/// Returns the values of an identity, in the order of hello_names. Throws data_error.
MILLRACE_INLINE std::array<std::string_view, hello_names.size()> hello_values(std::string_view text) {
  std::array<std::string_view, hello_names.size()> values;
  const auto refuse = [](const std::string& problem) {
    throw data_error("the answer of a feeder is not valid: " + problem,
                     "Check that the host and the port are those of a program that calls feed_rows()");
  };
  if (text.size() > max_hello_bytes) refuse("got " + std::to_string(text.size()) + " bytes, expected at most 65536");
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t end = text.find('\n');
    const std::string_view name = hello_names[i], line = text.substr(0, end);
    if (end == std::string_view::npos || !line.starts_with(name) || line.substr(name.size(), 1) != "=")
      refuse("got the line \"" + printable(line, 100) + "\", expected a line that begins with " + std::string(name) +
             "=");
    values[i] = line.substr(name.size() + 1);
    text.remove_prefix(end + 1);
  }
  if (!text.empty()) refuse("got the additional line \"" + printable(text.substr(0, text.find('\n')), 100) + "\"");
  return values;
}

MILLRACE_INLINE std::string run_id(std::string_view hello) {
  return hex(digest_bytes(std::as_bytes(std::span(hello.data(), hello.size()))), 16);
}

MILLRACE_INLINE void check_hello(const hello_texts& of) {
  const auto mine = hello_values(of.mine), theirs = hello_values(of.theirs);
  std::string different;
  for (std::size_t i = 0; i < mine.size(); ++i)
    if (mine[i] != theirs[i])
      different += (different.empty() ? "" : "; ") + std::string(hello_names[i]) + ": got \"" + printable(theirs[i]) +
                   "\", expected \"" + printable(mine[i]) + "\"";
  if (different.empty()) return;
  throw setup_error("the feeder " + printable(of.feeder, 300) + " computes the rows of another run: " + different,
                    "Start the same program with the same flow and the same shards on all machines");
}

MILLRACE_INLINE std::string hello_path(std::string_view run) { return "/v1/" + std::string(run) + "/hello"; }

MILLRACE_INLINE std::string rows_path(std::string_view run, const row_range& range) {
  return "/v1/" + std::string(run) + "/rows/" + std::to_string(range.epoch) + "/" + std::to_string(range.first) + "-" +
         std::to_string(range.count) + "-" + std::to_string(range.step);
}

MILLRACE_INLINE row_range parse_rows_path(std::string_view path, const feeder_rules& rules) {
  const auto refuse = [&path](const std::string& problem) {
    throw data_error("a request for rows is not valid: got \"" + printable(path, 200) + "\", expected " + problem,
                     "Use the same version of Millrace on all machines");
  };
  std::string_view rest = path;
  const auto skip = [&](std::string_view expected) {
    if (!rest.starts_with(expected)) refuse("/v1/RUN/rows/EPOCH/FIRST-COUNT-STEP");
    rest.remove_prefix(expected.size());
  };
  const auto number_after = [&](std::string_view text) {
    skip(text);
    const std::string_view digits = rest.substr(0, rest.find_first_not_of("0123456789"));
    const std::optional<std::uint64_t> value = decimal_number(digits);
    if (!value) refuse("a number");
    rest.remove_prefix(digits.size());
    return value.value_or(0);
  };
  skip("/v1/");
  const std::string_view run = rest.substr(0, rest.find('/'));
  rest.remove_prefix(run.size());
  row_range range{.epoch = number_after("/rows/")};
  range.first = number_after("/");
  const std::uint64_t count = number_after("-"), step = number_after("-");
  if (!rest.empty()) refuse("nothing after the range");
  if (run != rules.run)
    throw setup_error(
        "a request is for the rows of another run: got the run id " + printable(run, 100) + ", expected " + rules.run,
        "Start the same program with the same flow and the same shards on all machines");
  constexpr std::uint64_t max_position = std::uint64_t{1} << 62, max_step = 1 << 20;
  if (count == 0 || count > rules.max_rows) refuse("1 to " + std::to_string(rules.max_rows) + " rows");
  if (range.first > max_position || step == 0 || step > max_step) refuse("positions below 2^62, and 1 to 2^20 ranks");
  range.count = static_cast<std::size_t>(count);
  range.step = static_cast<std::size_t>(step);
  return range;
}

/// Returns whether the header contains the token. The time does not depend on the first difference.
MILLRACE_INLINE bool has_token(std::string_view authorization, std::string_view token) noexcept {
  constexpr std::string_view scheme = "Bearer ";
  if (!authorization.starts_with(scheme)) return false;
  authorization.remove_prefix(scheme.size());
  unsigned difference = authorization.size() == token.size() ? 0 : 1;
  for (std::size_t i = 0; i < authorization.size(); ++i)
    difference |= static_cast<unsigned char>(authorization[i]) ^
                  static_cast<unsigned char>(i < token.size() ? token[i] : '\0');
  return difference == 0;
}

MILLRACE_INLINE feeder_decision decide(const feeder_request& request, const feeder_rules& rules) {
  const auto refuse = [](unsigned status, std::string text) {
    return feeder_decision{.status = status, .text = std::move(text) + "\n"};
  };
  if (request.method != "GET") return refuse(405, "got another method, expected GET");
  if (request.has_body) return refuse(413, "got a body, expected none");
  if (request.path == "/healthz") return {.action = feeder_action::health};
  if (!rules.token.empty() && !has_token(request.authorization, rules.token))
    return refuse(401, "the token is wrong or missing: expected the header Authorization: Bearer TOKEN");
  if (request.path == "/metrics") return {.action = feeder_action::metrics};
  if (!request.path.starts_with("/v1/"))
    return refuse(404, "got \"" + printable(request.path, 200) +
                           "\", expected /v1/RUN/hello, /v1/RUN/rows/..., "
                           "/metrics or /healthz");
  const std::string_view rest = request.path.substr(4), run = rest.substr(0, rest.find('/'));
  if (rest.substr(run.size()) == "/hello") return {.status = run == rules.run ? 200U : 409U, .text = rules.hello};
  try {
    return {.action = feeder_action::rows, .range = parse_rows_path(request.path, rules)};
  } catch (const setup_error&) {
    return {.status = 409, .text = rules.hello};
  } catch (const data_error& e) {
    return refuse(400, e.message());
  }
}

MILLRACE_INLINE void append_part(std::vector<std::byte>& body, std::uint8_t status, std::span<const std::byte> bytes) {
  body.push_back(static_cast<std::byte>(status));
  for (const std::uint32_t number : {static_cast<std::uint32_t>(bytes.size()), crc32c(bytes)})
    for (int shift = 0; shift < 32; shift += 8) body.push_back(static_cast<std::byte>(number >> shift));
  body.insert(body.end(), bytes.begin(), bytes.end());
}

MILLRACE_INLINE void append_row(std::vector<std::byte>& body, std::span<const std::byte> row) {
  append_part(body, 0, row);
}

MILLRACE_INLINE void append_reason(std::vector<std::byte>& body, std::string_view reason) {
  append_part(body, 1, std::as_bytes(std::span(reason.data(), std::min(reason.size(), max_reason_bytes))));
}

MILLRACE_INLINE void feeder_row_decoder::fail(const std::string& problem) const {
  throw data_error("the answer of the feeder " + printable(options_.feeder, 300) + " is not valid at row " +
                       std::to_string(decoded_) + " of " + std::to_string(options_.rows) + ": " + problem,
                   "Check the connection, and use the same version of Millrace on all machines");
}

/// Returns the size of the row that follows.
MILLRACE_INLINE std::size_t feeder_row_decoder::read_header(std::span<const std::byte> header) {
  const auto number = [header](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 4; i-- > 0;) value = value << 8 | std::to_integer<std::uint32_t>(header[at + i]);
    return value;
  };
  if (decoded_ == options_.rows) fail("got another row, expected the end");
  const auto status = std::to_integer<unsigned>(header[0]);
  if (status > 1) fail("got status " + std::to_string(status) + ", expected 0 or 1");
  is_reason_ = status == 1;
  const std::size_t most = is_reason_ ? max_reason_bytes : options_.max_row_bytes, size = number(1);
  if (size > most) fail("got " + std::to_string(size) + " bytes, expected at most " + std::to_string(most));
  header_ = row_answer{.row = decoded_, .crc = number(5)};
  return size;
}

MILLRACE_INLINE void feeder_row_decoder::add(std::span<const std::byte> piece,
                                             const std::function<void(const row_answer&)>& next) {
  for (;;) {
    const std::size_t missing = std::min(expected_ - row_.size(), piece.size());
    std::span<const std::byte> part = piece.first(missing);
    piece = piece.subspan(missing);
    if (missing < expected_) {   // the part arrives in several pieces
      if (row_.capacity() == 0 && options_.buffers && !options_.buffers->empty()) {
        row_ = std::move(options_.buffers->back());
        options_.buffers->pop_back();
      }
      row_.reserve(expected_);
      row_.insert(row_.end(), part.begin(), part.end());
      if (row_.size() < expected_) return;
      part = row_;
    }
    if (!header_) {
      expected_ = read_header(part);
      row_.clear();
      continue;   // an empty row is complete
    }
    if (is_reason_) {
      if (crc32c(part) != header_->crc) fail("got a reason with a wrong checksum");
      header_->reason = {reinterpret_cast<const char*>(part.data()), part.size()};
    } else {
      header_->bytes = part;
    }
    next(*header_);
    ++decoded_;
    header_.reset();
    release_buffer();
    expected_ = header_bytes;
    if (piece.empty()) return;
  }
}

MILLRACE_INLINE void feeder_row_decoder::release_buffer() noexcept {
  row_.clear();
  if (!options_.buffers || row_.capacity() == 0) return;
  try {
    options_.buffers->push_back(std::exchange(row_, {}));
  } catch (const std::bad_alloc&) {   // the next row allocates a buffer
  }
}

MILLRACE_INLINE void feeder_row_decoder::finish() const {
  if (decoded_ < options_.rows || !row_.empty() || header_)
    fail("got the end of the answer, expected " + std::to_string(options_.rows) + " rows");
}

}}}   // namespace millrace::detail
