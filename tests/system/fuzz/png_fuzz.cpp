// A libFuzzer target: PNG files. Our decoder must produce libpng's pixels. If one of them refuses a file, the other
// must too, except for the documented rules below. Rows before the damage are equal. Regions match the full image, and
// a plan renders the pixels like those of an equal PPM. fuzz.py builds and runs it.
//
// The first byte of the input selects whether checksums are checked, the second one the region. Most inputs have wrong
// checksums, so both decoders ignore the checksums of most inputs.
#include "../../unit/image/png/plain_libpng.hpp"
#include "../../unit/image/png/png_files.hpp"
#include "fuzz_target.hpp"

#include <millrace/image/labels/label_map.hpp>
#include <millrace/image/png/png.hpp>
#include <millrace/image/png/png_decoder.hpp>
#include <millrace/image/pnm/pnm.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mr = millrace;
using mr::detail::png_layout;
using mr::detail::png_region;
using slow::plain_libpng;

namespace slow {

/// Mutations of a PNG that respect its structure: chunks, IHDR, the compressed stream, the rows in it.
///
///   mr::rng d({.seed = seed});
///   file = slow::png_mutator(d, LLVMFuzzerMutate).changed(file, max_size);
///
/// New files are small and of every kind. Half of the changed ones have correct checksums.
class png_mutator {
 public:
  using any_mutation = std::size_t (*)(std::uint8_t* data, std::size_t size, std::size_t max_size);

  png_mutator(mr::rng& d, any_mutation any) : d_(d), any_(any) {}

  static std::string new_file(mr::rng& d) {
    std::vector<png_kind> kinds;
    for_each_png_kind([&](const png_kind& k) { kinds.push_back(k); });
    png_kind kind = kinds[d.below(kinds.size())];
    kind.width = d.below(d.chance(0.8) ? 12 : 60) + 1;
    kind.height = d.below(d.chance(0.8) ? 12 : 60) + 1;
    const png_recipe how{.filter = d.chance(0.4) ? static_cast<int>(d.below(5)) : -1,
                         .piece_bytes = d.chance(0.3) ? d.below(20) + 1 : d.below(400) + 1,
                         .level = static_cast<int>(d.below(10)), .strategy = static_cast<int>(d.below(5)),
                         .window_bits = static_cast<int>(d.between(9, 15)), .colors = d.below(20) + 1,
                         .seed = d.bits()};
    auto file = make_png(random_samples(kind, d.bits()), how);
    if (d.chance(0.4)) {
      const std::size_t bytes[] = {2, 0, 6, d.below(20) + 1, 1, 0, 1};
      std::string clear(bytes[kind.color], '\0');
      for (char& c : clear) c = static_cast<char>(d.below(kind.color == 3 ? 256 : 3));
      file = with_chunk(file, "tRNS", clear, "IDAT");
    }
    return std::string(text_of_file(file));
  }

  std::string changed(std::string file, std::size_t max_size) {
    if (d_.chance(0.1)) return anyhow(file, max_size);
    if (d_.chance(0.05)) return file.substr(0, d_.below(file.size() + 1));
    auto chunks = chunks_of(file);
    if (chunks.empty()) return new_file(d_);
    for (std::uint64_t times = d_.below(3) + 1; times > 0 && !chunks.empty(); --times) change(chunks);
    std::string result = file.substr(0, 8);
    for (const chunk& c : chunks) result += c.intact ? chunk_of(c.name, c.data) : c.as_it_is();
    return result;
  }

 private:
  struct chunk {
    std::string name, data, sum;
    bool intact = false;   ///< its checksum is computed

    std::string as_it_is() const {
      std::string result;
      put_number(result, data.size());
      return result + name + data + sum;
    }
  };

  static std::vector<chunk> chunks_of(const std::string& file) {
    std::vector<chunk> chunks;
    for (std::size_t at = 8; at + 12 <= file.size();) {
      std::size_t length = 0;
      for (std::size_t i = 0; i < 4; ++i) length = length << 8 | static_cast<unsigned char>(file[at + i]);
      length = std::min(length, file.size() - at - 12);
      chunks.push_back({.name = file.substr(at + 4, 4), .data = file.substr(at + 8, length),
                       .sum = file.substr(at + 8 + length, 4)});
      at += 12 + length;
    }
    return chunks;
  }

  std::string anyhow(const std::string& text, std::size_t max_size) {
    std::vector<std::uint8_t> bytes(text.begin(), text.end());
    bytes.resize(std::max(max_size, bytes.size()));
    bytes.resize(any_(bytes.data(), text.size(), bytes.size()));
    return {bytes.begin(), bytes.end()};
  }

