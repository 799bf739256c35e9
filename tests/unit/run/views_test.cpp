// Rows of several crops, rows with label maps, and views that are used after their batch, through complete runs.
#include "../../temporary_folder.hpp"
#include "../image/label_files.hpp"
#include "../image/slow_pictures.hpp"
#include "quiet_sessions.hpp"

#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/image/labels/label_map.hpp>
#include <millrace/image/picture/normalized_picture.hpp>
#include <millrace/image/picture/padded_picture.hpp>
#include <millrace/image/picture/picture.hpp>
#include <millrace/io/tar/write/shard_writer.hpp>
#include <millrace/millrace.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/sources/shards.hpp>
#include <millrace/stages/map.hpp>

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <optional>

namespace mr = millrace;

namespace {

struct crops {
  std::array<mr::picture, 2> large;
  std::int32_t label;
  std::array<mr::picture, 8> small;
  std::array<mr::normalized_picture<float>, 1> numbers;
  std::array<mr::label_map<>, 2> masks;
  mr::padded_picture full;
  std::array<std::array<float, 3>, 2> pairs;
};

crops prepare(const mr::record& r, mr::rng& rng) {
  const mr::picture p = mr::jpeg(r["jpg"]).filter(mr::resize_filter::bicubic);
  const auto large = [&] { return p.random_resized_crop(32, rng, {.scale_min = 0.32}).random_flip(rng); };
  const auto small = [&] {
    return p.random_resized_crop(12, rng, {.scale_min = 0.05, .scale_max = 0.32}).random_flip(rng);
  };
  const std::array<mr::picture, 2> both{large(), large()};
  const auto mask = mr::labels(r["pgm"]);
  return {both, r["cls"].as<std::int32_t>(),
          {small(), small(), small(), small(), small(), small(), small(), small()},
          {mr::normalized_picture<float>(both[0], {.mean = {0.5, 0.5, 0.5}, .std = {0.25, 0.25, 0.25}})},
          {mask.apply(both[0].geometry()), mask.apply(both[1].geometry())},
          mr::padded_picture(p.resize_within({.width = 40, .height = 40}), {.to = {.width = 48, .height = 40}}),
          {{{1, 2, 3}, {4, 5, 6}}}};
}

std::string write_photos(const temporary_folder& folder, std::size_t damaged = 1'000) {
  mr::shard_writer shards({.pattern = folder / "photos-%d.tar", .max_samples = 10});
  for (std::size_t i = 0; i < 40; ++i) {
    const std::size_t width = 80 + i % 7, height = 60 + i % 5;
    auto jpg = mr::encode_jpeg(slow::photo(height, width, 3, i));
    if (i == damaged) jpg.resize(jpg.size() / 2);
    shards.write("k" + std::to_string(i), {{"jpg", jpg},
                                           {"pgm", slow::pgm(slow::labels::of_numbers(width, height), 8)},
                                           {"cls", std::to_string(i)}});
  }
  shards.close();
  return folder / "photos-{0..3}.tar";
}

auto flow_of(const std::string& pattern, std::size_t size) {
  return mr::shards(pattern, {.seed = 3, .index = mr::index::off}) | mr::map(prepare) |
         mr::batch<&crops::large, &crops::label, &crops::small, &crops::numbers, &crops::masks, &crops::full,
                   &crops::pairs>({.size = size});
}

template <class Row, class Made>
bool equal(const Row& row, const Made& expected) {
  const auto a = row.span();
  return a.size() == expected.size() && std::equal(a.begin(), a.end(), expected.span().begin());
}

}  // namespace

