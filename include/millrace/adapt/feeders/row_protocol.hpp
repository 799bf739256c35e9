// The texts and bytes that a trainer and a feeder exchange. A feeder is a program that computes rows for trainers on
// other machines. These functions do not depend on HTTP.
//
//   const std::string mine = mr::detail::hello_text(run);                       // of the trainer
//   mr::detail::feeder_run_difference({.mine = mine, .theirs = answer, .feeder = "node7:8717"});   // "": equal
//   const std::string path = mr::detail::rows_path(mr::detail::run_id(mine), range);     // /v1/8f0c.../rows/3/640-64-1
//   mr::detail::feeder_row_decoder rows({.rows = 64, .max_row_bytes = 150'528});
//   rows.add(piece, [&](const mr::detail::row_answer& a) { slots.put(a.row, a.bytes, a.crc); });   // for each piece
//   rows.finish();                                                              // data_error if rows are missing
//
// hello_text() describes a run. A trainer uses a feeder only if both have the same text. In the paths below, RUN (the
// run id) is the hash of the trainer's text. Therefore a cache in front of the feeders never serves the rows of another
// run. If the feeder requires a token, a request contains the header Authorization: Bearer TOKEN.
//
//   GET /v1/RUN/hello                          200: the text of the feeder
//   GET /v1/RUN/rows/EPOCH/FIRST-COUNT-STEP    200: a body
//
// Other answers: 401 if the token is wrong; 409 with the text of the feeder if the runs differ; 429 if the feeder is
// busy; 503 with the header Retry-After (in seconds) if the feeder is stopping; 400, 404, 405 or 413 if the request is
// invalid; 500 after a failure. Each answer may have the header Millrace-Workers. Its value is the number of workers of
// the feeder, divided by the number of ranks with requests in progress. A body consists of rows in the order of the
// request. Each row begins with a header of 8 bytes, little-endian: the number of bytes that follow (u32), and their
// CRC-32C (u32). If the feeder cannot compute the row because its sample is damaged, the number of bytes is 2^32 - 1,
// and no bytes follow. The trainer then computes the row, and reports the damage.
// Errors: data_error for an invalid body; setup_error without a build id. Input is untrusted: sizes above the maximum
// in hello_text() are errors. Threads: pure functions; a decoder is not synchronized. Cost: a copy of each row.
#pragma once

#include <millrace/adapt/feeders/row_storage.hpp>
#include <millrace/base/crc32c.hpp>
#include <millrace/base/digest.hpp>
#include <millrace/base/error.hpp>
#include <millrace/base/text.hpp>

#include <elf.h>
#include <link.h>

#include <cstring>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns the build id that the linker stored in the program or the shared library that contains this function, as
/// hexadecimal digits; empty if there is none.
inline std::string feeder_build_id() {
  std::string id;
  const auto read_notes = [](dl_phdr_info* object, std::size_t, void* to) {
    const std::span headers(object->dlpi_phdr, object->dlpi_phnum);
    const auto here = reinterpret_cast<std::uintptr_t>(&feeder_build_id);
    const auto contains = [&](const auto& h) {
      return h.p_type == PT_LOAD && here - (object->dlpi_addr + h.p_vaddr) < h.p_memsz;
    };
    if (std::none_of(headers.begin(), headers.end(), contains)) return 0;   // the next object
    for (const auto& h : headers) {
      const auto* const notes = reinterpret_cast<const char*>(object->dlpi_addr + h.p_vaddr);
      for (std::size_t at = 0; h.p_type == PT_NOTE && at + sizeof(ElfW(Nhdr)) < h.p_memsz;) {
        const auto& note = *reinterpret_cast<const ElfW(Nhdr)*>(notes + at);
        const char* const name = notes + at + sizeof note;
        const char* const content = name + (note.n_namesz + 3) / 4 * 4;
        if (note.n_type == NT_GNU_BUILD_ID && std::string_view(name, note.n_namesz) == std::string_view("GNU", 4))
          for (std::size_t b = 0; b < note.n_descsz; ++b)
            *static_cast<std::string*>(to) += hex(static_cast<unsigned char>(content[b]), 2);
        at = static_cast<std::size_t>(content - notes) + (note.n_descsz + 3) / 4 * 4;
      }
    }
    return 1;
  };
  ::dl_iterate_phdr(read_notes, &id);
  return id;
}

/// Returns the facts that determine the bytes of rows, as lines `name=value`. `program` is a build id.
inline std::string hello_text(const row_run& run, const std::string& program = feeder_build_id()) {
  if (program.empty())
    throw setup_error(
        "the program has no build id; trainers and feeders compare build ids to detect different programs",
        "Link the program with -Wl,--build-id", {.stage = "feeders"});
  const auto number = [](auto value) { return std::to_string(value); };
  return "protocol=1\nlibrary=millrace " + number(MILLRACE_VERSION_MAJOR) + "." + number(MILLRACE_VERSION_MINOR) + "." +
         number(MILLRACE_VERSION_PATCH) + "\nprogram=" + program + "\norder=" + run.order + "\ncolumns=" + run.columns +
         "\nmax_row_bytes=" + number(run.max_row_bytes) + "\n";
}
/// Returns the hash of a hello_text(), as 16 hexadecimal digits.
inline std::string run_id(std::string_view hello) { return hex(digest_bytes(bytes_of(hello)), 16); }

