// A flow on every number of workers and ranks, and resumed after 50 random batches: the rows must be the same.
//
//   row_matrix::check([&](std::size_t rows) { return mr::shards(...) | ... | mr::batch<example>({.size = rows}); },
//                     {.frozen = 1234});
//
// The flow must have an exact order. For a flow that is streamed, check_streamed() compares each rank with itself.
#include "../../temporary_folder.hpp"
#include "../image/png/png_files.hpp"
#include "quiet_sessions.hpp"

#include <millrace/base/digest.hpp>
#include <millrace/image/labels/u16_picture.hpp>
#include <millrace/image/picture/mosaic_picture.hpp>
#include <millrace/image/picture/patch_list.hpp>
#include <millrace/image/picture/picture_list.hpp>
#include <millrace/image/picture/ragged_picture.hpp>
#include <millrace/image/png/png.hpp>
#include <millrace/image/png/png_encoder.hpp>
#include <millrace/io/tar/write/shard_writer.hpp>
#include <millrace/item/world.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/sources/shards.hpp>
#include <millrace/sources/token_files.hpp>
#include <millrace/stages/expand.hpp>
#include <millrace/stages/map.hpp>
#include <millrace/stages/pack.hpp>
#include <millrace/stages/shuffle.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace mr = millrace;

namespace row_matrix {

constexpr std::size_t global_batch = 12;

struct matrix_options {
  std::uint64_t frozen = 0;   // digest of all rows
  std::uint64_t epochs = 2;
  std::uint64_t epoch_batches = 0;
  int resumes = 50;
};

/// Row `i` of a column, without padding.
template <class View>
std::uint64_t row_digest(const View& v, std::size_t i, std::uint64_t seed) {
  using mr::detail::digest_bytes;
  if constexpr (requires { v.sizes; }) {
    const auto height = static_cast<std::size_t>(v.sizes(i, 0)), width = static_cast<std::size_t>(v.sizes(i, 1));
    for (std::size_t y = 0; y < height; ++y)
      seed = digest_bytes(std::as_bytes(std::span(&v.values(i, y, 0, 0), width * 3)), seed);
    return seed;
  } else if constexpr (requires { v[i].span(); }) {
    const auto row = v[i];
    return digest_bytes(std::as_bytes(row.span()), seed + row.shape[0]);
  } else {
    return digest_bytes(std::as_bytes(std::span(&v[i], 1)), seed);
  }
}

struct conduct {
  int threads = 2;
  mr::world world{};
  std::string resume{};
};

struct outcome {
  std::map<std::uint64_t, std::uint64_t> rows{};   // digests by global position
  std::vector<std::uint64_t> last{};               // of each batch, the position after it
  std::vector<std::string> points{};
  std::uint64_t digest = 0;

