// Data with huge declared sizes: an error that names the limit, before memory is allocated for them.
#include "../../tar_bytes.hpp"

#include <millrace/base/crc32c.hpp>
#include <millrace/base/json_objects.hpp>
#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/image/picture/picture.hpp>
#include <millrace/io/index/format/index_file.hpp>
#include <millrace/item/position.hpp>
#include <millrace/item/tensor/array.hpp>
#include <millrace/sources/keys_from.hpp>
#include <millrace/sources/lines.hpp>
#include <millrace/sources/list/sidecar_counts.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <limits>
#include <new>

#include <malloc.h>
#include <sys/stat.h>

namespace mr = millrace;

namespace {

std::atomic<std::size_t> held_bytes{0}, peak_bytes{0};

void* counted(void* memory) {
  if (!memory) throw std::bad_alloc();
  const std::size_t now = held_bytes += ::malloc_usable_size(memory);
  for (std::size_t peak = peak_bytes; peak < now && !peak_bytes.compare_exchange_weak(peak, now);) {
  }
  return memory;
}

void discounted(void* memory) noexcept {
  if (memory) held_bytes -= ::malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) { return counted(std::malloc(size)); }
void* operator new[](std::size_t size) { return counted(std::malloc(size)); }
void* operator new(std::size_t size, std::align_val_t align) {
  const auto a = static_cast<std::size_t>(align);
  return counted(std::aligned_alloc(a, (size + a - 1) / a * a));
}
void operator delete(void* memory) noexcept { discounted(memory); }
void operator delete[](void* memory) noexcept { discounted(memory); }
void operator delete(void* memory, std::size_t) noexcept { discounted(memory); }
void operator delete[](void* memory, std::size_t) noexcept { discounted(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { discounted(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { discounted(memory); }

namespace hostile {

using namespace tar_test;

constexpr std::size_t mib = std::size_t{1} << 20;

/// The error of an action, and its peak memory.
struct measured {
  std::string error{};
  std::size_t peak = 0;

  bool says(std::string_view words) const { return error.find(words) != std::string::npos; }
};

template <class Action>
measured measure(const Action& action) {
  measured m;
  const std::size_t before = held_bytes;
  peak_bytes = before;
  try {
    action();
  } catch (const mr::error& e) {
    m.error = e.what();
  } catch (const std::exception& e) {
    m.error = std::string("not of Millrace: ") + e.what();
  }
  m.peak = peak_bytes - before;
  return m;
}

measured read_all(std::string tar, mr::shard_reader_options options = {}) {
  auto source = std::make_unique<memory_source>(std::move(tar));
  mr::block_pool pool;
  return measure([&] {
    mr::shard_reader reader(std::move(source), pool, std::move(options));
    while (reader.next()) {
    }
  });
}

std::string base_256(std::uint64_t size_bytes) {
  std::string field(12, '\0');
  field[0] = static_cast<char>(0x80);
  for (std::size_t i = 0; i < 8; ++i) field[11 - i] = static_cast<char>(size_bytes >> (8 * i) & 255);
  return field;
}

/// A sample, then a member with a declared size.
std::string claiming(std::uint64_t size_bytes) {
  return file("a.cls", "1") + block({.name = "b.bin", .raw_size = base_256(size_bytes)}) + std::string(2048, 'x');
}

constexpr std::uint64_t any = std::numeric_limits<std::uint64_t>::max();

}  // namespace hostile

using hostile::measured, hostile::measure, hostile::mib;

TEST_CASE("a member that is declared larger than the shard allocates no memory") {
  struct claim {
    std::uint64_t size_bytes, max_member_bytes;
    const char* error;
  };
  for (const claim& c : {claim{std::uint64_t{1} << 60, std::uint64_t{1} << 30, "Raise max_member_bytes"},
                         claim{std::uint64_t{1} << 60, hostile::any, "Raise max_sample_bytes"},
                         claim{(std::uint64_t{1} << 30) + 1, std::uint64_t{1} << 30, "expected at most 1073741824"},
                         claim{std::uint64_t{1} << 30, std::uint64_t{1} << 30, "extend beyond the end of the file"}}) {
    CAPTURE(c.size_bytes);
    const mr::shard_reader_options options{.limits = {.max_member_bytes = c.max_member_bytes}};
    const measured plain = hostile::read_all(hostile::claiming(c.size_bytes), options);
    CHECK_MESSAGE(plain.says(c.error), plain.error);
    CHECK(plain.peak < 4 * mib);
    for (const std::string tool : {"gzip", "zstd"}) {
      if (!tar_test::have(tool)) continue;
      const std::string tar = tar_test::through(tool + " -c", hostile::claiming(c.size_bytes));
      const measured packed = hostile::read_all(tar, options);
      CHECK_MESSAGE(!packed.error.empty(), tool);
      CHECK(packed.peak < 4 * mib);
    }
  }
  const mr::shard_reader_options no_limits{
      .limits = {.max_member_bytes = hostile::any, .max_sample_bytes = hostile::any}};
  for (const std::uint64_t size : {std::uint64_t{1} << 60, std::uint64_t{1} << 50, std::uint64_t{1} << 40}) {
    const measured all = hostile::read_all(hostile::claiming(size), no_limits);
    CHECK_MESSAGE(all.says("beyond the end of the file"), all.error);
    CHECK(all.peak < 4 * mib);
    const measured passed_over = hostile::read_all(hostile::claiming(size), {.fields = {"cls"}});
    CHECK_MESSAGE(passed_over.says("truncated payload"), passed_over.error);
    CHECK(passed_over.peak < 4 * mib);
  }
}

TEST_CASE("a sample of too many bytes or fields is an error that names the option") {
  using tar_test::file;
  std::string tar;
  for (int i = 0; i < 5; ++i) tar += file("a.f" + std::to_string(i), std::string(1000, 'x'));
  tar += tar_test::end_marker();
  CHECK(hostile::read_all(tar, {.limits = {.max_sample_bytes = 5'010}}).error.empty());
  CHECK(hostile::read_all(tar, {.limits = {.max_sample_bytes = 5'009}}).says("Raise max_sample_bytes"));
  CHECK(hostile::read_all(tar, {.limits = {.max_fields = 5}}).error.empty());
  CHECK(hostile::read_all(tar, {.limits = {.max_fields = 4}}).says("Raise max_fields"));
  tar_test::memory_source source(tar);
  mr::detail::shard_index index = mr::detail::scan_shard(source, tar_test::shared_pool());
  const auto by_index = [&](mr::detail::indexed_reader_options options) {
    mr::detail::indexed_reader reader(source, index, tar_test::shared_pool(), std::move(options));
    return measure([&] { (void)reader.read_one(0); });
  };
  CHECK(by_index({.limits = {.max_sample_bytes = 5'010, .max_fields = 5}}).error.empty());
  CHECK(by_index({.limits = {.max_sample_bytes = 5'009}}).says("Raise max_sample_bytes"));
  CHECK(by_index({.limits = {.max_fields = 4}}).says("Raise max_fields"));
  std::string many;
  for (int i = 0; i <= 16'384; ++i) many += file("a." + std::to_string(i), "");
  CHECK(hostile::read_all(many + tar_test::end_marker()).says("expected at most 16384"));
}

TEST_CASE("extended headers without an end: an error, no memory, no stack") {
  const std::string gnu("ustar  \0", 8);
  const std::string name = tar_test::block({.name = "././@LongLink", .size_bytes = 2, .type = 'L', .magic = gnu}) +
                           tar_test::padded(std::string("x\0", 2));
  const std::string pax = tar_test::pax(tar_test::pax_record("mtime", "1"));
  // An old GNU sparse file whose map continues in block after block.
  const std::string entry = tar_test::octal(1, 11) + '\0' + tar_test::octal(0, 11) + '\0';
  std::string sparse = tar_test::block({.name = "b.bin", .type = 'S', .magic = gnu}), map;
  sparse.replace(386, entry.size(), entry);
  sparse[482] = 1;   // the map continues
  tar_test::put_checksum(sparse, 0);
  for (int i = 0; i < 21; ++i) map += entry;
  map.resize(512, '\0');
  map[504] = 1;
  struct chain {
    std::string begin, link;
  };
  for (const chain& c : {chain{"", name}, chain{"", pax}, chain{sparse, map}}) {
    std::string tar = tar_test::file("a.cls", "1") + c.begin;
    while (tar.size() < 32 * mib) tar += c.link;
    const measured m = hostile::read_all(tar + tar_test::file("b.cls", "2") + tar_test::end_marker());
    CHECK_MESSAGE(m.says("has a m"), m.error);
    // libarchive has its own limits for the others.
    if (c.link == map) CHECK_MESSAGE(m.says("more than 8 MiB of headers"), m.error);
    CHECK(m.peak < 40 * mib);
  }
  const measured claims = hostile::read_all(
      tar_test::file("a.cls", "1") +
      tar_test::block({.name = "x", .type = 'x', .raw_size = hostile::base_256(std::uint64_t{1} << 40)}) +
      std::string(4096, 'x'));
  CHECK(!claims.error.empty());
  CHECK(claims.peak < 4 * mib);
}

TEST_CASE("a decompression bomb ends at max_expansion, in shards and in files of lines") {
  const std::string zeros = tar_test::file("a.cls", "1") +
                            tar_test::block({.name = "a.bin", .size_bytes = 80 * mib}) + std::string(80 * mib, '\0') +
                            tar_test::end_marker();
  for (const std::string tool : {"zstd", "xz", "bzip2", "gzip", "lz4"}) {
    if (!tar_test::have(tool)) {
      MESSAGE("skipped: no " << tool);
      continue;
    }
    CAPTURE(tool);
    const std::string packed = tar_test::through(tool + " -c", zeros);
    const bool beyond = zeros.size() / packed.size() > 1'100;
    const measured m = hostile::read_all(packed, {.fields = {"cls"}});
    CHECK_MESSAGE(m.says("Raise max_expansion") == beyond, m.error);
    CHECK(m.peak < 4 * mib);
    if (!beyond) continue;
    CHECK(hostile::read_all(packed, {.fields = {"cls"}, .limits = {.max_expansion = 1'000'000}}).error.empty());
    mr::block_pool pool;
    const std::string lines = tar_test::through(tool + " -c", std::string(80 * mib, '\n'));
    const auto read = [&](mr::line_reader_options options) {
      return measure([&] {
        mr::line_reader reader(std::make_unique<tar_test::memory_source>(lines), pool, options);
        while (reader.next()) {
        }
      });
    };
    CHECK(read({.skip_empty = true}).says("Raise max_expansion"));
    const std::string long_line = tar_test::through(tool + " -c", "a line\n" + std::string(80 * mib, ' '));
    const measured one_line = measure([&] {
      mr::line_reader reader(std::make_unique<tar_test::memory_source>(long_line), pool,
                             {.limits = {.max_line_bytes = 1 << 20}});
      while (reader.next()) {
      }
    });
    // The reader searches for the end of a line that is too long, and reaches the limit of the stream.
    CHECK_MESSAGE(one_line.says("Raise max_expansion"), one_line.error);   // the data after the line reveals it
    CHECK(one_line.peak < 64 * mib);
  }
  CHECK(hostile::read_all(zeros, {.limits = {.max_expansion = 0}}).says("max_expansion is out of range: got 0"));
}

TEST_CASE("an index whose counts or offsets are too large is damaged, and allocates no memory") {
  const temporary_folder folder;
  const std::string path = folder / "s.tar", index_path = mr::detail::index_path(path);
  {
    std::ofstream(path, std::ios::binary) << tar_test::small_shard().bytes();
    mr::file_source source(path);
    mr::detail::shard_index index = mr::detail::scan_shard(source, tar_test::shared_pool());
    index.identify(mr::detail::identify_shard(path));
    CHECK(mr::detail::store_index(index_path, index).written);
  }
  const auto identity = mr::detail::identify_shard(path);
  std::ostringstream file;
  file << std::ifstream(index_path, std::ios::binary).rdbuf();
  const std::string good = file.str();
  const auto state_of = [&](const auto& change) {
    std::string bytes = good;
    mr::detail::index_head head;
    std::memcpy(static_cast<void*>(&head), bytes.data(), sizeof head);
    change(head, bytes);
    head.body_checksum = mr::crc32c(std::as_bytes(std::span(bytes)).subspan(sizeof head));
    head.head_checksum = head.expected_head_checksum();
    std::memcpy(bytes.data(), &head, sizeof head);
    std::ofstream(index_path, std::ios::binary) << bytes;
    mr::detail::index_file_state state{};
    const measured m = measure([&] { state = mr::detail::load_index(index_path, identity).state; });
    CHECK_MESSAGE(m.error.empty(), m.error);
    CHECK(m.peak < mib);
    return state;
  };
  using mr::detail::index_head, mr::detail::index_file_state;
  CHECK(state_of([](index_head&, std::string&) {}) == index_file_state::good);
  CHECK(state_of([](index_head& h, std::string&) { h.counts.members = ~0U; }) == index_file_state::damaged);
  CHECK(state_of([](index_head& h, std::string&) { h.counts.samples = h.counts.members = ~0U; }) ==
        index_file_state::damaged);
  CHECK(state_of([](index_head& h, std::string&) { h.counts.key_bytes = ~0U; }) == index_file_state::damaged);
  CHECK(state_of([](index_head& h, std::string&) { h.counts.damage_bytes = ~0U; }) == index_file_state::damaged);
  const auto payload_block = [&](std::size_t member, std::uint32_t block) {
    return state_of([&](index_head& h, std::string& bytes) {
      std::memcpy(bytes.data() + sizeof h + 4 * (3 * h.counts.samples + member), &block, sizeof block);
    });
  };
  CHECK(payload_block(0, 1) == index_file_state::good);   // where it is
  CHECK(payload_block(5, 1'000'000) == index_file_state::damaged);
  CHECK(payload_block(5, 1) == index_file_state::damaged);   // in the place of the first
}

TEST_CASE("a new index is not written through a dangling link") {
  const temporary_folder folder;
  const std::string path = folder / "s.tar", elsewhere = folder / "elsewhere";
  std::ofstream(path, std::ios::binary) << tar_test::small_shard().bytes();
  mr::file_source source(path);
  mr::detail::shard_index index = mr::detail::scan_shard(source, tar_test::shared_pool());
  index.identify(mr::detail::identify_shard(path));
  std::filesystem::create_symlink(elsewhere, mr::detail::index_path(path));
  const measured m = measure([&] { (void)mr::detail::store_index(mr::detail::index_path(path), index); });
  CHECK_MESSAGE(m.says("cannot write the index"), m.error);
  CHECK(!std::filesystem::exists(elsewhere));
}

TEST_CASE("numbers in a field that are too large allocate no memory: arrays, images, resume points") {
  const auto npy = [](const std::string& shape) {
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }\n";
    std::string text = std::string("\x93NUMPY\x01\x00", 8);
    text += static_cast<char>(header.size() & 255);
    text += static_cast<char>(header.size() >> 8);
    return text + header + std::string(16, '\0');
  };
  for (const std::string shape : {"(4611686018427387904,)", "(1000000, 1000000)", "(4294967296, 4294967296, 4)",
                                  "(99999999999999999999,)", "(-1,)", "(1099511627776,)"}) {
    const std::string text = npy(shape);
    const measured m = measure([&] { (void)mr::array<float>(mr::bytes::borrowed(text, "npy")); });
    CHECK_MESSAGE(m.says("the field 'npy'"), m.error);
    CHECK(m.peak < mib);
  }

  mr::image pixels({16, 16, 3});
  std::vector<std::byte> jpeg = mr::encode_jpeg(pixels, {});
  for (std::size_t i = 0; i + 9 < jpeg.size(); ++i)
    if (jpeg[i] == std::byte{0xff} && (jpeg[i + 1] == std::byte{0xc0})) {
      const std::byte side[2]{std::byte{65'500 >> 8}, std::byte{65'500 & 255}};
      std::copy(side, side + 2, jpeg.begin() + static_cast<std::ptrdiff_t>(i) + 5);
      std::copy(side, side + 2, jpeg.begin() + static_cast<std::ptrdiff_t>(i) + 7);
    }
  CHECK(mr::read_jpeg_header(jpeg).width == 65'500);
  const auto file = mr::bytes::borrowed(jpeg, "jpg");
  const measured pixels_of = measure([&] { (void)mr::jpeg(file).pixels(); });
  CHECK_MESSAGE(pixels_of.says("Raise max_pixels"), pixels_of.error);
  CHECK(pixels_of.peak < mib);

  for (const std::string& start : {std::string("millrace"), std::string(), mr::to_text(mr::position{})}) {
    const std::string text = start + std::string(100 * mib, '1');
    const measured m = measure([&] { (void)mr::parse_position(text); });
    CHECK_MESSAGE(m.says("the resume text is not valid"), m.error);
    CHECK(m.error.size() < 1'000);
    CHECK(m.peak < mib);
  }
}

TEST_CASE("lists and sidecars: depth, members and sizes have limits") {
  const temporary_folder folder;
  const auto save = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder / name, std::ios::binary) << text;
    return folder / name;
  };
  const auto json = [](std::string text) {
    return measure([&] { mr::detail::json_objects(text, "x.json").for_each([](const auto&) {}); });
  };
  std::string deep, wide = "{";
  for (int i = 0; i < 1'000'000; ++i) deep += i % 2 == 0 ? "[" : "{\"\":";
  for (int i = 0; i < 1'100'000; ++i) wide += "\"\":0,";
  CHECK(json(deep).says("deeper than 64 levels"));
  CHECK(json(deep).peak < mib);
  CHECK(json(wide).says("more than 1,000,000 members"));
  CHECK(json(wide).peak < 256 * mib);
  CHECK(measure([&] { (void)mr::keys_from(save("deep.jsonl", deep + "\n")); }).says("not a JSON object"));

  const std::string shard = save("s.tar", "");
  const std::vector<std::string> shards{shard};
  std::filesystem::resize_file(save("sizes.json", "{}"), 65 * mib);
  const measured large = measure([&] { (void)mr::sidecar_counts(shards); });
  CHECK_MESSAGE(large.says("expected at most 67108864"), large.error);
  CHECK(large.peak < mib);
  std::filesystem::remove(folder / "sizes.json");
  REQUIRE(::mkfifo((folder / "sizes.json").c_str(), 0600) == 0);
  CHECK(!mr::sidecar_counts(shards)[0]);   // and does not wait for a writer
}
