// The system refuses memory, threads or calls, one after the other: a run ends in an error after the earlier batches,
// and nothing else ends.
//
// A separate program, because its operator new, pthread_create and open replace those of the entire process.
// tests/system/faults does the same from outside, for every call.
#include "../../temporary_folder.hpp"
#include "../../copying_device.hpp"
#include "quiet_sessions.hpp"

#include <millrace/io/file/atomic_file.hpp>
#include <millrace/millrace.hpp>
#include <millrace/shards.hpp>
#include <millrace/stages/take.hpp>

#include <doctest/doctest.h>

#if defined(__has_feature)
#define MILLRACE_TEST_HAS_FEATURE(x) __has_feature(x)
#else
#define MILLRACE_TEST_HAS_FEATURE(x) 0
#endif
#if !defined(__GLIBC__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    MILLRACE_TEST_HAS_FEATURE(address_sanitizer) || MILLRACE_TEST_HAS_FEATURE(thread_sanitizer)

TEST_CASE("refused memory, threads and calls (not tested: they are a sanitizer's, or not glibc's)" * doctest::skip()) {}

#else

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdlib>
#include <filesystem>
#include <new>

namespace mr = millrace;

namespace {

/// Counts down to the call that is refused; negative: none.
struct refusal {
  std::atomic<long> left{-1};
  bool is_due() noexcept { return left.load(std::memory_order_relaxed) >= 0 && left.fetch_sub(1) == 0; }
};
refusal memory_countdown, thread_countdown, open_countdown, sync_countdown, cut_countdown;

/// Whether this address belongs to oneTBB. oneTBB does not tolerate a refusal: if the memory for the core mask of a new
/// thread is refused, its change of the number of workers never completes, and all later ones wait for it.
bool is_in_tbb(const void* address) noexcept {
  Dl_info library{};
  return ::dladdr(address, &library) != 0 && std::string_view(library.dli_fname).find("tbb") != std::string_view::npos;
}

/// Whether memory is refused to this caller.
bool is_memory_due(const void* caller) noexcept {
  std::atomic<long>& left = memory_countdown.left;
  for (long calls = left.load(std::memory_order_relaxed); calls >= 0;) {
    if (calls == 0 && is_in_tbb(caller)) return false;
    if (left.compare_exchange_weak(calls, calls - 1)) return calls == 0;
  }
  return false;
}

void* allocated(std::size_t bytes, const void* caller) {
  if (is_memory_due(caller)) throw std::bad_alloc();
  if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}

/// Whether a call was refused while `act` ran as the `nth` of its kind.
template <class Act>
bool refused(refusal& kind, long nth, const Act& act) {
  kind.left = nth;
  act();
  return kind.left.exchange(-1) < 0;
}

struct numbered {
  std::uint64_t number;
};

struct twice {
  using output = numbered;
  std::size_t max_outputs(const numbered&) const { return 2; }
  void push(numbered n, auto& emit) const {
    emit(numbered{2 * n.number});
    emit(numbered{2 * n.number + 1});
  }
};

struct sums {
  using output = numbered;
  std::uint64_t sum = 0;
  std::size_t max_outputs(const numbered&) const { return 1; }
  void push(numbered n, auto& emit) { emit(numbered{sum += n.number}); }
};

/// Some shards of numbers.
struct counting_source {
  using item = std::uint64_t;
  std::size_t shards() const { return 5; }
  struct reader {
    std::uint64_t at, end;
    std::optional<item> next() { return at == end ? std::nullopt : std::optional<item>(at++); }
  };
  reader open(std::size_t shard, std::uint64_t) const { return {shard * 40, shard * 40 + 40}; }
};

auto as_item = [](std::uint64_t n) { return numbered{n}; };
auto rows = [] { return mr::batch<&numbered::number>({.size = 8, .drop_last = false}); };
auto plain = [] { return mr::from(counting_source()) | mr::shuffle({.window = 30}) | mr::map(as_item) | rows(); };
auto stages = [] {
  return mr::from(counting_source()) | mr::map(as_item) | mr::expand(twice{}) | mr::expand(sums{}) |
         mr::shuffle({.window = 30}) | rows();
};

using batches = std::vector<std::vector<std::uint64_t>>;

/// Runs a flow, collects its batches, and returns the error.
template <class Flow>
std::string run_to(batches& all, Flow&& flow_of) {
  try {
    mr::session run{flow_of(), quiet(2, 2)};
    for (auto& b : run) {
      const auto numbers = b.template get<&numbered::number>().host();
      auto& batch = all.emplace_back();
      batch.assign(numbers.begin(), numbers.end());
    }
  } catch (const mr::io_error& e) {
    return e.message();
  } catch (const std::bad_alloc&) {
    return "memory is exhausted";
  }
  return "ok";
}

/// Every N calls: the threads do not allocate in the same order each time anyway.
template <class Flow>
void refuse_memory_to(const Flow& flow_of, long every = 3) {
  batches expected;
  REQUIRE(run_to(expected, flow_of) == "ok");
  bool any = true;
  for (long nth = 0; any; nth += every) {
    batches got;
    std::string end;
    any = refused(memory_countdown, nth, [&] { end = run_to(got, flow_of); });
    CAPTURE(nth);
    if (got.size() > 0 && end != "ok" && !(got.back() == expected[got.size() - 1])) got.pop_back();   // of the test
    CAPTURE(end);
    REQUIRE(got.size() <= expected.size());
    REQUIRE(std::equal(got.begin(), got.end(), expected.begin()));
    if (end == "ok") REQUIRE(got.size() == expected.size());
    else REQUIRE(end.starts_with("memory is exhausted"));
  }
}

std::size_t open_files() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

}  // namespace

