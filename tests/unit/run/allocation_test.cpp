// The steady state allocates nothing per sample: every malloc of the process is counted, with its owner.
//
// A separate program, because its malloc replaces that of the entire process. An allocation belongs to the nearest of
// Millrace, libjpeg and libarchive on the stack: a callback that libarchive calls counts as ours, and so does an
// allocation of the standard library or of oneTBB for us. libjpeg's pools exist for one image and libarchive's buffers
// for one member; both libraries control theirs.
#include <millrace/image/jpeg/libjpeg/jpeg_decoder.hpp>
#include <millrace/io/tar/read/archive.hpp>
#include <millrace/millrace.hpp>

#include "../io/tar_bytes.hpp"

#include <doctest/doctest.h>

#if defined(__has_feature)
#define MILLRACE_TEST_HAS_FEATURE(x) __has_feature(x)
#else
#define MILLRACE_TEST_HAS_FEATURE(x) 0
#endif
#if !defined(__GLIBC__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    MILLRACE_TEST_HAS_FEATURE(address_sanitizer) || MILLRACE_TEST_HAS_FEATURE(thread_sanitizer)

TEST_CASE("the steady state allocates nothing per sample (not tested: malloc is a sanitizer's, or not glibc's)" *
          doctest::skip()) {}

#else

#include <dlfcn.h>
#include <execinfo.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

namespace mr = millrace;

namespace {

enum owner : std::size_t { ours, libjpeg, libarchive, owners };

std::atomic<bool> counting{false};
std::array<std::atomic<std::uint64_t>, owners> counts{};
std::array<const void*, owners> objects{};   // the address of each one's code; filled in before counting
thread_local bool inside = false;            // finding the owner may itself allocate
std::array<void*, 48> first_of_ours;         // the stack of the first one, for debugging
std::atomic<int> first_depth{0};

const void* object_of(const void* code) {
  Dl_info info{};
  return code && dladdr(code, &info) != 0 ? info.dli_fbase : nullptr;
}

/// False if one of the libraries is part of the program itself, or is missing.
bool find_objects() {
  static const char here = 0;
  objects = {object_of(&here), object_of(dlsym(RTLD_DEFAULT, "jpeg_CreateDecompress")),
             object_of(dlsym(RTLD_DEFAULT, "archive_read_new"))};
  return objects[libjpeg] && objects[libarchive] && objects[libjpeg] != objects[ours] &&
         objects[libarchive] != objects[ours];
}

/// The owner of the nearest frame; ours if none matches.
owner nearest_owner(std::span<void* const> frames) {
  for (void* const frame : frames) {
    const void* const object = object_of(frame);
    for (const owner o : {ours, libjpeg, libarchive})
      if (object == objects[o]) return o;
  }
  return ours;
}

[[gnu::noinline]] void record_allocation() noexcept {
  if (!counting.load(std::memory_order_relaxed) || inside) return;
  inside = true;
  constexpr std::size_t own_frames = 2;   // of this function and of the replacement of malloc
  decltype(first_of_ours) frames;
  const auto depth = static_cast<std::size_t>(backtrace(frames.data(), static_cast<int>(frames.size())));
  const owner caller = nearest_owner(std::span(frames).first(depth).subspan(std::min(own_frames, depth)));
  if (counts[caller].fetch_add(1, std::memory_order_relaxed) == 0 && caller == ours) {
    first_of_ours = frames;
    first_depth.store(static_cast<int>(depth));
  }
  inside = false;
}

}  // namespace

extern "C" {

void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* old, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

[[gnu::noinline]] void* malloc(std::size_t size) {
  record_allocation();
  return __libc_malloc(size);
}
[[gnu::noinline]] void* calloc(std::size_t count, std::size_t size) {
  record_allocation();
  return __libc_calloc(count, size);
}
[[gnu::noinline]] void* realloc(void* old, std::size_t size) {
  record_allocation();
  return __libc_realloc(old, size);
}
[[gnu::noinline]] void* memalign(std::size_t alignment, std::size_t size) {
  record_allocation();
  return __libc_memalign(alignment, size);
}
[[gnu::noinline]] void* aligned_alloc(std::size_t alignment, std::size_t size) {
  record_allocation();
  return __libc_memalign(alignment, size);
}
[[gnu::noinline]] int posix_memalign(void** to, std::size_t alignment, std::size_t size) {
  record_allocation();
  void* const block = __libc_memalign(alignment, size);
  if (!block) return 12;   // ENOMEM
  *to = block;
  return 0;
}

}  // extern "C"

