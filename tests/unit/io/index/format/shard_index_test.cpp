// The contents of an index, and the cases in which it is built quickly. read_tar() compares the samples of an index
// with those of shard_reader, for every archive of this folder's tests.
#include "../../tar_bytes.hpp"

#include <millrace/base/crc32c.hpp>
#include <millrace/base/error.hpp>
#include <millrace/base/random.hpp>
#include <millrace/base/text.hpp>
#include <millrace/io/index/format/set_index.hpp>
#include <millrace/io/index/format/tar_index_scan.hpp>
#include <millrace/io/index/read/indexed_reader.hpp>
#include <millrace/io/tar/format/header_window.hpp>
#include <millrace/io/tar/write/shard_writer.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace mr = millrace;
using namespace tar_test;
using mr::detail::set_index;

namespace {

using state = mr::detail::shard_index::shard_state;

mr::detail::shard_index index_of(const std::string& tar) {
  memory_source source(tar);
  return mr::detail::scan_shard(source, shared_pool());
}

bool is_plain(const std::string& tar) {
  memory_source source(tar);
  return mr::detail::scan_plain_shard(source, shared_pool()).has_value();
}

std::string by_index(const std::string& tar) {
  const outcome result = read_tar(tar);   // compares
  return result.error;
}

}  // namespace

TEST_CASE("an index contains keys, fields, offsets and sizes") {
  const small_shard shard;
  const mr::detail::shard_index index = index_of(shard.bytes());
  CHECK(index.state() == state::complete);
  REQUIRE(index.samples() == 3);
  CHECK(index.members() == 6);
  CHECK(index.fields() == 2);
  const auto b = index.sample(1);
  CHECK(b.key == "b");
  CHECK(b.offset_bytes == shard.offset_of(2));
  CHECK(b.end_member - b.first_member == 2);
  const auto jpg = index.member(b.first_member + 1);
  CHECK(jpg.field == "jpg");
  CHECK(jpg.offset_bytes == shard.offset_of(3) + 512);
  CHECK(jpg.size_bytes == 700);
  CHECK(jpg.in_one_piece);
  CHECK(index.checksum(0) == 0);
  CHECK(index.known_checksums() == 0);
  // 12 bytes and the key for each sample, 16 for each member, and the names of the fields.
  CHECK(index.columns().bytes().size() == 3 * 13 + 6 * 16 + 2 * 4 + 6 + 3);
  CHECK(index_of(shard.bytes()).fingerprint() == index.fingerprint());
  CHECK(index_of(small_shard(pax_file).bytes()).fingerprint() != index.fingerprint());
}

