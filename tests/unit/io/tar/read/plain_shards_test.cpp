// Large payloads of plain shards, which are read straight to their destination: the same as in chunks, in all cases.
#include "../../tar_bytes.hpp"

#include <millrace/io/tar/read/shard_reader.hpp>
#include <millrace/io/tar/read/shard_stream.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mr = millrace;
using namespace tar_test;

namespace {

constexpr std::size_t straight_from_bytes = 32 << 10;

/// A shard in memory that records the destinations of its bytes.
class watched_source final : public mr::byte_source {
 public:
  struct memory {
    std::vector<std::span<const std::byte>> places;   // of reads into several parts, the first part of each
    std::size_t reads = 0;
  };
  watched_source(std::string data, memory_source::faults faults, memory& log)
      : source_(std::move(data), faults), log_(&log) {}
  std::string_view name() const noexcept override { return source_.name(); }
  std::size_t read_at(std::uint64_t offset_bytes, std::span<std::byte> buffer) override {
    ++log_->reads;
    return source_.read_at(offset_bytes, buffer);
  }
  std::size_t read_parts(std::uint64_t offset_bytes, std::span<const std::span<std::byte>> parts) override {
    ++log_->reads;
    if (parts.size() > 1) log_->places.push_back(parts[0]);
    return source_.read_parts(offset_bytes, parts);
  }
  bool reads_parts() const noexcept override { return source_.reads_parts(); }

