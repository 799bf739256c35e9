// A libFuzzer target: answers of feeders and paths of requests. The references are a decoder of complete bodies, a
// reader of texts line by line, and the inverse functions. fuzz.py builds and runs it.
//
// The first byte of the input chooses between a body, a text and a path, and the number of rows and bytes per piece.
#include <millrace/adapt/feeders/row_protocol.hpp>
#include <millrace/base/crc32c.hpp>

#include "fuzz_target.hpp"
#include "text_mutator.hpp"

#include <optional>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

namespace mr = millrace;

constexpr std::size_t max_row_bytes = 64;
constexpr std::string_view run = "00c0ffee00c0ffee";

/// A computed row, with its own memory.
struct answer_part {
  std::size_t row;
  std::string content;
  std::uint32_t crc;
  bool operator==(const answer_part&) const = default;
};

/// Returns the rows of a body; empty if it is not valid.
std::optional<std::vector<answer_part>> decode_in_pieces(std::span<const std::byte> body, std::size_t rows,
                                                         std::size_t piece) {
  std::vector<answer_part> all;
  mr::detail::feeder_row_decoder decoder({.rows = rows, .max_row_bytes = max_row_bytes});
  try {
    for (std::size_t at = 0; at < body.size(); at += piece)
      decoder.add(body.subspan(at, std::min(piece, body.size() - at)), [&](const mr::detail::row_answer& a) {
        slow::expect(a.bytes.size() <= max_row_bytes, "a row is larger than in the handshake");
        all.push_back({a.row, std::string(slow::text_of(a.bytes)), a.crc});
      });
    decoder.finish();
  } catch (const mr::data_error&) {
    return std::nullopt;
  }
  return all;
}

std::optional<std::vector<answer_part>> decode_at_once(std::span<const std::byte> body, std::size_t rows) {
  std::vector<answer_part> all;
  std::string_view rest = slow::text_of(body);
  const auto number = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 4; i-- > 0;) value = value * 256 + static_cast<unsigned char>(rest[at + i]);
    return value;
  };
  for (std::size_t row = 0; row < rows; ++row) {
    if (rest.size() < 8) return std::nullopt;
    const std::uint32_t size = number(0), crc = number(4);
    rest.remove_prefix(8);
    if (size == 0xffffffff) continue;   // not computed
    if (size > max_row_bytes || size > rest.size()) return std::nullopt;
    all.push_back({row, std::string(rest.substr(0, size)), crc});
    rest.remove_prefix(size);
  }
  if (!rest.empty()) return std::nullopt;
  return all;
}

bool check_body(std::span<const std::byte> body, unsigned knob) {
  const std::size_t rows = 1 + knob % 4, piece = 1 + knob / 4 % 21;
  const auto parts = decode_in_pieces(body, rows, piece);
  slow::expect(parts == decode_at_once(body, rows), "the decoders disagree");
  if (!parts) return false;
  std::vector<std::byte> again;
  std::size_t next = 0;
  for (const answer_part& p : *parts) {
    for (; next < p.row; ++next) mr::detail::append_missing_row(again);
    mr::detail::append_row(again, mr::detail::bytes_of(p.content));
    ++next;
    if (mr::crc32c(mr::detail::bytes_of(p.content)) != p.crc) return true;   // the session checks rows
  }
  for (; next < rows; ++next) mr::detail::append_missing_row(again);
  slow::expect(again.size() == body.size(), "a body has another size when it is written again");
  return true;
}

std::vector<std::string> seeds_of(unsigned kind) {
  if (kind == 1)
    return {mr::detail::hello_text({.order = "millrace version=6 seed=7",
                                    .columns = "pixels [8, 4] u8",
                                    .max_row_bytes = max_row_bytes})};
  if (kind == 2)
    return {mr::detail::rows_path(run, {.epoch = 3, .first = 640, .count = 64, .step = 8}),
            mr::detail::rows_path(run, {.count = 1})};
  std::vector<std::string> all;
  for (const std::size_t rows : {1, 2, 4}) {
    std::vector<std::byte> body;
    for (std::size_t row = 0; row < rows; ++row)
      mr::detail::append_row(body, std::vector<std::byte>(row * 20, static_cast<std::byte>(row)));
    all.emplace_back(slow::text_of(body));
    mr::detail::append_missing_row(body);
    all.emplace_back(slow::text_of(body));
  }
  return all;
}

bool check_hello(std::string_view text) {
  const std::string mine = seeds_of(1)[0];
  const std::string difference =
      mr::detail::feeder_run_difference({.mine = mine, .theirs = text, .feeder = "node7:8717"});
  slow::expect(difference.empty() == (text == mine), "the text of another run was accepted");
  for (const char c : difference)
    if (c < ' ' || c > '~') slow::fail("a text that is not safe to print");
  return difference.empty();
}

bool check_path(std::string_view path) {
  const auto range = mr::detail::parse_rows_path(path, {.run = std::string(run)});
  if (!range) return false;
  slow::expect(range->count >= 1 && range->count <= 64 && range->step >= 1, "a range is out of its limits");
  slow::expect(mr::detail::parse_rows_path(mr::detail::rows_path(run, *range), {.run = std::string(run)}) == range,
               "a range changes when it is written again");
  return true;
}

}   // namespace

void slow::write_seeds(const seed_folder& seeds) {
  for (unsigned kind = 0; kind < 3; ++kind)
    for (const std::string& text : seeds_of(kind))
      for (unsigned more = 0; more < 84; more += 1 + 20 * kind)
        seeds.add(std::string(1, static_cast<char>(kind * 84 + more)) + text);
}

void slow::check(std::span<const std::byte> input, draw) {
  const unsigned knob = take_knob(input), kind = knob / 84;
  counters().count(kind == 1   ? check_hello(text_of(input))
                   : kind >= 2 ? check_path(text_of(input))
                               : check_body(input, knob));
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  mr::rng d({.seed = seed});
  if (d.chance(0.1)) {
    const unsigned kind = static_cast<unsigned>(d.below(3));
    const auto texts = seeds_of(kind);
    const std::string text = std::string(1, static_cast<char>(kind * 84 + d.below(84))) + texts[d.below(texts.size())];
    return slow::text_mutator::restart_with(text, data, max_size);
  }
  if (size == 0 || data[0] < 84) return LLVMFuzzerMutate(data, size, max_size);
  return slow::text_mutator(d, LLVMFuzzerMutate, {"protocol=1", "max_row_bytes=64", "\n", "rows", "/", "-", "640"})
      .change(data, size, max_size, 1);
}