namespace {

/// Keeps the compiler from leaving out an allocation that nothing uses.
void* used(void* memory) {
  asm volatile("" : : "r"(memory) : "memory");
  return memory;
}

using owner_counts = std::array<std::uint64_t, owners>;

/// The allocations during its lifetime.
class allocation_watch {
 public:
  allocation_watch() {
    for (auto& c : counts) c.store(0);
    counting.store(true);
  }
  ~allocation_watch() { counting.store(false); }
  owner_counts stop() {
    counting.store(false);
    owner_counts result;
    for (std::size_t o = 0; o < owners; ++o) result[o] = counts[o].load();
    return result;
  }
};

struct example {
  mr::picture pixels;
  std::int32_t label;
};

example prepare(const mr::record& r, mr::rng& random) {
  const auto quality = random.chance(0.5) ? mr::picture_quality::exact : mr::picture_quality::fast;
  return {mr::jpeg(r["jpg"], {.quality = quality}).random_resized_crop(16, random).random_flip(random),
          r["cls"].as<std::int32_t>()};
}

constexpr std::size_t batch_rows = 16;

/// One shard of images that differ in size and content.
std::string write_shard(const temporary_folder& folder, int samples) {
  mr::shard_writer shards({.pattern = folder / "steady-%d.tar", .max_samples = 1'000'000});
  std::vector<std::vector<std::byte>> pictures;
  for (std::size_t i = 0; i < 12; ++i) {
    mr::image picture({24 + i, 40 - i, 3});
    for (std::size_t at = 0; at < picture.span().size(); ++at)
      picture.span()[at] = static_cast<std::uint8_t>(at * (i + 1) / 7);
    // The built-in decoder decodes all but one, two of them in another way.
    const auto sampling = i == 5 ? mr::chroma_sampling::yuv411 : mr::chroma_sampling::yuv420;
    pictures.push_back(mr::encode_jpeg(picture, {.sampling = sampling, .progressive = i == 2 || i == 9}));
  }
  for (int i = 0; i < samples; ++i)
    shards.write("k" + std::to_string(i),
                 {{"jpg", pictures[static_cast<std::size_t>(i) % pictures.size()]}, {"cls", std::to_string(i)}});
  shards.close();
  return folder / "steady-0.tar";
}

struct allocation_counts {
  owner_counts first, second;   // in n batches, then in 2 n
};

/// Warms up in a first epoch, then counts in the second: inside one shard, so that no shard is opened meanwhile.
template <class Flow>
allocation_counts run_and_count(Flow flow, std::size_t shard_batches, std::size_t n, int threads) {
  mr::session run{std::move(flow), {.epochs = 2,
                                    .threads = threads,
                                    .io_threads = 1,
                                    .read_ahead_bytes = std::size_t{1} << 20,
                                    .notice = mr::quiet}};
  const auto pull = [&](std::size_t batches) {
    for (std::size_t i = 0; i < batches; ++i) {
      if (!run.next()) FAIL("the run ended early");
    }
  };
  pull(shard_batches);
  // All prefetched data exist now, so that there are never more later.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  pull(shard_batches / 4);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  allocation_counts result{};
  {
    allocation_watch watch;
    for (std::size_t i = 0; i < n; ++i) static_cast<void>(run.next());
    result.first = watch.stop();
  }
  {
    allocation_watch watch;
    for (std::size_t i = 0; i < 2 * n; ++i) static_cast<void>(run.next());
    result.second = watch.stop();
  }
  return result;
}

constexpr std::size_t counted_batches = 80;
/// The memory of threads, and so the number of blocks and of oneTBB's tasks, may grow a little at any time: by far
/// fewer than one per batch, and no more in twice as many batches.
constexpr std::size_t late_growth = counted_batches / 10;
constexpr std::size_t shard_batches = 4 * counted_batches + 40;

template <class Map>
auto flow_of(const std::string& shard, Map map) {
  return mr::shards(shard, {.seed = 3, .index = mr::index::off}) | mr::shuffle({.window = 64}) | mr::map(map) |
         mr::batch<&example::pixels, &example::label>({.size = batch_rows});
}

}  // namespace