void* operator new(std::size_t bytes) { return allocated(bytes, __builtin_return_address(0)); }
void* operator new[](std::size_t bytes) { return allocated(bytes, __builtin_return_address(0)); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

extern "C" {

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) {
  using function = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto next = reinterpret_cast<function*>(::dlsym(RTLD_NEXT, "pthread_create"));
  return !is_in_tbb(reinterpret_cast<void*>(run)) && thread_countdown.is_due()
             ? EAGAIN
             : next(thread, attributes, run, argument);
}

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = va_arg(more, mode_t);
  va_end(more);
  return open_countdown.is_due() ? (errno = EINTR, -1) : ::openat(AT_FDCWD, path, flags, mode);
}

int fsync(int file) {
  return sync_countdown.is_due() ? (errno = EINTR, -1) : static_cast<int>(::syscall(SYS_fsync, file));
}

int fdatasync(int file) {
  return sync_countdown.is_due() ? (errno = EINTR, -1) : static_cast<int>(::syscall(SYS_fdatasync, file));
}

int ftruncate(int file, off_t bytes) noexcept {
  return cut_countdown.is_due() ? (errno = EINTR, -1) : static_cast<int>(::syscall(SYS_ftruncate, file, bytes));
}

}  // extern "C"

TEST_CASE("memory that runs out anywhere in a run ends it in an error, after the earlier batches") {
  refuse_memory_to(plain);
}

TEST_CASE("the same with stages that expand, on workers and on a separate thread") {
  refuse_memory_to(stages, 11);
}

TEST_CASE("the same with copies to a device, and with callables that wait") {
  const mr::device device = copying_device();
  refuse_memory_to([&] { return plain() | mr::to_device({.device = device, .slots = 2}); });
  refuse_memory_to([] {
    return mr::from(counting_source()) | mr::map(as_item, {.blocking = true, .threads = 2}) | rows();
  });
}

TEST_CASE("memory that runs out while indexes are built and kept ends the run in an error, or costs the learned "
          "checksums") {
  const temporary_folder f;
  {
    mr::shard_writer shards({.pattern = f / "s-%d.tar", .max_samples = 20});
    for (int i = 0; i < 60; ++i) shards.write(std::to_string(i), {{"n", std::to_string(i)}});
    shards.close();
  }
  long round = 0;
  refuse_memory_to([&] {
    const mr::shards_options o{
        .seed = 1, .index_folder = f / ("indexes-" + std::to_string(round++)), .notice = mr::quiet};
    return mr::shards(f / "s-*.tar", o) | mr::shuffle({.window = 10}) |
           mr::map([](const mr::record& r) { return numbered{r["n"].as<std::uint64_t>()}; }) | rows();
  }, 17);
}

TEST_CASE("a refused thread is an error with its reason, and the running ones are ended") {
  const auto refuse_threads_to = [](const auto& flow_of) {
    bool any = true;
    for (long nth = 0; any; ++nth) {
      batches got;
      std::string end;
      any = refused(thread_countdown, nth, [&] { end = run_to(got, flow_of); });
      CAPTURE(nth);
      CHECK((end == "ok" || end.starts_with("the system refused to start a thread: ")));
      CHECK((nth > 0 || end != "ok"));
    }
  };
  refuse_threads_to(stages);
  const mr::device device = copying_device();
  refuse_threads_to([&] { return plain() | mr::to_device({.device = device}); });
  refuse_threads_to([] {
    return mr::from(counting_source()) | mr::map(as_item, {.blocking = true, .threads = 3}) | rows();
  });
}

TEST_CASE("a file that cannot be finished for want of memory leaves no file and no descriptor open") {
  const temporary_folder f;
  const std::size_t before = open_files();
  bool any = true;
  for (long nth = 0; any; ++nth)
    any = refused(memory_countdown, nth, [&] {
      try {
        mr::atomic_file file(f / "complete");
        file.append("text");
        file.publish();
      } catch (const std::bad_alloc&) {
      }
    });
  CHECK(open_files() == before);
  CHECK(f.file_count() == 1);
}

TEST_CASE("interrupted calls are repeated when files are opened, flushed and shortened") {
  const temporary_folder f;
  for (long nth = 0; nth < 3; ++nth) {
    CAPTURE(nth);
    std::uint64_t lost = 0;
    CHECK(refused(open_countdown, 0, [&] {
      mr::log out(mr::json_lines(f / "run.jsonl"));
      out.push({.step = 1, .values = {{"loss", 1}}});
      refused(sync_countdown, 0, [&] { out.close(); });
      lost = out.counts().sink_errors;
    }));
    CHECK(lost == 0);
    CHECK(refused(sync_countdown, nth % 2, [&] {
      mr::atomic_file file(f / "complete");
      file.append("text");
      CHECK_NOTHROW(file.commit());
    }));
  }
  const int half = ::open((f / "run.jsonl").c_str(), O_WRONLY | O_APPEND);
  CHECK(::write(half, "{\"half", 6) == 6);
  ::close(half);
  CHECK(refused(cut_countdown, 0, [&] { CHECK_NOTHROW(mr::json_lines(f / "run.jsonl")); }));
}

#endif