  std::uint64_t sum() const {
    std::uint64_t all = 0;
    for (const auto& [position, row] : rows) all += row * (2 * position + 1);
    return all;
  }
};

template <class Make>
outcome run(const Make& make, const matrix_options& m, const conduct& c) {
  auto options = quiet(c.threads, m.epochs);
  options.epoch_batches = m.epoch_batches;
  options.world = c.world;
  options.resume = c.resume;
  mr::session session{make(global_batch / c.world.size), options};
  outcome all;
  for (auto& b : session) {
    const std::uint64_t first = (b.epoch() * 10'000 + b.step()) * global_batch;
    const auto columns = b.columns();
    for (std::size_t i = 0; i < b.size(); ++i) {
      std::uint64_t digest = 0;
      std::apply([&](const auto&... view) { ((digest = row_digest(view, i, digest)), ...); }, columns);
      all.rows[first + i * c.world.size + c.world.rank] = digest;
    }
    all.last.push_back(first + global_batch);
    all.points.push_back(b.resume_text());
  }
  all.digest = session.stats().digest;
  return all;
}

/// Whether the rows of `part` are those of `full` that one rank has from position `from` on.
inline bool is_rest(const outcome& part, const outcome& full, std::uint64_t from, const mr::world& of) {
  std::map<std::uint64_t, std::uint64_t> expected;
  for (auto row = full.rows.lower_bound(from); row != full.rows.end(); ++row)
    if (row->first % of.size == of.rank) expected.insert(*row);
  return part.rows == expected;
}

template <class Make>
void check(const Make& make, const matrix_options& m) {
  const outcome alone = run(make, m, {.threads = 0});
  CHECK(alone.sum() == m.frozen);
  REQUIRE(alone.points.size() >= 6);
  for (const int threads : {1, 4}) {
    const outcome other = run(make, m, {.threads = threads});
    CHECK((other.rows == alone.rows && other.points == alone.points && other.digest == alone.digest));
  }
  for (const std::size_t ranks : {2U, 3U, 4U, 6U}) {
    CAPTURE(ranks);
    std::uint64_t digest = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const mr::world world{.rank = rank, .size = ranks};
      const outcome part = run(make, m, {.threads = static_cast<int>(rank % 3), .world = world});
      CHECK(is_rest(part, alone, 0, world));
      digest += part.digest;
    }
    CHECK(digest == alone.digest);
  }
  static constexpr std::size_t worlds[] = {1, 2, 3, 4, 6};
  mr::rng random({.seed = 12});
  for (int turn = 0; turn < m.resumes; turn += static_cast<int>(stride(5))) {
    const std::size_t cut = random.below(alone.points.size() - 1), size = worlds[random.below(5)];
    const mr::world world{.rank = random.below(size), .size = size};
    CAPTURE(cut);
    CAPTURE(world.size);
    const outcome rest = run(make, m, {.threads = turn % 3, .world = world, .resume = alone.points[cut]});
    REQUIRE(is_rest(rest, alone, alone.last[cut], world));
    if (size == 1) CHECK(rest.points.back() == alone.points.back());
  }
}

/// A streamed flow: each rank has its own rows, whatever the number of workers, and resumes after each of its batches.
template <class Make>
void check_streamed(const Make& make, const matrix_options& m) {
  mr::rng random({.seed = 13});
  std::uint64_t sum = 0;
  for (const std::size_t ranks : {1U, 2U, 3U, 4U, 6U})
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      CAPTURE(ranks);
      CAPTURE(rank);
      const mr::world world{.rank = rank, .size = ranks};
      const outcome full = run(make, m, {.threads = 0, .world = world});
      const outcome other = run(make, m, {.threads = 1 + static_cast<int>(rank % 4), .world = world});
      CHECK((other.rows == full.rows && other.points == full.points && other.digest == full.digest));
      sum = sum * 3 + full.sum();
      REQUIRE(full.points.size() >= 4);
      const int resumes = (m.resumes + static_cast<int>(ranks) - 1) / static_cast<int>(ranks);
      for (int turn = 0; turn < resumes; turn += static_cast<int>(stride(5))) {
        const std::size_t cut = random.below(full.points.size() - 1);
        CAPTURE(cut);
        const outcome rest = run(make, m, {.threads = turn % 3, .world = world, .resume = full.points[cut]});
        REQUIRE(is_rest(rest, full, full.last[cut], world));
        CHECK(rest.points.back() == full.points.back());
      }
    }
  CHECK(sum == m.frozen);
}

}  // namespace row_matrix

