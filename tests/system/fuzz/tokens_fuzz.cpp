// A libFuzzer target: files of tokens that other programs wrote. The layout of .npy files, of files of llm.c and of
// flat files, the .idx files of Megatron, and the stored tokens are compared with slow readers. fuzz.py builds and runs
// it.
//
// The first byte of an input selects the reader, and whether the size of the file is repaired.
#include <millrace/sources/token_windows.hpp>
#include <millrace/sources/token_layout.hpp>

#include "fuzz_target.hpp"
#include "slow_npy.hpp"
#include "text_mutator.hpp"

#include <optional>
#include <set>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

namespace mr = millrace;
using mr::detail::file_kind;
using slow::wide;

enum class subject : unsigned { layout, padded_layout, index, values };
constexpr unsigned subjects = 4;
constexpr unsigned repaired = 0x80;

template <class T>
T number_at(std::string_view bytes, std::size_t at) {
  T value{};
  for (std::size_t i = 0; i < sizeof(T) && at + i < bytes.size(); ++i)
    value |= static_cast<T>(T{static_cast<unsigned char>(bytes[at + i])} << 8 * i);
  return value;
}

template <class T>
std::string text_of_number(T value) {
  std::string text;
  for (std::size_t i = 0; i < sizeof(T); ++i) text += static_cast<char>(static_cast<std::uint64_t>(value) >> 8 * i);
  return text;
}

bool is_npy(std::string_view front) { return front.starts_with("\x93NUMPY"); }

bool is_llm_c(std::string_view front) {
  const auto magic = number_at<std::uint32_t>(front, 0);
  const bool has_magic = magic == 20240520 || magic == 20240801 || magic == 20240522;
  return has_magic && front.size() == 1024 && number_at<std::uint32_t>(front, 4) < 256 &&
         front.find_first_not_of('\0', 64) == std::string_view::npos;
}

struct slow_layout {
  wide first_byte = 0, tokens = 0, bytes = 0;
  bool is_signed = false;
};

/// The layout that the header of a file declares, whatever its size; nothing if the header is invalid.
std::optional<slow_layout> declared(std::string_view front) {
  if (is_llm_c(front)) {
    const auto magic = number_at<std::uint32_t>(front, 0);
    if (magic == 20240522) return std::nullopt;
    return slow_layout{1024, number_at<std::uint32_t>(front, 8), magic == 20240801 ? 4U : 2U};
  }
  if (front.size() < 12) return std::nullopt;
  const unsigned version = static_cast<unsigned char>(front[6]);
  if (version < 1 || version > 3) return std::nullopt;
  const std::size_t begin = version == 1 ? 10 : 12;
  const std::size_t length = version == 1 ? number_at<std::uint16_t>(front, 8) : number_at<std::uint32_t>(front, 8);
  if (begin + length > front.size()) return std::nullopt;
  const auto header = slow::parse_npy_header(std::string(front.substr(begin, length)));
  static const std::set<std::string> types{"<u1", "<u2", "<u4", "<u8", "<i1", "<i2", "<i4", "<i8",
                                           "|u1", "|u2", "|u4", "|u8", "|i1", "|i2", "|i4", "|i8"};
  if (!header || !types.contains(header->type) || header->shape.empty() || header->shape.size() > 2)
    return std::nullopt;
  if (header->fortran_order && header->shape.size() == 2) return std::nullopt;
  const wide tokens = wide{header->shape[0]} * (header->shape.size() == 2 ? header->shape[1] : 1);
  return slow_layout{begin + length, tokens, static_cast<unsigned>(header->type[2] - '0'), header->type[1] == 'i'};
}

/// Whether every second number is at most `most`, and the others have at least eight values.
bool has_empty_halves(std::string_view front, std::size_t bytes, std::uint32_t most) {
  std::set<std::uint32_t> others;
  const std::size_t numbers = front.size() / bytes;
  for (std::size_t i = 0; i < numbers; ++i) {
    const auto n = bytes == 2 ? number_at<std::uint16_t>(front, 2 * i) : number_at<std::uint32_t>(front, 4 * i);
    if (i % 2 == 0) others.insert(n);
    else if (n > most) return false;
  }
  return numbers >= 32 && others.size() >= 8;
}

