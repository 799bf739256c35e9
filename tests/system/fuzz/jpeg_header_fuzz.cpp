// A libFuzzer target: the headers of a JPEG. If libjpeg reads them, the library must return the same or name its rule.
// The EXIF orientation must match a slow walk over segments and directory. fuzz.py builds and runs it.
#include <millrace/image/jpeg/jpeg_header.hpp>

#include "../../unit/image/jpeg_recipes.hpp"
#include "../../unit/image/slow_pictures.hpp"
#include "fuzz_target.hpp"

#include <optional>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

namespace mr = millrace;

/// libjpeg's result for the headers, up to the first scan.
struct libjpeg_header : slow::escaping_decompressor {
  bool read = false;
  unsigned width = 0, height = 0;
  int components = 0, bits = 0;
  bool progressive = false, arithmetic = false;

  explicit libjpeg_header(std::span<const std::byte> file) {
    create();
    read = header(file);
    width = info_.image_width;
    height = info_.image_height;
    components = info_.num_components;
    bits = info_.data_precision;
    progressive = info_.progressive_mode != 0;
    arithmetic = info_.arith_code != 0;
    jpeg_destroy_decompress(&info_);
  }

  bool header(std::span<const std::byte> file) noexcept {
    if (setjmp(escape_) != 0) return false;
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    jpeg_read_header(&info_, 1);
    return true;
  }
};

/// The orientation in a TIFF header with its directory, by the specification; 0 if there is none.
int orientation_of_tiff(const std::vector<unsigned>& tiff) {
  if (tiff.size() < 8 || tiff[0] != tiff[1] || (tiff[0] != 'I' && tiff[0] != 'M')) return 0;
  const auto number = [&](std::size_t at, std::size_t bytes) {
    std::size_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) value = value * 256 + tiff[tiff[0] == 'I' ? at + bytes - 1 - i : at + i];
    return value;
  };
  const std::size_t directory = number(4, 4);
  if (number(2, 2) != 42 || directory + 2 > tiff.size()) return 0;
  for (std::size_t i = 0; i < number(directory, 2); ++i) {
    const std::size_t entry = directory + 2 + 12 * i;
    if (entry + 12 > tiff.size()) return 0;
    if (number(entry, 2) != 0x112) continue;
    const std::size_t value = number(entry + 8, 2);
    return number(entry + 2, 2) == 3 && value >= 1 && value <= 8 ? static_cast<int>(value) : 0;
  }
  return 0;
}

/// The last orientation before the frame header.
int orientation_of(std::span<const std::byte> file) {
  const auto byte = [&](std::size_t at) { return std::to_integer<unsigned>(file[at]); };
  int orientation = 1;
  for (std::size_t at = 2; at + 1 < file.size();) {
    if (byte(at) != 0xff || byte(at + 1) == 0xff) {
      ++at;
      continue;
    }
    const unsigned marker = byte(at + 1);
    at += 2;
    if (marker <= 1 || (marker >= 0xd0 && marker <= 0xd8)) continue;
    if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc) break;
    if (at + 2 > file.size()) break;
    const std::size_t length = byte(at) * 256 + byte(at + 1);
    if (length < 2 || at + length > file.size()) break;
    if (marker == 0xe1 && length >= 8 && slow::text_of(file.subspan(at + 2, 6)) == std::string_view("Exif\0\0", 6)) {
      std::vector<unsigned> tiff;
      for (std::size_t i = at + 8; i < at + length; ++i) tiff.push_back(byte(i));
      if (const int one = orientation_of_tiff(tiff); one != 0) orientation = one;
    }
    at += length;
  }
  return orientation;
}

/// Whether jpeg_header.hpp refuses a header by its own rules, where libjpeg continues or decodes more kinds.
bool is_our_rule(const std::string& error, const libjpeg_header& theirs) {
  return error.find("first marker is damaged") != std::string::npos ||
         error.find("inside its headers") != std::string::npos ||
         error.find("number of components") != std::string::npos ||
         (error.find("sample precision") != std::string::npos && theirs.bits != 8) ||
         error.find("lossless or hierarchical") != std::string::npos;
}

std::string exif(mr::rng& d) {
  const bool little = d.chance(0.5);
  std::string tiff = little ? "II" : "MM";
  const auto put = [&](std::size_t value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
      tiff += static_cast<char>(value >> 8 * (little ? i : bytes - 1 - i) & 255);
  };
  put(42, 2);
  const std::size_t gap = d.below(3) * d.below(9), entries = d.below(4);
  put(8 + gap, 4);
  tiff += std::string(gap, 'g');
  put(entries + (d.chance(0.1) ? 1 : 0), 2);
  for (std::size_t i = 0; i < entries; ++i) {
    put(d.chance(0.6) ? 0x112 : 0x10f, 2);
    put(d.chance(0.8) ? 3 : 4, 2);
    put(1, 4);
    put(d.below(10), 2);
    put(0, 2);
  }
  put(0, 4);
  return std::string("Exif\0\0", 6) + tiff;
}

