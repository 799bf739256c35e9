// Mutations of a PNG that respect its structure: chunks, IHDR, the compressed stream, the rows in it.
//
//   mr::rng d({.seed = seed});
//   file = slow::png_mutator(d, LLVMFuzzerMutate).changed(file, max_size);
//
// New files are small and of every kind. Half of the changed ones have correct checksums.
#pragma once

#include "../../unit/image/png/png_files.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace slow {

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
