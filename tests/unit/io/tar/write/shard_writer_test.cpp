#include <millrace/io/tar/write/shard_writer.hpp>
#include <millrace/io/file/impl/atomic_file.inl>   // for writers of other Files
#include <millrace/io/tar/write/impl/shard_writer.inl>
#include <millrace/sources/list/shard_list.hpp>

#include "../../tar_bytes.hpp"

#include <doctest/doctest.h>

#include <clocale>
#include <filesystem>
#include <string>
#include <vector>

namespace mr = millrace;
using namespace tar_test;

namespace {

using samples = std::vector<std::string>;

outcome read_file(const std::string& path) { return read_source(std::make_unique<mr::file_source>(path)); }

/// System calls, one kind of which fails.
struct failing_files : mr::detail::posix_files {
  enum class call { none, open, write, sync, close, rename };
  call which = call::none;
  int reason = ENOSPC;
  std::size_t* max_bytes_per_write = nullptr;

  int open(const char* path, int flags, mode_t mode = 0) const {
    return which == call::open ? fail() : posix_files::open(path, flags, mode);
  }
  ssize_t write(int file, const void* data, std::size_t bytes) const {
    if (which == call::write) return fail();
    if (max_bytes_per_write) bytes = std::min(bytes, *max_bytes_per_write);
    return posix_files::write(file, data, bytes);
  }
  int sync(int file) const { return which == call::sync ? fail() : posix_files::sync(file); }
  int close(int file) const {
    const int result = posix_files::close(file);
    return which == call::close ? fail() : result;
  }
  int rename(const char* from, const char* to) const {
    return which == call::rename ? fail() : posix_files::rename(from, to);
  }

 private:
  int fail() const {
    errno = reason;
    return -1;
  }
};

}  // namespace