std::vector<std::byte> new_file(mr::rng& d) {
  static constexpr J_COLOR_SPACE stored[] = {JCS_GRAYSCALE, JCS_YCbCr, JCS_RGB, JCS_CMYK};
  slow::jpeg_recipe r{.stored = stored[d.below(4)], .quality = 50, .progressive = d.chance(0.3),
                      .arithmetic = d.chance(0.2)};
  for (std::uint64_t i = d.below(3); i > 0; --i)
    r.markers.push_back({.code = JPEG_APP0 + (d.chance(0.8) ? 1 : static_cast<int>(d.below(16))), .payload = exif(d)});
  auto file = slow::make_jpeg(slow::photo(d.below(9) + 1, d.below(9) + 1, slow::channels_of(r.stored), d.bits()), r);
  file.resize(std::min<std::size_t>(file.size(), 1200));   // headers without most of the data
  return file;
}

/// Markers are in the middle of the file.
void change_marker(mr::rng& d, std::vector<std::byte>& f) {
  std::vector<std::size_t> markers;
  for (std::size_t i = 0; i + 3 < f.size(); ++i)
    if (f[i] == std::byte{0xff} && f[i + 1] != std::byte{0}) markers.push_back(i);
  if (markers.empty()) return;
  const std::size_t at = markers[d.below(markers.size())];
  const auto place = f.begin() + static_cast<std::ptrdiff_t>(at);
  switch (d.below(6)) {
    case 0: f[at + 1] = static_cast<std::byte>(d.chance(0.5) ? 0xc0 + d.below(32) : d.below(256)); return;
    case 1: f[at + 2 + d.below(2)] = static_cast<std::byte>(d.below(d.chance(0.5) ? 8 : 256)); return;
    case 2: {
      const auto what = static_cast<std::byte>(d.chance(0.5) ? 0xff : d.below(256));
      f.insert(place, static_cast<std::size_t>(d.below(3) + 1), what);
      return;
    }
    case 3:
      f.erase(place, place + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(d.below(8) + 1, f.size() - at)));
      return;
    case 4: f.resize(at + d.below(4)); return;
    default:
      for (std::size_t i = at + 4; i < std::min(at + 12, f.size()); ++i)
        if (d.chance(0.2)) f[i] = static_cast<std::byte>(d.below(256));
  }
}

}  // namespace

void slow::write_seeds(const seed_folder& seeds) {
  mr::rng d({.seed = 1});
  for (int i = 0; i < 200; ++i) seeds.add(new_file(d));
}

void slow::check(std::span<const std::byte> input, draw choose) {
  mr::jpeg_header h;
  std::string refusal;
  try {
    h = mr::read_jpeg_header(input);
  } catch (const mr::data_error& e) {
    refusal = e.message();
  }
  counters().count(refusal.empty());
  if (refusal.empty() && h.orientation != orientation_of(input))
    fail("orientation " + std::to_string(h.orientation) + ", expected " + std::to_string(orientation_of(input)));
  static_cast<void>(mr::refusal_of_header(input));
  const std::size_t metadata_bytes = mr::jpeg_metadata(input).size();
  expect(metadata_bytes <= input.size(), "more metadata than there are bytes");
  if (!choose.one_in(2)) return;
  const libjpeg_header theirs(input);
  if (!theirs.read) return;
  if (!refusal.empty()) {
    if (!is_our_rule(refusal, theirs)) fail("libjpeg reads the header, but: " + refusal);
    return;
  }
  if (h.width != theirs.width || h.height != theirs.height || h.components != theirs.components ||
      h.progressive != theirs.progressive || h.arithmetic != theirs.arithmetic)
    fail("another header: " + std::to_string(h.width) + " x " + std::to_string(h.height) + " x " +
          std::to_string(h.components) + ", by libjpeg " + std::to_string(theirs.width) + " x " +
          std::to_string(theirs.height) + " x " + std::to_string(theirs.components));
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  mr::rng d({.seed = seed});
  const auto input = std::as_bytes(std::span(data, size));
  std::vector<std::byte> file(input.begin(), input.end());
  if (file.size() < 8 || d.chance(0.05)) file = new_file(d);
  if (d.chance(0.3)) {
    file.resize(std::min(file.size(), max_size));
    std::memcpy(data, file.data(), file.size());
    return LLVMFuzzerMutate(data, file.size(), max_size);
  }
  for (std::uint64_t times = d.below(3) + 1; times > 0; --times) change_marker(d, file);
  const std::size_t length = std::min(file.size(), max_size);
  if (length > 0) std::memcpy(data, file.data(), length);
  return length;
}
