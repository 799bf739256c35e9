#include <millrace/base/random.hpp>
#include <millrace/image/png/adler.hpp>
#include <millrace/image/png/inflate.hpp>
#include <millrace/base/crc32c.hpp>

#include "../../../thorough.hpp"
#include "png_files.hpp"

#include <cstring>
#include <numeric>
#include <optional>
#include <vector>

#include <doctest/doctest.h>

namespace mr = millrace;
using mr::detail::inflate_status;

namespace {

/// The pieces of a stream, each in a heap block of exactly its size.
class pieces final : public mr::detail::inflate_input {
 public:
  /// At most that many bytes in each; 0: of many sizes.
  pieces(std::string_view stream, std::size_t piece_bytes, mr::rng d = mr::rng({.seed = 5})) {
    while (!stream.empty()) {
      const std::size_t most = piece_bytes > 0 ? piece_bytes : d.chance(0.5) ? d.below(20) + 1 : d.below(3000) + 1;
      const auto part = stream.substr(0, most);
      piece_.emplace_back(part.begin(), part.end());
      stream.remove_prefix(part.size());
    }
  }
  std::span<const std::uint8_t> next() noexcept override {
    if (next_ == piece_.size()) return {};
    return piece_[next_++];
  }

 private:
  std::vector<std::vector<std::uint8_t>> piece_;
  std::size_t next_ = 0;
};

struct outcome {
  inflate_status status = inflate_status::more;
  std::string bytes{};
  std::uint32_t checksum = 0;
};

/// `step` bytes at a time, in a window that is moved as soon as it can be.
outcome inflate(std::string_view stream, std::size_t size, std::size_t piece_bytes = 1 << 20,
                std::size_t step = 1 << 20) {
  static mr::detail::inflater zip;
  pieces in(stream, piece_bytes);
  zip.begin(in);
  outcome result;
  const std::size_t window = mr::detail::inflater::window_bytes, slack = mr::detail::inflater::slack_bytes;
  std::vector<std::uint8_t> memory(window + std::min(step, size) + 2 * slack + 1);
  std::uint8_t* out = memory.data();
  while (result.status == inflate_status::more && result.bytes.size() < size) {
    if (const auto used = static_cast<std::size_t>(out - memory.data()); used > window) {
      std::memmove(memory.data(), out - window, window);
      out = memory.data() + window;
    }
    const std::uint8_t* const before = out;
    const std::uint8_t* const limit = out + std::min(step, size - result.bytes.size());
    result.status = zip.run(memory.data(), out, limit);
    REQUIRE(out < limit + slack);
    if (result.status == inflate_status::more) REQUIRE(out >= limit);
    result.bytes.append(reinterpret_cast<const char*>(before), static_cast<std::size_t>(out - before));
  }
  if (result.status == inflate_status::more && result.bytes.size() == size) result.status = zip.finish();
  result.checksum = zip.checksum();
  return result;
}

/// The result of zlib, and whether it has an error.
outcome by_zlib(std::string_view stream, std::size_t most) {
  z_stream z{};
  REQUIRE(inflateInit2(&z, 15) == Z_OK);
  outcome result;
  result.bytes.resize(most);
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(stream.data()));
  z.avail_in = static_cast<uInt>(stream.size());
  z.next_out = reinterpret_cast<Bytef*>(result.bytes.data());
  z.avail_out = static_cast<uInt>(most);
  const int got = ::inflate(&z, Z_NO_FLUSH);
  const bool wrong_sum = got == Z_DATA_ERROR && z.msg && std::string_view(z.msg) == "incorrect data check";
  result.status = got == Z_STREAM_END || wrong_sum ? inflate_status::ended :
                got == Z_DATA_ERROR || got == Z_NEED_DICT ? inflate_status::bad_code : inflate_status::more;
  result.bytes.resize(z.total_out);
  inflateEnd(&z);
  return result;
}

