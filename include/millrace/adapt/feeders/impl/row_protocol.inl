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
/// The size in the header of a row that a feeder cannot compute.
inline constexpr std::uint32_t missing_row = 0xffffffff;

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

inline constexpr std::uint64_t max_position = std::uint64_t{1} << 62, max_step = 1 << 20;

MILLRACE_INLINE std::optional<row_range> parse_rows_path(std::string_view path, const feeder_rules& rules) {
  const std::string start = "/v1/" + rules.run + "/rows/";
  const std::array<std::string_view, 4> before{start, "/", "-", "-"};
  std::array<std::uint64_t, 4> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (!path.starts_with(before[i])) return std::nullopt;
    path.remove_prefix(before[i].size());
    const std::string_view digits = path.substr(0, path.find_first_not_of("0123456789"));
    const std::optional<std::uint64_t> value = decimal_number(digits);
    if (!value) return std::nullopt;
    numbers[i] = *value;
    path.remove_prefix(digits.size());
  }
  const auto [epoch, first, count, step] = numbers;
  const bool is_valid = path.empty() && first <= max_position && count >= 1 && count <= rules.max_rows && step >= 1 &&
                        step <= max_step;
  if (!is_valid) return std::nullopt;
  return row_range{
      .epoch = epoch, .first = first, .count = static_cast<std::size_t>(count), .step = static_cast<std::size_t>(step)};
}

MILLRACE_INLINE bool is_token(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

/// Returns whether the header contains the token. The time does not depend on the first difference.
MILLRACE_INLINE bool has_token(std::string_view authorization, const std::string& token) {
  const std::string expected = "Bearer " + token;
  int difference = authorization.size() == expected.size() ? 0 : 1;
  for (std::size_t i = 0; i < expected.size(); ++i)
    difference |= (i < authorization.size() ? authorization[i] : '\0') ^ expected[i];
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
  const auto refuse_path = [&](unsigned status, const std::string& expected) {
    return refuse(status, "got \"" + printable(request.path, 200) + "\", expected " + expected);
  };
  if (!request.path.starts_with("/v1/"))
    return refuse_path(404, "/v1/RUN/hello, /v1/RUN/rows/..., /metrics or /healthz");
  const std::string_view rest = request.path.substr(4), run = rest.substr(0, rest.find('/'));
  if (run != rules.run) return {.status = 409, .text = rules.hello};
  if (rest.substr(run.size()) == "/hello") return {.text = rules.hello};
  if (const auto range = parse_rows_path(request.path, rules)) return {.action = feeder_action::rows, .range = *range};
  return refuse_path(400, "/v1/RUN/rows/EPOCH/FIRST-COUNT-STEP with 1 to " + std::to_string(rules.max_rows) +
                              " rows, positions up to 2^62 and 1 to 2^20 ranks");
}

MILLRACE_INLINE void append_header(std::vector<std::byte>& body, std::uint32_t size, std::uint32_t crc) {
  for (const std::uint32_t number : {size, crc})
    for (int shift = 0; shift < 32; shift += 8) body.push_back(static_cast<std::byte>(number >> shift));
}

MILLRACE_INLINE void append_row(std::vector<std::byte>& body, std::span<const std::byte> row) {
  append_header(body, static_cast<std::uint32_t>(row.size()), crc32c(row));
  body.insert(body.end(), row.begin(), row.end());
}

MILLRACE_INLINE void append_missing_row(std::vector<std::byte>& body) { append_header(body, missing_row, 0); }

MILLRACE_INLINE void feeder_row_decoder::fail(const std::string& problem) const {
  throw data_error("the answer of a feeder is not valid at row " + std::to_string(decoded_) + " of " +
                       std::to_string(options_.rows) + ": " + problem,
                   "Check the connection, and use the same version of Millrace on all machines");
}

MILLRACE_INLINE void feeder_row_decoder::read_header(std::span<const std::byte> header) {
  const auto number = [header](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 4; i-- > 0;) value = value << 8 | std::to_integer<std::uint32_t>(header[at + i]);
    return value;
  };
  if (decoded_ == options_.rows) fail("got another row, expected the end");
  const std::uint32_t size = number(0);
  is_header_ = size == missing_row;
  if (is_header_) {
    ++decoded_;
    return;
  }
  if (size > options_.max_row_bytes)
    fail("got " + std::to_string(size) + " bytes, expected at most " + std::to_string(options_.max_row_bytes));
  expected_ = size;
  crc_ = number(4);
}

MILLRACE_INLINE void feeder_row_decoder::add(std::span<const std::byte> piece,
                                             const std::function<void(const row_answer&)>& next) {
  while (!piece.empty() || expected_ == 0) {
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
    if (is_header_) {
      read_header(part);
      row_.clear();
      continue;
    }
    next({decoded_++, part, crc_});
    release_buffer();
    expected_ = header_bytes;
    is_header_ = true;
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
  if (decoded_ < options_.rows || !row_.empty() || !is_header_)
    fail("got the end of the answer, expected " + std::to_string(options_.rows) + " rows");
}

}}}   // namespace millrace::detail