TEST_CASE("arrays of images are rows of several, each with the bits that it has alone, whatever the workers") {
  const temporary_folder folder;
  const std::string pattern = write_photos(folder);
  // The outputs of each sample's plans, one by one.
  std::vector<crops> alone;
  const auto recorded = [&alone](const mr::record& r, mr::rng& rng) {
    crops c = prepare(r, rng);
    alone.push_back(c);
    return c;
  };
  mr::feed(mr::shards(pattern, {.seed = 3, .index = mr::index::off}) | mr::map(recorded) |
               mr::batch<&crops::label>({.size = 8}),
           quiet(0), [](auto&) {});
  REQUIRE(alone.size() == 40);
  for (const int threads : {0, 1, 4}) {
    mr::session run{flow_of(pattern, 8), quiet(threads)};
    std::size_t rows = 0;
    for (auto& b : run) {
      const auto [large, label, small, numbers, masks, full, pairs] = b.columns();
      CHECK(large.shape == std::array<std::size_t, 5>{8, 2, 32, 32, 3});
      CHECK(small.shape == std::array<std::size_t, 5>{8, 8, 12, 12, 3});
      CHECK(numbers.shape == std::array<std::size_t, 5>{8, 1, 3, 32, 32});
      CHECK(masks.shape == std::array<std::size_t, 4>{8, 2, 32, 32});
      CHECK(pairs.shape == std::array<std::size_t, 3>{8, 2, 3});
      for (std::size_t i = 0; i < b.size(); ++i, ++rows) {
        const auto& expected = alone.at(rows);
        CHECK(label[i] == expected.label);
        for (std::size_t v = 0; v < 2; ++v) REQUIRE(equal(large[i][v], expected.large[v].pixels()));
        for (std::size_t v = 0; v < 8; ++v) REQUIRE(equal(small[i][v], expected.small[v].pixels()));
        for (std::size_t v = 0; v < 2; ++v) REQUIRE(equal(masks[i][v], expected.masks[v].values()));
        mr::scratch s;
        mr::tensor<float, 3> one({3, 32, 32});
        expected.numbers[0].render(one.span(), s);
        REQUIRE(equal(numbers[i][0], one));
        mr::image padded({40, 48, 3});
        expected.full.render(padded.span(), s);
        REQUIRE(equal(full[i], padded));
        CHECK(pairs(i, 1, 2) == 6);
      }
    }
    CHECK(rows == 40);
    // 2 + 8 + 1 + 1 images of each JPEG, across four columns.
    std::uint64_t shared = 0;
    for (const auto& c : run.stats().counts)
      if (std::string_view(c.what) == "images rendered from the planes of another image") shared = c.times;
    CHECK(shared == 40 * 11);
  }
}

TEST_CASE("a damaged image in an array is the error of its sample, and the rows before it are delivered") {
  const temporary_folder folder;
  const std::string pattern = write_photos(folder, 21);
  for (const int threads : {0, 3}) {
    mr::session run{flow_of(pattern, 4), quiet(threads)};
    std::string key;
    std::size_t batches = 0;
    try {
      for (auto& b : run) batches += b.size() > 0;
      FAIL("no error");
    } catch (const mr::data_error& e) {
      CHECK(e.where().key == "k21");
      CHECK(batches == e.where().position / 4);
    }
    auto can_continue = quiet(threads);
    can_continue.on_damage = {.policy = mr::damage::replace};
    mr::session replaced{flow_of(pattern, 4), can_continue};
    std::size_t copies = 0, rows = 0;
    for (auto& b : replaced)
      for (std::size_t i = 0; i < b.size(); ++i, ++rows) copies += b.replaced()[i];
    CHECK(rows == 40);
    CHECK(copies == 1);
  }
}

namespace {

struct uneven {
  std::array<std::vector<float>, 3> rows;
};

}  // namespace

