// Images of different sizes in one batch, through complete runs: rows are as large as the batch's largest image. Audio
// of different lengths.
#include "../../copying_device.hpp"
#include "../../temporary_folder.hpp"
#include "../audio/wav_files.hpp"
#include "../image/slow_pictures.hpp"
#include "quiet_sessions.hpp"

#include <millrace/audio.hpp>
#include <millrace/base/digest.hpp>
#include <millrace/image/picture/mosaic_picture.hpp>
#include <millrace/image/picture/ragged_picture.hpp>
#include <millrace/image/png/png.hpp>
#include <millrace/image/png/png_encoder.hpp>
#include <millrace/item/tensor/ragged.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/stages/bucket.hpp>
#include <millrace/stages/expand.hpp>
#include <millrace/stages/map.hpp>
#include <millrace/stages/pack.hpp>
#include <millrace/stages/to_device.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace mr = millrace;

namespace {

constexpr mr::rgb_color gray_blue{10, 20, 30};
constexpr mr::ragged_picture_options options{.max = {.width = 40, .height = 30}, .multiple_of = 8, .color = gray_blue};

struct example {
  mr::ragged_picture pixels;
  std::int32_t number;
  mr::ragged<float, 2> boxes;
  mr::ragged_picture thumbnail;
  std::int32_t kind;   // 1: upright, 2: wide
};

mr::picture_size size_of(int number) {
  const auto n = static_cast<std::size_t>(number);
  return {.width = 3 + n * 7 % 38, .height = 2 + n * 5 % 29};
}

mr::image image_of(int number) {
  const mr::picture_size size = size_of(number);
  return slow::photo(size.height, size.width, 3, static_cast<std::uint64_t>(number));
}

/// An image that is kept with its bytes.
mr::picture picture_of(int number) {
  static mr::block_pool pool;
  return mr::png(pool.copy(mr::encode_png(image_of(number))));
}

example prepare(int number, const std::set<int>& bad) {
  if (bad.contains(number)) throw mr::data_error("bad", "Leave it out");
  const mr::picture p = picture_of(number);
  const auto rows = static_cast<std::size_t>(number % 4);
  return {mr::ragged_picture(p, options), number,
          mr::ragged(mr::tensor<float, 2>({rows, 4}, std::vector<float>(4 * rows, 0.5F)), {.max_length = 5}),
          mr::ragged_picture(p.resize(2 + rows, 5), {.max = {.width = 6, .height = 6}}),
          p.width() > p.height() ? 2 : 1};
}

/// Expects these images in `view`, padded by `color` to the largest of them, rounded up.
void check_rows(const mr::sized_view<std::uint8_t, 4>& view, const std::vector<mr::image>& pictures,
                const mr::ragged_picture_options& o) {
  std::size_t height = 0, width = 0;
  for (const mr::image& p : pictures) {
    height = std::max(height, p.shape()[0]);
    width = std::max(width, p.shape()[1]);
  }
  const auto up = [&](std::size_t side) { return (side + o.multiple_of - 1) / o.multiple_of * o.multiple_of; };
  REQUIRE(view.values.shape[0] == pictures.size());
  REQUIRE(view.values.shape[1] == std::min(up(height), o.max.height));
  REQUIRE(view.values.shape[2] == std::min(up(width), o.max.width));
  REQUIRE(view.values.shape[3] == 3);
  REQUIRE(view.sizes.shape == std::array<std::size_t, 2>{pictures.size(), 2});
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const auto [h, w, channels] = pictures[i].shape();
    REQUIRE(static_cast<std::size_t>(view.sizes(i, 0)) == h);
    REQUIRE(static_cast<std::size_t>(view.sizes(i, 1)) == w);
    for (std::size_t y = 0; y < view.values.shape[1]; ++y)
      for (std::size_t x = 0; x < view.values.shape[2]; ++x)
        for (std::size_t c = 0; c < 3; ++c)
          REQUIRE(view.values(i, y, x, c) == (y < h && x < w ? pictures[i](y, x, c) : o.color[c]));
  }
}

auto batches(std::size_t size) {
  return mr::batch<&example::pixels, &example::number, &example::boxes, &example::thumbnail, &example::kind>(
      {.size = size, .drop_last = false});
}

/// Inspects every row of a batch.
void check_batch(const auto& b, const std::set<int>& bad) {
  const auto [pixels, number, boxes, thumbnails, kind] = b.columns();
  std::vector<mr::image> pictures, small;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const bool masked = !bad.empty() && b.valid()[i] == 0;
    const int n = number[i];
    pictures.push_back(masked ? mr::image({0, 0, 3}) : image_of(n));
    small.push_back(masked ? mr::image({0, 0, 3})
                           : picture_of(n).resize(2 + static_cast<std::size_t>(n % 4), 5).pixels());
    REQUIRE(boxes.lengths[i] == (masked ? 0 : n % 4));
  }
  check_rows(pixels, pictures, options);
  check_rows(thumbnails, small, {.max = {.width = 6, .height = 6}});
}

}  // namespace