  void change(std::vector<chunk>& chunks) {
    chunk& c = chunks[d_.chance(0.6) ? place_of_data(chunks) : d_.below(chunks.size())];
    c.intact = d_.chance(0.5);
    switch (d_.below(10)) {
      case 0: return change_stream(chunks);
      case 1: return change_rows(chunks);
      case 2:
        c.data = anyhow(c.data, c.data.size() + 30);
        return;
      case 3:
        if (!c.data.empty()) c.data.resize(d_.below(c.data.size()));
        return;
      case 4: {   // repeated, or moved elsewhere
        chunk copy = c;
        if (d_.chance(0.5)) c.name = "IDAT";
        chunks.insert(chunks.begin() + static_cast<std::ptrdiff_t>(d_.below(chunks.size() + 1)), std::move(copy));
        return;
      }
      case 5:
        if (chunks.size() > 1) chunks.erase(chunks.begin() + (&c - chunks.data()));
        return;
      case 6: {
        static constexpr const char* names[] = {"IDAT", "PLTE", "tRNS", "eXIf", "IEND", "IHDR", "tEXt", "ABCD"};
        c.name = names[d_.below(8)];
        return;
      }
      case 7: return change_head(chunks[0]);
      default:
        for (std::uint64_t k = d_.below(3) + 1; k > 0 && !c.data.empty(); --k)
          c.data[d_.below(c.data.size())] ^= static_cast<char>(1U << d_.below(8));
    }
  }

  std::size_t place_of_data(const std::vector<chunk>& chunks) {
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < chunks.size(); ++i)
      if (chunks[i].name == "IDAT") places.push_back(i);
    return places.empty() ? d_.below(chunks.size()) : places[d_.below(places.size())];
  }

  /// Changes one of size, depth, color and interlacing.
  void change_head(chunk& head) {
    if (head.data.size() < 13) return;
    head.intact = true;
    static constexpr std::uint8_t depths[] = {1, 2, 4, 8, 16, 3}, colors[] = {0, 2, 3, 4, 6, 1};
    switch (d_.below(5)) {
      case 0: head.data[3] = static_cast<char>(d_.below(40)); return;
      case 1: head.data[7] = static_cast<char>(d_.below(40)); return;
      case 2: head.data[8] = static_cast<char>(depths[d_.below(6)]); return;
      case 3: head.data[9] = static_cast<char>(colors[d_.below(6)]); return;
      default: head.data[12] = static_cast<char>(d_.below(2)); return;
    }
  }

  /// Extracts the stream from its chunks.
  static std::string take_stream(std::vector<chunk>& chunks) {
    std::string stream;
    for (const chunk& c : chunks)
      if (c.name == "IDAT") stream += c.data;
    std::erase_if(chunks, [](const chunk& c) { return c.name == "IDAT"; });
    return stream;
  }
  /// Inserts it in pieces of some size before the last chunk.
  void put_stream(std::vector<chunk>& chunks, std::string_view stream) {
    const std::size_t piece_bytes = d_.chance(0.5) ? d_.below(30) + 1 : 4096;
    std::size_t at = chunks.empty() ? 0 : chunks.size() - 1;
    while (!stream.empty()) {
      const auto piece = stream.substr(0, piece_bytes);
      chunks.insert(chunks.begin() + static_cast<std::ptrdiff_t>(at++),
                    chunk{.name = "IDAT", .data = std::string(piece), .sum = {}, .intact = true});
      stream.remove_prefix(piece.size());
    }
  }

  void change_stream(std::vector<chunk>& chunks) {
    std::string stream = take_stream(chunks);
    if (!stream.empty() && d_.chance(0.7)) stream[d_.below(stream.size())] ^= static_cast<char>(1U << d_.below(8));
    put_stream(chunks, stream);
  }

  /// Inflates the rows, changes them and deflates them.
  void change_rows(std::vector<chunk>& chunks) {
    const std::string stream = take_stream(chunks);
    std::string rows(std::size_t{1} << 16, '\0');
    z_stream z{};
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(stream.data()));
    z.avail_in = static_cast<uInt>(stream.size());
    z.next_out = reinterpret_cast<Bytef*>(rows.data());
    z.avail_out = static_cast<uInt>(rows.size());
    inflateInit(&z);
    static_cast<void>(inflate(&z, Z_SYNC_FLUSH));
    rows.resize(z.total_out);
    inflateEnd(&z);
    rows = anyhow(rows, rows.size() + 50);
    put_stream(chunks, deflated(rows, {.level = static_cast<int>(d_.below(10)),
                                       .strategy = static_cast<int>(d_.below(5))}));
  }

  mr::rng& d_;
  any_mutation any_;
};

}  // namespace slow

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

