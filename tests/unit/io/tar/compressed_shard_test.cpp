// What a damaged compressed shard gives: never other bytes without an error by its end; and what streams are read.
#include <millrace/base/random.hpp>
#include <millrace/io/tar/gzip_inflater.hpp>
#include <millrace/io/tar/shard_reader.hpp>

#include "../../../thorough.hpp"
#include "../tar_bytes.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace mr = millrace;
using namespace tar_test;

namespace {

/// 40 samples whose payloads compress, but not to nothing; more than one block of any format's output.
std::string wordy_shard() {
  mr::rng random({.seed = 17});
  std::string tar;
  for (int i = 0; i < 40; ++i) {
    std::string text;
    while (text.size() < 9'000) text += std::to_string(random.below(1'000)) + (random.below(9) ? " " : ", damage ");
    tar += file("k" + std::to_string(i) + ".txt", text) + file("k" + std::to_string(i) + ".cls", std::to_string(i));
  }
  return tar + end_marker();
}

/// Every payload, whole.
struct contents {
  std::vector<std::string> samples{};
  std::string error{};
  bool late = false;
};
contents contents_of(std::string tar) {
  contents all;
  try {
    mr::shard_reader reader(std::make_unique<memory_source>(std::move(tar)), shared_pool());
    while (const auto record = reader.next())
      all.samples.push_back(std::string(record->key()) + std::string((*record)["txt"].text()) +
                            std::string((*record)["cls"].text()));
  } catch (const mr::data_error& e) {
    all.error = e.what();
    all.late = dynamic_cast<const mr::late_data_error*>(&e) != nullptr;
  }
  return all;
}

}  // namespace

TEST_CASE("one flipped bit in a compressed shard: the same samples, or an error by the end of the shard") {
  const std::string tar = wordy_shard();
  const contents whole = contents_of(tar);
  REQUIRE(whole.error.empty());
  REQUIRE(whole.samples.size() == 40);
  mr::rng random({.seed = 18});
  for (const std::string tool : {"gzip", "bzip2", "xz", "zstd", "lz4"}) {
    CAPTURE(tool);
    if (!have(tool)) {
      MESSAGE("skipped: no " << tool);
      continue;
    }
    const std::string packed = through(tool + " -c", tar);
    const std::size_t flips = tool == "gzip" ? 600 / stride(6) : 50;
    std::size_t wrong = 0, refused = 0;
    for (std::size_t i = 0; i < flips; ++i) {
      std::string flipped = packed;
      const std::size_t at = random.below(packed.size());
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << random.below(8)));
      const contents found = contents_of(flipped);
      if (found.error.empty() && found.samples != whole.samples) FAIL("byte " << at << " passes");
      wrong += !std::equal(found.samples.begin(), found.samples.end(), whole.samples.begin(),
                           whole.samples.begin() + static_cast<std::ptrdiff_t>(std::min(found.samples.size(),
                                                                                        std::size_t{40})));
      refused += !found.error.empty();
      // Of a header's bytes a flip may make another format, or none.
      if (!found.error.empty() && at > 16) {
        CAPTURE(found.error);
        CHECK(found.late);
        CHECK(found.error.find("may be wrong: go on from a resume point before its first") != std::string::npos);
      }
    }
    CHECK(refused > flips * 9 / 10);
    if (tool == "gzip") CHECK(wrong > flips / 10);   // those of which only the end of the stream tells
  }
}