TEST_CASE("rows are as large as the largest image of their batch, for all workers and devices") {
  for (const int threads : {0, 1, 3}) {
    const auto flow = mr::from(numbers(100), {.seed = 1}) | mr::map([](int n) { return prepare(n, {}); }) | batches(3) |
                      mr::to_device({.device = threads == 1 ? copying_device() : mr::host_device()});
    mr::session run{flow, quiet(threads)};
    std::size_t rows = 0;
    std::set<std::size_t> shapes;
    for (auto& b : run) {
      check_batch(b, {});
      rows += b.size();
      shapes.insert(b.template get<&example::pixels>().values.size_bytes() / b.size());
    }
    CHECK(rows == 100);
    CHECK(shapes.size() > 3);
  }
}

TEST_CASE("a masked image has no size, and a replaced one that of its copy") {
  const std::set<int> bad{3, 17, 18, 40, 99};
  for (const auto policy : {mr::damage::mask, mr::damage::replace}) {
    auto how = quiet(2);
    how.on_damage = {.policy = policy, .at_most_share = 1};
    how.lanes = 1;   // otherwise rows to copy are 48 apart, more than in a batch
    mr::session run{mr::from(numbers(100), {.seed = 1}) | mr::map([&](int n) { return prepare(n, bad); }) | batches(8),
                    how};
    std::size_t masked = 0, replaced = 0;
    for (auto& b : run) {
      check_batch(b, bad);
      for (std::size_t i = 0; i < b.size(); ++i) {
        masked += b.valid()[i] == 0 ? 1 : 0;
        replaced += b.replaced()[i];
      }
    }
    CHECK((policy == mr::damage::mask ? masked : replaced) == bad.size());
  }
}

TEST_CASE("a bucket for each kind of image delivers batches of one kind, of the batch's own size") {
  mr::session run{mr::from(numbers(200), {.seed = 1}) | mr::map([](int n) { return prepare(n, {}); }) |
                      mr::bucket<&example::kind>({.boundaries = {1, 2}}) | batches(16),
                  quiet(2)};
  std::size_t rows = 0, mixed = 0, full = 0;
  for (auto& b : run) {
    check_batch(b, {});
    const auto kinds = b.template get<&example::kind>();
    mixed += std::equal(kinds.begin() + 1, kinds.end(), kinds.begin()) ? 0 : 1;
    full += b.size() == 16 ? 1 : 0;
    rows += b.size();
  }
  CHECK(rows == 200);
  CHECK(mixed <= 1);
  CHECK(full == 12);
}

namespace {

struct sample { mr::picture image; std::int32_t number; };
struct scaled { mr::ragged_picture pixels; std::int32_t number; };
struct four { mr::mosaic_picture pixels; std::array<std::int32_t, 4> numbers; mr::ragged<float, 2> boxes; };

auto lists_of(std::size_t size) {
  return mr::from(numbers(120), {.seed = 1}) |
         mr::map([](int n) { return sample{.image = picture_of(n), .number = n}; }) |
         mr::pack([](const sample&) { return 1; }, {.max_cost = size});
}

/// Draws one size for all images of a list.
std::vector<scaled> at_one_size(const std::vector<sample>& list, mr::rng& rng) {
  const std::size_t side = 8 * (2 + rng.below(4));
  std::vector<scaled> result;
  for (const sample& s : list)
    result.push_back({.pixels = mr::ragged_picture(s.image.letterbox({.width = side, .height = side}),
                                                   {.max = {.width = 40, .height = 40}}),
                      .number = s.number});
  return result;
}

struct each_of {
  using output = scaled;
  std::size_t max_outputs(const std::vector<scaled>& list) const { return list.size(); }
  void push(std::vector<scaled> list, auto& emit) const {
    for (scaled& s : list) emit(std::move(s));
  }
};

}  // namespace