void check_layout(std::string front, bool is_repaired, slow::draw& choose) {
  using slow::expect;
  static const char* const names[] = {"a.bin", "a.u8", "a.i16", "b/a.u32", "a.i64", "u16", "a.u"};
  static constexpr std::size_t bytes_by_name[] = {2, 1, 2, 4, 8, 2, 2};
  const std::size_t name = choose.below(std::size(names));
  mr::detail::token_layout_options options;
  if (choose.below(2) == 0) options.token_bytes = std::size_t{1} << choose.below(4);
  if (choose.below(16) == 0) options.header_bytes = choose.below(40);
  const bool has_header = !options.header_bytes && (is_npy(front) || is_llm_c(front));
  const auto header = has_header ? declared(front) : std::nullopt;
  wide size = front.size();
  if (header && is_repaired) size = header->first_byte + std::min(header->tokens, wide{1} << 59) * header->bytes;
  else if (front.size() == 1024) size += choose.below(9);
  if (size < front.size() || size >> 62 != 0) size = front.size();
  const auto file_bytes = static_cast<std::uint64_t>(size);
  front.resize(static_cast<std::size_t>(std::min<std::uint64_t>(file_bytes, 1024)), 'y');

  static const slow::guarded_bytes memory;
  std::optional<mr::detail::token_layout> ours;
  try {
    ours = mr::detail::layout_of_tokens({.name = names[name],
                                         .front = memory.of(mr::detail::bytes_of(front)),
                                         .file_bytes = file_bytes},
                                        options);
  } catch (const mr::data_error&) {
  }
  slow::counters().count(ours.has_value());
  std::optional<slow_layout> expected;
  if (has_header) {
    expected = header;
    if (expected && options.token_bytes > 0 && options.token_bytes != expected->bytes) expected.reset();
    if (expected && expected->first_byte + expected->tokens * expected->bytes != file_bytes) expected.reset();
  } else {
    const wide first = options.header_bytes.value_or(0);
    const std::size_t bytes = options.token_bytes > 0 ? options.token_bytes : bytes_by_name[name];
    if (first <= file_bytes && (file_bytes - first) % bytes == 0)
      expected = slow_layout{first, (file_bytes - first) / bytes, bytes, names[name][2] == 'i'};
    const auto kind = mr::detail::kind_of_file({.front = mr::detail::bytes_of(front), .file_bytes = file_bytes});
    const bool is_text = bytes == 1 && mr::detail::is_textual(kind);
    if (!options.header_bytes && kind != file_kind::unknown && !is_text) expected.reset();
    const bool may_be_wider = !options.header_bytes && options.token_bytes == 0 && (bytes == 2 || bytes == 4);
    if (may_be_wider && has_empty_halves(front, bytes, bytes == 2 ? 3 : 0)) expected.reset();
  }
  if (ours.has_value() != expected.has_value())
    slow::fail(ours ? "an invalid file was accepted" : "a file was refused");
  if (!ours) return;
  expect(ours->first_byte == expected->first_byte && ours->tokens == expected->tokens, "tokens at other places");
  expect(ours->type.bytes == expected->bytes && ours->type.is_signed == expected->is_signed, "another type");
}

/// Two files in memory.
struct vault {
  struct file {
    std::string_view bytes;

    mr::file_identity identity() const { return {.size_bytes = bytes.size(), .version = "1"}; }
    std::size_t read_at(std::uint64_t at, std::span<std::byte> buffer) const {
      return slow::span_source(mr::detail::bytes_of(bytes)).read_at(at, buffer);
    }
  };
  std::string_view idx;

  std::unique_ptr<file> open(const std::string& name) const {
    return name == "a.idx" ? std::make_unique<file>(file{idx}) : nullptr;
  }
};

struct slow_documents {
  mr::detail::token_type type{};
  std::vector<std::uint64_t> first_tokens{};
  std::uint64_t empty = 0;
};

mr::detail::token_type type_of_code(unsigned code) {
  switch (code) {
    case 1: return {1, false};
    case 2: return {1, true};
    case 3: return {2, true};
    case 4: return {4, true};
    case 5: return {8, true};
    case 8: return {2, false};
    default: return {0, false};
  }
}

