// Later writers remove the files of killed ones, and no other files.
#include <millrace/io/tar/write/shard_writer.hpp>

#include "../tar_bytes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace mr = millrace;
using namespace tar_test;

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