TEST_CASE("each batch has one size, because its images were a list, and each image once") {
  std::vector<std::size_t> sides[2];
  for (const int threads : {1, 3}) {
    mr::session run{lists_of(10) | mr::map(at_one_size) | mr::expand(each_of{}) |
                        mr::batch<&scaled::pixels, &scaled::number>({.size = 10}), quiet(threads)};
    std::set<int> numbers_of_rows;
    for (auto& b : run) {
      const auto [pixels, number] = b.columns();
      REQUIRE(b.size() == 10);
      const std::size_t side = pixels.values.shape[1];
      REQUIRE(pixels.values.shape[2] == side);
      for (std::size_t i = 0; i < 10; ++i) {
        numbers_of_rows.insert(number[i]);
        REQUIRE(pixels.sizes(i, 0) == static_cast<std::int32_t>(side));
        const mr::image expected = picture_of(number[i]).letterbox({.width = side, .height = side}).pixels();
        REQUIRE(std::equal(expected.span().begin(), expected.span().end(), &pixels.values(i, 0, 0, 0)));
      }
      sides[threads == 1 ? 0 : 1].push_back(side);
    }
    CHECK(numbers_of_rows.size() == 120);
  }
  CHECK(sides[0] == sides[1]);
  CHECK(std::set(sides[0].begin(), sides[0].end()).size() > 2);
}

TEST_CASE("lists of four become mosaics with the boxes of their images") {
  const auto combine = [](const std::vector<sample>& list, mr::rng& rng) {
    const auto image = [&](std::size_t i) { return list.at(i).image; };
    const mr::mosaic_picture all({image(0), image(1), image(2), image(3)}, {.size = {.width = 48, .height = 40}}, rng);
    mr::kept_boxes boxes;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::vector<mr::box> full{{.left = 0, .top = 0, .right = 40, .bottom = 40}};
      boxes.boxes.push_back(all.boxes(i, full).boxes.at(0));
    }
    return four{.pixels = all, .numbers = {list[0].number, list[1].number, list[2].number, list[3].number},
                .boxes = mr::ragged(boxes.rows<float>(), {.max_length = 4})};
  };
  std::vector<std::uint8_t> rows[2];
  for (const int threads : {1, 3}) {
    mr::session run{lists_of(4) | mr::map(combine) | mr::batch<four>({.size = 5}), quiet(threads)};
    std::set<int> numbers_of_rows;
    for (auto& b : run) {
      const auto [pixels, number, boxes] = b.columns();
      for (std::size_t i = 0; i < b.size(); ++i) {
        REQUIRE(boxes.lengths[i] == 4);
        const auto top = static_cast<std::size_t>(boxes.values(i, 3, 1));
        const auto left = static_cast<std::size_t>(boxes.values(i, 3, 0));
        const mr::image last = picture_of(number(i, 3)).pixels();   // its first pixel is at the center
        REQUIRE(std::equal(&last(0, 0, 0), &last(0, 0, 0) + 3, &pixels(i, top, left, 0)));
        for (std::size_t k = 0; k < 4; ++k) numbers_of_rows.insert(number(i, k));
        auto& all = rows[threads == 1 ? 0 : 1];
        all.insert(all.end(), &pixels(i, 0, 0, 0), &pixels(i, 0, 0, 0) + 48 * 40 * 3);
      }
    }
    CHECK(numbers_of_rows.size() == 120);
  }
  CHECK(rows[0] == rows[1]);
}