// Columns of images and sources with random access.
namespace {

/// Records with 0 to 4 images of different sizes, and one of 16 bits. All are PNGs, whose pixels are frozen.
std::string write_matrix_shards(const temporary_folder& folder, int samples, std::size_t per_shard) {
  mr::shard_writer shards({.pattern = folder / "m-%d.tar", .max_samples = per_shard});
  for (int n = 0; n < samples; ++n) {
    std::vector<std::vector<std::byte>> files;
    std::vector<std::string> names;
    for (int i = 0; i < n % 5; ++i) {
      mr::image pixels({static_cast<std::size_t>(6 + (n + i) % 9), static_cast<std::size_t>(8 + n % 7), 3});
      for (std::size_t at = 0; at < pixels.size(); ++at)
        pixels.data()[at] = static_cast<std::uint8_t>(at * static_cast<std::size_t>(3 + n + i) >> 2);
      files.push_back(mr::encode_png(pixels));
      names.push_back(std::to_string(9 + i) + ".png");
    }
    const slow::png_kind wide{.width = 9, .height = static_cast<std::size_t>(5 + n % 3), .color = 2, .depth = 16};
    const auto flow = slow::make_png(slow::random_samples(wide, static_cast<std::uint64_t>(n)));
    const std::string number = std::to_string(n);
    std::vector<mr::named_bytes> fields{{"n", number}, {"flow", flow}};
    for (std::size_t i = 0; i < files.size(); ++i) fields.push_back({names[i], files[i]});
    shards.write("k" + number, fields);
  }
  shards.close();
  return folder / "m-*.tar";
}

struct image_columns {
  mr::picture_list pictures;
  mr::patch_list patches;
  mr::ragged_picture largest;
  mr::u16_picture flow;
  mr::normalized_u16_picture<mr::f16> motion;
};

image_columns all_columns(const mr::record& r, mr::rng& rng) {
  std::vector<mr::picture> scaled, native;
  const std::vector<mr::bytes> files = r.fields("*.png");
  for (const mr::bytes& file : files) {
    const mr::picture p = mr::png(file);
    scaled.push_back(p.random_resized_crop({.width = 6, .height = 4}, rng).random_flip(rng));
    native.push_back(mr::resize_to_patches(p, {.patch = 4, .max_patches = 6}));
  }
  const mr::picture wide = mr::png(r["flow"]);
  const mr::u16_picture flow = wide.u16().apply(wide.random_resized_crop({.width = 4, .height = 4}, rng).geometry());
  const std::size_t side = 4 + rng.below(5);
  return {mr::picture_list(scaled, {.max_pictures = 4, .size = {.width = 6, .height = 4}}),
          mr::patch_list(native, {.patch = 4, .max_patches = 24}),
          mr::ragged_picture((files.empty() ? wide : mr::png(files[0])).letterbox({.width = side, .height = side}),
                             {.max = {.width = 8, .height = 8}}),
          flow, mr::normalized_u16_picture<mr::f16>(flow, {.mean = {32'768, 0, 0}, .std = {64, 1'000, 7}})};
}

struct mosaic_row {
  mr::mosaic_picture pixels;
};
mosaic_row mosaic_of(const std::vector<mr::record>& list, mr::rng& rng) {
  const auto image = [&](std::size_t i) { return mr::png(list[i % list.size()]["flow"]); };
  return {mr::mosaic_picture({image(0), image(1), image(2), image(3)}, {.size = {.width = 12, .height = 10}}, rng)};
}

struct scaled_row {
  mr::ragged_picture pixels;
};
struct each_scaled {
  using output = scaled_row;
  std::size_t max_outputs(const std::vector<scaled_row>& list) const { return list.size(); }
  void push(std::vector<scaled_row> list, auto& emit) const {
    for (scaled_row& s : list) emit(std::move(s));
  }
};
/// One size for all images of a list.
std::vector<scaled_row> scaled_rows(const std::vector<mr::record>& list, mr::rng& rng) {
  const std::size_t side = 4 + rng.below(5);
  std::vector<scaled_row> all;
  for (const mr::record& r : list)
    all.push_back({mr::ragged_picture(mr::png(r["flow"]).resize(side, side), {.max = {.width = 8, .height = 8}})});
  return all;
}

std::size_t cost_of_record(const mr::record&) { return 1; }

template <class T>
std::string stored_numbers(std::initializer_list<std::uint64_t> values) {
  std::string bytes;
  for (const std::uint64_t value : values) {
    const auto number = static_cast<T>(value);
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  return bytes;
}

std::string tokens_from(std::uint64_t first, std::size_t count, std::size_t bytes) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t k = 0; k < bytes; ++k) all += static_cast<char>((first + 257 * i) >> 8 * k);
  return all;
}

