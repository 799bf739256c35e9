#include <millrace/base/random.hpp>
#include <millrace/io/file/byte_source.hpp>

#include "../tar_bytes.hpp"

#include <doctest/doctest.h>

#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace mr = millrace;
using namespace tar_test;

namespace {

/// System calls that follow a script: each read fails with the next number, or moves at most that many bytes.
struct script {
  std::deque<long> reads;              // negative: fail with that errno; positive: at most that many bytes
  std::deque<int> opens;               // errno of the next opens; 0: fine
  std::vector<std::int64_t> pauses_ns;
  std::vector<std::size_t> requested;
  int open_files = 0;
  int opened = 0;
  off_t size_on_reopen = -1;
};

struct scripted_files : mr::detail::posix_files {
  script* plan;
  explicit scripted_files(script& p) : plan(&p) {}

  int open(const char* path, int flags) const {
    ++plan->opened;
    if (!plan->opens.empty()) {
      const int reason = plan->opens.front();
      plan->opens.pop_front();
      if (reason != 0) {
        errno = reason;
        return -1;
      }
    }
    ++plan->open_files;
    return posix_files::open(path, flags);
  }
  int close(int file) const {
    --plan->open_files;
    return posix_files::close(file);
  }
  int stat_open(int file, struct ::stat& status) const {
    const int result = posix_files::stat_open(file, status);
    if (plan->opened > 1 && plan->size_on_reopen >= 0) status.st_size = plan->size_on_reopen;
    return result;
  }
  ssize_t read_at(int file, void* buffer, std::size_t bytes, off_t offset) const {
    return may_move(bytes) ? posix_files::read_at(file, buffer, bytes, offset) : -1;
  }
  ssize_t read_parts_at(int file, const struct ::iovec* parts, int count, off_t offset) const {
    std::vector<struct ::iovec> fewer(parts, parts + count);
    std::size_t bytes = 0;
    for (const auto& part : fewer) bytes += part.iov_len;
    if (!may_move(bytes)) return -1;
    for (auto& part : fewer) {
      part.iov_len = std::min(part.iov_len, bytes);
      bytes -= part.iov_len;
    }
    return posix_files::read_parts_at(file, fewer.data(), count, offset);
  }
  /// Whether the call succeeds, and with how many bytes at most.
  bool may_move(std::size_t& bytes) const {
    plan->requested.push_back(bytes);
    if (plan->reads.empty()) return true;
    const long next = plan->reads.front();
    plan->reads.pop_front();
    if (next < 0) errno = static_cast<int>(-next);
    bytes = std::min(bytes, static_cast<std::size_t>(std::max(next, 0L)));
    return next >= 0;
  }
  void sleep_ns(std::int64_t duration_ns) const { plan->pauses_ns.push_back(duration_ns); }
};

using scripted_source = mr::detail::basic_file_source<scripted_files>;

std::string read_all(mr::byte_source& source, std::size_t room_bytes = 100) {
  std::string all;
  std::vector<std::byte> buffer(room_bytes);
  for (;;) {
    const std::size_t got = mr::detail::read_fully(source, all.size(), buffer);
    all.append(reinterpret_cast<const char*>(buffer.data()), got);
    if (got < buffer.size()) return all;
  }
}

/// The same in parts of 1 to 30 bytes.
std::string read_all_in_parts(mr::byte_source& source, std::size_t room_bytes = 100) {
  mr::rng random({.seed = 4});
  std::string all;
  for (;;) {
    std::string buffer(room_bytes, '?');
    std::vector<std::span<std::byte>> parts;
    for (std::size_t at = 0; at < room_bytes; at += parts.back().size())
      parts.push_back(std::as_writable_bytes(std::span(buffer)).subspan(at, std::min<std::size_t>(
          room_bytes - at, 1 + static_cast<std::size_t>(random.below(30)))));
    const std::size_t got = mr::detail::read_fully(source, all.size(), std::span(parts));
    CHECK(buffer.find_first_not_of('?', got) == std::string::npos);
    all += buffer.substr(0, got);
    if (got < room_bytes) return all;
  }
}

std::string some_bytes() {
  std::string all;
  for (int i = 0; i < 1000; ++i) all += static_cast<char>(i * 7 % 251);
  return all;
}

}  // namespace