TEST_CASE("a gzip stream of any parts and header fields is read; its CRC-32, length and header CRC are checked") {
  if (!have("gzip")) return;
  const std::string tar = wordy_shard();
  const contents whole = contents_of(tar);
  const auto gzip = [](const std::string& data) { return through("gzip -nc", data); };
  const auto number = [](std::uint32_t value, int bytes) {
    std::string text;
    for (; bytes > 0; --bytes, value >>= 8) text += static_cast<char>(value & 255);
    return text;
  };
  const std::string packed = gzip(tar);
  for (const std::string& parts :
       {packed, packed + std::string(1, '\0'), packed + std::string(70'000, '\0'),
        gzip(tar.substr(0, 1)) + gzip("") + gzip(tar.substr(1, 300'000)) + gzip(tar.substr(300'001))}) {
    for (const std::size_t piece : {std::size_t{1} << 20, std::size_t{5}}) {
      memory_source::faults f;
      f.max_bytes_per_read = piece;
      CHECK(read_source(std::make_unique<memory_source>(parts, f)).samples.size() == 40);
    }
    CHECK(contents_of(parts).samples == whole.samples);
  }
  // FEXTRA, FNAME, FCOMMENT, FHCRC: RFC 1952, 2.3.
  const std::string front = std::string("\x1f\x8b\x08\x1e", 4) + std::string(6, '\0') + number(6, 2) + "BC" +
                            number(2, 2) + "xy" + "a name" + '\0' + "a comment" + '\0';
  const std::uint32_t of_front = mr::detail::gzip_crc32(std::as_bytes(std::span(front)));
  const std::string rest = packed.substr(10);
  CHECK(contents_of(front + number(of_front, 2) + rest).samples == whole.samples);
  CHECK(contents_of(front + number(of_front ^ 1, 2) + rest).error.find("header crc mismatch") != std::string::npos);
  std::string crc = packed, length = packed;
  crc[packed.size() - 6] = static_cast<char>(crc[packed.size() - 6] ^ 1);
  length[packed.size() - 2] = static_cast<char>(length[packed.size() - 2] ^ 1);
  const contents wrong_crc = contents_of(crc), wrong_length = contents_of(length);
  CHECK(wrong_crc.error.find("the gzip stream is damaged: got data with the CRC-32 ") != std::string::npos);
  CHECK(wrong_length.error.find(" bytes of data, expected ") != std::string::npos);
  CHECK(wrong_crc.samples.size() < 40);
  CHECK(contents_of(packed + packed.substr(0, 5)).error.find("cut short") != std::string::npos);
  CHECK(contents_of(packed + "\x1f").error.find("cut short") != std::string::npos);
  CHECK(contents_of(packed + std::string(3, '\0') + packed).error.find("something else than zeros") !=
        std::string::npos);
  // Of a cut stream everything in front of the cut is there: here, all but the last sample.
  const contents cut = contents_of(packed.substr(0, packed.size() - 9));
  CHECK(cut.samples.size() == 39);
  CHECK(cut.late);
  CHECK(cut.error.find("the gzip stream is cut short: its end is not in the file, after the last good key 'k38'") !=
        std::string::npos);
}

TEST_CASE("a gzip stream's CRC-32 is the same by zlib, by products, and in parts") {
  mr::rng random({.seed = 3});
  std::vector<std::byte> data(3'000);
  for (auto& b : data) b = std::byte(random.below(256));
  for (std::size_t size = 0; size < 700; ++size) {
    const auto part = std::span<const std::byte>(data).subspan(size % 17, size);
    const std::uint32_t expected = mr::detail::crc32_by_zlib(part, 0);
    REQUIRE(mr::detail::gzip_crc32(part) == expected);
    REQUIRE(mr::detail::gzip_crc32(part.subspan(size / 3), mr::detail::gzip_crc32(part.first(size / 3))) == expected);
  }
  CHECK(mr::detail::gzip_crc32(data) == mr::detail::crc32_by_zlib(data, 0));
}

TEST_CASE("frames that readers are told to skip are skipped, in front of a zstd or lz4 stream and between its frames") {
  const std::string tar = wordy_shard();
  const contents whole = contents_of(tar);
  const auto skippable = [](std::size_t bytes, int number = 0) {
    std::string frame = std::string(1, static_cast<char>(0x50 + number)) + "\x2a\x4d\x18";
    for (std::size_t i = 0; i < 4; ++i) frame += static_cast<char>(bytes >> 8 * i & 255);
    return frame + std::string(bytes, 'x');
  };
  for (const std::string tool : {"zstd -qc", "lz4 -qc", "pzstd -qc"}) {
    CAPTURE(tool);
    if (!have(tool.substr(0, tool.find(' ')))) {
      MESSAGE("skipped: no " << tool);
      continue;
    }
    const std::string packed = through(tool, tar);
    const std::string parts = through(tool, tar.substr(0, 100'000)) + skippable(9, 15) + skippable(0) +
                              through(tool, tar.substr(100'000)) + skippable(4);
    for (const std::string& stream :
         {packed, skippable(4) + packed, skippable(0, 15) + skippable(700'000, 3) + packed,
          skippable((std::size_t{512} << 10) - 12) + packed, parts, skippable(1) + parts}) {
      CHECK(contents_of(stream).samples == whole.samples);
      CHECK(contents_of(stream).error.empty());
    }
    CHECK(contents_of(skippable(4) + packed.substr(0, packed.size() / 2)).late);
    CHECK_FALSE(contents_of(skippable(4) + packed + "something else").error.empty());
  }
  for (const std::string& none : {skippable(4), skippable(4) + tar, skippable(4).substr(0, 9), skippable(4) + "12"})
    CHECK_FALSE(contents_of(none).error.empty());
}