std::string content(mr::rng& d, std::size_t size, std::uint64_t kind) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) {
    const auto before = [&](std::size_t distance) { return i >= distance ? text[i - distance] : '\0'; };
    text[i] = kind == 0 ? static_cast<char>(d.below(256)) :
              kind == 1 ? (d.chance(0.1) ? static_cast<char>(d.below(256)) : before(1 + d.below(4))) :
              kind == 2 ? static_cast<char>(d.between(-3, 3) + d.between(-3, 3)) :
              kind == 3 ? static_cast<char>(i / 300) :
                          d.chance(0.02) ? static_cast<char>(d.below(256)) : before(501);
  }
  return text;
}

/// Bits in the order of deflate.
class bit_text {
 public:
  bit_text& number(unsigned value, unsigned bits) {
    for (unsigned i = 0; i < bits; ++i) put(value >> i & 1);
    return *this;
  }
  /// A code word: its highest bit first.
  bit_text& word(unsigned value, unsigned bits) {
    for (unsigned i = bits; i-- > 0;) put(value >> i & 1);
    return *this;
  }
  bit_text& literal(unsigned byte) { return byte < 144 ? word(48 + byte, 8) : word(400 + byte - 144, 9); }
  /// The stream with a zlib header before the bits, and these bytes after them.
  std::string stream(std::string_view more = "") const { return "\x78\x01" + bits_ + std::string(more); }

 private:
  void put(unsigned bit) {
    if (count_ % 8 == 0) bits_ += '\0';
    bits_.back() = static_cast<char>(static_cast<unsigned char>(bits_.back()) | bit << count_ % 8);
    ++count_;
  }
  std::string bits_;
  unsigned count_ = 0;
};

/// The code lengths 0 and 1 alone, then `lengths`, the first N of which are of literals.
bit_text dynamic(const std::vector<unsigned>& lengths, std::size_t literals) {
  bit_text t;
  t.number(1, 1).number(2, 2).number(static_cast<unsigned>(literals - 257), 5);
  t.number(static_cast<unsigned>(lengths.size() - literals - 1), 5).number(14, 4);
  // In the order of the format: 16 17 18 0 8 7 9 6 10 5 11 4 12 3 13 2 14 1; 0 and 1 have words of one bit.
  for (unsigned i = 0; i < 18; ++i) t.number(i == 3 || i == 17 ? 1 : 0, 3);
  for (const unsigned length : lengths) t.word(length, 1);
  return t;
}

}  // namespace

