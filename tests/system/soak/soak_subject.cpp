// A long run that reports its resources, whose slopes soak.py checks.
//
//   soak_subject data FOLDER
//   soak_subject samples FOLDER COUNT          # of 2 KB, indexed; `stream`: the same, read from start to end
//   soak_subject pictures FOLDER COUNT
//   soak_subject sessions FOLDER COUNT         # run to the end, left early, destroyed at once, ended by exceptions
//
// At 200 points of the way it prints `at DONE RESIDENT_BYTES ALLOCATED_BYTES THREADS DESCRIPTORS`.
#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/io/tar/write/shard_writer.hpp>
#include <millrace/millrace.hpp>
#include <millrace/shards.hpp>

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <malloc.h>
#include <unistd.h>

namespace mr = millrace;

namespace {

constexpr int shards = 8, texts_of_shard = 2'000, pictures_of_shard = 250;
constexpr std::size_t text_bytes = 2'048;
constexpr std::uint64_t points = 200;

std::size_t entries(const char* folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

void report(std::uint64_t done) {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm").ignore(100, ' ') >> pages;
  const struct mallinfo2 heap = ::mallinfo2();
  std::printf("at %llu %llu %zu %zu %zu\n", static_cast<unsigned long long>(done),
              static_cast<unsigned long long>(pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE))),
              heap.uordblks + heap.hblkhd, entries("/proc/self/task"), entries("/proc/self/fd"));
  std::fflush(stdout);
}

/// Reports each time `done` reaches a point.
class reporter {
 public:
  explicit reporter(std::uint64_t all) : all_(all) {}
  void at(std::uint64_t done) {
    if (done * points < next_ * all_) return;
    report(done);
    next_ = done * points / all_ + 1;
  }

 private:
  std::uint64_t all_, next_ = 0;
};

void write_data(const std::string& folder) {
  mr::rng random({.seed = 1});
  mr::shard_writer texts({.pattern = folder + "/t-%d.tar", .max_samples = texts_of_shard});
  for (int i = 0; i < shards * texts_of_shard; ++i)
    texts.write("k" + std::to_string(i), {{"txt", std::string(text_bytes, static_cast<char>('a' + i % 26))}});
  texts.close();
  mr::shard_writer pictures({.pattern = folder + "/p-%d.tar", .max_samples = pictures_of_shard});
  for (int i = 0; i < shards * pictures_of_shard; ++i) {
    const auto side = [&] { return static_cast<std::size_t>(40 + random.below(50)); };
    mr::image pixels({side(), side(), 3});
    for (std::size_t j = 0; j < pixels.size(); ++j)
      pixels.data()[j] = static_cast<std::uint8_t>(j / 7 + random.below(30));
    pictures.write("p" + std::to_string(i), {{"jpg", mr::encode_jpeg(pixels, {.progressive = i % 50 == 0})}});
  }
  pictures.close();
}

struct text_row {
  mr::tensor<std::uint8_t, 1> bytes;
};

text_row as_row(const mr::record& r) {
  text_row row{mr::tensor<std::uint8_t, 1>({text_bytes})};
  std::memcpy(row.bytes.data(), r["txt"].data(), text_bytes);
  return row;
}

struct picture_row {
  mr::picture pixels;
};

picture_row draw(const mr::record& r, mr::rng& random) {
  return {mr::jpeg(r["jpg"]).random_resized_crop(32, random).random_flip(random)};
}

mr::session_options quietly(std::uint64_t epochs) {
  return {.epochs = epochs, .threads = 2, .io_threads = 2, .memory_bytes = std::size_t{192} << 20, .notice = mr::quiet,
          .lanes = 8};
}

template <class Flow>
void run_on(Flow flow, std::uint64_t first, std::uint64_t last, reporter& to) {
  mr::session run{std::move(flow), quietly(mr::endless)};
  std::uint64_t done = first;
  for (auto& b : run) {
    to.at(done += b.size());
    if (done >= last) return;
  }
}

