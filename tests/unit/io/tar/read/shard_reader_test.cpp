// Grouping and naming: the samples of a well-formed shard. Damage is in shard_damage_test.cpp.
#include <millrace/io/tar/read/shard_reader.hpp>

#include "../../tar_bytes.hpp"

#include <doctest/doctest.h>

#include <clocale>
#include <string>
#include <vector>

namespace mr = millrace;
using namespace tar_test;

namespace {

using samples = std::vector<std::string>;

/// The samples of a shard with members of these names, each of one byte.
outcome read_names(const std::vector<std::string>& names) {
  std::string tar;
  for (const auto& name : names) tar += file(name, "1");
  return read_tar(tar + end_marker());
}

}  // namespace

TEST_CASE("members with the same key are one sample") {
  const small_shard shard;
  const outcome o = read_tar(shard.bytes());
  CHECK(o.error == "");
  CHECK(o.samples == samples{"a: cls=label a jpg=700a", "b: cls=label b jpg=700b", "c: cls=label c jpg=700c"});
  CHECK(o.offsets == std::vector<std::uint64_t>{0, shard.offset_of(2), shard.offset_of(4)});
  CHECK(o.counters.samples == 3);
  CHECK(o.counters.payload_bytes == 3 * 707);
}

TEST_CASE("the key ends at the first dot of the basename, and keeps its folder") {
  CHECK(read_names({"x.y/z/c.seg.png"}).samples == samples{"x.y/z/c: seg.png=1"});
  CHECK(read_names({"./a.jpg", "a.jpg"}).samples == samples{"./a: jpg=1", "a: jpg=1"});
  CHECK(read_names({"/abs/e.jpg", "../f.jpg"}).samples == samples{"/abs/e: jpg=1", "../f: jpg=1"});
  CHECK(read_names({"foo."}).samples == samples{"foo: =1"});
  CHECK(read_names({"a..jpg"}).samples == samples{"a: .jpg=1"});
  CHECK(read_names({"d/a.jpg", "e/a.jpg"}).samples == samples{"d/a: jpg=1", "e/a: jpg=1"});
  CHECK(read_names({"a.__key__", "a.__bad__"}).samples == samples{"a: __key__=1 __bad__=1"});
}

TEST_CASE("fields are lowercased, A to Z only; keys are not") {
  CHECK(read_names({"A.JPG", "A.Cls"}).samples == samples{"A: jpg=1 cls=1"});
  CHECK(read_names({"a.jpg", "A.cls"}).samples == samples{"a: jpg=1", "A: cls=1"});
  CHECK(read_names({"a.\xc3\x84"}).samples == samples{"a: \xc3\x84=1"});   // a capital A umlaut stays
}

TEST_CASE("a key that occurs again later is a new sample") {
  CHECK(read_names({"a.jpg", "b.jpg", "a.cls"}).samples == samples{"a: jpg=1", "b: jpg=1", "a: cls=1"});
}

TEST_CASE("names that are not part of a sample are passed over and counted") {
  const outcome o = read_names({"README", "v1.0/noext", ".hidden.jpg", "a.jpg", "d/._b.jpg", "d/.hidden.jpg", "a.cls",
                                "__info__/z.jpg", "____/z.jpg", "__x__", "b.jpg"});
  // Members that are passed over do not cut a sample in two.
  CHECK(o.samples == samples{"a: jpg=1 cls=1", "b: jpg=1"});
  CHECK(o.counters.names_without_dot == 2);
  CHECK(o.counters.dot_files == 3);
  CHECK(o.counters.metadata_members == 3);
}

TEST_CASE("reading from the second block on returns the members there, and nothing else") {
  const std::string tar = block({.name = "./", .type = '5'}) + small_shard().bytes();
  mr::shard_reader reader = mr::detail::open_shard_at({.offset_bytes = 512}, std::make_unique<memory_source>(tar),
                                                      shared_pool());
  std::size_t samples = 0;
  while (reader.next()) ++samples;
  CHECK(samples == 3);
  CHECK(reader.counters().dot_files == 0);
}

TEST_CASE("only a first folder named __x__ is metadata") {
  CHECK(read_names({"__meta__.json", "./__info__/z.jpg", "d/__x__.jpg"}).samples ==
        samples{"__meta__: json=1", "./__info__/z: jpg=1", "d/__x__: jpg=1"});
  CHECK(read_names({"___/a.jpg", "__a/b.jpg", "a__/b.jpg"}).samples ==
        samples{"___/a: jpg=1", "__a/b: jpg=1", "a__/b: jpg=1"});
}

