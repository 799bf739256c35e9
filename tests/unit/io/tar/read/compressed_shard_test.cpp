// Damaged compressed shards: never other bytes without an error by the end; and the streams that are supported.
#include <millrace/base/crc32c.hpp>
#include <millrace/base/random.hpp>
#include <millrace/io/tar/read/gzip_inflater.hpp>
#include <millrace/io/tar/read/shard_reader.hpp>

#include "../../../../thorough.hpp"
#include "../../tar_bytes.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace mr = millrace;
using namespace tar_test;

namespace {

/// 40 samples whose payloads compress, but not to nothing; more than one output block of any format.
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

/// Every complete payload.
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
  const contents original = contents_of(tar);
  REQUIRE(original.error.empty());
  REQUIRE(original.samples.size() == 40);
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
      const contents damaged = contents_of(flipped);
      if (damaged.error.empty() && damaged.samples != original.samples) FAIL("byte " << at << " passes");
      wrong += !std::equal(damaged.samples.begin(), damaged.samples.end(), original.samples.begin(),
                           original.samples.begin() + static_cast<std::ptrdiff_t>(std::min(damaged.samples.size(),
                                                                                        std::size_t{40})));
      refused += !damaged.error.empty();
      // A flip in the header may turn the format into another one, or into none.
      if (!damaged.error.empty() && at > 16) {
        CAPTURE(damaged.error);
        CHECK(damaged.late);
        CHECK(damaged.error.find("may be wrong: resume from a point before its first") != std::string::npos);
      }
    }
    CHECK(refused > flips * 9 / 10);
    if (tool == "gzip") CHECK(wrong > flips / 10);   // those that only the end of the stream reveals
  }
}

TEST_CASE("a gzip stream of any parts and header fields is read; its CRC-32, length and header CRC are checked") {
  if (!have("gzip")) return;
  const std::string tar = wordy_shard();
  const contents original = contents_of(tar);
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
    CHECK(contents_of(parts).samples == original.samples);
  }
  // FEXTRA, FNAME, FCOMMENT, FHCRC: RFC 1952, 2.3.
  const std::string front = std::string("\x1f\x8b\x08\x1e", 4) + std::string(6, '\0') + number(6, 2) + "BC" +
                            number(2, 2) + "xy" + "a name" + '\0' + "a comment" + '\0';
  const std::uint32_t front_crc = mr::detail::crc32(std::as_bytes(std::span(front)));
  const std::string rest = packed.substr(10);
  CHECK(contents_of(front + number(front_crc, 2) + rest).samples == original.samples);
  CHECK(contents_of(front + number(front_crc ^ 1, 2) + rest).error.find("header crc mismatch") != std::string::npos);
  std::string crc = packed, length = packed;
  crc[packed.size() - 6] = static_cast<char>(crc[packed.size() - 6] ^ 1);
  length[packed.size() - 2] = static_cast<char>(length[packed.size() - 2] ^ 1);
  const contents wrong_crc = contents_of(crc), wrong_length = contents_of(length);
  CHECK(wrong_crc.error.find("the gzip stream is damaged: got data with the CRC-32 ") != std::string::npos);
  CHECK(wrong_length.error.find(" bytes of data, expected ") != std::string::npos);
  CHECK(wrong_crc.samples.size() < 40);
  CHECK(contents_of(packed + packed.substr(0, 5)).error.find("truncated") != std::string::npos);
  CHECK(contents_of(packed + "\x1f").error.find("truncated") != std::string::npos);
  CHECK(contents_of(packed + std::string(3, '\0') + packed).error.find("bytes other than zeros") !=
        std::string::npos);
  // Of a cut stream, all before the cut can be read: here, all but the last sample.
  const contents cut = contents_of(packed.substr(0, packed.size() - 9));
  CHECK(cut.samples.size() == 39);
  CHECK(cut.late);
  CHECK(cut.error.find("the gzip stream is truncated: its end is not in the file, after the last good key 'k38'") !=
        std::string::npos);
}

TEST_CASE("skippable frames are skipped, in front of a zstd or lz4 stream and between its frames") {
  const std::string tar = wordy_shard();
  const contents original = contents_of(tar);
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
      CHECK(contents_of(stream).samples == original.samples);
      CHECK(contents_of(stream).error.empty());
    }
    CHECK(contents_of(skippable(4) + packed.substr(0, packed.size() / 2)).late);
    CHECK_FALSE(contents_of(skippable(4) + packed + "something else").error.empty());
  }
  for (const std::string& none : {skippable(4), skippable(4) + tar, skippable(4).substr(0, 9), skippable(4) + "12"})
    CHECK_FALSE(contents_of(none).error.empty());
}

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