void save_tokens(const std::string& name, const std::string& bytes) {
  std::ofstream(name, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// Files of llm.c, of NumPy and of Megatron, and a flat one: 60 + 60 + 60 + 60 tokens.
std::vector<std::string> write_foreign_tokens(const temporary_folder& folder) {
  const std::vector<std::string> names{folder / "gpt2.bin", folder / "ids.npy", folder / "corpus.bin",
                                       folder / "a.u32"};
  save_tokens(names[0],
              stored_numbers<std::uint32_t>({20240520, 1, 60}) + std::string(1012, '\0') + tokens_from(300, 60, 2));
  std::string header = "{'descr': '<i8', 'fortran_order': False, 'shape': (60,), }";
  header.resize(117, ' ');
  save_tokens(names[1], "\x93NUMPY\1" + std::string(1, '\0') + stored_numbers<std::uint16_t>({118}) + header + "\n" +
                            tokens_from(5'000, 60, 8));
  save_tokens(names[2], tokens_from(20'000, 60, 4));
  // Documents of 7, 13, 0, 30 and 10 tokens, in one sequence each.
  save_tokens(folder / "corpus.idx", std::string("MMIDIDX\0\0", 9) + stored_numbers<std::uint64_t>({1}) + "\4" +
                                         stored_numbers<std::uint64_t>({5, 6}) +
                                         stored_numbers<std::uint32_t>({7, 13, 0, 30, 10}) +
                                         stored_numbers<std::uint64_t>({0, 28, 80, 80, 200, 0, 1, 2, 3, 4, 5}));
  save_tokens(names[3], tokens_from(100'000, 60, 4));
  return names;
}

struct matrix_element {
  std::int32_t n;
  double draw;
};

}  // namespace

TEST_CASE("lists of images, patches, letterboxes and 16-bit images: the same rows on all workers, ranks and resumes") {
  const temporary_folder folder;
  const std::string shards = write_matrix_shards(folder, 126, 40);
  row_matrix::check(
      [&](std::size_t rows) {
    return mr::shards(shards, {.seed = 5}) | mr::shuffle({.window = 60}) | mr::map(all_columns) |
           mr::batch<image_columns>({.size = rows});
      },
      {.frozen = 16360557435274233311U});
}

TEST_CASE("mosaics, and batches of one size each: the same rows of each rank on all workers and resumes") {
  const temporary_folder folder;
  const std::string shards = write_matrix_shards(folder, 240, 20);
  const auto source = [&] { return mr::shards(shards, {.seed = 5}) | mr::shuffle({.window = 30}); };
  row_matrix::check_streamed(
      [&](std::size_t rows) {
    return source() | mr::pack(cost_of_record, {.max_cost = 4}) | mr::map(mosaic_of) |
           mr::batch<mosaic_row>({.size = rows});
      },
      {.frozen = 16764693037887753631U, .epoch_batches = 10});
  row_matrix::check_streamed(
      [&](std::size_t rows) {
    return source() | mr::pack(cost_of_record, {.max_cost = rows}) | mr::map(scaled_rows) | mr::expand(each_scaled{}) |
           mr::batch<scaled_row>({.size = rows});
      },
      {.frozen = 17982710521352306689U, .epoch_batches = 12, .resumes = 20});
}

TEST_CASE("tokens of llm.c, NumPy and Megatron, and a range: the same rows on all workers, ranks and resumes") {
  const temporary_folder folder;
  const auto names = write_foreign_tokens(folder);
  for (const std::size_t window : {std::size_t{1}, std::size_t{1'000}}) {
    CAPTURE(window);
    row_matrix::check(
        [&](std::size_t rows) {
      return mr::token_files(names, {.length = 5, .stride = 2, .seed = 3}) | mr::shuffle({.window = window}) |
             mr::batch<&mr::packed::ids>({.size = rows});
        },
        {.frozen = window == 1 ? 6898052230766050181U : 7720907933879800501U});
    row_matrix::check(
        [&](std::size_t rows) {
      return mr::from(numbers(130), {.seed = 4}) | mr::shuffle({.window = window}) | mr::map([](int n, mr::rng& rng) {
               return matrix_element{n, rng.uniform()};
             }) |
             mr::batch<&matrix_element::n, &matrix_element::draw>({.size = rows});
        },
        {.frozen = window == 1 ? 11731520401706876867U : 11983529979801387803U});
  }
}

TEST_CASE("documents of Megatron are packed once a pass, by every rank, and resume after each batch") {
  const temporary_folder folder;
  std::vector<std::string> names;
  for (int f = 0; f < 12; ++f) {
    names.push_back(folder / ("c" + std::to_string(f) + ".bin"));
    save_tokens(names.back(), tokens_from(static_cast<std::uint64_t>(1'000 * f), 60, 4));
    save_tokens(folder / ("c" + std::to_string(f) + ".idx"),
                std::string("MMIDIDX\0\0", 9) + stored_numbers<std::uint64_t>({1}) + "\4" +
                    stored_numbers<std::uint64_t>({5, 6}) + stored_numbers<std::uint32_t>({7, 13, 0, 30, 10}) +
                    stored_numbers<std::uint64_t>({0, 28, 80, 80, 200, 0, 1, 2, 3, 4, 5}));
  }
  row_matrix::check_streamed(
      [&](std::size_t rows) {
    return mr::token_files(names, {.seed = 2, .documents = true}) | mr::shuffle({.window = 24}) |
           mr::pack({.length = 9, .separator = 7}) | mr::batch<&mr::packed::ids>({.size = rows});
      },
      {.frozen = 13702683676265006187U, .epoch_batches = 12});
}