TEST_CASE("links, folders and devices are passed over, not followed") {
  const std::string tar = file("a.jpg", "1") + block({.name = "a.lnk", .type = '1', .link = "a.jpg"}) +
                          block({.name = "a.sym", .type = '2', .link = "a.jpg"}) +
                          block({.name = "a.chr", .type = '3'}) + block({.name = "a.blk", .type = '4'}) +
                          block({.name = "a.dir/", .type = '5'}) + block({.name = "a.fifo", .type = '6'}) +
                          file("a.cls", "2") + end_marker();
  const outcome o = read_tar(tar);
  CHECK(o.error == "");
  CHECK(o.samples == samples{"a: jpg=1 cls=2"});
  CHECK(o.counters.not_regular == 6);
}

TEST_CASE("a hard link that declares a size does not swallow its successor") {
  const outcome o = read_tar(file("a.jpg", "1") + block({.name = "a.lnk", .type = '1', .link = "a.jpg"}) +
                             file("b.jpg", "2") + end_marker());
  CHECK(o.samples == samples{"a: jpg=1", "b: jpg=2"});
}

TEST_CASE("a hard link to nothing is a file if its mode is that of one, by an index too") {
  std::string link = block({.name = "b.txt", .type = '1'});
  CHECK(read_tar(file("a.cls", "7") + link + end_marker()).samples == samples{"a: cls=7"});
  link.replace(100, 7, "0100644");
  put_checksum(link, 0);
  const outcome o = read_tar(file("a.cls", "7") + link + end_marker());
  CHECK(o.error == "");
  CHECK(o.samples == samples{"a: cls=7", "b: txt="});
}

TEST_CASE("all types of files are files: 0, NUL, 7, and unknown types, as in POSIX") {
  std::string tar;
  for (const char type : {'0', '\0', '7', 'Z'}) {
    const std::string name = std::string("t") + (type ? std::string(1, type) : "nul") + ".txt";
    tar += block({.name = name, .size_bytes = 2, .type = type}) + padded("hi");
  }
  CHECK(read_tar(tar + end_marker()).samples == samples{"t0: txt=hi", "tnul: txt=hi", "t7: txt=hi", "tZ: txt=hi"});
}

TEST_CASE("a volume header and a global pax header are not members") {
  CHECK(read_tar(block({.name = "my volume", .type = 'V'}) + file("a.jpg", "1") + end_marker()).samples ==
        samples{"a: jpg=1"});
  CHECK(read_tar(pax(pax_record("comment", "hello"), 'g') + file("a.jpg", "1") + end_marker()).samples ==
        samples{"a: jpg=1"});
}

TEST_CASE("the same field twice is an error, whatever its case") {
  for (const auto& names : {std::vector<std::string>{"a.jpg", "b.jpg", "b.jpg"}, {"a.jpg", "b.jpg", "b.JPG"}}) {
    const outcome o = read_names(names);
    CHECK(o.samples == samples{"a: jpg=1"});
    CHECK(o.error == "data");
    CHECK(o.message.find("the sample 'b' has the field 'jpg' twice") == 0);
    CHECK(o.message.ends_with("after the last good key 'a'"));
    CHECK(o.where.offset_bytes == 2048);
    CHECK(o.where.shard == "memory.tar");
  }
}

TEST_CASE("only the requested fields are read, and a sample without any of them is still a sample") {
  const std::string tar = file("a.jpg", "j") + file("a.cls", "1") + file("b.png", "p") + file("b.json", "{}") +
                          file("c.json", "{}") + file("c.json", "again") + file("d.CLS", "4") + end_marker();
  const outcome o = read_tar(tar, {.fields = {"jpg;png", "cls"}});
  CHECK(o.error == "");
  CHECK(o.samples == samples{"a: jpg=j cls=1", "b: png=p", "c:", "d: cls=4"});
  CHECK(o.counters.unwanted_fields == 3);
  CHECK(o.counters.payload_bytes == 4);
  mr::block_pool pool;
  CHECK_THROWS_AS(mr::shard_reader(std::make_unique<memory_source>(tar), pool, {.fields = {"JPG"}}), mr::setup_error);
}