TEST_CASE("usual archives are indexed without libarchive, unusual ones are not") {
  const std::string big(300'000, 'x');
  std::string size(12, '\0');
  size[0] = static_cast<char>(0x80);
  size[11] = 5;
  const std::string links = block({.name = "a.lnk", .type = '1', .link = "a.jpg"}) + block({.name = "d/", .type = '5'});
  const std::string name(180, 'n');
  for (const std::string& tar :
       {small_shard().bytes(), small_shard(pax_file).bytes(), small_shard(gnu_long_name).bytes(),
        file("a.jpg", big) + links + file("b.jpg", big) + end_marker(),
        gnu_long_name(name + ".jpg", "1") + end_marker(), gnu_long_name(name, "1") + file("b.jpg", "2") + end_marker(),
        pax(pax_record("path", name + ".jpg") + pax_record("mtime", "1.5")) + file("short", "1") + end_marker(),
        block({.name = "b.jpg", .size_bytes = 1, .prefix = "deep/folder"}) + padded("1") + end_marker(),
        file("a.txt", "1") + block({.name = "b.txt", .raw_size = size}) + padded("hello") + end_marker(),
        pax(pax_record("size", "5")) + block({.name = "a.txt"}) + padded("hello") + end_marker(),
        file("README", "1") + std::string(10'240, '\0')}) {
    CAPTURE(tar.substr(0, 40));
    CHECK(is_plain(tar));
    CHECK(by_index(tar) == "");
  }
  const std::string old = block({.name = "a.txt", .size_bytes = 1, .magic = std::string(8, '\0')}) + padded("1");
  for (const std::string& tar :
       {old + end_marker(), block({.name = "v", .type = 'V'}) + file("a.jpg", "1") + end_marker(), end_marker(),
        pax(pax_record("comment", "x"), 'g') + file("a.jpg", "1") + end_marker(),
        pax(pax_record("path", "k\xc3\xa4.jpg")) + file("short", "1") + end_marker(),
        pax(pax_record("hdrcharset", "BINARY")) + file("a.jpg", "1") + end_marker()}) {
    CAPTURE(tar.substr(0, 40));
    CHECK_FALSE(is_plain(tar));
    CHECK(by_index(tar) == "");
  }
}

TEST_CASE("a shard with any other byte in a header reads the same by an index as by shard_reader") {
  mr::rng random({.seed = 9});
  const std::vector<std::string> shards{small_shard().bytes(), small_shard(pax_file).bytes(),
                                        small_shard(gnu_long_name).bytes()};
  std::size_t plain = 0;
  for (int i = 0; i < 3'000; ++i) {
    std::string tar = shards[random.below(3)];
    const std::size_t header = random.below(tar.size() / 512 - 2) * 512, at = header + random.below(512);
    const char last[] = {'\0', ' ', '0', '1', '5', '7', 'S', 'x', 'L', 'g', '/', '.', '\x80', '-'};
    tar[at] = random.below(3) ? last[random.below(sizeof last)] : static_cast<char>(random.below(256));
    if (random.below(4)) put_checksum(tar, header);
    plain += is_plain(tar);
    const outcome o = read_tar(tar, {.limits = {.max_member_bytes = 1U << 20}});
    if (o.error != "" && o.error != "data") FAIL("byte " << at << ": " << o.error);
  }
  CHECK(plain > 500);
}

TEST_CASE("files of Python's tarfile and GNU tar read the same as by shard_reader, sparse or not") {
  const temporary_folder f;
  if (std::system("python3 -c 0 >/dev/null 2>&1") == 0) {
    save(f / "write.py",
         "import io, sys, tarfile\n"
         "for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):\n"
         "  for letter in ('a', '\\u00e4'):\n"
         "    with tarfile.open(sys.argv[1] + '/%d-%d.tar' % (form, ord(letter)), 'w', format=form) as tar:\n"
         "      for i, key in enumerate(['a', 'd/b', 'x' * 90 + '/' + 'y' * 90, 'k' + letter + 'se']):\n"
         "        for field, data in (('cls', b'%d' % i), ('JPG', b'j' * 700 * i), ('lnk', None)):\n"
         "          m = tarfile.TarInfo(key + '.' + field)\n"
         "          m.size, m.mtime, m.uname = len(data or b''), 1700000000.25, 'bigdata'\n"
         "          if data is None: m.type, m.linkname = tarfile.SYMTYPE, 'x' * (150 if form else 90)\n"
         "          tar.addfile(m, io.BytesIO(data))\n");
    REQUIRE(std::system(("python3 " + (f / "write.py") + " " + f.path()).c_str()) == 0);
    for (const char* name : {"0-97.tar", "1-97.tar", "2-97.tar", "0-228.tar", "1-228.tar", "2-228.tar"}) {
      CAPTURE(name);
      const outcome o = read_tar(load(f / name));
      CHECK(o.error == "");
      CHECK(o.samples.size() == 4);
    }
  }
  if (std::system("tar --version 2>/dev/null | grep -q GNU") != 0) return;
  for (const std::string format :
       {"gnu", "ustar", "v7", "pax", "oldgnu", "gnu --sparse", "pax --sparse --sparse-version=0.0",
        "pax --sparse --sparse-version=0.1", "pax --sparse --sparse-version=1.0"}) {
    CAPTURE(format);
    for (const char* name : {"a.bin", "b.bin", "c.bin"}) {
      save(f / name, name[0] == 'b' ? "" : "begin");
      std::filesystem::resize_file(f / name, 300'000);   // b is only a hole
    }
    save(f / "a.cls", "1");
    save(f / "c.cls", "3");
    REQUIRE(std::system(("cd " + f.path() + " && tar --format=" + format +
                         " -cf s.tar a.bin a.cls b.bin c.bin c.cls").c_str()) == 0);
    const std::string tar = load(f / "s.tar");
    const outcome o = read_tar(tar);
    CHECK(o.error == "");
    CHECK(o.samples.size() == 3);
    CHECK(read_tar(tar, {.fields = {"cls"}}).error == "");
    for (std::size_t cut = 0; cut < tar.size(); cut += 512 * 7) {
      const outcome part = read_tar(tar.substr(0, cut));
      const bool on_a_border = part.error == "" && part.counters.missing_end_markers == 1;
      if (part.error != "data" && !on_a_border && !(part == o)) FAIL("cut at " << cut << ": " << part.error);
    }
  }
}

TEST_CASE("a damaged shard has an index of the samples before the damage") {
  const small_shard shard;
  const std::string tar = shard.bytes();
  const mr::detail::shard_index index = index_of(tar.substr(0, shard.offset_of(3) + 600));
  CHECK(index.state() == state::damaged);
  CHECK(index.samples() == 1);
  CHECK(index.members() == 2);
  CHECK(index.facts().damage_offset_bytes == shard.offset_of(3));
  CHECK(index.facts().resume_offset_bytes == shard.offset_of(2));
  CHECK(index.damage().find("truncated") != std::string_view::npos);
  // Complete again, unlike the index.
  memory_source source(tar);
  mr::detail::shard_index old = index_of(tar.substr(0, shard.offset_of(3) + 600));
  mr::detail::indexed_reader reader(source, old, shared_pool());
  CHECK_THROWS_AS(reader.throw_damage(), mr::data_error);
}

TEST_CASE("a compressed shard has no index and reports that") {
  if (!have("gzip")) return;
  const mr::detail::shard_index index = index_of(through("gzip -c", small_shard().bytes()));
  CHECK(index.state() == state::compressed);
  CHECK(index.samples() == 0);
}

TEST_CASE("bytes that arrive one or seven at a time produce the same index") {
  const std::string tar = mixed_shard(20);
  const auto expected = index_of(tar).fingerprint();
  for (const std::size_t piece : {1U, 7U, 511U}) {
    memory_source::faults f;
    f.max_bytes_per_read = piece;
    memory_source slow(tar, f);
    CHECK(mr::detail::scan_shard(slow, shared_pool()).fingerprint() == expected);
  }
}

namespace {

/// Storage whose clock is advanced by its reads.
struct counted_source final : mr::byte_source {
  std::int64_t* now_ns;
  double ns_per_byte = 0, ns_per_read = 0;
  std::size_t reads = 0;
  std::uint64_t read_bytes = 0;

  explicit counted_source(std::int64_t* clock) : now_ns(clock) {}
  std::string_view name() const noexcept override { return "counted"; }
  std::size_t read_at(std::uint64_t, std::span<std::byte> buffer) override {
    ++reads;
    read_bytes += buffer.size();
    *now_ns += static_cast<std::int64_t>(ns_per_read + ns_per_byte * static_cast<double>(buffer.size()));
    return buffer.size();
  }
};
struct test_clock {
  std::int64_t* now_ns;
  std::int64_t operator()() const noexcept { return *now_ns; }
};

}  // namespace

TEST_CASE("the window reads on if that is cheaper, and skips if that is") {
  struct storage {
    double ns_per_byte, ns_per_read;
    std::uint64_t payload_bytes;
    bool reads_on;
  };
  for (const storage& s : {storage{0.1, 500, 2'048, true}, {0.1, 500, 110'000, false}, {0.5, 80'000, 50'000, true},
                           {0.5, 80'000, 10'000'000, false}, {7, 8'000'000, 100'000, true}}) {
    CAPTURE(s.payload_bytes);
    CAPTURE(s.ns_per_read);
    std::int64_t now_ns = 0;
    counted_source source(&now_ns);
    source.ns_per_byte = s.ns_per_byte;
    source.ns_per_read = s.ns_per_read;
    mr::detail::basic_header_window<test_clock> window(source, shared_pool(), test_clock{&now_ns});
    const std::uint64_t count = 4'000;
    for (std::uint64_t i = 0; i < count; ++i) {
      REQUIRE(window.at(i * (s.payload_bytes + 512), 512).size() == 512);
      window.payload_follows(s.payload_bytes);
    }
    const double distance = static_cast<double>(s.payload_bytes) + 512;
    const double sequential_ns = (std::min(distance, 262'144.0) * s.ns_per_byte) +
                                 s.ns_per_read * std::min(1.0, distance / 262'144);
    const double skipping_ns = s.ns_per_read + 2'048 * s.ns_per_byte;
    CHECK(static_cast<double>(now_ns) < 1.3 * static_cast<double>(count) * std::min(sequential_ns, skipping_ns));
    CHECK((source.read_bytes / count > 4'096 || s.payload_bytes < 4'096) == s.reads_on);
  }
}

// The text of a set index: a round trip preserves it, every change of it is detected, and names are validated.
namespace {

set_index some() {
  return set_index({{.name = "b/train 1.tar", .size_bytes = 10'240, .samples = 3, .fingerprint = 0xfedc,
                     .index_bytes = 300, .version = "\"etag-1\""},
                    {.name = "a%.tar", .size_bytes = 1'024, .samples = 0, .without_end_marker = true},
                    {.name = "b/\xc3\xbc\n.tar", .size_bytes = 1'536, .samples = 1, .version = "-"}});
}

/// Returns the defect of a text; empty if there is none.
std::string wrong_with(const std::string& text) {
  try {
    (void)set_index::parse(text, "where");
    return {};
  } catch (const mr::data_error& e) {
    CHECK(e.where().shard == "where");
    CHECK(e.where().offset_bytes <= text.size());
    return e.message();
  }
}

/// Returns lines as a complete text, with the right end.
std::string with_end(std::size_t shards, const std::string& lines) {
  const std::string body = "millrace set index 1\n" + lines;
  return body + "end " + std::to_string(shards) + " " + mr::detail::hex(mr::crc32c(mr::detail::bytes_of(body)), 8) +
         "\n";
}

}  // namespace

TEST_CASE("a set index is restored from its text, sorted by names") {
  const set_index index = some(), again = set_index::parse(index.text(), "where");
  CHECK(again.shards() == index.shards());
  CHECK(again.text() == index.text());
  CHECK(again.shards().front().name == "a%.tar");
  CHECK(set_index::parse(set_index().text(), "where").shards().empty());
}

TEST_CASE("every cut, every flipped bit and every additional byte of a set index is detected") {
  const std::string text = some().text();
  for (std::size_t i = 0; i < text.size(); ++i) {
    CHECK_FALSE(wrong_with(text.substr(0, i)).empty());
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = text;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      CHECK_FALSE(wrong_with(changed).empty());
    }
  }
  CHECK_FALSE(wrong_with(text + "\n").empty());
  CHECK_FALSE(wrong_with(text + text).empty());
}

TEST_CASE("a set index that an attacker wrote, checksum and all, contains only entries that a shard can have") {
  const std::string digest = " 0000000000000001 ";
  const auto line = [&](const std::string& size, const std::string& samples, const std::string& rest) {
    return size + " " + samples + digest + rest + "\n";
  };
  CHECK(wrong_with(with_end(1, line("1024", "2", "0 marked - x.tar"))).empty());
  for (const std::string& bad :
       {line("1024", "3", "0 marked - x.tar"), line("2199023255553", "1", "0 marked - x.tar"),
        line("18446744073709551616", "1", "0 marked - x.tar"), line("01024", "1", "0 marked - x.tar"),
        line("-1", "0", "0 marked - x.tar"), line("2199023255552", "4294967295", "0 marked - x.tar"),
        line("1024", "1", "2000000 marked - x.tar"), line("1024", "1", "0 maybe - x.tar"),
        line("1024", "1", "0 marked  x.tar"), line("1024", "1", "0 marked - "), line("1024", "1", "0 marked - a b"),
        line("1024", "1", "0 marked - a%2"), line("1024", "1", "0 marked - a%zz"), line("1024", "1", "0 marked - %41"),
        line("1024", "1", "0 marked - %C3"), line("1024", "1", "0 marked - \x01"),
        std::string("1024 1 1 0 marked - x.tar\n"), std::string("1024 1 000000000000000G 0 marked - x.tar\n")})
    CHECK_FALSE(wrong_with(with_end(1, bad)).empty());
  const std::string x = line("1024", "1", "0 marked - x.tar"), y = line("1024", "1", "0 marked - y.tar");
  CHECK(wrong_with(with_end(2, x + y)).empty());
  CHECK(wrong_with(with_end(2, y + x)).find("not sorted") != std::string::npos);
  CHECK(wrong_with(with_end(2, x + x)).find("twice") != std::string::npos);
  CHECK(wrong_with(with_end(3, x + y)).find("number of shards is wrong") != std::string::npos);
}

TEST_CASE("a shard is found by the end of its name, at a slash, and the longest name wins") {
  const set_index index({{.name = "x.tar", .size_bytes = 1}, {.name = "b/x.tar", .size_bytes = 2},
                         {.name = "/data/y.tar", .size_bytes = 3}});
  const auto size_of = [&](std::string_view name) {
    const auto entry = index.find(name);
    return entry ? entry->size_bytes : 0;
  };
  CHECK(size_of("x.tar") == 1);
  CHECK(size_of("s3://bucket/a/x.tar") == 1);
  CHECK(size_of("s3://bucket/b/x.tar") == 2);
  CHECK(size_of("/data/y.tar") == 3);
  CHECK(size_of("data/y.tar") == 0);
  CHECK(size_of("s3://bucket/max.tar") == 0);
  CHECK(size_of("") == 0);
  CHECK(size_of("x.tar/") == 0);
}
