// Damaged shards: everything before the damage, never half a sample, and one error that names the place.
#include <millrace/base/random.hpp>
#include <millrace/io/tar/read/shard_reader.hpp>

#include "../../../../thorough.hpp"
#include "../../tar_bytes.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace mr = millrace;
using namespace tar_test;

namespace {

using samples = std::vector<std::string>;

const samples first_sample{"a: cls=label a jpg=700a"};
const samples all_samples{"a: cls=label a jpg=700a", "b: cls=label b jpg=700b", "c: cls=label c jpg=700c"};

/// One kind of damage to the fourth member (index 3: "b.jpg") of a shard, and the expected place of the error.
struct damage {
  std::string name;
  std::string tar;
  std::uint64_t offset;
};

std::vector<damage> eight_damages() {
  const small_shard shard;
  const std::string tar = shard.bytes();
  const std::size_t at = shard.offset_of(3), next = shard.offset_of(4);
  std::string flipped = tar, zero_block = tar, hole = tar, huge = tar, negative = tar;
  flipped[at + 105] = static_cast<char>(flipped[at + 105] ^ 1);
  zero_block.replace(at, 512, 512, '\0');
  hole.replace(at, next - at, next - at, '\0');
  huge.replace(at + 124, 11, "77777777777");
  put_checksum(huge, at);
  negative.replace(at + 124, 12, 12, '\xff');
  put_checksum(negative, at);
  return {{"a byte flipped in a header", flipped, at},
          {"cut inside a member's data", tar.substr(0, at + 512 + 100), at},
          {"cut inside a header", tar.substr(0, at + 200), at},
          {"header is one zero block", zero_block, at},
          {"zero hole over one member", hole, at},
          {"huge size", huge, at},
          {"negative size", negative, at},
          {"two archives joined", tar + tar, tar.size() - 1024}};
}

bool is_prefix(const samples& some, const samples& all) {
  return some.size() <= all.size() && std::equal(some.begin(), some.end(), all.begin());
}

}  // namespace

TEST_CASE("each of the eight damages is an error at its place, after every complete sample") {
  for (const auto& d : eight_damages()) {
    CAPTURE(d.name);
    const outcome o = read_tar(d.tar);
    CAPTURE(o.message);
    CHECK(o.error == "data");
    const bool joined = d.name == "two archives joined";
    CHECK(o.samples == (joined ? samples{all_samples[0], all_samples[1]} : first_sample));
    CHECK(o.where.shard == "memory.tar");
    CHECK(o.where.offset_bytes == d.offset);
    CHECK(o.message.ends_with(joined ? ", after the last good key 'b'" : ", after the last good key 'a'"));
  }
}

TEST_CASE("the eight damages are detected under compression too") {
  if (!have("gzip")) {
    MESSAGE("skipped: no gzip");
    return;
  }
  for (const auto& d : eight_damages()) {
    CAPTURE(d.name);
    const outcome plain = read_tar(d.tar), packed = read_tar(through("gzip -c", d.tar));
    CHECK(packed.error == "data");
    CHECK(packed.samples == plain.samples);
    CHECK(packed.where.offset_bytes == d.offset);
  }
}

TEST_CASE("the eight damages are detected if the damaged field is not requested") {
  for (const auto& d : eight_damages()) {
    CAPTURE(d.name);
    const outcome o = read_tar(d.tar, {.fields = {"cls"}});
    CHECK(o.error == "data");
    CHECK(is_prefix(o.samples, {"a: cls=label a", "b: cls=label b", "c: cls=label c"}));
  }
}

TEST_CASE("damage before the first complete sample is reported as such") {
  const outcome o = read_tar(small_shard().bytes().substr(0, 700));
  CHECK(o.error == "data");
  CHECK(o.samples.empty());
  CHECK(o.message.ends_with(", before the first good sample"));
}