TEST_CASE("elements of an array have one shape, and another one is an error that names element and column") {
  for (const int bad : {0, 9}) {
    const auto make = [bad](int n) {
      uneven u{{std::vector<float>(4), std::vector<float>(4), std::vector<float>(4)}};
      if (n == bad) u.rows[2].resize(5);
      return u;
    };
    mr::session run{mr::from(numbers(16)) | mr::map(make) | mr::batch<&uneven::rows>({.size = 4}), quiet(1)};
    const std::string message = "element 2 of an array has shape [5], but the first one has [4] in the column";
    const auto take_all = [&run] {
      for (auto& b : run) CHECK(b.get<&uneven::rows>().shape == std::array<std::size_t, 3>{4, 3, 4});
    };
    CHECK_THROWS_WITH_AS(take_all(), doctest::Contains(message.c_str()), mr::data_error);
  }
}

// An image and its label map through a complete run: files, records, plans, batches; the same for any workers.
namespace {

struct masked {
  mr::picture pixels;
  mr::label_map<> classes;
  mr::label_map<std::uint16_t> numbers;
};

masked prepare_masked(const mr::record& r, mr::rng& rng) {
  const mr::picture p = mr::jpeg(r["jpg"]).random_resized_crop(24, rng).random_flip(rng);
  return {p, mr::labels(r["pgm"]).apply(p.geometry()), mr::labels<std::uint16_t>(r["npy"]).apply(p.geometry())};
}

/// 40 images of two gray halves, whose classes are their levels. Numbers are those of columns.
std::string write_halves(const temporary_folder& folder) {
  mr::shard_writer shards({.pattern = folder / "halves-%d.tar", .max_samples = 10});
  for (std::size_t i = 0; i < 40; ++i) {
    const std::size_t width = 40 + i % 7, height = 30 + i % 5, border = 10 + i % 20;
    mr::image pixels({height, width, 3});
    slow::labels classes{.width = width, .height = height}, numbers = classes;
    for (std::size_t y = 0; y < height; ++y)
      for (std::size_t x = 0; x < width; ++x) {
        const std::uint8_t level = x < border ? 40 : 200;
        for (std::size_t c = 0; c < 3; ++c) pixels(y, x, c) = level;
        classes.samples.push_back(level);
        numbers.samples.push_back(static_cast<std::uint16_t>(1'000 * i + x));
      }
    shards.write("k" + std::to_string(i), {{"jpg", mr::encode_jpeg(pixels, {.quality = 100})},
                                           {"pgm", slow::pgm(classes, 8)},
                                           {"npy", slow::npy(numbers, 16)}});
  }
  shards.close();
  return folder / "halves-{0..3}.tar";
}

}  // namespace

TEST_CASE("images and their label maps stay together, and are the same for any workers") {
  const temporary_folder folder;
  const std::string pattern = write_halves(folder);
  std::vector<std::uint16_t> expected;
  for (const int threads : {0, 1, 4}) {
    std::vector<std::uint16_t> values;
    std::size_t compared = 0, flipped = 0;
    mr::session run{mr::shards(pattern, {.seed = 3, .index = mr::index::off}) | mr::map(prepare_masked) |
                        mr::batch<&masked::pixels, &masked::classes, &masked::numbers>({.size = 8}),
                    quiet(threads, 2)};
    for (auto& b : run) {
      const auto [pixels, classes, numbers] = b.columns();
      CHECK(classes.shape == std::array<std::size_t, 3>{8, 24, 24});
      CHECK(numbers.shape == std::array<std::size_t, 3>{8, 24, 24});
      for (std::size_t i = 0; i < b.size(); ++i) {
        flipped += numbers(i, 0, 0) > numbers(i, 0, 23);
        for (std::size_t y = 0; y < 24; ++y)
          for (std::size_t x = 0; x < 24; ++x) {
            // Next to the boundary pixels are blends of both halves.
            if (x < 2 || x > 21 || classes(i, y, x - 2) != classes(i, y, x + 2)) continue;
            REQUIRE(std::abs(pixels(i, y, x, 1) - classes(i, y, x)) <= 2);
            ++compared;
          }
      }
      const auto all = numbers.span();
      values.insert(values.end(), all.begin(), all.end());
      for (const auto label : classes.span()) values.push_back(label);
    }
    CHECK(values.size() == 80 * 2 * 24 * 24);
    CHECK(compared > 20'000);
    CHECK(flipped > 20);
    CHECK(flipped < 60);
    if (expected.empty()) expected = values;
    CHECK(values == expected);
  }
}

TEST_CASE("a map of another size than its image is an error with the sample's shard, key and position") {
  const temporary_folder folder;
  mr::shard_writer shards({.pattern = folder / "bad-%d.tar"});
  for (std::size_t i = 0; i < 8; ++i)
    shards.write("k" + std::to_string(i),
                 {{"jpg", mr::encode_jpeg(mr::image({20, 30, 3}))},
                  {"pgm", slow::pgm(slow::labels::of_numbers(30, i == 5 ? 21 : 20), 8)},
                  {"npy", slow::npy(slow::labels::of_numbers(30, 20), 16)}});
  shards.close();
  for (const int threads : {0, 3}) {
    mr::session run{mr::shards(folder / "bad-0.tar", {.index = mr::index::off}) | mr::map(prepare_masked) |
                        mr::batch<&masked::classes>({.size = 2}),
                    quiet(threads)};
    std::size_t batches = 0;
    try {
      for (auto& b : run) batches += b.size() > 0;
      FAIL("no error");
    } catch (const mr::data_error& e) {
      CHECK(e.where().shard == folder / "bad-0.tar");
      CHECK(e.where().key == "k5");
      CHECK(e.where().position == 5);
      CHECK(e.message().find("the field 'pgm' is a label map of the wrong size: got "
                             "30 x 21 pixels, expected 30 x 20 pixels") == 0);
    }
    CHECK(batches == 2);
  }
}

// Views and keys that are used after their batch: AddressSanitizer reports them.
#if defined(__has_feature)
#define MILLRACE_TEST_HAS_FEATURE(x) __has_feature(x)
#else
#define MILLRACE_TEST_HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || MILLRACE_TEST_HAS_FEATURE(address_sanitizer)

namespace {

struct row {
  std::int32_t n;
};

auto flow() {
  return mr::from(numbers(64)) | mr::map([](int n) { return row{n}; }) | mr::batch<&row::n>({.size = 8}) |
         mr::prefetch({.batches = 2});
}

/// Returns whether a child that runs `act` is ended by AddressSanitizer.
template <class Act>
bool is_reported(const Act& act) {
  const pid_t child = fork();
  if (child == 0) {
    static_cast<void>(std::freopen("/dev/null", "w", stderr));
    act();
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

}  // namespace

TEST_CASE("AddressSanitizer reports a view that is used after its batch, but not the later batches") {
  for (const int threads : {0, 1}) {
    mr::session run{flow(), quiet(threads)};
    auto b = run.next();
    const auto view = b.get<&row::n>();
    CHECK(view[7] == 7);
    CHECK_FALSE(is_reported([&] { static_cast<void>(*const_cast<const volatile std::int32_t*>(view.data)); }));
    auto second = run.next();
    run.next().release();   // all following batches use the third slot
    while (run.next()) {
    }
    CHECK(view[7] == 7);   // the lease owns its slot
    b.release();
    CHECK(is_reported([&] { static_cast<void>(*const_cast<const volatile std::int32_t*>(view.data)); }));
    CHECK(is_reported([&] { static_cast<void>(*const_cast<const volatile std::int32_t*>(view.data + 7)); }));
    CHECK(second.get<&row::n>()[0] == 8);
  }
}

TEST_CASE("slots are usable again after their session, and a lease outlives it") {
  for (int round = 0; round < 3; ++round) {
    std::optional<decltype(mr::session{flow()})::batch> lease;
    {
      mr::session run{flow(), quiet(1)};
      lease = run.next();
      for (auto& b : run) CHECK(b.get<&row::n>()[0] % 8 == 0);
    }
    CHECK(lease->get<&row::n>()[3] == 3);
  }
}

#endif