/// A payload like a mask of classes: long runs of one value. Compressors reduce it by a factor of 200 to 1,000.
std::string mask_of(std::size_t size_bytes) {
  mr::rng random({.seed = 19});
  std::string bytes(size_bytes, '\0');
  for (std::size_t at = 0; at + 1'024 <= size_bytes; at += 1'024)
    bytes[at + random.below(1'024)] = static_cast<char>(random.below(4));
  return bytes;
}

std::string noise_of(std::size_t size_bytes) {
  mr::rng random({.seed = 20});
  std::string bytes(size_bytes, '\0');
  for (char& b : bytes) b = static_cast<char>(random.below(256));
  return bytes;
}

outcome read_bytes(std::string bytes, mr::shard_reader_options options = {}, std::size_t per_read = ~std::size_t{0}) {
  return read_source(std::make_unique<memory_source>(std::move(bytes), memory_source::faults{per_read}), options);
}

}  // namespace

TEST_CASE("a large compressible member is read wherever it is in a compressed shard, of one stream or several") {
  const std::string mask = mask_of(72 * mib);
  const std::string before = file("a.cls", "1"), after = file("b.cls", "2");
  const std::string last = before + file("b.npy", mask) + end_marker();
  const std::string middle = before + pax(pax_record("size", std::to_string(mask.size()))) +
                             block({.name = "b.npy", .size_bytes = 0}) + padded(mask) + after + end_marker();
  for (const std::string tool : {"gzip -1", "zstd -1", "lz4", "bzip2 -1", "xz -0"}) {
    if (!have(tool.substr(0, tool.find(' ')))) {
      MESSAGE("skipped: no " << tool);
      continue;
    }
    CAPTURE(tool);
    const auto packed = [&](std::string_view bytes) { return through(tool + " -c", std::string(bytes)); };
    const std::string expected = "b: npy=" + std::to_string(mask.size()) + "?";
    const outcome at_end = read_bytes(packed(last));
    CHECK_MESSAGE(at_end.error.empty(), at_end.message);
    CHECK(at_end.samples == std::vector<std::string>{"a: cls=1", expected});
    const outcome in_middle = read_bytes(packed(middle));
    CHECK_MESSAGE(in_middle.error.empty(), in_middle.message);
    CHECK(in_middle.samples == std::vector<std::string>{"a: cls=1", expected + " cls=2"});
    const std::string_view all = last;
    const std::size_t cut = 40 * mib;
    const outcome joined = read_bytes(packed(all.substr(0, cut)) + packed(all.substr(cut)), {}, 1'000);
    CHECK_MESSAGE(joined.error.empty(), joined.message);
    CHECK(joined.samples == at_end.samples);
  }
}

TEST_CASE("max_expansion limits the entire shard: a part of it may expand more") {
  const std::string noise = noise_of(6 * mib), zeros(70 * mib, '\0');
  for (const std::string tool : {"gzip -1", "zstd -1"}) {
    if (!have(tool.substr(0, tool.find(' ')))) continue;
    CAPTURE(tool);
    for (const bool zeros_first : {true, false}) {
      const std::string packed = through(
          tool + " -c", file("a.bin", zeros_first ? zeros : noise) + file("b.bin", zeros_first ? noise : zeros) +
                            end_marker());
      const outcome good = read_bytes(packed, {.limits = {.max_expansion = 20}});
      CHECK_MESSAGE(good.error.empty(), good.message);
      CHECK(good.samples.size() == 2);
      const outcome limited = read_bytes(packed, {.limits = {.max_expansion = 12}});
      CHECK(limited.error == "data");
      CHECK_MESSAGE(limited.message.find("expands to more than 12 times its size (max_expansion)") != std::string::npos,
                    limited.message);
    }
  }
}

TEST_CASE("a member of a compressed shard whose size is wrong is damage, independent of max_expansion") {
  for (const std::string tool : {"gzip -1", "zstd -1"}) {
    if (!have(tool.substr(0, tool.find(' ')))) continue;
    CAPTURE(tool);
    for (const std::size_t claimed : {70 * mib, 900 * mib}) {
      const std::string tar = file("a.cls", "1") + block({.name = "b.bin", .size_bytes = claimed}) +
                              std::string(2 * mib, 'x');
      const outcome read = read_bytes(through(tool + " -c", tar));
      CHECK(read.samples == std::vector<std::string>{"a: cls=1"});
      CHECK(read.error == "data");
      CHECK_MESSAGE(read.message.find("payload") != std::string::npos, read.message);
      CHECK(read.message.find("max_expansion") == std::string::npos);
    }
  }
}