TEST_CASE("a file is read from any offset, and returns 0 at its end") {
  const temporary_folder f;
  save(f / "x", some_bytes());
  mr::file_source source(f / "x");
  CHECK(source.name() == f / "x");
  CHECK(read_all(source) == some_bytes());
  std::vector<std::byte> buffer(10);
  CHECK(source.read_at(995, buffer) == 5);
  CHECK(static_cast<char>(buffer[0]) == some_bytes()[995]);
  CHECK(source.read_at(1000, buffer) == 0);
  CHECK(source.read_at(1'000'000, buffer) == 0);
}

TEST_CASE("a read fills its parts one after the other, also more of them than fit into one call") {
  const temporary_folder f;
  save(f / "x", some_bytes());
  mr::file_source source(f / "x");
  CHECK(source.reads_parts());
  CHECK(read_all_in_parts(source) == some_bytes());
  std::string all(1000, '?');
  std::vector<std::span<std::byte>> parts;
  for (char& byte : all) parts.push_back(std::as_writable_bytes(std::span(&byte, 1)));
  CHECK(source.read_parts(0, parts) == 512);
  CHECK(all == some_bytes().substr(0, 512) + std::string(488, '?'));
  CHECK(mr::detail::read_fully(source, 0, std::span(parts)) == 1000);
  CHECK(all == some_bytes());
  CHECK(source.read_parts(0, {}) == 0);
  // A source without support for parts.
  memory_source plain(some_bytes());
  CHECK_FALSE(plain.reads_parts());
  CHECK(read_all_in_parts(plain) == some_bytes());
}

TEST_CASE("short reads and interruptions are invisible") {
  const temporary_folder f;
  save(f / "x", some_bytes());
  script plan;
  for (int i = 0; i < 50; ++i) plan.reads.insert(plan.reads.end(), {1, -EINTR, 7, -EINTR, -EINTR, 3});
  {
    scripted_source source(f / "x", scripted_files(plan));
    CHECK(read_all(source) == some_bytes());
    CHECK(plan.reads.empty());
  }
  for (int i = 0; i < 50; ++i) plan.reads.insert(plan.reads.end(), {1, -EINTR, 7, -EINTR, -EINTR, 3});
  {
    scripted_source source(f / "x", scripted_files(plan));
    CHECK(read_all_in_parts(source) == some_bytes());
    CHECK(plan.reads.empty());
  }
  CHECK(plan.open_files == 0);
}

TEST_CASE("no single call requests more than one GiB") {
  const temporary_folder f;
  save(f / "x", "abc");
  script plan;
  scripted_source source(f / "x", scripted_files(plan));
  // A span with a size of 3 GiB; the file has three bytes, so that nothing beyond them is accessed.
  std::vector<std::byte> buffer(3);
  CHECK(source.read_at(0, std::span<std::byte>(buffer.data(), std::size_t{3} << 30)) == 3);
  CHECK(plan.requested == std::vector<std::size_t>{std::size_t{1} << 30});
  const std::vector<std::span<std::byte>> parts{{buffer.data(), 2}, {buffer.data(), std::size_t{3} << 30}};
  CHECK(source.read_parts(0, parts) == 3);
  CHECK(plan.requested.back() == std::size_t{1} << 30);
}

TEST_CASE("EAGAIN is retried with growing pauses, and not forever") {
  const temporary_folder f;
  save(f / "x", some_bytes());
  script plan;
  plan.reads = {-EAGAIN, -EAGAIN, -EAGAIN};
  scripted_source source(f / "x", scripted_files(plan));
  CHECK(read_all(source) == some_bytes());
  CHECK(plan.pauses_ns == std::vector<std::int64_t>{1'000'000, 2'000'000, 4'000'000});
  plan.pauses_ns.clear();
  plan.reads.assign(100, -EAGAIN);
  CHECK_THROWS_AS((void)read_all(source), mr::io_error);
  CHECK(plan.pauses_ns.size() == 8);
  CHECK(plan.pauses_ns.back() == 128'000'000);
  plan.reads = {10, -EAGAIN};
  CHECK(read_all_in_parts(source) == some_bytes());
}