/// The texts that a trainer compares in a handshake (GET hello): its own and that of the feeder.
struct hello_texts {
  std::string_view mine{}, theirs{};
  std::string_view feeder{};   ///< address of the feeder, for errors
};
/// Returns a sentence with the lines that differ, and the remedy; empty if the texts are equal.
inline std::string feeder_run_difference(const hello_texts& of) {
  if (of.mine == of.theirs) return {};
  std::string lines;
  const auto next_line = [](std::string_view& text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    return line;
  };
  for (std::string_view mine = of.mine, theirs = of.theirs; !mine.empty();) {
    const std::string_view expected = next_line(mine), got = next_line(theirs);
    if (got != expected) lines += "got \"" + printable(got) + "\", expected \"" + printable(expected) + "\"; ";
  }
  return "the feeder " + printable(of.feeder, 300) + " computes the rows of another run: " + lines +
         "all lines must be equal. Start the same program with the same flow and the same shards on all machines, and "
         "check that the port is that of a program that calls feed_rows()";
}

/// The name of an HTTP header of answers. The value of the header is the number of rows that the feeder computes at the
/// same time for a rank.
inline constexpr const char* workers_header = "Millrace-Workers";
/// Returns the path of a request for the text of a feeder.
inline std::string hello_path(std::string_view run) { return "/v1/" + std::string(run) + "/hello"; }
/// Returns the path of a request for rows.
inline std::string rows_path(std::string_view run, const row_range& range) {
  return "/v1/" + std::string(run) + "/rows/" + std::to_string(range.epoch) + "/" + std::to_string(range.first) + "-" +
         std::to_string(range.count) + "-" + std::to_string(range.step);
}
/// The settings of a feeder on which its answers depend.
struct feeder_rules {
  std::string token{};   ///< if empty, no token is needed
  std::string hello{};   ///< hello_text() of the feeder
  std::string run{};     ///< run_id() of `hello`
  std::size_t max_rows = 64;
};
/// Returns the range of a path; empty if the path is not valid or names another run.
inline std::optional<row_range> parse_rows_path(std::string_view path, const feeder_rules& rules) {
  std::uint64_t numbers[4]{};
  std::size_t at = std::strlen("/v1/") + rules.run.size() + std::strlen("/rows/");
  for (std::uint64_t& number : numbers) {
    const std::string_view rest = path.substr(std::min(at, path.size()));
    const std::string_view digits = rest.substr(0, rest.find_first_not_of("0123456789"));
    number = decimal_number(digits).value_or(0);
    at += digits.size() + 1;
  }
  const row_range range{.epoch = numbers[0], .first = numbers[1], .count = numbers[2], .step = numbers[3]};
  const bool is_valid = range.first <= std::uint64_t{1} << 62 && range.count >= 1 && range.count <= rules.max_rows &&
                        range.step >= 1 && range.step <= 1 << 20 && path == rows_path(rules.run, range);
  return is_valid ? std::optional(range) : std::nullopt;
}

/// Returns whether a text can be a token: whether it consists of printable ASCII characters without spaces.
inline bool is_token(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}
/// Returns whether the header contains the token. The duration does not depend on the position of the first difference,
/// so that it does not help a client to guess the token.
inline bool has_bearer_token(std::string_view authorization, const std::string& token) {
  const std::string expected = "Bearer " + token;
  int difference = authorization.size() == expected.size() ? 0 : 1;
  for (std::size_t i = 0; i < expected.size(); ++i)
    difference |= (i < authorization.size() ? authorization[i] : '\0') ^ expected[i];
  return difference == 0;
}

/// The parts of a request on which its answer depends.
struct feeder_request {
  std::string_view method{}, path{};
  std::string_view authorization{};   ///< value of the header; empty if it is missing
  bool has_body = false;
};
/// The kind of an answer. `text`: the answer is known immediately. The other kinds are computed rows, current metrics,
/// and the state of the feeder.
enum class feeder_action : std::uint8_t { text, rows, metrics, health };
/// The answer to a request, or the range of the rows to compute for the answer.
struct feeder_decision {
  feeder_action action = feeder_action::text;
  unsigned status = 200;
  std::string text{};
  row_range range{};
};