TEST_CASE("streams of zlib are inflated to the original, in any pieces and steps") {
  mr::rng d({.seed = 1});
  for (int i = 0; i < 600; i += static_cast<int>(stride(8))) {
    const std::string text = content(d, d.chance(0.3) ? d.below(150'000) : d.below(3000), d.below(5));
    const slow::png_recipe how{.level = static_cast<int>(d.below(10)), .strategy = static_cast<int>(d.below(5)),
                               .window_bits = static_cast<int>(d.between(9, 15))};
    const std::string stream = slow::deflated(text, how);
    const std::size_t piece_bytes[] = {stream.size(), 1, 0, 100}, steps[] = {1, 700, 32'768, 1 << 20};
    CAPTURE(i);
    const outcome got = inflate(stream, text.size(), piece_bytes[d.below(4)],
                                steps[text.size() > 20'000 ? 1 + d.below(3) : d.below(4)]);
    REQUIRE(got.status == inflate_status::ended);
    REQUIRE(got.bytes == text);
    const std::span sum(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
    REQUIRE(got.checksum == mr::detail::adler(sum));
  }
}

TEST_CASE("a stream that is cut anywhere is reported, and the bytes before the cut are right") {
  mr::rng d({.seed = 2});
  for (std::uint64_t kind = 0; kind < 5; ++kind) {
    const std::string text = content(d, 700, kind);
    for (const int level : {0, 1, 9}) {
      const std::string stream = slow::deflated(text, {.level = level, .strategy = kind == 2 ? Z_FIXED : 0});
      for (std::size_t cut = 0; cut < stream.size(); ++cut) {
        const outcome got = inflate(stream.substr(0, cut), text.size(), cut % 3 == 0 ? 1 : 64);
        CAPTURE(cut);
        REQUIRE(got.status == inflate_status::cut_short);
        REQUIRE(got.bytes == text.substr(0, got.bytes.size()));
      }
    }
  }
}

TEST_CASE("damaged streams are refused where zlib refuses them, with the same bytes before") {
  mr::rng d({.seed = 3});
  std::size_t refused = 0, accepted = 0;
  for (int i = 0; i < 30'000; i += static_cast<int>(stride(10))) {
    const std::string text = content(d, d.below(1500), d.below(5));
    std::string stream = slow::deflated(text, {.level = static_cast<int>(d.below(10)),
                                               .strategy = static_cast<int>(d.below(5))});
    for (std::uint64_t k = d.below(3) + 1; k > 0; --k)
      stream[d.below(stream.size())] ^= static_cast<char>(1U << d.below(8));
    if (d.chance(0.3)) stream.resize(d.below(stream.size()) + 1);
    constexpr std::size_t most = 100'000;
    const outcome expected = by_zlib(stream, most), got = inflate(stream, most, d.chance(0.5) ? 13 : 1 << 20);
    CAPTURE(i);
    const bool ended = got.status == inflate_status::ended;
    const bool damaged = !ended && got.status != inflate_status::more && got.status != inflate_status::cut_short;
    REQUIRE(ended == (expected.status == inflate_status::ended));
    REQUIRE(damaged == (expected.status == inflate_status::bad_code));
    // zlib withholds the bytes after a damaged match, or the other way round; neither changes a byte.
    const std::size_t both = std::min(got.bytes.size(), expected.bytes.size());
    REQUIRE(got.bytes.substr(0, both) == expected.bytes.substr(0, both));
    if (!damaged) REQUIRE(got.bytes.size() >= expected.bytes.size());
    ++(damaged ? refused : accepted);
  }
  CHECK(refused > 100);
  CHECK(accepted > 100);
}

TEST_CASE("each kind of damage has its own status") {
  const auto status = [](const std::string& stream) { return inflate(stream, 1000).status; };
  CHECK(status("\x79\x01....") == inflate_status::bad_header);                    // no deflate
  CHECK(status("\x78\x02....") == inflate_status::bad_header);                    // no multiple of 31
  CHECK(status(std::string("\x78\x20", 2) + "....") == inflate_status::bad_header);   // a dictionary
  CHECK(status(std::string("\x88\x1c", 2) + "....") == inflate_status::bad_header);   // a window of 64 KiB
  CHECK(status("\x78") == inflate_status::cut_short);
  CHECK(status(bit_text().number(1, 1).number(3, 2).stream()) == inflate_status::bad_block_type);
  CHECK(status(bit_text().number(1, 3).stream("\2\1\xfd\xfexy")) == inflate_status::cut_short);
  CHECK(status(bit_text().number(1, 3).stream(std::string("\2\0\xfd\xfexy", 6))) == inflate_status::bad_stored_length);
  const auto fixed = [] { return bit_text().number(1, 1).number(1, 2); };
  CHECK(status(fixed().word(0xc6, 8).stream("....")) == inflate_status::bad_code);   // the length 286
  CHECK(status(fixed().literal('a').word(1, 7).word(30, 5).stream("....")) == inflate_status::bad_code);
  CHECK(status(fixed().literal('a').word(1, 7).word(1, 5).stream("....")) == inflate_status::bad_distance);
  CHECK(status(fixed().word(0, 7).stream("..")) == inflate_status::cut_short);   // two bytes of the checksum
  const outcome two = inflate(fixed().literal('a').word(1, 7).word(0, 5).word(0, 7).stream(std::string(4, '\0')), 4);
  CHECK(two.status == inflate_status::ended);
  CHECK(two.bytes == "aaaa");
  const outcome longer = inflate(fixed().literal('a').literal(200).literal('c').word(0, 7).stream("...."), 2);
  CHECK(longer.status == inflate_status::more);   // after the requested bytes
  CHECK(longer.bytes.substr(0, 2) == "a\xc8");
}

TEST_CASE("codes are complete, or have one word") {
  std::vector<unsigned> lengths(258, 0);
  const auto status = [&](std::size_t literals) {
    return inflate(dynamic(lengths, literals).stream("...."), 10).status;
  };
  CHECK(status(257) == inflate_status::bad_code_lengths);   // no word for the end of a block
  lengths[256] = 1;
  // A single word of one bit, and none for distances: the block ends at once, if its first bit is 0.
  CHECK(inflate(dynamic(lengths, 257).word(0, 1).stream(std::string(4, '\0')), 0).status == inflate_status::ended);
  CHECK(inflate(dynamic(lengths, 257).word(1, 1).stream("...."), 10).status == inflate_status::bad_code);
  lengths[97] = 1;
  CHECK(inflate(dynamic(lengths, 257).word(0, 1).word(0, 1).word(1, 1).stream(std::string(4, '\0')), 2).bytes == "aa");
  lengths[98] = 1;
  CHECK(status(257) == inflate_status::bad_code_lengths);   // three words of one bit
  lengths[97] = lengths[98] = 0;
  lengths.resize(257 + 3, 0);
  lengths[257] = lengths[258] = lengths[259] = 1;
  CHECK(status(257) == inflate_status::bad_code_lengths);   // three distances
  bit_text many;
  CHECK(inflate(many.number(1, 1).number(2, 2).number(30, 5).stream("........"), 10).status ==
        inflate_status::bad_code_lengths);                  // 287 literals
}

TEST_CASE("checksums equal zlib's, by every code path") {
  mr::rng d({.seed = 4});
  std::vector<std::uint8_t> bytes(70'000);
  for (auto& b : bytes) b = d.chance(0.5) ? 255 : static_cast<std::uint8_t>(d.below(256));
  for (std::size_t i = 0; i < 1200; ++i) {
    const std::size_t at = d.below(40), size = i < 600 ? i : d.below(bytes.size() - at), cut = d.below(size + 1);
    const auto part = std::span(bytes).subspan(at, size);
    const auto crc = static_cast<std::uint32_t>(::crc32(0, part.data(), static_cast<uInt>(size)));
    const auto raw = std::as_bytes(part);
    CAPTURE(size);
    REQUIRE(mr::detail::crc32(raw) == crc);
    REQUIRE(mr::detail::crc32(raw.subspan(cut), mr::detail::crc32(raw.first(cut))) == crc);
    REQUIRE(~mr::detail::crc32_by_tables(raw, ~0U) == crc);
    const auto sum = static_cast<std::uint32_t>(::adler32(1, part.data(), static_cast<uInt>(size)));
    REQUIRE(mr::detail::adler(part) == sum);
    REQUIRE(mr::detail::adler(part.subspan(cut), mr::detail::adler(part.first(cut))) == sum);
    mr::detail::adler_sums slow_sums;
    if (size <= mr::detail::adler_sums::max_at_once) {
      slow_sums.add(part);
      slow_sums.reduce();
      REQUIRE((slow_sums.second << 16 | slow_sums.first) == sum);
    }
  }
}

namespace {

/// The definition, byte by byte.
std::uint32_t slow_adler(std::span<const std::uint8_t> data) {
  std::uint32_t first = 1, second = 0;
  for (const std::uint8_t byte : data) {
    first = (first + byte) % 65'521;
    second = (second + first) % 65'521;
  }
  return second << 16 | first;
}

}  // namespace

TEST_CASE("Adler-32 equals its definition, for every length, address and cut") {
  mr::rng d({.seed = 12});
  std::vector<std::uint8_t> bytes(40'000);
  for (auto& b : bytes) b = d.chance(0.5) ? 255 : static_cast<std::uint8_t>(d.below(256));
  for (std::size_t i = 0; i < 700; ++i) {
    const std::size_t at = d.below(40), size = i < 600 ? i : d.below(bytes.size() - at), cut = d.below(size + 1);
    const auto part = std::span<const std::uint8_t>(bytes).subspan(at, size);
    const std::uint32_t expected = slow_adler(part);
    CAPTURE(size);
    REQUIRE(mr::detail::adler(part) == expected);
    REQUIRE(mr::detail::adler(part.subspan(cut), mr::detail::adler(part.first(cut))) == expected);
  }
}

TEST_CASE("Adler-32 of the largest bytes does not overflow") {
  const std::vector<std::uint8_t> bytes(30'000, 255);
  CHECK(mr::detail::adler(bytes) == slow_adler(bytes));
}