TEST_CASE("a size field without digits, a broken checksum and an overwritten header are errors") {
  const small_shard shard;
  const std::size_t at = shard.offset_of(3);
  for (const std::string bad_size : {"xxxxxxxxxxx", "0000-000001", "9999999999 "}) {
    std::string tar = shard.bytes();
    tar.replace(at + 124, 11, bad_size);
    put_checksum(tar, at);
    CAPTURE(bad_size);
    const outcome o = read_tar(tar);
    CHECK(o.error == "data");
    CHECK(is_prefix(o.samples, all_samples));
  }
  std::string tar = shard.bytes();
  tar.replace(at, 512, 512, 'x');
  const outcome o = read_tar(tar);
  CHECK(o.error == "data");
  CHECK(o.samples == first_sample);
  CHECK(o.where.offset_bytes == at);
}

TEST_CASE("cut at any byte within a member, a shard returns a prefix of its samples and then an error") {
  for (const auto make : {file, pax_file}) {
    const small_shard shard(make);
    const std::string tar = shard.bytes();
    std::vector<std::size_t> borders;
    for (std::size_t i = 1; i <= shard.members.size(); ++i) borders.push_back(shard.offset_of(i));
    for (std::size_t length = 0; length < tar.size(); length += stride(5)) {
      const outcome o = read_tar(tar.substr(0, length));
      if (length >= borders.back() || std::find(borders.begin(), borders.end(), length) != borders.end()) {
        if (o.error != "" || o.samples.empty() || o.counters.missing_end_markers != 1)
          FAIL("cut at " << length << ", on a boundary: " << o.error << " " << o.message);
        continue;
      }
      const bool good = o.error == "data" && is_prefix(o.samples, all_samples) && o.samples.size() < 3 &&
                        // A sample is returned as soon as the header of the next one is complete.
                        (length < shard.offset_of(2) + shard.members[2].size() || o.samples.size() >= 1) &&
                        o.where.shard == "memory.tar" && o.where.offset_bytes <= length;
      if (!good) FAIL("cut at " << length << ": " << o.error << " " << o.samples.size() << " " << o.message);
    }
    CHECK(read_tar(tar).error == "");
    CHECK(read_tar(tar).samples == all_samples);
  }
}

TEST_CASE("compressed shards cut at any byte return a prefix of their samples and then an error") {
  const std::string tar = small_shard().bytes();
  for (const std::string tool : {"gzip", "zstd", "xz", "lz4", "bzip2"}) {
    CAPTURE(tool);
    if (!have(tool)) {
      MESSAGE("skipped: no " << tool);
      continue;
    }
    const std::string packed = through(tool + " -c", tar);
    for (std::size_t length = 0; length < packed.size(); ++length) {
      const outcome o = read_tar(packed.substr(0, length));
      if (o.error == "" && o.samples == all_samples) {
        // libarchive does not check the checksums at the very end; zlib does.
        if (tool == "gzip" || length + 16 < packed.size()) FAIL(tool << " cut at " << length << " passes as complete");
      } else if (o.error != "data" || !is_prefix(o.samples, all_samples)) {
        FAIL(tool << " cut at " << length << ": " << o.error << " " << o.samples.size());
      }
    }
  }
}

TEST_CASE("a flipped bit in any header byte is an error, or changes nothing that matters") {
  for (const auto make : {file, pax_file}) {
    const small_shard shard(make);
    const std::string original = shard.bytes();
    const std::size_t begin = shard.offset_of(3), header_bytes = shard.members[3].size() - 1024;
    std::size_t errors = 0;
    for (std::size_t at = begin; at < begin + header_bytes; ++at) {
      for (std::size_t bit = at % 2; bit < 8; bit += 2) {
        std::string tar = original;
        tar[at] = static_cast<char>(tar[at] ^ (1 << bit));
        const outcome o = read_tar(tar);
        if (o.error == "data") {
          ++errors;
          if (o.samples != first_sample)
            FAIL("byte " << at - begin << " bit " << bit << ": not one sample before the error");
          continue;
        }
        // Only the checksum's own bytes and the payload of a pax header are outside the checksum.
        const std::size_t in_header = (at - begin) % 512;
        const bool pax_payload = make == pax_file && at - begin >= 512 && at - begin < 1024;
        if (o.samples != all_samples || (!pax_payload && (in_header < 148 || in_header >= 156)))
          FAIL("byte " << at - begin << " bit " << bit << " passes: " << o.error << " " << o.samples.size());
      }
    }
    CHECK(errors > header_bytes / 512 * 504 * 4 / 2);
  }
}