constexpr std::uint64_t max_pixels = 65'536;

/// A persistent decoder, like that of a worker.
mr::detail::png_decoder& shared_decoder() {
  static mr::detail::png_decoder d;
  return d;
}

struct decoded {
  std::string error{};
  mr::detail::png_header header{};
  std::size_t row_bytes = 0, rows = 0;
  std::vector<std::uint8_t> pixels{};
};

decoded decode(std::span<const std::byte> file, png_layout layout, bool check_sums,
               const png_region* region = nullptr) {
  decoded result;
  auto& d = shared_decoder();
  try {
    result.header = d.open(file, {.max_pixels = max_pixels, .check_sums = check_sums});
    const png_region full{.right = result.header.width, .bottom = result.header.height};
    d.decode(region ? *region : full, {.layout = layout}, [&](std::size_t, std::span<const std::uint8_t> row) {
      result.row_bytes = row.size();
      result.pixels.insert(result.pixels.end(), row.begin(), row.end());
      ++result.rows;
    });
  } catch (const mr::data_error& e) {
    result.error = e.message();
    slow::expect(!result.error.empty() && e.where().stage == "png", "an error without a message or its stage");
  }
  return result;
}

bool contains(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](auto w) { return text.find(w) != std::string_view::npos; });
}

/// Whether we may refuse a file that libpng accepts: it ignores data after the last row and a wrong tRNS, and accepts
/// unknown chunks before IHDR.
bool may_refuse(const std::string& ours) {
  return contains(ours, {"max_pixels", "after its last row", "wrong Adler-32", "tRNS", "first chunk is"});
}

/// Whether libpng may refuse a file that we accept: a missing but unnecessary palette, an empty one of RGB, a second
/// one after the image data, or a stream that continues after all rows without an end. zlib reads a match after the
/// last byte while it inflates the last row.
bool may_accept(const decoded& ours, const plain_libpng& theirs) {
  return contains(theirs.error, {"Missing PLTE before IDAT", "Invalid palette", "PLTE: duplicate",
                                 "Not enough image data"}) ||
         (theirs.error.starts_with("IDAT: invalid") && (ours.header.interlaced || theirs.rows_read + 1 == ours.rows));
}

void compare(const char* layout, const decoded& ours, const plain_libpng& theirs) {
  const std::string where = std::string(layout) + ": ";
  if (theirs.too_large) return slow::expect(!ours.error.empty(), "pixels of an image that is too large");
  if (ours.error.empty() && !theirs.error.empty() && !may_accept(ours, theirs))
    slow::fail(where + "pixels, but libpng says: " + theirs.error);
  if (!ours.error.empty() && theirs.error.empty() && !may_refuse(ours.error))
    slow::fail(where + "libpng accepts it, but: " + ours.error);
  if (ours.pixels.empty() || theirs.pixels.empty()) return;
  if (ours.row_bytes != theirs.row_bytes) slow::fail(where + "rows of another length");
  const std::size_t rows = std::min(ours.rows, theirs.rows_read);
  if (!std::equal(ours.pixels.begin(), ours.pixels.begin() + static_cast<std::ptrdiff_t>(rows * ours.row_bytes),
                  theirs.pixels.begin()))
    slow::fail(where + "other pixels than libpng's");
}

png_region region_of(unsigned knob, const mr::detail::png_header& h) {
  mr::rng d({.seed = knob});
  const std::size_t left = d.below(h.width), top = d.below(h.height);
  return {.left = left, .top = top, .right = left + 1 + d.below(h.width - left),
          .bottom = top + 1 + d.below(h.height - top)};
}

/// A region equals that part of the full image, and may have no error where the full image has one.
void check_region(std::span<const std::byte> file, png_layout layout, bool check_sums, const decoded& full,
                  unsigned knob) {
  if (full.pixels.empty()) return;
  const png_region r = region_of(knob, full.header);
  const decoded part = decode(file, layout, check_sums, &r);
  if (full.error.empty() && !part.error.empty()) slow::fail("a region has an error: " + part.error);
  const std::size_t pixel = full.row_bytes / full.header.width;
  for (std::size_t y = r.top; y < r.top + part.rows && y < full.rows; ++y)
    if (!std::equal(part.pixels.begin() + static_cast<std::ptrdiff_t>((y - r.top) * part.row_bytes),
                    part.pixels.begin() + static_cast<std::ptrdiff_t>((y - r.top + 1) * part.row_bytes),
                    full.pixels.begin() + static_cast<std::ptrdiff_t>(y * full.row_bytes + r.left * pixel)))
      slow::fail("a region has other pixels than the full image");
  if (part.error.empty()) slow::expect(part.rows == r.bottom - r.top, "a region lacks rows");
}