TEST_CASE("a stale handle is opened again once, at the same offset") {
  const temporary_folder f;
  save(f / "x", some_bytes());
  script plan;
  plan.reads = {10, -ESTALE, 20, -EINTR, -ESTALE};
  {
    scripted_source source(f / "x", scripted_files(plan));
    CHECK(read_all(source) == some_bytes());
    CHECK(plan.opened == 3);
    CHECK(plan.open_files == 1);
    plan.reads = {10, -ESTALE, 20};
    CHECK(read_all_in_parts(source) == some_bytes());
    CHECK(plan.opened == 4);
    plan.reads = {-ESTALE, -ESTALE};
    CHECK_THROWS_AS((void)read_all(source), mr::io_error);
    plan.reads = {-ESTALE};
    plan.opens = {ENOENT};
    CHECK_THROWS_AS((void)read_all(source), mr::io_error);
  }
  CHECK(plan.open_files == 0);
}

TEST_CASE("a file that was replaced while its handle was stale is an error, not a mixture") {
  const temporary_folder f;
  save(f / "x", some_bytes());
  script plan;
  plan.reads = {10, -ESTALE};
  plan.size_on_reopen = 999;
  scripted_source source(f / "x", scripted_files(plan));
  try {
    (void)read_all(source);
    FAIL("no error");
  } catch (const mr::io_error& e) {
    CHECK(e.message() == "the file was replaced while it was being read: got 999 bytes, expected 1000");
    CHECK(e.where().offset_bytes == 10);
  }
}

TEST_CASE("a file that ends before its initial size is an error: the rest is missing") {
  const temporary_folder f;
  save(f / "x", some_bytes());
  mr::file_source source(f / "x");
  std::filesystem::resize_file(f / "x", 600);
  try {
    (void)read_all(source);
    FAIL("no error");
  } catch (const mr::io_error& e) {
    CHECK(e.message() == "the file ends too early: expected the 1000 bytes that it had when it was "
                         "opened");
    CHECK(e.where().shard == f / "x");
    CHECK(e.where().offset_bytes == 600);
  }
  // Data that is appended meanwhile is ignored.
  mr::file_source grows(f / "x");
  save(f / "x", some_bytes());
  CHECK(read_all(grows) == some_bytes());
}

TEST_CASE("any other failure names shard, offset and the system's reason, and is not retried") {
  const temporary_folder f;
  save(f / "x", some_bytes());
  script plan;
  plan.reads = {300, -EIO};
  scripted_source source(f / "x", scripted_files(plan));
  try {
    (void)read_all(source, 1000);
    FAIL("no error");
  } catch (const mr::io_error& e) {
    CHECK(e.message() == "cannot read the file: Input/output error");
    CHECK(e.where().shard == f / "x");
    CHECK(e.where().offset_bytes == 300);
  }
  CHECK(plan.requested.size() == 2);
  CHECK(plan.pauses_ns.empty());
}

TEST_CASE("a file that cannot be opened is an error at once") {
  const temporary_folder f;
  CHECK_THROWS_AS(mr::file_source(f / "none"), mr::io_error);
  script plan;
  plan.opens = {EMFILE};
  save(f / "x", "abc");
  try {
    const scripted_source source(f / "x", scripted_files(plan));
    FAIL("no error");
  } catch (const mr::io_error& e) {
    CHECK(e.message() == "cannot open the file: Too many open files");
    CHECK(e.hint().find("ulimit -n") != std::string::npos);
  }
  plan.opens = {EINTR};
  const scripted_source source(f / "x", scripted_files(plan));
  CHECK(plan.open_files == 1);
}