TEST_CASE("a field that was not requested is passed over even if it is larger than the read buffer") {
  const std::string big(3'000'000, 'x');
  const std::string tar = file("a.mp4", big) + file("a.cls", "1") +
                          file("b.mp4", big) + file("b.cls", "2") + end_marker();
  CHECK(read_tar(tar, {.fields = {"cls"}}).samples == samples{"a: cls=1", "b: cls=2"});
  const outcome expected = read_tar(tar);
  CHECK(expected.samples == samples{"a: mp4=3000000x cls=1", "b: mp4=3000000x cls=2"});
}

TEST_CASE("pax headers before every member, as Python writes them, are invisible") {
  const small_shard plain, with_pax(pax_file);
  const outcome o = read_tar(with_pax.bytes());
  CHECK(o.error == "");
  CHECK(o.samples == read_tar(plain.bytes()).samples);
  // The offsets are those of the pax headers.
  CHECK(o.offsets == std::vector<std::uint64_t>{0, with_pax.offset_of(2), with_pax.offset_of(4)});
}

TEST_CASE("names of any length arrive complete: ustar prefix, GNU and pax") {
  for (const std::size_t length : {std::size_t{100}, std::size_t{101}, std::size_t{256}, std::size_t{4096}}) {
    const std::string name = std::string(length - 4, 'n') + ".jpg";
    const samples expected{name.substr(0, length - 4) + ": jpg=1"};
    CAPTURE(length);
    CHECK(read_tar(gnu_long_name(name, "1") + end_marker()).samples == expected);
    CHECK(read_tar(pax(pax_record("path", name)) + file("short", "1") + end_marker()).samples == expected);
  }
  const std::string exactly = std::string(96, 'n') + ".jpg";
  CHECK(read_names({exactly}).samples == samples{std::string(96, 'n') + ": jpg=1"});
  const std::string with_prefix = block({.name = "b.jpg", .size_bytes = 1, .prefix = "deep/folder"}) + padded("1");
  CHECK(read_tar(with_prefix + end_marker()).samples == samples{"deep/folder/b: jpg=1"});
}

TEST_CASE("names that are not UTF-8, and UTF-8 names in any header, arrive as their bytes") {
  const std::string latin = "k\xe4se.jpg", utf8 = "k\xc3\xa4se.jpg";
  const auto check = [&] {
    CHECK(read_names({latin, utf8}).samples == samples{"k\xe4se: jpg=1", "k\xc3\xa4se: jpg=1"});
    CHECK(read_tar(gnu_long_name(std::string(200, 'x') + latin, "1") + end_marker()).samples ==
          samples{std::string(200, 'x') + "k\xe4se: jpg=1"});
    for (const auto& name : {latin, utf8}) {
      const std::string with_path = pax(pax_record("path", name)) + file("short", "1");
      const outcome o = read_tar(with_path + file("b.jpg", "2") + end_marker());
      CHECK(o.error == "");
      CHECK(o.samples == samples{name.substr(0, name.size() - 4) + ": jpg=1", "b: jpg=2"});
      CHECK(read_tar(pax(pax_record("hdrcharset", "BINARY") + pax_record("path", name)) + file("short", "1") +
                     end_marker()).samples == samples{name.substr(0, name.size() - 4) + ": jpg=1"});
    }
  };
  check();
  // The locale belongs to the program; only a test of its effects may set it.
  const std::string before = std::setlocale(LC_ALL, nullptr);
  if (std::setlocale(LC_ALL, "C.UTF-8")) check();
  std::setlocale(LC_ALL, before.c_str());
}

TEST_CASE("base-256 and pax sizes are read") {
  std::string size(12, '\0');
  size[0] = static_cast<char>(0x80);
  size[11] = 5;
  const std::string with_base_256 = block({.name = "a.txt", .raw_size = size}) + padded("hello");
  CHECK(read_tar(with_base_256 + file("b.txt", "x") + end_marker()).samples == samples{"a: txt=hello", "b: txt=x"});
  CHECK(read_tar(pax(pax_record("size", "5")) + block({.name = "a.txt", .size_bytes = 0}) + padded("hello") +
                 file("b.txt", "x") + end_marker()).samples == samples{"a: txt=hello", "b: txt=x"});
  CHECK(read_tar(block({.name = "a.txt", .size_bytes = 0}) + file("b.txt", "x") + end_marker()).samples ==
        samples{"a: txt=", "b: txt=x"});
}

