// A libFuzzer target: PNM files, as images and as label maps, against a slow reader. fuzz.py builds and runs it.
#include <millrace/image/labels/label_map.hpp>
#include <millrace/image/pnm/pnm.hpp>

#include "fuzz_target.hpp"
#include "text_mutator.hpp"

#include <cmath>
#include <optional>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

namespace mr = millrace;

struct slow_pnm {
  std::size_t width = 0, height = 0, channels = 0, largest = 0;
  std::vector<unsigned> samples{};   // fewer than in the header if the file is truncated
  std::size_t sample_bytes = 1, data_bytes = 0;

  std::size_t count() const { return width * height * channels; }
};

bool is_blank(char c) { return std::string_view(" \t\n\v\f\r").find(c) != std::string_view::npos; }

/// Removes spaces and comments, then reads a number. Nothing if either is missing, or if the number is too large.
std::optional<std::size_t> take_number(std::string_view& text) {
  const std::size_t before = text.size();
  while (!text.empty() && (is_blank(text[0]) || text[0] == '#')) {
    const bool comment = text[0] == '#';
    text.remove_prefix(comment ? std::min(text.find_first_of("\n\r"), text.size()) : 1);
  }
  if (text.size() == before) return std::nullopt;
  std::string digits(text.substr(0, std::min(text.find_first_not_of("0123456789"), text.size())));
  text.remove_prefix(digits.size());
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  if (digits.empty() || digits.size() > 5 || std::stoul(digits) > 65'535) return std::nullopt;
  return std::stoul(digits);
}

std::optional<slow_pnm> read_slowly(std::string_view text) {
  if (!text.starts_with("P5") && !text.starts_with("P6")) return std::nullopt;
  slow_pnm pnm{.channels = text[1] == '6' ? 3U : 1U};
  text.remove_prefix(2);
  for (std::size_t* const number : {&pnm.width, &pnm.height, &pnm.largest}) {
    const auto value = take_number(text);
    if (!value) return std::nullopt;
    *number = *value;
  }
  if (text.empty() || !is_blank(text[0])) return std::nullopt;
  text.remove_prefix(1);
  pnm.sample_bytes = pnm.largest < 256 ? 1 : 2;
  pnm.data_bytes = text.size();
  const auto byte = [&](std::size_t at) { return static_cast<unsigned>(static_cast<unsigned char>(text[at])); };
  for (std::size_t at = 0; at + pnm.sample_bytes <= text.size() && pnm.samples.size() < pnm.count();
       at += pnm.sample_bytes)
    pnm.samples.push_back(pnm.sample_bytes == 1 ? byte(at) : byte(at) * 256 + byte(at + 1));
  return pnm;
}

bool is_complete(const std::optional<slow_pnm>& p) { return p && p->samples.size() == p->count(); }

void check_picture(std::string_view text, const std::optional<slow_pnm>& expected) {
  std::optional<mr::image> pixels;
  try {
    pixels = mr::pnm(mr::bytes::borrowed(text)).pixels();
  } catch (const mr::data_error&) {
  }
  slow::counters().count(pixels.has_value());
  if (pixels.has_value() != is_complete(expected)) slow::fail(pixels ? "invalid image" : "no image");
  if (!pixels) return;
  slow::expect(pixels->shape() == std::array<std::size_t, 3>{expected->height, expected->width, 3}, "another size");
  const auto largest = static_cast<double>(expected->largest);
  for (std::size_t i = 0; i < pixels->size(); ++i) {
    const std::size_t at = expected->channels == 3 ? i : i / 3;
    const double sample = std::min(static_cast<double>(expected->samples[at]), largest);
    slow::expect(pixels->span()[i] == std::floor(sample * 255 / largest + 0.5), "another pixel");
  }
}

template <class T>
void check_labels(std::string_view text, const std::optional<slow_pnm>& expected) {
  std::optional<mr::tensor<T, 2>> labels;
  try {
    labels = mr::labels<T>(mr::bytes::borrowed(text)).values();
  } catch (const mr::data_error&) {
  }
  const bool is_map = is_complete(expected) && expected->channels == 1 && expected->sample_bytes <= sizeof(T) &&
                      expected->data_bytes == expected->count() * expected->sample_bytes;
  if (labels.has_value() != is_map) slow::fail(labels ? "invalid label map" : "no label map");
  if (!labels) return;
  slow::expect(labels->shape() == std::array<std::size_t, 2>{expected->height, expected->width}, "another map's size");
  for (std::size_t i = 0; i < labels->size(); ++i)
    slow::expect(labels->span()[i] == expected->samples[i], "another label");
}

}  // namespace

void slow::write_seeds(const seed_folder& seeds) {
  for (const std::string header : {"P5 3 2 255\n", "P6\n1 2\n# c\n255\n", "P5 2 1 65535\r", "P5#c\n1 1\t255 "})
    for (const std::size_t bytes : {2, 3, 4, 6}) seeds.add(header + std::string("\x01\xff\x00\x7f\x80#", bytes));
}

void slow::check(std::span<const std::byte> input, draw) {
  const std::string_view text = text_of(input);
  if (text.starts_with("\x89PNG") || text.starts_with("\x93NUMPY")) return;   // other targets' formats
  const auto expected = read_slowly(text);
  check_picture(text, expected);
  check_labels<std::uint8_t>(text, expected);
  check_labels<std::uint16_t>(text, expected);
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  mr::rng d({.seed = seed});
  return slow::text_mutator(d, LLVMFuzzerMutate,
                            {"P5", "P6", "#", "\n", " ", "\r", "255", "256", "65535", "1", "2", "3", "0", "x"})
      .change(data, size, max_size, 0);
}