TEST_CASE("written samples are read back, fields sorted by name") {
  const temporary_folder f;
  mr::shard_writer writer({.pattern = f / "t-%03d.tar"});
  const std::string picture(5'000, 'p');
  const std::vector<std::byte> raw(512, std::byte{'r'});
  writer.write("n01/a", {{"jpg", picture}, {"cls", "7"}, {"seg.png", raw}});
  writer.write("b", {{"empty", ""}});
  const mr::detail::written_shards w = writer.close();
  CHECK(w.shards == 1);
  CHECK(w.samples == 2);
  CHECK(w.bytes == std::filesystem::file_size(f / "t-000.tar"));
  CHECK(w.bytes % 512 == 0);
  const outcome o = read_file(f / "t-000.tar");
  CHECK(o.error == "");
  CHECK(o.samples == samples{"n01/a: cls=7 jpg=5000p seg.png=512r", "b: empty="});
  CHECK(f.file_count() == 1);
  CHECK(writer.close().samples == 2);
}

TEST_CASE("a new shard begins before a sample would exceed a limit, and none is empty") {
  const temporary_folder f;
  {
    mr::shard_writer writer({.pattern = f / "n-%d.tar", .max_samples = 2, .first_number = 8});
    for (int i = 0; i < 4; ++i) writer.write("k" + std::to_string(i), {{"txt", "x"}});
    CHECK(writer.close().shards == 2);
    CHECK(f.file_count() == 2);
    CHECK(read_file(f / "n-8.tar").samples == samples{"k0: txt=x", "k1: txt=x"});
    CHECK(read_file(f / "n-9.tar").samples == samples{"k2: txt=x", "k3: txt=x"});
  }
  // A sample of one byte needs 1024 bytes, the end marker 1024: three fit into 4096 exactly.
  mr::shard_writer exact({.pattern = f / "b-%02d.tar", .max_bytes = 4096});
  for (int i = 0; i < 4; ++i) exact.write("k" + std::to_string(i), {{"txt", "x"}});
  exact.write("large", {{"txt", std::string(10'000, 'x')}});
  exact.write("after", {{"txt", "x"}});
  CHECK(exact.close().shards == 4);
  CHECK(std::filesystem::file_size(f / "b-00.tar") == 4096);
  CHECK(read_file(f / "b-00.tar").samples.size() == 3);
  CHECK(read_file(f / "b-01.tar").samples == samples{"k3: txt=x"});
  CHECK(read_file(f / "b-02.tar").samples == samples{"large: txt=10000x"});
  CHECK(read_file(f / "b-03.tar").samples == samples{"after: txt=x"});
}

TEST_CASE("a writer without samples writes nothing") {
  const temporary_folder f;
  mr::shard_writer writer({.pattern = f / "t-%d.tar"});
  CHECK(writer.close().shards == 0);
  CHECK(f.file_count() == 0);
}

TEST_CASE("names of every length and any bytes are read back, and plain ones need one block") {
  const temporary_folder f;
  const std::vector<std::string> keys{
      std::string(96, 'n'), std::string(97, 'n'), std::string(252, 'n'), std::string(4092, 'n'),
      std::string(150, 'd') + "/" + std::string(96, 'n'), std::string(155, 'd') + "/" + std::string(96, 'n'),
      std::string(156, 'd') + "/" + std::string(96, 'n'), std::string(155, 'd') + "/" + std::string(97, 'n'),
      "d/" + std::string(97, 'n'), "/" + std::string(100, 'n'), "k\xe4se", "k\xc3\xa4se",
      std::string(200, 'x') + "\xe4", std::string(200, 'x') + "\xc3\xa4", "./here", "../there", "a b", "__a__b"};
  samples expected;
  for (const auto& key : keys) expected.push_back(key + ": txt=1");
  const auto write_all = [&](const std::string& pattern) {
    mr::shard_writer writer({.pattern = f / pattern});
    for (const auto& key : keys) writer.write(key, {{"txt", "1"}});
    writer.close();
  };
  write_all("c-%d.tar");
  const outcome o = read_file(f / "c-0.tar");
  CHECK(o.error == "");
  CHECK(o.samples == expected);
  CHECK(o.offsets[1] == 1024);                      // 100 bytes fit into the name field
  CHECK(o.offsets[2] == 1024 + 2048);               // 101 do not
  CHECK(o.offsets[6] - o.offsets[5] == 1024);       // 155 + 1 + 100 fit into prefix and name
  CHECK(o.offsets[7] - o.offsets[6] == 2048);
  // The bytes do not depend on the locale of the process.
  const std::string before = std::setlocale(LC_ALL, nullptr);
  if (std::setlocale(LC_ALL, "C.UTF-8")) write_all("u-%d.tar");
  else write_all("u-%d.tar");
  std::setlocale(LC_ALL, before.c_str());
  CHECK(load(f / "u-0.tar") == load(f / "c-0.tar"));
}

TEST_CASE("the same samples produce the same bytes: those of a handwritten header") {
  const temporary_folder f;
  mr::shard_writer writer({.pattern = f / "t-%d.tar"});
  writer.write("a", {{"txt", "hello"}});
  writer.close();
  CHECK(load(f / "t-0.tar") == file("a.txt", "hello") + end_marker());
}

TEST_CASE("Python's tarfile reads the shards, names and all") {
  if (std::system("python3 -c 0 >/dev/null 2>&1") != 0) {
    MESSAGE("skipped: no python3");
    return;
  }
  const temporary_folder f;
  mr::shard_writer writer({.pattern = f / "t-%d.tar"});
  const std::vector<std::string> keys{"a", "d/b", std::string(300, 'n'),
                                      std::string(120, 'd') + "/" + std::string(90, 'n'),
                                      "k\xc3\xa4se", std::string(300, 'x') + "\xe4"};
  std::string expected;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    writer.write(keys[i], {{"jpg", std::string(700 * i, 'j')}, {"cls", std::to_string(i)}});
    expected += keys[i] + ".cls " + std::to_string(i) + " 0 0 0o644\n";
    expected += keys[i] + ".jpg " + std::string(700 * i, 'j') + " 0 0 0o644\n";
  }
  writer.close();
  save(f / "read.py",
       "import sys, tarfile\n"
       "with tarfile.open(sys.argv[1], 'r|*', encoding='utf-8', errors='surrogateescape') as tar:\n"
       "  for m in tar:\n"
       "    assert m.isreg() and m.uid == m.gid == 0 and m.uname == m.gname == ''\n"
       "    line = m.name.encode('utf-8', 'surrogateescape') + b' ' + tar.extractfile(m).read()\n"
       "    sys.stdout.buffer.write(line + b' %d %d %s\\n' % (m.mtime, m.uid, oct(m.mode).encode()))\n");
  REQUIRE(std::system(("python3 " + (f / "read.py") + " " + (f / "t-0.tar") + " > " + (f / "out")).c_str()) == 0);
  CHECK(load(f / "out") == expected);
}

TEST_CASE("files of Python's tarfile can be read, in all its formats") {
  if (std::system("python3 -c 0 >/dev/null 2>&1") != 0) {
    MESSAGE("skipped: no python3");
    return;
  }
  const temporary_folder f;
  save(f / "write.py",
       "import io, sys, tarfile\n"
       "for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):\n"
       "  with tarfile.open(sys.argv[1] + '/py-%d.tar' % form, 'w', format=form) as tar:\n"
       "    for i, key in enumerate(['a', 'd/b', 'x' * 90 + '/' + 'y' * 90, 'k\\u00e4se']):\n"
       "      for field, data in (('cls', b'%d' % i), ('JPG', b'j' * 700 * i)):\n"
       "        m = tarfile.TarInfo(key + '.' + field)\n"
       "        m.size, m.mtime, m.uname = len(data), 1700000000.25, 'bigdata'\n"
       "        tar.addfile(m, io.BytesIO(data))\n");
  REQUIRE(std::system(("python3 " + (f / "write.py") + " " + f.path()).c_str()) == 0);
  for (const auto& path : mr::list_shards(f / "py-*.tar")) {
    CAPTURE(path);
    const outcome o = read_file(path);
    CHECK(o.error == "");
    CHECK(o.samples == samples{"a: cls=0 jpg=", "d/b: cls=1 jpg=700j",
                               std::string(90, 'x') + "/" + std::string(90, 'y') + ": cls=2 jpg=1400j",
                               "k\xc3\xa4se: cls=3 jpg=2100j"});
  }
}

TEST_CASE("nothing half-written is ever visible") {
  const temporary_folder f;
  {
    mr::shard_writer writer({.pattern = f / "t-%d.tar", .max_samples = 2});
    for (int i = 0; i < 3; ++i) {
      writer.write("k" + std::to_string(i), {{"txt", "x"}});
      CHECK(std::filesystem::exists(f / "t-0.tar") == (i == 2));
    }
    CHECK(f.file_count() == 2);   // the first shard, and the second one's temporary file
    CHECK(mr::list_shards(f.path()).size() == 1);
  }
  CHECK(f.file_count() == 1);
  CHECK(read_file(f / "t-0.tar").samples.size() == 2);
  save(f / "t-0.tar", "an old shard");
  mr::shard_writer again({.pattern = f / "t-%d.tar"});
  again.write("k", {{"txt", "new"}});
  CHECK(load(f / "t-0.tar") == "an old shard");
  again.close();
  CHECK(read_file(f / "t-0.tar").samples == samples{"k: txt=new"});
}

TEST_CASE("keys and fields that a reader would return differently are refused, and the writer continues") {
  const temporary_folder f;
  mr::shard_writer writer({.pattern = f / "t-%d.tar"});
  using std::string_literals::operator""s;
  writer.write("good", {{"txt", "1"}});
  for (const std::string& key : {""s, "a\nb"s, "a\0b"s, "a.b"s, "d/a.b"s, ".a"s, "d/.a"s, "d/"s, "__x__/a"s, "____/a"s,
                                 "__x__"s, "a\x7f"s, "good"s, "."s, ".."s}) {
    CAPTURE(key);
    CHECK_THROWS_AS(writer.write(key, {{"txt", "1"}}), mr::setup_error);
  }
  for (const std::string& field : {""s, "JPG"s, "a/b"s, "a\n"s, "\0"s}) {
    CAPTURE(field);
    CHECK_THROWS_AS(writer.write("other", {{field, "1"}}), mr::setup_error);
  }
  CHECK_THROWS_AS(writer.write("other", {{"a", "1"}, {"b", "2"}, {"a", "3"}}), mr::setup_error);
  CHECK_THROWS_AS(writer.write("other", {}), mr::setup_error);
  writer.write("dots/in.folders/are_fine", {{"seg.png", "1"}, {"_meta", "2"}, {".odd", "3"}});
  CHECK(writer.close().samples == 2);
  CHECK(read_file(f / "t-0.tar").samples ==
        samples{"good: txt=1", "dots/in.folders/are_fine: .odd=3 _meta=2 seg.png=1"});
  CHECK_THROWS_AS(writer.write("late", {{"txt", "1"}}), mr::setup_error);
}

TEST_CASE("a pattern needs exactly one number") {
  for (const char* bad : {"", "t.tar", "t-%d-%d.tar", "t-%s.tar", "t-%", "t-%6d.tar", "t-%06x.tar", "t-%%d.tar",
                          "t-%0000d", "t-%n%d"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(mr::shard_writer({.pattern = bad}), mr::setup_error);
  }
  CHECK_THROWS_AS(mr::shard_writer({.pattern = "%d", .max_samples = 0}), mr::setup_error);
  CHECK_THROWS_AS(mr::shard_writer({.pattern = "%d", .max_bytes = 0}), mr::setup_error);
  const temporary_folder f;
  mr::shard_writer writer({.pattern = f / "100%%-%04d", .first_number = 12'345});
  writer.write("a", {{"txt", "1"}});
  writer.close();
  CHECK(std::filesystem::exists(f / "100%-12345"));
}

TEST_CASE("a full disk, a failed sync, close or rename is an io_error that leaves no file") {
  using call = failing_files::call;
  for (const call which : {call::open, call::write, call::sync, call::close, call::rename}) {
    CAPTURE(static_cast<int>(which));
    const temporary_folder f;
    failing_files files;
    files.which = which;
    mr::detail::basic_shard_writer<failing_files> writer({.pattern = f / "t-%d.tar"}, files);
    try {
      writer.write("k", {{"txt", std::string(3'000'000, 'x')}});
      writer.close();
      FAIL("no error");
    } catch (const mr::io_error& e) {
      CHECK(e.message().ends_with("the file: No space left on device"));
      CHECK(e.where().shard == f / "t-0.tar");
    }
    CHECK(f.file_count() == 0);
    CHECK_THROWS_AS(writer.write("l", {{"txt", "x"}}), mr::setup_error);
    CHECK_THROWS_AS((void)writer.close(), mr::setup_error);
  }
}

TEST_CASE("a folder in the place of the shard, or a missing folder, is an io_error") {
  const temporary_folder f;
  std::filesystem::create_directory(f / "t-0.tar");
  mr::shard_writer writer({.pattern = f / "t-%d.tar"});
  writer.write("k", {{"txt", "x"}});
  CHECK_THROWS_AS((void)writer.close(), mr::io_error);
  CHECK(f.file_count() == 1);
  mr::shard_writer nowhere({.pattern = f / "none/t-%d.tar"});
  CHECK_THROWS_AS(nowhere.write("k", {{"txt", "x"}}), mr::io_error);
}

TEST_CASE("short writes and a temporary file left by an earlier run do not matter") {
  const temporary_folder f;
  std::size_t piece = 700;
  failing_files files;
  files.max_bytes_per_write = &piece;
  const std::string stale = f / (".t-0.tar." + std::to_string(::getpid()) + "-0.partial");
  save(stale, "left over");
  mr::detail::basic_shard_writer<failing_files> writer({.pattern = f / "t-%d.tar"}, files);
  writer.write("k", {{"txt", std::string(2'000'000, 'x')}, {"cls", "1"}});
  writer.close();
  CHECK(read_file(f / "t-0.tar").samples == samples{"k: cls=1 txt=2000000x"});
  CHECK(load(stale) == "left over");
}