TEST_CASE("every way to allocate is detected, with its owner") {
  if (!find_objects()) return;
  const auto seen_in = [&](auto&& allocate) {
    allocation_watch watch;
    allocate();
    return watch.stop();
  };
  std::vector<std::byte> file = mr::encode_jpeg(mr::image({8, 8, 3}));
  void* warm[4];
  backtrace(warm, 4);   // loads the unwinder on its first call
  CHECK(seen_in([&] { std::free(used(std::malloc(8))); })[ours] == 1);
  CHECK(seen_in([&] { std::free(used(std::calloc(2, 8))); })[ours] == 1);
  CHECK(seen_in([&] { std::free(used(std::realloc(nullptr, 8))); })[ours] == 1);
  CHECK(seen_in([&] { std::free(used(std::aligned_alloc(64, 64))); })[ours] == 1);
  CHECK(seen_in([&] { delete static_cast<int*>(used(new int)); })[ours] == 1);
  constexpr std::align_val_t line{64};
  CHECK(seen_in([&] { ::operator delete(used(::operator new(64, line)), line); })[ours] == 1);
  CHECK(seen_in([] { std::string(100, 'x').shrink_to_fit(); })[ours] >= 1);
  const auto decoding = seen_in([&] {
    mr::detail::jpeg_decoder decoder;
    const std::span<const std::byte> bytes(file);
    decoder.open(bytes, {});
    decoder.abandon();
  });
  CHECK(decoding[ours] == 0);
  CHECK(decoding[libjpeg] > 0);
  const auto opening = seen_in([] { mr::detail::open_archive_reader(); });
  CHECK(opening[ours] == 0);
  CHECK(opening[libarchive] > 0);
}

TEST_CASE("the steady state allocates nothing per sample, apart from libjpeg and libarchive") {
  if (!find_objects()) {
    MESSAGE("libjpeg or libarchive is part of this program, so that the owner of an allocation is unknown");
    return;
  }
  const temporary_folder folder;
  const std::string shard = write_shard(folder, static_cast<int>(shard_batches * batch_rows));
  for (const int threads : {0, 1, 2}) {
    allocation_counts result = run_and_count(flow_of(shard, prepare), shard_batches, counted_batches, threads);
    // On a busy machine the prefetched data may grow late. Allocations per sample show in each of five runs.
    for (int again = 1; again < 5 && std::max(result.first[ours], result.second[ours]) > late_growth; ++again)
      result = run_and_count(flow_of(shard, prepare), shard_batches, counted_batches, threads);
    CAPTURE(threads);
    MESSAGE(threads << " workers, " << counted_batches * batch_rows << " and then twice as many samples: ours "
                    << result.first[ours] << ", " << result.second[ours] << "; libjpeg "
                    << result.first[libjpeg] << ", " << result.second[libjpeg] << "; libarchive "
                    << result.first[libarchive] << ", " << result.second[libarchive]);
    if (std::max(result.first[ours], result.second[ours]) > late_growth)
      backtrace_symbols_fd(first_of_ours.data(), first_depth.load(), 2);
    CHECK(result.first[ours] <= late_growth);
    CHECK(result.second[ours] <= late_growth);
    CHECK(result.second[libjpeg] > 2 * counted_batches * batch_rows / 12);   // one in twelve is 4:1:1
  }
}

TEST_CASE("one string per sample would be detected") {
  if (!find_objects()) return;
  const temporary_folder folder;
  const std::string shard = write_shard(folder, static_cast<int>(shard_batches * batch_rows));
  const auto wasteful = [](const mr::record& r, mr::rng& random) {
    const std::string copy(r["jpg"].text());
    return prepare(r, random);
  };
  const allocation_counts result = run_and_count(flow_of(shard, wasteful), shard_batches, counted_batches, 1);
  const std::size_t samples = 2 * counted_batches * batch_rows;
  CHECK(result.second[ours] >= samples / 2);
}

#endif