/// Returns the answer to a request. A request cannot name a file. The texts of refusals are safe to print.
inline feeder_decision decide_feed(const feeder_request& request, const feeder_rules& rules) {
  const auto refuse = [](unsigned status, const std::string& text) {
    return feeder_decision{.status = status, .text = text + "\n"};
  };
  if (request.method != "GET") return refuse(405, "got another method, expected GET");
  if (request.has_body) return refuse(413, "got a body, expected none");
  if (request.path == "/healthz") return {.action = feeder_action::health};
  if (!rules.token.empty() && !has_bearer_token(request.authorization, rules.token))
    return refuse(401, "the token is wrong or missing: expected the header Authorization: Bearer TOKEN");
  if (request.path == "/metrics") return {.action = feeder_action::metrics};
  if (request.path == hello_path(rules.run)) return {.text = rules.hello};
  if (const auto range = parse_rows_path(request.path, rules)) return {.action = feeder_action::rows, .range = *range};
  const bool is_versioned = request.path.starts_with("/v1/");
  if (is_versioned && request.path.substr(4, request.path.find('/', 4) - 4) != rules.run)
    return {.status = 409, .text = rules.hello};
  return refuse(is_versioned ? 400 : 404,
                "got \"" + printable(request.path, 200) + "\", expected /metrics, /healthz, /v1/RUN/hello, or " +
                    "/v1/RUN/rows/EPOCH/FIRST-COUNT-STEP with 1 to " + std::to_string(rules.max_rows) +
                    " rows, positions up to 2^62 and 1 to 2^20 ranks");
}

/// The size in the header of a row that a feeder cannot compute.
inline constexpr std::uint32_t missing_row = 0xffffffff;
/// Appends the header of a row to a body.
inline void append_header(std::vector<std::byte>& body, std::uint32_t size, std::uint32_t crc) {
  for (const std::uint32_t number : {size, crc})
    for (int shift = 0; shift < 32; shift += 8) body.push_back(static_cast<std::byte>(number >> shift));
}
/// Appends a row to a body.
inline void append_row(std::vector<std::byte>& body, std::span<const std::byte> row) {
  append_header(body, static_cast<std::uint32_t>(row.size()), crc32c(row));
  body.insert(body.end(), row.begin(), row.end());
}
/// Appends the header of a row that the feeder cannot compute.
inline void append_missing_row(std::vector<std::byte>& body) { append_header(body, missing_row, 0); }

/// A computed row in a body.
struct row_answer {
  std::size_t row = 0;   ///< index of the row in the request, from 0
  std::span<const std::byte> bytes{};
  std::uint32_t crc = 0;
};

/// Unused row buffers. All decoders share them. A new row uses the buffer that was returned last, because this buffer
/// is probably still in the CPU caches.
using row_buffers = std::vector<std::vector<std::byte>>;

/// Decodes a body that arrives in pieces.
class feeder_row_decoder {
 public:
  static constexpr std::size_t header_bytes = 8;   // size of a row's header
  struct options {
    std::size_t rows = 0;             ///< rows of the request
    std::size_t max_row_bytes = 0;    ///< maximum size of a row (row_run::max_row_bytes)
    row_buffers* buffers = nullptr;   ///< unused buffers of all decoders; may be null
  };
  explicit feeder_row_decoder(const options& o) : options_(o) {}

  /// Calls `next` for each computed row that is now complete. The bytes of the row are valid during the call. Throws
  /// data_error for a wrong size, or for more rows than requested.
  void add(std::span<const std::byte> piece, const std::function<void(const row_answer&)>& next) {
    while (!piece.empty()) {
      if (row_.empty() && options_.buffers && !options_.buffers->empty()) {
        row_.swap(options_.buffers->back());
        options_.buffers->pop_back();
      }
      const std::size_t bytes = std::min(expected_ - row_.size(), piece.size());
      row_.reserve(expected_);
      row_.insert(row_.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(bytes));
      piece = piece.subspan(bytes);
      if (row_.size() < expected_) return;
      const std::uint32_t size = number(0);
      if (expected_ == header_bytes) {
        if (decoded_ == options_.rows) fail("got another row, expected the end");
        if (size != missing_row && size > options_.max_row_bytes)
          fail("got " + std::to_string(size) + " bytes, expected at most " + std::to_string(options_.max_row_bytes));
        if (size != missing_row && size > 0) {
          expected_ += size;
          continue;
        }
      }
      if (size != missing_row) next({decoded_, std::span(row_).subspan(header_bytes), number(4)});
      ++decoded_;
      expected_ = header_bytes;
      row_.clear();
      if (options_.buffers) options_.buffers->push_back(std::exchange(row_, {}));
    }
  }
  /// Throws data_error if rows are missing.
  void finish() const {
    if (decoded_ < options_.rows || !row_.empty())
      fail("got the end of the answer, expected " + std::to_string(options_.rows) + " rows");
  }

 private:
  std::uint32_t number(std::size_t at) const noexcept {
    std::uint32_t value = 0;
    for (std::size_t i = 4; i-- > 0;) value = value << 8 | std::to_integer<std::uint32_t>(row_[at + i]);
    return value;
  }
  [[noreturn]] void fail(const std::string& problem) const {
    throw data_error("the answer of a feeder is not valid at row " + std::to_string(decoded_) + " of " +
                         std::to_string(options_.rows) + ": " + problem,
                     "Check the connection, and use the same version of Millrace on all machines");
  }

  const options options_;
  std::vector<std::byte> row_;   // a header, and the row
  std::size_t expected_ = header_bytes, decoded_ = 0;
};

}}}   // namespace millrace::detail
