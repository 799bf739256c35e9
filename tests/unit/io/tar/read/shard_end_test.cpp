// The possible ends of a shard, which samples are complete before damage, and silent loss of members.
#include <millrace/io/tar/read/shard_reader.hpp>

#include "../../tar_bytes.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

namespace mr = millrace;
using namespace tar_test;

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