 private:
  memory_source source_;
  memory* log_;
};

std::string noise(std::mt19937& random, std::size_t size_bytes) {
  std::string bytes(size_bytes, '\0');
  for (char& b : bytes) b = static_cast<char>(random());
  if (size_bytes > 3 && random() % 4 == 0) std::fill(bytes.end() - 3, bytes.end(), '\0');
  return bytes;
}

/// Samples with payloads of 0 to 300 KB, of which `other` may be left out.
struct large_shard {
  std::string bytes;
  std::vector<std::size_t> begins;   // of samples
  explicit large_shard(std::mt19937& random, std::size_t samples = 12) {
    for (std::size_t i = 0; i < samples; ++i) {
      begins.push_back(bytes.size());
      const auto size_bytes = [&]() -> std::size_t {
        constexpr std::size_t at[] = {straight_from_bytes - 1, straight_from_bytes, 40'000, 70'000};
        return random() % 3 == 0 ? at[random() % 4] : random() % (random() % 2 == 0 ? 40'000 : 300'000);
      };
      const std::string key = "k" + std::to_string(i);
      if (random() % 2 == 0) bytes += file(key + ".cls", std::to_string(i));
      bytes += (random() % 2 == 0 ? file : pax_file)(key + ".jpg", noise(random, size_bytes()));
      if (random() % 2 == 0) bytes += file(key + ".other", noise(random, size_bytes()));
      if (random() % 3 == 0) bytes += file(key + ".json", noise(random, random() % 9'000));
    }
    bytes += end_marker();
  }
};

struct content {
  std::vector<std::string> samples;   // with all bytes of all fields
  std::string error;
  bool operator==(const content&) const = default;
};

content read_all(const std::string& shard, memory_source::faults faults, const mr::shard_reader_options& options,
                 std::uint64_t start_bytes = 0) {
  content all;
  try {
    mr::shard_reader reader = mr::detail::open_shard_at(
        {.offset_bytes = start_bytes}, std::make_unique<memory_source>(shard, faults), shared_pool(), options);
    while (const auto record = reader.next()) {
      std::string sample(record->key());
      for (const auto& f : record->fields()) (sample += f.name()) += f.text();
      all.samples.push_back(std::move(sample));
    }
  } catch (const mr::error& e) {
    all.error = e.what();
  }
  return all;
}

}  // namespace

TEST_CASE("large payloads are read straight to their place, by one read each") {
  std::mt19937 random(1);
  for (const std::size_t between_bytes : {1, 6'000}) {   // small data after a payload is read along
    std::string tar;
    for (int i = 0; i < 10; ++i) {
      tar += file("k" + std::to_string(i) + ".jpg", noise(random, 200'000));
      tar += file("k" + std::to_string(i) + ".json", noise(random, between_bytes));
    }
    watched_source::memory log;
    mr::shard_reader reader(
        std::make_unique<watched_source>(tar + end_marker(), memory_source::faults{.in_parts = true}, log),
        shared_pool());
    std::size_t straight = 0, read = 0;
    while (const auto record = reader.next()) {
      const auto payload = (*record)["jpg"];
      ++read;
      if (log.places.empty()) continue;
      const auto place = log.places.back();
      log.places.clear();   // blocks are reused
      if (place.data() < payload.data() || place.data() >= payload.data() + payload.size()) continue;
      ++straight;
      CHECK(place.data() + place.size() == payload.data() + payload.size());
    }
    CHECK(read == 10);
    CHECK(straight == 8);   // the first chunk, of 512 KiB, contains two
    CHECK(log.reads <= (between_bytes == 1 ? 11 : 19));
  }
}

TEST_CASE("a stream returns its prefetched bytes before it reads into a destination, and does not skip it") {
  std::mt19937 random(5);
  const std::string bytes = noise(random, 2'000'000);
  memory_source source(bytes, {.in_parts = true});
  mr::detail::shard_stream stream(source, shared_pool());
  std::string got;
  std::vector<std::byte> place(300'000);
  std::size_t in_place = 0, elsewhere = 0;
  for (;;) {
    const auto chunk = stream.next_chunk(place);
    if (chunk.empty()) break;
    ++(chunk.data() == place.data() ? in_place : elsewhere);
    got.append(reinterpret_cast<const char*>(chunk.data()), chunk.size());
    if (chunk.data() == place.data() && got.size() < bytes.size()) CHECK(stream.skip(200'000) == 0);
  }
  CHECK((got == bytes));
  CHECK(in_place == 5);
  CHECK(elsewhere == 5);   // the first chunk, and the short ones after all places but the last
}

TEST_CASE("payloads that are read straight have the bytes of chunks, from each sample on") {
  std::mt19937 random(2);
  const int rounds = 40;
  for (int round = 0; round < rounds; ++round) {
    const large_shard shard(random);
    const mr::shard_reader_options all{}, some{.fields = {"jpg", "cls"}};
    for (const auto& options : {all, some}) {
      const std::size_t piece = round % 4 == 0 ? ~std::size_t{0} : 1 + random() % 100'000;
      const std::uint64_t start = shard.begins[random() % shard.begins.size()];
      for (const std::uint64_t from : {std::uint64_t{0}, start}) {
        const content chunks = read_all(shard.bytes, {}, options, from);
        CHECK(chunks.error == "");
        CHECK((read_all(shard.bytes, {.max_bytes_per_read = piece, .in_parts = true}, options, from) == chunks));
      }
    }
  }
}

TEST_CASE("cut, damaged and unreadable shards end in the same error, whether payloads are read straight or not") {
  std::mt19937 random(3);
  const int rounds = 150;
  std::size_t errors = 0;
  for (int round = 0; round < rounds; ++round) {
    large_shard shard(random, 6);
    memory_source::faults chunks{}, straight{.in_parts = true};
    const std::size_t at = random() % shard.bytes.size();
    switch (round % 3) {
      case 0: shard.bytes.resize(at); break;
      case 1: {   // a header
        const std::size_t begin = shard.begins[random() % shard.begins.size()];
        shard.bytes[begin + random() % 512] = static_cast<char>(random());
        break;
      }
      default: shard.bytes.replace(at, 1'024, 1'024, '\0'); shard.bytes.resize(shard.bytes.size() / 512 * 512);
    }
    const content expected = read_all(shard.bytes, chunks, {});
    errors += expected.error.empty() ? 0 : 1;
    const content got = read_all(shard.bytes, straight, {});
    CHECK(got.error == expected.error);
    CHECK((got.samples == expected.samples));
  }
  CHECK(errors > rounds / 4);
}

TEST_CASE("storage that fails inside a payload or after it ends in its error, after the samples before") {
  std::mt19937 random(4);
  for (int round = 0; round < 40; ++round) {
    const large_shard shard(random, 6);
    const std::uint64_t fails_at = random() % shard.bytes.size();
    const content all = read_all(shard.bytes, {}, {});
    const content got = read_all(shard.bytes, {.fail_at = fails_at, .in_parts = true}, {});
    CHECK(got.error.find("the disk is broken") != std::string::npos);
    CHECK(got.samples.size() < all.samples.size());
    CHECK(std::equal(got.samples.begin(), got.samples.end(), all.samples.begin()));
  }
}

// The possible ends of a shard, which samples are complete before damage, and silent loss of members.
namespace {

using samples = std::vector<std::string>;

const samples first_sample{"a: cls=label a jpg=700a"};
const samples all_samples{"a: cls=label a jpg=700a", "b: cls=label b jpg=700b", "c: cls=label c jpg=700c"};

}  // namespace

TEST_CASE("a shard that ends on a member's boundary is complete without its end marker, unless it is to be strict") {
  const small_shard shard;
  const std::string bytes = shard.bytes(), members = bytes.substr(0, bytes.size() - 1024);
  CHECK(read_tar(bytes).counters.missing_end_markers == 0);
  CHECK(read_tar(bytes, {.strict = true}).samples == all_samples);
  for (const std::size_t zeros : {0U, 1U, 511U, 512U, 513U, 1'023U}) {
    CAPTURE(zeros);
    const std::string tar = members + std::string(zeros, '\0');
    std::vector<std::string> forms{tar};
    for (const std::string tool : {"gzip", "zstd", "xz"})
      if (have(tool)) forms.push_back(through(tool + " -c", tar));
    for (const std::string& form : forms) {
      const outcome o = read_tar(form), strict = read_source(std::make_unique<memory_source>(form), {.strict = true});
      CHECK(o.error == "");
      CHECK(o.samples == all_samples);
      CHECK(o.counters.missing_end_markers == 1);
      CHECK(strict.error == "data");
      CHECK(strict.samples == samples{all_samples[0], all_samples[1]});
      CHECK(strict.message == "the shard ends without an end marker: expected two blocks of 512 zeros, after the "
                              "last good key 'b'");
      CHECK(strict.where.offset_bytes == members.size());
    }
    // Data after the zeros: a hole, or a header that was overwritten.
    if (zeros > 0) CHECK(read_tar(tar + "x").error == "data");
  }
  // Between two members of a sample the existing part is delivered; the padding of a member is not a boundary.
  const outcome half = read_tar(bytes.substr(0, shard.offset_of(5)));
  CHECK(half.error == "");
  CHECK(half.samples == samples{all_samples[0], all_samples[1], "c: cls=label c"});
  for (const std::size_t missing : {1U, 300U}) {
    const outcome padding = read_tar(members.substr(0, members.size() - missing));
    CHECK(padding.error == "data");
    CHECK(padding.samples == samples{all_samples[0], all_samples[1]});
  }
  CHECK(read_tar(std::string(512, '\0')).error == "");
  CHECK(read_tar(std::string(512, '\0')).counters.missing_end_markers == 1);
}

TEST_CASE("a shard without an end marker is cut if a file next to it counts more samples") {
  const temporary_folder folder;
  const std::string path = folder / "a.b.tar", tar_bytes = small_shard().bytes();
  save(path, tar_bytes.substr(0, small_shard().offset_of(4)));
  const auto read_file = [&] { return read_source(std::make_unique<mr::file_source>(path)); };
  CHECK(read_file().error == "");
  CHECK(read_file().samples.size() == 2);
  const std::vector<std::pair<std::string, std::string>> counted{
      {"a.idx", "v1.2 3\n"}, {"sizes.json", "{\"x.tar\": 9, \"a.b.tar\" : 3}"}};
  for (const auto& [name, text] : counted) {
    save(folder / name, text);
    const outcome o = read_file();
    CHECK(o.error == "data");
    CHECK(o.samples == first_sample);
    CHECK(o.message.starts_with("the shard ends without an end marker, and with fewer samples than "));
    CHECK(o.message.find(name + " counts: got 2, expected 3, after the last good key 'a'") != std::string::npos);
    save(folder / name, name == "a.idx" ? "v1.2 2\n" : "{\"a.b.tar\": 2}");
    CHECK(read_file().error == "");
  }
}

TEST_CASE("the sample before damage is delivered if a later header certainly begins another one") {
  const std::string a = file("a.txt", "1"), cut_payload = file("b.txt", std::string(600, 'x')).substr(0, 700);
  const samples first{"a: txt=1"};
  std::string size(12, '\xff');   // negative
  const std::string negative = block({.name = "b.txt", .raw_size = size}), zeros = end_marker();
  CHECK(read_tar(a + cut_payload).samples == first);
  CHECK(read_tar(a + negative + zeros).error == "data");
  CHECK(read_tar(a + negative + zeros).samples == first);
  CHECK(read_tar(a + negative + zeros).message.ends_with(", after the last good key 'a'"));
  CHECK(read_tar(a + gnu_long_name(std::string(120, 'n') + ".txt", "1").substr(0, 1024) + negative).samples == first);
  // Not certain: a member of the same sample, of none, or one whose headers are damaged.
  CHECK(read_tar(a + block({.name = "a.cls", .raw_size = size}) + zeros).samples.empty());
  CHECK(read_tar(a + block({.name = "README", .raw_size = size}) + zeros).samples.empty());
  std::string flipped = negative;
  flipped[0] = 'c';
  CHECK(read_tar(a + flipped + zeros).samples.empty());
  CHECK(read_tar(a + pax("99 path=c.txt\n") + file("b.txt", "2") + zeros).samples.empty());
}

TEST_CASE("silent loss of a member is an error: a long name of zeros, a global pax header that is cut") {
  const std::string a = file("a.txt", "1"), b = file("b.cls", ""), c = file("c.txt", "3") + end_marker();
  const std::string gnu("ustar  \0", 8), comment = pax_record("comment", "hello");
  const auto long_link = [&](std::size_t bytes) {
    return block({.name = "././@LongLink", .size_bytes = bytes, .type = 'L', .magic = gnu}) +
           std::string((bytes + 511) / 512 * 512, '\0');
  };
  const auto global = [&](std::size_t bytes) {
    return block({.name = "pax_global_header", .size_bytes = bytes, .type = 'g'});
  };
  for (const std::size_t bytes : {0U, 20U, 512U, 600U}) {
    const outcome o = read_tar(a + long_link(bytes) + block({.name = "b.txt", .magic = gnu}) + c);
    CHECK(o.error == "data");
    CHECK(o.message.starts_with("the shard has a file without a name"));
    CHECK(o.where.offset_bytes == a.size());
  }
  for (const std::string& tar : {a + global(comment.size()) + b + c, a + global(512) + b + c,
                                 global(comment.size()) + b + c,
                                 a + global(comment.size()) + std::string(512, '\0') + c,
                                 a + global(1'500) + padded(comment) + b + file("d.txt", "4") + c}) {
    const outcome o = read_tar(tar);
    CHECK(o.error == "data");
    CHECK(o.samples.size() <= 1);
  }
  const outcome last = read_tar(a + global(comment.size()) + padded(comment));
  CHECK(last.message.find("no member after it") != std::string::npos);
  CHECK(read_tar(a + global(comment.size()) + padded(comment) + c).samples == samples{"a: txt=1", "c: txt=3"});
  CHECK(read_tar(a + global(0) + c).samples == samples{"a: txt=1", "c: txt=3"});
  // The same for a header that crosses the boundary of two chunks.
  const std::string big = file("0.bin", std::string((std::size_t{512} << 10) - 1'536, '0'));
  CHECK(read_tar(big + global(comment.size()) + padded(comment) + c).error == "");
  CHECK(read_tar(big + global(comment.size()) + b + c).error == "data");
  CHECK(read_tar(a + global(99)).message.find("no reason") == std::string::npos);
}
