// The texts and bytes that a trainer and a feeder exchange. These functions do not depend on HTTP.
//
//   const std::string mine = mr::detail::hello_text(identity);                  // of the trainer
//   mr::detail::check_hello({.mine = mine, .theirs = answer, .feeder = "node7:8717"});   // setup_error with both texts
//   const std::string path = mr::detail::rows_path(mr::detail::run_id(mine), range);     // /v1/8f0c.../rows/3/640-64-1
//   mr::detail::feeder_row_decoder rows({.rows = 64, .max_row_bytes = 150'528});
//   rows.add(piece, [&](const mr::detail::row_answer& a) { slots.put(a.row, a.bytes, a.crc); });   // for each piece
//   rows.finish();                                                              // data_error if rows are missing
//
// Two programs compute the same rows only if their identities are equal: texts of lines `name=value`, in the order of
// run_identity. RUN, the run id, is the hash of the trainer's text, so that a cache in front of the feeders never
// serves the rows of another run. A token is in the header Authorization: Bearer.
//
//   GET /v1/RUN/hello                          200: the text of the feeder
//   GET /v1/RUN/rows/EPOCH/FIRST-COUNT-STEP    200: a body
//
// Other answers: 401 if the token is wrong; 409 with the text of the feeder if the runs differ; 429 if the feeder is
// busy; 503 with the header Retry-After (in seconds) if it ends. Each answer may have the header Millrace-Workers: the
// number of workers of the feeder, divided by the number of ranks whose rows it computes.
// A body consists of rows in the order of the request. Each row begins with a header of 8 bytes, little-endian: the
// number of bytes that follow (u32), and their CRC-32C (u32). If the feeder cannot compute the row, because its sample
// is damaged, this number is 2^32 - 1, and no bytes follow. The trainer then computes the row, and reports the damage.
// Errors: setup_error for another run; data_error for a body or a path that is not valid. Untrusted input is safe: no
// size is used before it has been checked against the handshake.
// Threads: pure functions; a decoder is not synchronized. Cost: a copy of each row that arrives in several pieces.
#pragma once

#include <millrace/adapt/feeders/row_storage.hpp>

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The facts that determine the bytes of rows.
struct run_identity {
  std::string library{};   ///< version and mode of Millrace
  std::string program{};   ///< build id of the program, or of the shared library that contains the flow
  row_run run{};
};

/// Returns the identity of this program and of `run`.
run_identity identity_of(row_run run);

/// Returns the identity as a text.
std::string hello_text(const run_identity& of);
/// Returns the hash of an identity, as 16 hexadecimal digits.
std::string run_id(std::string_view hello);

/// The texts of both sides of a handshake.
struct hello_texts {
  std::string_view mine{}, theirs{};
  std::string_view feeder{};   ///< address of the feeder, for errors
};
/// Throws setup_error if the identities differ. The message contains each different line of both texts. Throws
/// data_error if the text of the feeder is not an identity.
void check_hello(const hello_texts& of);

/// The header of an answer that states how many rows the feeder computes at the same time for a rank.
inline constexpr const char* workers_header = "Millrace-Workers";
/// Returns the path of a request for the text of a feeder.
std::string hello_path(std::string_view run);
/// Returns the path of a request for rows.
std::string rows_path(std::string_view run, const row_range& range);
/// The settings of a feeder on which its answers depend.
struct feeder_rules {
  std::string token{};   ///< if empty, no token is needed
  std::string hello{};   ///< hello_text() of the feeder
  std::string run{};     ///< run_id() of `hello`
  std::size_t max_rows = 64;
};
/// Returns the range of a path; empty if the path is not valid, or for another run.
std::optional<row_range> parse_rows_path(std::string_view path, const feeder_rules& rules);
/// Returns whether a text can be a token: whether it consists of printable ASCII characters without spaces.
bool is_token(std::string_view text) noexcept;

/// The parts of a request on which its answer depends.
struct feeder_request {
  std::string_view method{}, path{};
  std::string_view authorization{};   ///< value of the header; empty if it is missing
  bool has_body = false;
};
/// The kind of an answer. `text`: the answer is known immediately. The other kinds are computed rows, current metrics,
/// and the state of the feeder.
enum class feeder_action : std::uint8_t { text, rows, metrics, health };
/// The answer to a request, or the range of its rows.
struct feeder_decision {
  feeder_action action = feeder_action::text;
  unsigned status = 200;
  std::string text{};
  row_range range{};
};

/// Returns the answer to a request. Requests are untrusted: a request cannot name a file, and the texts of refusals are
/// safe to print. The time to compare a token does not depend on the first wrong character.
feeder_decision decide(const feeder_request& request, const feeder_rules& rules);

/// A computed row in a body.
struct row_answer {
  std::size_t row = 0;   ///< number in the request
  std::span<const std::byte> bytes{};
  std::uint32_t crc = 0;
};

/// Appends a row to a body.
void append_row(std::vector<std::byte>& body, std::span<const std::byte> row);
/// Appends the header of a row that the feeder cannot compute.
void append_missing_row(std::vector<std::byte>& body);

/// Unused buffers for rows that arrive in pieces. Decoders share them: the next row uses the last used buffer, which is
/// in the caches of the core.
using row_buffers = std::vector<std::vector<std::byte>>;

/// Decodes a body that arrives in pieces.
class feeder_row_decoder {
 public:
  static constexpr std::size_t header_bytes = 8;   // size of a row's header
  struct options {
    std::size_t rows = 0;             ///< rows of the request
    std::size_t max_row_bytes = 0;    ///< maximum size of a row, from the handshake
    row_buffers* buffers = nullptr;   ///< null: none
  };
  explicit feeder_row_decoder(const options& o) : options_(o) {}
  ~feeder_row_decoder() { release_buffer(); }
  feeder_row_decoder(const feeder_row_decoder&) = delete;
  feeder_row_decoder& operator=(const feeder_row_decoder&) = delete;

  /// Calls `next` for each computed row that is now complete. The bytes of the row are valid during the call. Throws
  /// data_error for a wrong size, or for more rows than requested.
  void add(std::span<const std::byte> piece, const std::function<void(const row_answer&)>& next);
  /// Throws data_error if rows are missing.
  void finish() const;

 private:
  void read_header(std::span<const std::byte> header);
  [[noreturn]] void fail(const std::string& problem) const;
  void release_buffer() noexcept;

  const options options_;
  std::vector<std::byte> row_;   // the first bytes of a header or of a row whose end has not arrived
  std::size_t expected_ = header_bytes, decoded_ = 0;
  std::uint32_t crc_ = 0;
  bool is_header_ = true;   // whether a header follows
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/feeders/impl/row_protocol.inl>
#endif