TEST_CASE("owners that are not numbers, and star's times in a GNU header, change nothing") {
  // As an Eye-Fi card writes them: no owner, and two times at the end of the header, the second one at the place of
  // GNU's sparse size.
  std::string h = block({.name = "P1050238.JPG.log", .size_bytes = 14, .magic = std::string("ustar  \0", 8)});
  h.replace(108, 16, 16, '\0');
  h.replace(329, 16, 16, '\0');
  h.replace(476, 12, std::string("12130404200\0", 12));
  h.replace(488, 12, std::string("12130627766\0", 12));
  put_checksum(h, 0);
  const outcome o = read_tar(h + padded("44,44,POWERON.") + file("b.txt", "x") + end_marker());
  CHECK(o.error == "");
  CHECK(o.samples == samples{"P1050238: jpg.log=44,44,POWERON.", "b: txt=x"});
  const std::string before = file("a.txt", "1");
  CHECK(read_tar(before + h + padded("44,44,POWERON.") + file("b.txt", "x") + end_marker()).samples ==
        samples{"a: txt=1", "P1050238: jpg.log=44,44,POWERON.", "b: txt=x"});
}

TEST_CASE("holes of sparse members are zeros") {
  // Old GNU format: a map of (offset, bytes) in the header, and the real size.
  std::string h = sparse_block({.name = "a.bin", .size_bytes = 7, .type = 'S'}, {.at = 512, .stored = 4, .size = 2000});
  h.replace(410, 11, octal(1024, 11));   // a second piece
  h.replace(422, 11, octal(3, 11));
  put_checksum(h, 0);
  mr::block_pool pool;
  const std::string tar = h + padded("dataend") + file("b.txt", "x") + end_marker();
  mr::shard_reader reader(std::make_unique<memory_source>(tar), pool);
  const auto record = reader.next();
  REQUIRE(record);
  std::string expected(2000, '\0');
  expected.replace(512, 4, "data");
  expected.replace(1024, 3, "end");
  CHECK((*record)["bin"].text() == expected);
  CHECK(reader.next()->key() == "b");
  CHECK_FALSE(reader.next());
}