/// The `picture` type, and the label map.
void check_picture(std::span<const std::byte> file, const decoded& rgb, unsigned knob) {
  static mr::scratch s;
  const mr::bytes field = mr::bytes::borrowed(file, "png");
  try {
    const mr::picture p = mr::png(field, {.limits = {.max_pixels = max_pixels}});
    slow::expect(p.width() == rgb.header.width && p.height() == rgb.header.height, "an image of another size");
    const png_region r = region_of(knob + 1, rgb.header);
    const mr::crop_box box{.left = r.left, .top = r.top, .width = r.right - r.left, .height = r.bottom - r.top};
    const auto planned = [&](mr::picture q) { return q.crop(box).resize(1 + knob % 40, 1 + knob % 23).flip(); };
    const mr::image result = planned(p).pixels(s);
    if (!rgb.error.empty()) return;   // after the box
    std::string ppm = "P6 " + std::to_string(p.width()) + " " + std::to_string(p.height()) + " 255\n";
    ppm.append(reinterpret_cast<const char*>(rgb.pixels.data()), rgb.pixels.size());
    const mr::image expected = planned(mr::pnm(mr::bytes::borrowed(ppm, "ppm"))).pixels(s);
    slow::expect(std::equal(result.span().begin(), result.span().end(), expected.span().begin()),
                 "a plan renders other pixels than of a PPM");
  } catch (const mr::data_error& e) {
    if (rgb.error.empty()) slow::fail(std::string("an image has an error: ") + e.what());
  }
  try {
    const auto map = mr::labels<std::uint16_t>(field);
    if (map.stored().width * map.stored().height <= max_pixels) static_cast<void>(map.values());
  } catch (const mr::data_error&) {
  }
}

std::string valid_input(mr::rng& d) {
  std::string input;
  for (int i = 0; i < 2; ++i) input += static_cast<char>(d.below(256));
  return input + slow::png_mutator::new_file(d);
}

}  // namespace

void slow::write_seeds(const seed_folder& seeds) {
  mr::rng d({.seed = 1});
  for (int i = 0; i < 300; ++i) seeds.add(valid_input(d));
}

void slow::check(std::span<const std::byte> input, draw choose) {
  const bool check_sums = take_knob(input) % 8 == 0;
  const unsigned knob = take_knob(input);
  const std::vector<std::byte> file(input.begin(), input.end());   // of exactly its size
  const decoded samples = decode(file, png_layout::samples, check_sums);
  counters().count(samples.error.empty());
  compare("samples", samples, plain_libpng(file, plain_libpng::as::samples, check_sums, max_pixels));
  check_region(file, png_layout::samples, check_sums, samples, knob);
  if (choose.one_in(3)) {
    const decoded rgba = decode(file, png_layout::rgba, check_sums);
    // libpng ignores a tRNS before the palette and one that is longer than the palette, which it limits by the depth.
    const auto& h = rgba.header;
    const bool ignored = h.color == mr::detail::png_color::palette && !h.transparency.empty() &&
                         (h.transparency.size() > std::size_t{1} << h.depth ||
                          h.transparency.data() < h.palette.data());
    if (!ignored) compare("rgba", rgba, plain_libpng(file, plain_libpng::as::rgba, check_sums, max_pixels));
    check_region(file, png_layout::rgba, check_sums, rgba, knob);
  }
  if (choose.one_in(4)) check_picture(file, decode(file, png_layout::rgb, true), knob);
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  mr::rng d({.seed = seed});
  constexpr std::size_t knobs = 2;
  std::string input(reinterpret_cast<const char*>(data), size);
  if (size < knobs + 8 || d.chance(0.05)) input = valid_input(d);
  else if (d.chance(0.1)) input[d.below(knobs)] = static_cast<char>(d.below(256));
  else input = input.substr(0, knobs) + slow::png_mutator(d, LLVMFuzzerMutate).changed(input.substr(knobs), max_size);
  const std::size_t length = std::min(input.size(), max_size);
  std::copy_n(input.data(), length, data);
  return length;
}