TEST_CASE("a sparse member whose map or size does not fit its payload is an error, by an index too") {
  const auto sparse = [](std::uint64_t at, std::uint64_t stored, std::uint64_t size, const std::string& raw_size,
                         char type = 'S') {
    return sparse_block({.name = "a.bin", .size_bytes = stored, .type = type, .raw_size = raw_size},
                        {.at = at, .stored = stored, .size = size}) +
           padded(std::string(stored, 'x'));
  };
  const std::string other = file("b.bin", "b");
  CHECK(read_tar(sparse(1'000, 14, 1'014, "") + other + end_marker()).error.empty());
  const outcome outside = read_tar(sparse(1'919, 14, 1'105, "") + other + end_marker());
  CHECK(outside.error == "data");
  CHECK(outside.where.offset_bytes == 0);
  // libarchive searches for the map whatever the type is.
  CHECK(read_tar(sparse(1'919, 14, 1'105, "", 's') + other + end_marker()).error == "data");
  // A second piece of nearly 2^63 bytes: skipped and read bytes must agree, though libarchive counts in two ways.
  std::string two = sparse(0, 55, 55, "", '0');
  two.replace(410, 11, octal(55, 11));
  two.replace(422, 12, std::string("\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xc8", 12));
  put_checksum(two, 0);
  CHECK(read_tar(file("c.bin", "c") + two + other + end_marker()).error.empty());
  // Solaris's extended header is read like pax's.
  const std::string extended = pax(pax_record("SCHILY.realsize", "700"), 'X');
  CHECK(read_tar(extended + file("a.bin", std::string(678, 'x')) + end_marker()).error == "data");
  // More than there is: libarchive accepts the pieces of the map, and does not report that the rest is missing.
  const outcome cut = read_tar(sparse(742, 7, 3'680, std::string("\x80\0\0\0" "7777777\0", 12)));
  CHECK(cut.error == "data");
  CHECK(cut.message.find("has a payload that ends inside a block") != std::string::npos);
}

TEST_CASE("a malformed pax record is an error") {
  const std::string before = file("a.txt", "1"), after = file("b.txt", "2") + end_marker();
  for (const std::string records : {"hello", "99 path=x\n", "7 mtime",
                                    "x path=y\n", "0 path=y\n", "11 path=abc", "-5 a=b\n"}) {
    CAPTURE(records);
    const outcome o = read_tar(before + pax(records) + after);
    CHECK(o.error == "data");
    CHECK(is_prefix(o.samples, {"a: txt=1"}));
    CHECK(o.where.offset_bytes == before.size());
  }
  CHECK(read_tar(before + pax(pax_record("mtime", "1.5"))).error == "data");                    // cut after it
  CHECK(read_tar(before + pax(pax_record("mtime", "1.5")) + end_marker()).error == "data");     // nothing after it
  CHECK(read_tar(before + block({.name = "x", .size_bytes = 1U << 30, .type = 'x'}) + after).error == "data");
}

TEST_CASE("after the end marker there may be zeros, up to the size of a tape block, and nothing else") {
  const std::string tar = small_shard().bytes();
  CHECK(read_tar(tar + std::string(9 * 1024, '\0')).error == "");
  CHECK(read_tar(tar + std::string(1'000'000, '\0')).error == "");
  CHECK(read_tar(tar + std::string(100, '\0')).error == "");
  CHECK(read_tar(tar + "x").error == "data");
  CHECK(read_tar(tar + std::string(1'000'000, '\0') + "x").error == "data");
  const outcome unfinished = read_tar(tar + std::string(20U << 20, '\0'));
  CHECK(unfinished.error == "data");
  CHECK(unfinished.message.find("incomplete copy") != std::string::npos);
  const std::string one_block = tar.substr(0, tar.size() - 512);
  CHECK(read_tar(one_block + file("d.txt", "1") + end_marker()).error == "data");
}

TEST_CASE("only zeros may follow a compressed stream") {
  const std::string tar = small_shard().bytes();
  for (const std::string tool : {"gzip", "zstd", "xz", "lz4", "bzip2"}) {
    CAPTURE(tool);
    if (!have(tool)) {
      MESSAGE("skipped: no " << tool);
      continue;
    }
    CHECK(read_tar(through(tool + " -c", tar) + "something else").error == "data");
  }
  if (have("gzip")) CHECK(read_tar(through("gzip -c", tar) + std::string(512, '\0')).error == "");
}

TEST_CASE("a failing disk is an io_error that names the last good key, after every complete sample") {
  const small_shard shard(pax_file);
  const std::string big = file("0.bin", std::string(600'000, '0'));   // more than one read
  memory_source::faults f;
  f.fail_at = big.size() + shard.offset_of(3);
  const outcome o = read_source(std::make_unique<memory_source>(big + shard.bytes(), f));
  CHECK(o.error == "io");
  CHECK(o.message.starts_with("the disk is broken"));
  CHECK(o.where.shard == "memory.tar");
  f.fail_at = 10;
  CHECK_THROWS_AS((void)mr::file_source("/nonexistent"), mr::io_error);
  CHECK(read_source(std::make_unique<memory_source>(shard.bytes(), f)).error == "io");
  if (have("gzip")) {
    const std::string packed = through("gzip -c", shard.bytes());
    f.fail_at = packed.size() / 2;
    CHECK(read_source(std::make_unique<memory_source>(packed, f)).error == "io");
  }
}

TEST_CASE("undetectable damage in a plain shard: a flipped payload bit, a tail of zeros inside a member") {
  const small_shard shard;
  std::string payload = shard.bytes();
  payload[shard.offset_of(1) + 512] = 'A';
  CHECK(read_tar(payload).error == "");
  std::string tail = shard.bytes();
  std::fill(tail.begin() + static_cast<std::ptrdiff_t>(shard.offset_of(3) + 600), tail.end(), '\0');
  const outcome o = read_tar(tail);   // looks like a sample with an image of zeros, and an end
  CHECK(o.error == "");
  CHECK(o.samples.size() == 2);
}

TEST_CASE("random damage of any kind ends in samples or in a data_error, in bounded memory") {
  std::vector<std::string> shards{small_shard().bytes(), small_shard(pax_file).bytes(),
                                  small_shard(gnu_long_name).bytes()};
  for (const std::string tool : {"gzip", "zstd", "xz", "lz4", "bzip2"})
    if (have(tool)) shards.push_back(through(tool + " -c", shards[1]));
  mr::rng random({.seed = 1});
  std::size_t refused = 0;
  for (int i = 0; i < 2'000; ++i) {
    std::string tar = shards[random.below(shards.size())];
    for (std::uint64_t n = 1 + random.below(4); n > 0 && !tar.empty(); --n) {
      const std::size_t at = random.below(tar.size()), header = at / 512 * 512;
      switch (random.below(4)) {
        case 0: tar[at] = static_cast<char>(tar[at] ^ (1 << random.below(8))); break;
        case 1: tar.erase(at, random.below(600)); break;
        case 2: tar.insert(at, tar.substr(random.below(tar.size()), random.below(1'100))); break;
        default:
          tar[at] = static_cast<char>(random.below(2) ? '0' + random.below(8) : random.below(256));
          if (header + 512 <= tar.size()) put_checksum(tar, header);   // so that the change passes the checksum
      }
    }
    const outcome o = read_tar(tar, {.limits = {.max_member_bytes = 1U << 20}});
    refused += o.error == "data";
    if (o.error != "" && o.error != "data") FAIL("shard " << i << ": " << o.error << ": " << o.message);
  }
  CHECK(refused > 1'000);
}