TEST_CASE("sparse files of GNU tar are expanded in all its formats") {
  if (std::system("tar --version 2>/dev/null | grep -q GNU") != 0) {
    MESSAGE("skipped: no GNU tar");
    return;
  }
  const temporary_folder f;
  std::string content(300'000, '\0');
  content.replace(100'000, 5, "hello");
  content.replace(250'000, 5, "world");
  for (const std::string format :
       {"gnu", "pax --sparse-version=0.0", "pax --sparse-version=0.1", "pax --sparse-version=1.0"}) {
    CAPTURE(format);
    save(f / "a.bin", "");
    std::filesystem::resize_file(f / "a.bin", content.size());
    for (const std::size_t at : {100'000U, 250'000U}) {
      std::fstream out(f / "a.bin", std::ios::in | std::ios::out | std::ios::binary);
      out.seekp(static_cast<std::streamoff>(at));
      out.write(content.data() + at, 5);
    }
    const std::string pack = "tar -C " + f.path() + " --sparse --format=" + format + " -cf " + (f / "s.tar") + " a.bin";
    REQUIRE(std::system(pack.c_str()) == 0);
    const bool is_sparse = load(f / "s.tar").size() < 100'000;   // some file systems do not store holes
    mr::block_pool pool;
    mr::shard_reader reader(std::make_unique<mr::file_source>(f / "s.tar"), pool);
    const auto record = reader.next();
    REQUIRE(record);
    CHECK(record->key() == "a");
    CHECK((*record)["bin"].text() == content);
    CHECK_FALSE(reader.next());
    if (!is_sparse) MESSAGE("the file system of the temporary folder keeps no holes");
  }
}

TEST_CASE("bytes that arrive one or seven at a time produce the same samples") {
  std::string tar = small_shard(pax_file).bytes() + std::string(9'000, '\0');
  const outcome expected = read_tar(tar);
  REQUIRE(expected.samples.size() == 3);
  for (const std::size_t piece : {1U, 7U, 511U, 513U}) {
    memory_source::faults f;
    f.max_bytes_per_read = piece;
    CHECK(read_source(std::make_unique<memory_source>(tar, f)) == expected);
  }
}

TEST_CASE("compressed shards are recognized by content and produce the same samples") {
  const std::string tar = small_shard(pax_file).bytes();
  const outcome expected = read_tar(tar);
  for (const std::string tool : {"gzip", "zstd", "xz", "lz4", "bzip2"}) {
    CAPTURE(tool);
    if (!have(tool)) {
      MESSAGE("skipped: no " << tool);
      continue;
    }
    const std::string packed = through(tool + " -c", tar);
    CHECK(packed.size() < tar.size());
    CHECK(read_tar(packed) == expected);
    memory_source::faults f;
    f.max_bytes_per_read = 7;
    CHECK(read_source(std::make_unique<memory_source>(packed, f)) == expected);
    // Several compressed members in a row, as bgzip and parallel compressors write them.
    const std::string parts = through(tool + " -c", tar.substr(0, 3000)) + through(tool + " -c", tar.substr(3000));
    CHECK(read_tar(parts) == expected);
    const outcome unwanted = read_tar(packed, {.fields = {"cls"}});
    CHECK(unwanted.error == "");
    CHECK(unwanted.samples.front() == "a: cls=label a");
  }
}

TEST_CASE("a member named like the mark of a compressed file does not turn a tar into one") {
  CHECK(read_names({"BZh91.txt", "\x1f\x8b.txt"}).samples.size() == 2);
}

TEST_CASE("shards without samples have none, and report their content") {
  const outcome empty = read_tar("");
  CHECK(empty.error == "data");
  CHECK(empty.message.starts_with("the shard is empty"));
  const outcome marker = read_tar(end_marker());
  CHECK(marker.error == "");
  CHECK(marker.samples.empty());
  const outcome unusable = read_names({"README", ".x.jpg", "__m__/a.jpg"});
  CHECK(unusable.error == "");
  CHECK(unusable.samples.empty());
  CHECK(unusable.counters.names_without_dot == 1);
  CHECK(read_tar("this is not a tar archive").error == "data");
  CHECK(read_tar(std::string(5000, 'x')).error == "data");
  if (have("gzip")) CHECK(read_tar(through("gzip -c", "")).error == "data");
}

TEST_CASE("a member larger than the limit is an error before memory is allocated") {
  const std::string tar = file("a.txt", "12345678") + file("b.txt", "123456789") + end_marker();
  const outcome o = read_tar(tar, {.limits = {.max_member_bytes = 8}});
  CHECK(o.samples == samples{"a: txt=12345678"});
  CHECK(o.error == "data");
  CHECK(o.message.starts_with("the member 'b.txt' is too large: got 9 bytes, expected at most 8"));
  CHECK(o.where.offset_bytes == 1024);
  // The sample would declare 16 EiB of zeros.
  std::string size(12, '\0');
  size[0] = static_cast<char>(0x80);
  size[5] = 0x7f;
  CHECK(read_tar(block({.name = "a.txt", .raw_size = size}) + padded("x") + end_marker()).error == "data");
}

TEST_CASE("a sample that has a field twice or is too large fails alone: the samples after it are delivered") {
  const std::string tar = file("a.cls", "1") + file("b.jpg", "x") + file("b.JPG", "y") + file("b.cls", "2") +
                          file("c.cls", "3") + file("d.jpg", std::string(9, 'z')) + file("d.cls", "4") +
                          file("e.cls", "5") + end_marker();
  mr::shard_reader reader(std::make_unique<memory_source>(tar), shared_pool(), {.limits = {.max_member_bytes = 8}});
  std::vector<std::string> samples, errors;
  for (bool more = true; more;) {
    try {
      const auto read = reader.next();
      more = read.has_value();
      if (read) samples.push_back(fields_text(*read));
    } catch (const mr::data_error& e) {
      REQUIRE(reader.can_continue());
      errors.push_back(e.message());
    }
  }
  CHECK(samples == std::vector<std::string>{"a: cls=1", "c: cls=3", "e: cls=5"});
  REQUIRE(errors.size() == 2);
  CHECK_MESSAGE(errors[0].find("the sample 'b' has the field 'jpg' twice") == 0, errors[0]);
  CHECK_MESSAGE(errors[1].find("the member 'd.jpg' is too large: got 9 bytes") == 0, errors[1]);
  CHECK(reader.counters().samples == 5);
}

TEST_CASE("a reader may be moved, and records outlive it") {
  mr::block_pool pool;
  mr::record sample;
  {
    mr::shard_reader first(std::make_unique<memory_source>(small_shard().bytes()), pool);
    sample = *first.next();
    mr::shard_reader second = std::move(first);
    CHECK(second.next()->key() == "b");
    CHECK(second.shard() == "memory.tar");
  }
  CHECK(sample["cls"].text() == "label a");
  CHECK(sample.shard() == "memory.tar");
}