/// The documents of an .idx file, and `bin_bytes`, the size of its .bin file; nothing if the file is invalid.
std::optional<slow_documents> read_documents(std::string_view idx, wide& bin_bytes) {
  using namespace std::string_view_literals;
  if (idx.size() < 34 || !idx.starts_with("MMIDIDX\0\0"sv) || number_at<std::uint64_t>(idx, 9) != 1)
    return std::nullopt;
  slow_documents d{.type = type_of_code(static_cast<unsigned char>(idx[17]))};
  if (d.type.bytes == 0) return std::nullopt;
  const wide sequences = number_at<std::uint64_t>(idx, 18), bounds = number_at<std::uint64_t>(idx, 26);
  const wide size = 34 + 12 * sequences + 8 * bounds;
  if (bounds == 0 || (idx.size() != size && idx.size() != size + sequences)) return std::nullopt;
  std::vector<std::uint64_t> token_of_sequence{0};
  for (std::size_t i = 0; i < sequences; ++i) {
    const auto length = static_cast<std::int32_t>(number_at<std::uint32_t>(idx, 34 + 4 * i));
    const auto offset = number_at<std::uint64_t>(idx, static_cast<std::size_t>(34 + 4 * sequences + 8 * i));
    if (length < 0 || offset != token_of_sequence.back() * d.type.bytes) return std::nullopt;
    token_of_sequence.push_back(token_of_sequence.back() + static_cast<std::uint64_t>(length));
  }
  std::vector<std::uint64_t> places;
  for (std::size_t i = 0; i < bounds; ++i)
    places.push_back(number_at<std::uint64_t>(idx, static_cast<std::size_t>(34 + 12 * sequences + 8 * i)));
  if (places.front() != 0 || places.back() != sequences || !std::is_sorted(places.begin(), places.end()))
    return std::nullopt;
  for (std::size_t i = 0; i + 1 < bounds; ++i) {
    const std::uint64_t begin = token_of_sequence[places[i]], end = token_of_sequence[places[i + 1]];
    if (begin == end) ++d.empty;
    else d.first_tokens.push_back(begin);
  }
  d.first_tokens.push_back(token_of_sequence.back());
  bin_bytes = wide{token_of_sequence.back()} * d.type.bytes;
  return d;
}

void check_index(std::string_view idx, bool is_repaired, slow::draw& choose) {
  using slow::expect;
  wide size = 0;
  auto expected = read_documents(idx, size);
  const std::uint64_t bin_bytes = is_repaired && expected ? static_cast<std::uint64_t>(size) : choose.below(40);
  if (bin_bytes != size) expected.reset();
  const mr::storage at{vault{idx}};
  const auto type = mr::detail::megatron_token_type(at, "a.bin");
  std::optional<mr::detail::megatron_index> ours;
  try {
    ours = mr::detail::read_megatron_index(at, "a.bin", bin_bytes);
    expect(ours.has_value(), "the index was ignored");
  } catch (const mr::data_error&) {
  }
  slow::counters().count(ours.has_value());
  if (ours.has_value() != expected.has_value())
    slow::fail(ours ? "an invalid index was accepted" : "an index was refused");
  if (!ours) return;
  expect(ours->type.bytes == expected->type.bytes && ours->type.is_signed == expected->type.is_signed, "another type");
  expect(type && type->bytes == ours->type.bytes && type->is_signed == ours->type.is_signed,
         "another type by the head");
  expect(ours->first_tokens == expected->first_tokens, "other documents");
  expect(ours->empty_documents == expected->empty, "another number of empty documents");
}

void check_values(std::string_view stored, slow::draw& choose) {
  const mr::detail::token_type type{.bytes = std::size_t{1} << choose.below(4), .is_signed = choose.below(2) == 0};
  static constexpr std::uint32_t limits[] = {0, 127, 50'256, 0x7fffffff, 0xffffffff};
  const std::uint32_t max_id = limits[choose.below(std::size(limits))];
  const std::size_t count = stored.size() / type.bytes;
  static const slow::guarded_bytes memory;
  const auto exact = memory.of(mr::detail::bytes_of(stored.substr(0, count * type.bytes)));
  std::vector<std::uint32_t> ids(count);
  const std::size_t first = mr::detail::decode_tokens(exact.data(), type, max_id, ids);
  slow::counters().count(first == count);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t value = 0;
    for (std::size_t k = 0; k < type.bytes; ++k)
      value |= std::uint64_t{static_cast<unsigned char>(stored[i * type.bytes + k])} << 8 * k;
    const bool is_negative = type.is_signed && value >> (8 * type.bytes - 1) != 0;
    const bool is_wrong = is_negative || value > max_id;
    if (i == first || is_wrong) {
      slow::expect(i == first && is_wrong, "another first token that is not an id");
      return;
    }
    slow::expect(ids[i] == value, "another token");
  }
}

