// A libFuzzer target: .npy files. mr::array() must return the type, shape and elements of a slow reader of NumPy's
// format, and refuse the same files. fuzz.py builds and runs it.
//
// The first byte of the input selects the element type, and whether lengths are repaired.
// mr::array() accepts more spellings than NumPy: numbers with leading zeros, "(3)" for "(3,)".
#include <millrace/item/tensor/array.hpp>

#include "fuzz_target.hpp"
#include "slow_npy.hpp"
#include "text_mutator.hpp"

#include <optional>
#include <type_traits>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

namespace mr = millrace;
struct slow_array {
  std::string type{};
  std::vector<std::size_t> shape{};
  std::string elements{};
};

/// The array in a file that begins with NumPy's mark; nothing if mr::array() must refuse it.
std::optional<slow_array> read_npy(const std::string& file) {
  const auto byte = [&](std::size_t at) { return std::size_t{static_cast<unsigned char>(file[at])}; };
  if (file.size() < 10 || (byte(6) != 1 && byte(6) != 2) || byte(7) != 0) return std::nullopt;
  const std::size_t length_bytes = byte(6) == 1 ? 2 : 4, begin = 8 + length_bytes;
  if (file.size() < begin) return std::nullopt;
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length += byte(8 + i) << 8 * i;
  if (begin + length > file.size()) return std::nullopt;
  const auto header = slow::parse_npy_header(file.substr(begin, length));
  if (!header || header->fortran_order) return std::nullopt;
  return slow_array{header->type, header->shape, file.substr(begin + length)};
}

template <class T>
void check_array(const std::string& file) {
  std::optional<mr::shaped_array<T>> ours;
  std::string refusal;
  static const slow::guarded_bytes memory;
  const auto exact = memory.of(mr::detail::bytes_of(file));
  try {
    ours = mr::array<T>(mr::bytes::borrowed(slow::text_of(exact), "x.npy"));
  } catch (const mr::data_error& e) {
    refusal = e.message();
  }
  slow::counters().count(ours.has_value());
  auto expected = file.starts_with("\x93NUMPY") ? read_npy(file) : std::nullopt;
  const bool is_bool = expected && std::is_same_v<T, std::uint8_t> && expected->type == "|b1";
  if (expected && !is_bool && expected->type != mr::detail::npy_type<T>()) expected.reset();
  if (expected) {
    slow::wide bytes = sizeof(T);
    for (const std::size_t extent : expected->shape)
      bytes = extent == 0 ? 0 : bytes * std::min<slow::wide>(extent, 1 << 20);
    for (const std::size_t extent : expected->shape)
      if (extent == 0) bytes = 0;
    if (bytes != expected->elements.size()) expected.reset();
  }
  if (ours.has_value() != expected.has_value()) slow::fail(ours ? "accepted, but invalid" : "refused: " + refusal);
  if (!ours) return;
  slow::expect(ours->shape == expected->shape, "another shape");
  slow::expect(ours->data.size() * sizeof(T) == expected->elements.size(), "another number of elements");
  if (!ours->data.empty())
    slow::expect(std::memcmp(ours->data.data(), expected->elements.data(), expected->elements.size()) == 0,
                 "other elements");
}

/// A file as NumPy writes it. A few have another type or order.
std::string valid_input(mr::rng& d) {
  static const char* const types[] = {"<f4", "|u1", "<i8", "<i2", ">f4", "|O", "|b1"};
  static const char* const shapes[] = {"(3,)", "(2, 3)", "()", "(0, 99999999999)", "(1, 2, 1, 2)", "(12,)", "(3)",
                                       "(4611686018427387904, 4)"};
  const std::size_t kind = d.below(4), shape = d.below(std::size(shapes));
  const bool second = d.chance(0.3);
  std::string header = std::string("{'descr': '") + types[d.chance(0.1) ? d.below(7) : kind] + "', 'fortran_order': " +
                       (d.chance(0.1) ? "True" : "False") + ", 'shape': " + shapes[shape] + ", }";
  while ((header.size() + 11) % 16 != 0) header += ' ';
  header += '\n';
  const std::string knob(1, static_cast<char>(kind + 4 * d.below(64)));
  std::string file = knob + "\x93NUMPY" + (second ? '\2' : '\1') + '\0';
  for (int i = 0; i < (second ? 4 : 2); ++i) file += static_cast<char>(header.size() >> 8 * i & 255);
  static constexpr std::size_t element_bytes[] = {4, 1, 8, 2}, counts[] = {3, 6, 1, 0, 4, 12, 3, 0};
  return file + header + std::string(counts[shape] * element_bytes[kind], 'x');
}

}  // namespace

void slow::write_seeds(const seed_folder& seeds) {
  mr::rng d({.seed = 1});
  for (int i = 0; i < 60; ++i) seeds.add(valid_input(d));
}

void slow::check(std::span<const std::byte> input, draw) {
  const unsigned knob = take_knob(input);
  std::string file(text_of(input));
  // The header ends after its first line.
  if (const std::size_t end = file.find('\n'); knob % 16 >= 4 && end != std::string::npos && file.size() > 12) {
    const std::size_t begin = file[6] == 1 ? 10 : 12;
    for (std::size_t i = 8; i < begin && end + 1 >= begin; ++i)
      file[i] = static_cast<char>((end + 1 - begin) >> 8 * (i - 8) & 255);
  }
  if (const auto a = knob >= 64 ? read_npy(file) : std::nullopt) {
    const std::size_t element_bytes[] = {4, 1, 8, 2}, limit = 1024;   // guarded_bytes has room for 16 KiB
    std::size_t count = 1;
    for (const std::size_t extent : a->shape) count = std::min(count, limit + 1) * std::min(extent, limit + 1);
    if (count <= limit) file.resize(file.size() - a->elements.size() + count * element_bytes[knob % 4], 'y');
  }
  switch (knob % 4) {
    case 0: return check_array<float>(file);
    case 1: return check_array<std::uint8_t>(file);
    case 2: return check_array<std::int64_t>(file);
    default: return check_array<std::int16_t>(file);
  }
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  mr::rng d({.seed = seed});
  if (d.chance(0.3)) size = slow::text_mutator::restart_with(valid_input(d), data, max_size);
  return slow::text_mutator(d, LLVMFuzzerMutate,
                            {"{", "}", "(", ")", ",", ":", "'", "descr", "shape", "fortran_order", "True", "False",
                             "<f4", "|u1", "<i8", "<i2", "\x93NUMPY", "\n"})
      .change(data, size, max_size, 1);
}
