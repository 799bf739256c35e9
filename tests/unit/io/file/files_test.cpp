// Archives and other files in the place of tar shards and of files of lines: the error names the kind and a remedy.
#include "../tar_bytes.hpp"

#include <millrace/io/file/foreign_file.hpp>
#include <millrace/io/file/file_list.hpp>
#include <millrace/io/tar/write/shard_writer.hpp>
#include <millrace/sources/lines.hpp>

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace mr = millrace;
using namespace tar_test;
using namespace std::string_view_literals;

namespace {

std::string number(std::uint64_t value, int bytes) {
  std::string text;
  for (; bytes-- > 0; value >>= 8) text += static_cast<char>(value & 255);
  return text;
}
std::string filled(std::string_view begin, std::size_t size = 5'000) {
  std::string all(begin);
  while (all.size() < size) all += static_cast<char>(all.size() * 37 % 251);
  return all;
}

struct foreign {
  std::string bytes;
  std::string_view name, advice;
  bool as_lines = true;   // such a file has no lines of text either
};

std::vector<foreign> files() {
  std::string mds = number(20, 4);
  for (unsigned i = 0; i <= 20; ++i) mds += number(i < 20 ? 100 + i * 100 : 5'000, 4);
  return {
      {filled("PK\3\4\x14\0\0\0\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\5\0\0\0a.txt"sv), "a ZIP archive",
       "pack_folder"},
      {filled("7z\xbc\xaf\x27\x1c"sv), "a 7z archive", "pack_folder"},
      {filled("Rar!\x1a\x07\x01\0"sv), "a RAR archive", "pack_folder"},
      {filled("PAR1\x15\x04\x15\x10"sv), "a Parquet file", "shard_writer"},
      {filled("ARROW1\0\0"sv), "an Arrow file", "shard_writer"},
      {filled("\x89HDF\r\n\x1a\n"sv), "an HDF5 file", "shard_writer"},
      {filled("SQLite format 3\0"sv), "an SQLite database", "shard_writer"},
      {filled(std::string(10, '\0') + std::string("\x08\0\0\0\0\0", 6) + number(0xbeefc0de, 4) + number(1, 4)),
       "an LMDB database",
       "shard_writer"},
      {filled(number(2, 2) + number(3, 2) + number(8 << 20, 4) + number(1'000, 8) + number(4'000, 8)),
       "an FFCV .beton file", "shard_writer"},
      {filled(mds), "a shard of MosaicML", "shard_writer"},
      {filled("\x93NUMPY\1\0\x76\0{'descr': '<f4'"sv), "a NumPy .npy file", "mr::array"},
      {filled("\xff\xd8\xff\xe0\0\x10JFIF\0"sv), "a JPEG", "mr::files()"},
      {filled("\x89PNG\r\n\x1a\n\0\0\0\rIHDR"sv), "a PNG", "mr::files()"},
      {filled("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n\0"sv), "a PDF", "pack_folder"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca2"
       "4d17e2393\nsize 12345\n",
       "a Git LFS pointer", "git lfs pull"},
      {"<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body>Please sign in first</body></html>\n",
       "an HTML page", "URL and the login", false},
      {"train-000.tar\ntrain-001.tar\n", "a list of shards", "std::vector<std::string>", false},
      {"It is a truth universally acknowledged, that a single man in possession\n", "a text", "mr::lines()", false},
  };
}

std::string error_of_lines(std::string bytes) {
  try {
    mr::line_reader reader(std::make_unique<memory_source>(std::move(bytes)), shared_pool());
    while (reader.next()) {
    }
  } catch (const mr::data_error& e) {
    CHECK_FALSE(std::string_view(e.what()).empty());
    return e.what();
  }
  return {};
}

std::string error_of_shard(std::string bytes) {
  try {
    mr::shard_reader reader(std::make_unique<memory_source>(std::move(bytes)), shared_pool());
    while (reader.next()) {
    }
  } catch (const mr::data_error& e) {
    return e.what();
  }
  return {};
}

}  // namespace

TEST_CASE("a file of another kind in place of a shard or of lines is named, with the remedy") {
  for (const foreign& f : files()) {
    CAPTURE(f.name);
    const std::string shard = error_of_shard(f.bytes);
    CHECK_MESSAGE(shard.find("the shard is not a tar archive: it looks like " + std::string(f.name)) !=
                      std::string::npos,
                  shard);
    CHECK_MESSAGE(shard.find(f.advice) != std::string::npos, shard);
    if (have("gzip")) {
      const std::string packed = error_of_shard(through("gzip -c", f.bytes));
      CHECK_MESSAGE(packed.find("after decompression, it looks like " + std::string(f.name)) != std::string::npos,
          packed);
    }
    const std::string lines = error_of_lines(f.bytes);
    CHECK_MESSAGE((lines.find("has no lines of text: it looks like " + std::string(f.name)) != std::string::npos) ==
                      f.as_lines,
                  lines);
  }
  CHECK(error_of_lines("GIF89a is an old format\n%PDF-1.\nversion https://git-lfs.github.com\n").empty());
  CHECK(error_of_lines(mixed_shard(10)).find("a tar archive") != std::string::npos);
}

// Later writers remove the files of killed ones, and no other files.
namespace {

/// A process that writes one sample of a pattern, says so, and then waits until it is killed.
class writing_process {
 public:
  explicit writing_process(const std::string& pattern) {
    int ready[2];
    REQUIRE(::pipe(ready) == 0);
    id_ = ::fork();
    REQUIRE(id_ >= 0);
    if (id_ == 0) {
      mr::shard_writer writer({.pattern = pattern});
      writer.write("k", {{"txt", "half"}});
      if (::write(ready[1], "x", 1) == 1)
        for (;;) ::pause();
      ::_exit(1);
    }
    char one = 0;
    CHECK(::read(ready[0], &one, 1) == 1);
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~writing_process() {
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
  }

 private:
  pid_t id_ = -1;
};

std::vector<std::string> names_in(const temporary_folder& f) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(f.path()))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("the files of a killed writer are removed by the next one of its pattern, and no other files") {
  const temporary_folder f;
  const std::string pattern = f / "t-%02d.tar", other = f / "u-%02d.tar";
  { const writing_process killed(pattern), of_another_pattern(other); }
  const auto left = names_in(f);
  REQUIRE(left.size() == 2);
  const std::string kernel = mr::detail::kernel_id();
  REQUIRE(kernel.size() == 12);
  CHECK(left[0].starts_with(".t-00.tar." + kernel + "-"));
  // No process has these open either, but they are another machine's, another pattern's, or not temporary files.
  const std::vector<std::string> foreign = {".t-00.tar.0123456789ab-7-0.partial", ".t-00.tar.7-0.partial",
                                         ".t-0.tar." + kernel + "-7-0.partial", ".t-00.tar." + kernel + "-7-0",
                                         ".t-x0.tar." + kernel + "-7-0.partial", "t-00.tar." + kernel + "-7-0.partial"};
  for (const auto& name : foreign) save(f / name, "not ours");
  std::filesystem::create_directory(f / (".t-01.tar." + kernel + "-7-0.partial"));
  std::filesystem::create_symlink(f / foreign[0], f / (".t-02.tar." + kernel + "-7-0.partial"));
  {
    const writing_process alive(pattern);
    CHECK(names_in(f).size() == left.size() + foreign.size() + 2);   // its own appeared, the killed one's was removed
    mr::shard_writer second({.pattern = pattern, .first_number = 5});
    second.write("k", {{"txt", "x"}});
    second.close();
    CHECK(names_in(f).size() == left.size() + foreign.size() + 3);
  }
  mr::shard_writer({.pattern = pattern}).write("k", {{"txt", "x"}});
  auto expected = foreign;
  expected.insert(expected.end(), {left[1], ".t-01.tar." + kernel + "-7-0.partial",
                                   ".t-02.tar." + kernel + "-7-0.partial", "t-05.tar"});
  std::sort(expected.begin(), expected.end());
  CHECK(names_in(f) == expected);
}

TEST_CASE("writers of one pattern that begin all the time never mistake each other's files for abandoned") {
  const temporary_folder f;
  const mr::detail::posix_files files;
  std::vector<std::string> errors(2);
  std::vector<std::thread> writers;
  for (std::size_t w = 0; w < errors.size(); ++w)
    writers.emplace_back([&, w] {
      try {
        for (std::uint64_t i = 0; i < 2'000; ++i) {
          mr::detail::remove_abandoned_files(f.path() + "/", files, [](std::string_view) { return true; });
          mr::detail::atomic_file<> file(f / ("t-" + std::to_string(w) + ".tar"));
          file.append("x");
          file.publish();
        }
      } catch (const mr::error& e) {
        errors[w] = e.what();
      }
    });
  for (auto& w : writers) w.join();
  CHECK(errors == std::vector<std::string>(2));
  CHECK(f.file_count() == 2);
}

TEST_CASE("the common folder of names ends at a slash") {
  using millrace::detail::name_list;
  CHECK(name_list({"s3://b/a/x.tar", "s3://b/ab/y.tar"}).common_folder() == "s3://b/");
  CHECK(name_list({"s3://b/train-0.tar", "s3://b/train-1.tar"}).common_folder() == "s3://b/");
  CHECK(name_list({"x.tar", "y.tar"}).common_folder().empty());
  CHECK(name_list({"a/x.tar"}).common_folder() == "a/");
  CHECK(name_list(std::vector<std::string>()).common_folder().empty());
}
