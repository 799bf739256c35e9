// A libFuzzer target: requests to a feeder, and the addresses at which it listens. The decisions must match a second
// reader, which is built from regular expressions. fuzz.py builds and runs it.
#include <millrace/adapt/feeders/feeder_hosts.hpp>
#include <millrace/adapt/feeders/row_protocol.hpp>

#include "fuzz_target.hpp"
#include "text_mutator.hpp"

#include <optional>
#include <regex>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

namespace mr = millrace;

const std::string run = "00c0ffee00c0ffee", token = "secret";

std::optional<std::uint64_t> at_most(const std::string& digits, std::uint64_t most) {
  __extension__ unsigned __int128 value = 0;
  for (const char c : digits) {
    value = 10 * value + static_cast<unsigned>(c - '0');
    if (value > most) return std::nullopt;
  }
  return static_cast<std::uint64_t>(value);
}

struct expected_answer {
  unsigned status = 200;
  std::optional<mr::row_range> range{};
};

expected_answer slowly(const std::string& method, const std::string& path, const std::string& authorization) {
  static const std::regex hello("/v1/[^/]*/hello"), number("0|[1-9]\\d*"),
      rows("/v1/[^/]*/rows/(\\d+)/(\\d+)-(\\d+)-(\\d+)");
  if (method != "GET") return {405};
  if (path == "/healthz") return {200};
  if (authorization != "Bearer " + token) return {401};
  if (path == "/metrics") return {200};
  std::smatch part;
  if (path.rfind("/v1/", 0) != 0) return {404};
  if (path.substr(4, path.find('/', 4) - 4) != run) return {409};
  if (std::regex_match(path, hello)) return {200};
  constexpr std::uint64_t all = ~std::uint64_t{0};
  if (!std::regex_match(path, part, rows)) return {400};
  for (std::size_t i = 1; i < part.size(); ++i)   // leading zeros are refused
    if (!std::regex_match(part[i].str(), number)) return {400};
  const auto epoch = at_most(part[1], all), first = at_most(part[2], all), count = at_most(part[3], all),
             step = at_most(part[4], all);
  if (!epoch || !first || !count || !step) return {400};
  if (*count < 1 || *count > 64 || *first > std::uint64_t{1} << 62 || *step < 1 || *step > 1 << 20) return {400};
  return {200, mr::row_range{.epoch = *epoch, .first = *first, .count = static_cast<std::size_t>(*count),
                             .step = static_cast<std::size_t>(*step)}};
}

/// The lines of the input: a path, a method, a header.
void check_request(std::string_view text) {
  std::string lines[3];
  for (std::string& line : lines) {
    line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  const auto& [path, method, authorization] = lines;
  const mr::detail::feeder_decision ours =
      mr::detail::decide_feed({.method = method, .path = path, .authorization = authorization},
                              {.token = token, .hello = "hello\n", .run = run, .max_rows = 64});
  const expected_answer expected = slowly(method, path, authorization);
  slow::counters().count(ours.status == 200);
  if (ours.status != expected.status)
    slow::fail("status " + std::to_string(ours.status) + ", expected " + std::to_string(expected.status));
  if ((ours.action == mr::detail::feeder_action::rows) != expected.range.has_value()) slow::fail("another action");
  if (expected.range && !(ours.range == *expected.range)) slow::fail("another range");
  for (const char c : ours.text)
    if (c != '\n' && (c < ' ' || c > '~')) slow::fail("a text that is not safe to print");
}

void check_address(const std::string& text) {
  static const std::regex address("(?:\\[[^/@\\[\\]]+\\]|[^/@\\[\\]:{},?#\\\\ \\t\\r\\n]+):(\\d+)");
  std::smatch part;
  const bool valid = std::regex_match(text, part, address) && at_most(part[1], 65'535);
  const auto ours = mr::detail::split_host_port(text);
  slow::counters().count(ours.has_value());
  if (ours.has_value() != valid) slow::fail(ours ? "an address was accepted" : "an address was refused");
  if (ours && ours->port != part[1]) slow::fail("another port");
}

}  // namespace

void slow::write_seeds(const seed_folder& seeds) {
  for (const char* path :
       {"/v1/00c0ffee00c0ffee/rows/3/640-64-8", "/v1/00c0ffee00c0ffee/hello", "/v1/0badf00d0badf00d/hello",
        "/v1/0badf00d0badf00d/rows/0/0-1-1", "/metrics", "/healthz", "/v1/00c0ffee00c0ffee/rows/3/640-65-8",
        "/v1/00c0ffee00c0ffee/rows/18446744073709551616/0-1-1", "/../../etc/passwd"})
    for (const char* rest : {"\nGET\nBearer secret", "\nGET\nBearer secrex", "\nPOST\n"})
      seeds.add(std::string(1, '\0') + path + rest);
  for (const char* text : {"127.0.0.1:8717", "[::]:0", "[::1]:65535", "localhost:65536", "::1", ":1", "host:"})
    seeds.add(std::string(1, '\1') + text);
}

void slow::check(std::span<const std::byte> input, draw) {
  const unsigned knob = take_knob(input);
  const std::string_view text = text_of(input);
  if (knob % 4 == 1) check_address(std::string(text.substr(0, 100)));   // std::regex recurses
  else check_request(text.substr(0, 200));
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  mr::rng d({.seed = seed});
  return slow::text_mutator(d, LLVMFuzzerMutate,
                            {"/v1/", "00c0ffee00c0ffee", "/rows/", "/hello", "-", "/", "\n", "GET", "Bearer ", "secret",
                             "64", "65", "1048576", "4611686018427387904", "[", "]", ":", "/metrics", "/healthz"})
      .change(data, size, max_size, 1);
}