TEST_CASE("an image that is too large, other options and impossible ones are refused by name") {
  const mr::picture p = picture_of(1);   // 10 x 7
  CHECK_THROWS_WITH_AS(mr::ragged_picture(p, {.max = {.width = 9, .height = 9}}),
                       doctest::Contains("got 10 x 7 pixels, expected at most 9 x 9 pixels"), mr::setup_error);
  for (const mr::ragged_picture_options& o : std::vector<mr::ragged_picture_options>{
           {}, {.max = {.width = 65'536, .height = 9}}, {.max = {.width = 20, .height = 20}, .multiple_of = 0}})
    CHECK_THROWS_WITH_AS(mr::ragged_picture(p, o), doctest::Contains("expected numbers from 1 to 65535"),
                         mr::setup_error);

  struct changing { mr::ragged_picture pixels; };
  const auto change = [](int n) {
    auto o = options;
    if (n == 9) o.multiple_of = 4;
    return changing{mr::ragged_picture(picture_of(n), o)};
  };
  mr::session run{mr::from(numbers(20)) | mr::map(change) | mr::batch<&changing::pixels>({.size = 4}), quiet(0)};
  const auto train = [&] {
    for (auto& b : run) static_cast<void>(b);
  };
  CHECK_THROWS_WITH_AS(train(), doctest::Contains("multiple_of 4, color 10 20 30 here, but max 40 x 30, multiple_of 8"),
                       mr::data_error);
}

// Audio columns through complete runs: rows and digests over workers, ranks and resume, with damaged files.
namespace {

constexpr int samples = 300, damaged_at[] = {17, 130, 201};

struct recording {
  mr::audio sound;
  mr::ragged_audio<std::int16_t> speech;
  std::int32_t number;
};

recording prepare_recording(const mr::record& r, mr::rng& rng) {
  const mr::audio a = mr::wav(r["wav"]).mono();
  return {a.pad(0.02).random_crop(0.02, rng).random_gain(rng), {a, {.max_length = 800}}, r["cls"].as<std::int32_t>()};
}

/// Shards of files with one or two channels and 0 to 700 frames; some are damaged.
std::string write_shards(const temporary_folder& folder) {
  mr::shard_writer out({.pattern = folder / "sounds-%d.tar", .max_samples = 77});
  for (int i = 0; i < samples; ++i) {
    mr::rng random({.seed = 6, .sample = static_cast<std::uint64_t>(i)});
    const slow::wav_form form{.coding = slow::all_codings[i % 4], .channels = i % 5 == 0 ? 2U : 1U};
    std::string file = slow::wav_file(form, slow::random_samples(form, random.below(700), random));
    for (const int damaged : damaged_at)
      if (i == damaged) file.resize(40);
    out.write(std::to_string(i), {{"wav", file}, {"cls", std::to_string(i)}});
  }
  out.close();
  return folder / "sounds-*.tar";
}

struct run_options {
  int threads = 2;
  mr::world world{};
  std::string resume{};
  std::uint64_t max_batches = ~std::uint64_t{0};
};
struct outcome {
  std::map<std::uint64_t, std::uint64_t> rows{};   // digests by global position
  std::vector<std::string> points{};
  std::uint64_t digest = 0, masked = 0;
};

outcome deliver(const std::string& shards, const run_options& o) {
  constexpr std::size_t global_batch = 12;
  auto flow = mr::shards(shards, {.seed = 4}) | mr::shuffle({.window = 100}) | mr::map(prepare_recording) |
              mr::batch<recording>({.size = global_batch / o.world.size});
  mr::session run{std::move(flow), {.epochs = 2, .threads = o.threads, .notice = [](const mr::notice&) {},
                                    .world = o.world, .resume = o.resume,
                                    .on_damage = {.policy = mr::damage::mask}}};
  outcome all;
  for (auto& b : run) {
    const auto [sound, speech, number] = b.columns();
    for (std::size_t i = 0; i < b.size(); ++i) {
      const auto words = speech[i];
      std::uint64_t digest = mr::detail::digest_bytes(std::as_bytes(sound[i].span()), b.valid()[i]);
      digest = mr::detail::digest_bytes(std::as_bytes(words.span()), digest + static_cast<std::uint64_t>(number[i]));
      all.rows[(b.epoch() * 1'000 + b.step()) * global_batch + i * o.world.size + o.world.rank] = digest;
      all.masked += b.valid()[i] == 0 ? 1U : 0U;
    }
    all.points.push_back(b.resume_text());
    if (all.points.size() >= o.max_batches) break;
  }
  all.digest = run.stats().digest;
  return all;
}

}  // namespace

TEST_CASE("audio rows depend on neither workers nor ranks nor interruptions, and damaged files are masked") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  const outcome alone = deliver(shards, {.threads = 0});
  CHECK(alone.masked == 2 * std::size(damaged_at));
  CHECK(alone.rows.size() == 2 * samples);
  std::uint64_t all_rows = 0;
  for (const auto& [position, digest] : alone.rows) all_rows += digest * (2 * position + 1);
  CHECK(all_rows == 8285359153151141911U);
  CHECK(alone.digest == 18383243932912756369U);
  for (const int threads : {1, 3}) {
    const outcome other = deliver(shards, {.threads = threads});
    CHECK(other.rows == alone.rows);
    CHECK(other.digest == alone.digest);
  }
  for (const std::uint32_t ranks : {2U, 3U, 4U, 6U}) {
    outcome together;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const outcome one = deliver(shards, {.world = {.rank = rank, .size = ranks}});
      together.rows.insert(one.rows.begin(), one.rows.end());
      together.digest += one.digest;
    }
    CHECK(together.rows == alone.rows);
    CHECK(together.digest == alone.digest);
  }
  mr::rng random({.seed = 5});
  for (int round = 0; round < 50; ++round) {
    const std::size_t at = random.below(alone.points.size() - 1);
    const outcome rest = deliver(shards, {.threads = static_cast<int>(random.below(3)), .resume = alone.points[at]});
    CHECK(rest.rows.size() == 12 * (alone.points.size() - 1 - at));
    bool equal = true;
    for (const auto& [position, digest] : rest.rows) equal = equal && alone.rows.at(position) == digest;
    CHECK(equal);
    CHECK(rest.points.back() == alone.points.back());
  }
}