void samples(const std::string& folder, std::uint64_t count) {
  reporter to(count);
  run_on(mr::shards(folder + "/t-*.tar", {.notice = mr::quiet}) | mr::shuffle({.window = 4'000}) |
             mr::map(as_row) | mr::batch<&text_row::bytes>({.size = 128}), 0, count, to);
}

void stream(const std::string& folder, std::uint64_t count) {
  reporter to(count);
  run_on(mr::shards(folder + "/t-*.tar", {.index = mr::index::off}) | mr::shuffle({.window = 4'000}) | mr::map(as_row) |
             mr::batch<&text_row::bytes>({.size = 128}), 0, count, to);
}

void pictures(const std::string& folder, std::uint64_t count) {
  reporter to(count);
  run_on(mr::shards(folder + "/p-*.tar", {.notice = mr::quiet}) | mr::shuffle({.window = 500}) |
             mr::map(draw) | mr::batch<&picture_row::pixels>({.size = 64}), 0, count, to);
}

struct step_failed {};

/// Uses a session in one of five ways.
template <class MakeFlow>
void use(MakeFlow&& flow, std::uint64_t way) {
  try {
    mr::session run{flow(way == 4), quietly(way == 0 ? 1 : 3)};
    std::uint64_t batches = 0;
    if (way == 1) return;   // destroyed at once
    for ([[maybe_unused]] auto& b : run) {
      ++batches;
      if (way == 2 && batches == 3) break;
      if (way == 3 && batches == 2) throw step_failed{};
    }
    if (way == 4) throw mr::data_error("the callable has not thrown", "It must");
  } catch (const step_failed&) {
  } catch (const mr::stage_error&) {
  }
}

/// Starts all threads that oneTBB will ever keep for sessions. Otherwise it starts them over a thousand sessions, which
/// is growth but not a leak.
void fill_thread_pool() {
  constexpr int threads = 31;
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads + 1);
  tbb::task_arena arena(threads, 0);
  std::atomic<int> started{0}, ended{0};
  for (int i = 0; i < threads; ++i)
    arena.enqueue([&] {
      ++started;
      for (int ms = 0; started < threads && ms < 120'000; ++ms)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++ended;
    });
  while (ended < threads) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void sessions(const std::string& folder, std::uint64_t count) {
  fill_thread_pool();
  reporter to(count);
  const auto texts = [&](bool throws) {
    return mr::shards(folder + "/t-0.tar", {.notice = mr::quiet}) | mr::shuffle({.window = 300}) |
           mr::map([throws](const mr::record& r) {
             if (throws && r.key() == "k777") throw std::runtime_error("a callable that throws");
             return as_row(r);
           }) |
           mr::batch<&text_row::bytes>({.size = 128});
  };
  const auto streamed = [&](bool throws) {
    return mr::shards(folder + "/t-{0,1}.tar", {.index = mr::index::off}) | mr::map([throws](const mr::record& r) {
             if (throws && r.key() == "k2777") throw std::runtime_error("a callable that throws");
             return as_row(r);
           }) |
           mr::batch<&text_row::bytes>({.size = 128});
  };
  const auto with_random = [&](bool throws) {
    return mr::shards(folder + "/p-0.tar", {.notice = mr::quiet}) |
           mr::map([throws](const mr::record& r, mr::rng& random) {
             if (throws && r.key() == "p77") throw std::runtime_error("a callable that throws");
             return draw(r, random);
           }) |
           mr::batch<&picture_row::pixels>({.size = 64});
  };
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t way = i / 3 % 5;
    if (i % 3 == 0) use(texts, way);
    else if (i % 3 == 1) use(streamed, way);
    else use(with_random, way);
    to.at(i + 1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  try {
    if (what == "data" && argc == 3) return write_data(argv[2]), 0;
    if (argc != 4) return 2;
    const std::uint64_t count = std::stoull(argv[3]);
    if (what == "samples") samples(argv[2], count);
    else if (what == "stream") stream(argv[2], count);
    else if (what == "pictures") pictures(argv[2], count);
    else if (what == "sessions") sessions(argv[2], count);
    else return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