std::string npy_file(mr::rng& d) {
  static const char* const types[] = {"<u2", "<u4", "|u1", "<i8", "<i4", "<f4"};
  static const char* const shapes[] = {"(3,)", "(2, 3)", "(0,)", "(3)", "(4294967296, 4294967296)", "()"};
  std::string header = std::string("{'descr': '") + types[d.below(std::size(types))] +
                       "', 'fortran_order': " + (d.chance(0.1) ? "True" : "False") +
                       ", 'shape': " + shapes[d.below(std::size(shapes))] + ", }\n";
  const bool is_short = d.chance(0.7);
  const auto size = static_cast<std::uint32_t>(header.size());
  return std::string("\x93NUMPY") + (is_short ? '\1' : '\2') + '\0' +
         (is_short ? text_of_number(static_cast<std::uint16_t>(size)) : text_of_number(size)) + header;
}

std::string llm_c_file(mr::rng& d) {
  const std::uint32_t magics[] = {20240520, 20240801, 20240522};
  return text_of_number(magics[d.below(3)]) + text_of_number(std::uint32_t{1}) +
         text_of_number(static_cast<std::uint32_t>(d.below(9)));
}

std::string megatron_file(mr::rng& d) {
  static constexpr std::uint8_t codes[] = {1, 2, 3, 4, 5, 8, 6};
  const std::size_t code = codes[d.below(std::size(codes))],
                    bytes = std::max<std::size_t>(1, type_of_code(code & 15).bytes);
  const std::uint64_t sequences = d.below(6), documents = d.below(4);
  std::string lengths, offsets, bounds = text_of_number(std::uint64_t{0});
  std::uint64_t offset = 0;
  for (std::uint64_t i = 0; i < sequences; ++i) {
    const auto length = static_cast<std::uint32_t>(d.below(4));
    lengths += text_of_number(length);
    offsets += text_of_number(offset);
    offset += length * bytes;
  }
  for (std::uint64_t i = 0, at = 0; i < documents; ++i)
    bounds += text_of_number(at = i + 1 == documents ? sequences : at + d.below(sequences - at + 1));
  return std::string("MMIDIDX\0\0", 9) + text_of_number(std::uint64_t{1}) + static_cast<char>(code) +
         text_of_number(sequences) + text_of_number(documents + 1) + lengths + offsets + bounds +
         std::string(d.chance(0.2) ? sequences : 0, '\0');
}

std::string valid_input(mr::rng& d) {
  const auto with = [&](subject what, const std::string& file) {
    return std::string(1, static_cast<char>(static_cast<unsigned>(what) + subjects * d.below(32) +
                                            (d.chance(0.7) ? repaired : 0))) +
           file;
  };
  switch (d.below(5)) {
    case 0: return with(subject::layout, npy_file(d));
    case 1: return with(subject::padded_layout, llm_c_file(d));
    case 2: return with(subject::layout, std::string(d.below(200), static_cast<char>(d.below(256))));
    case 3: return with(subject::values, std::string(d.below(80), '\0'));
    default: return with(subject::index, megatron_file(d));
  }
}

}  // namespace

void slow::write_seeds(const seed_folder& seeds) {
  mr::rng d({.seed = 1});
  for (int i = 0; i < 100; ++i) seeds.add(valid_input(d));
}

void slow::check(std::span<const std::byte> input, draw choose) {
  const unsigned knob = take_knob(input);
  std::string file(text_of(input));
  const bool is_repaired = (knob & repaired) != 0;
  switch (static_cast<subject>(knob % subjects)) {
    case subject::index: return check_index(file, is_repaired, choose);
    case subject::values: return check_values(file, choose);
    case subject::padded_layout: file.resize(1024, '\0'); break;
    default: break;
  }
  check_layout(std::move(file), is_repaired, choose);
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  mr::rng d({.seed = seed});
  if (d.chance(0.3)) size = slow::text_mutator::restart_with(valid_input(d), data, max_size);
  if (d.chance(0.4)) return LLVMFuzzerMutate(data, size, max_size);
  return slow::text_mutator(d, LLVMFuzzerMutate,
                            {"{", "}", "(", ")", ",", ":", "'", "descr", "shape", "fortran_order", "True", "False",
                             "<u2", "|i1", "<i8", "\x93NUMPY", "\n", std::string_view("\0\0\0\0", 4),
                             "\xff\xff\xff\xff"})
      .change(data, size, max_size, 1);
}
