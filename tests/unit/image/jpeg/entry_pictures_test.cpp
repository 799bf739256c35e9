#include <millrace/image/jpeg/jpeg_entries.hpp>
#include <millrace/image/render/picture_renderer.hpp>
#include <millrace/item/record_builder.hpp>
#include <millrace/pictures.hpp>

#include "../random_jpegs.hpp"
#include "../planned_pictures.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>

namespace mr = millrace;

namespace {

constexpr const char* by_entries = "JPEG crops accelerated by entry points";
constexpr const char* by_restarts = "JPEG crops accelerated by restart markers";
constexpr const char* refused = "JPEGs with entry points of another file";

/// A record as read through an index with entries.
mr::record record_of(std::span<const std::byte> file, std::span<const std::byte> entries, mr::block_pool& pool) {
  mr::record_builder build(pool);
  build.begin("train-000.tar", "a", 0);
  const auto to = build.add_field("jpg", file.size());
  std::copy(file.begin(), file.end(), to.begin());
  build.set_entries(entries);
  return build.finish();
}

std::map<std::string, std::uint64_t> counted(const mr::event_counts& t) {
  std::map<std::string, std::uint64_t> all;
  for (const auto& c : t.counts()) all[c.what] = c.times;
  return all;
}

std::vector<mr::image> rendered(const std::vector<mr::picture>& all, mr::scratch& s) {
  std::vector<const mr::picture*> items;
  std::vector<mr::image> images;
  std::vector<std::span<std::uint8_t>> rows;
  for (const auto& p : all) {
    items.push_back(&p);
    images.emplace_back(p.shape());
  }
  for (auto& m : images) rows.push_back(m.span());
  mr::picture::render_together(items, rows, s);
  return images;
}

}  // namespace

TEST_CASE("images of a record with entries are those of its bytes alone, several crops of it and small ones too") {
  mr::rng d({.seed = slow::seed_of_run(), .sample = 31});
  mr::block_pool pool;
  mr::scratch s, plain;
  mr::event_counts counts;
  s.count_into(counts);
  const std::size_t rounds = slow::count_of("MILLRACE_TEST_ENTRIES", 1'500) / 10;
  for (std::size_t i = 0; i < rounds; ++i) {
    std::vector<mr::record> records;
    std::vector<mr::picture> with, without;
    for (int f = 0; f < 3; ++f) {
      const auto file = slow::draw_file(d, 200);
      records.push_back(record_of(file.bytes, mr::jpeg_entries(file.bytes, {.every_mcus = 1 + d.below(6)}), pool));
    }
    for (const auto& r : records)
      for (std::uint64_t k = d.below(2) + 1; k > 0; --k) {
        const mr::jpeg_options options{.quality = d.chance(0.5) ? mr::picture_quality::exact
                                                                : mr::picture_quality::fast};
        const mr::rng plan = d;
        (void)d.bits();
        const mr::bytes jpg = r["jpg"];
        with.push_back(slow::planned(d.chance(0.5) ? mr::jpeg(jpg, options)
                                                   : mr::any_picture(jpg, {.jpeg = options}), plan));
        without.push_back(slow::planned(mr::jpeg(mr::bytes::borrowed(jpg), options), plan));
      }
    const auto got = rendered(with, s);
    for (std::size_t k = 0; k < with.size(); ++k) CHECK(slow::same(got[k], without[k].pixels(plain)));
  }
  CHECK(counted(counts)[by_entries] > rounds);
  CHECK(counted(counts)[by_restarts] > 0);
  CHECK(counted(counts)[refused] == 0);
}

TEST_CASE("counts show whose entries were used, and whose were refused") {
  mr::block_pool pool;
  const auto pixels = slow::photo(200, 300, 3, 2);
  const auto file = slow::make_file(pixels, {}), other = slow::make_file(pixels, {.quality = 91}),
             marked = slow::make_file(pixels, {.restart_interval = 4});
  const auto entries = mr::jpeg_entries(file);
  const mr::record good = record_of(file, entries, pool), bad = record_of(other, entries, pool),
                   none = record_of(marked, {}, pool);
  const mr::crop_box box{.left = 100, .top = 100, .width = 50, .height = 50};
  mr::scratch s;
  mr::event_counts counts;
  s.count_into(counts);
  const auto expect = [&](std::uint64_t entries_used, std::uint64_t restarts, std::uint64_t entries_refused) {
    auto totals = counted(counts);
    CHECK(totals[by_entries] == entries_used);
    CHECK(totals[by_restarts] == restarts);
    CHECK(totals[refused] == entries_refused);
  };
  CHECK(slow::same(mr::jpeg(good["jpg"]).crop(box).pixels(s), mr::jpeg(slow::view(file)).crop(box).pixels()));
  expect(1, 0, 0);
  CHECK(slow::same(mr::jpeg(bad["jpg"]).crop(box).pixels(s), mr::jpeg(slow::view(other)).crop(box).pixels()));
  expect(1, 0, 1);
  CHECK(slow::same(mr::jpeg(none["jpg"]).crop(box).pixels(s), mr::jpeg(slow::view(marked)).crop(box).pixels()));
  expect(1, 1, 1);
  (void)mr::jpeg(good["jpg"]).pixels(s);                                                        // all of it
  (void)mr::jpeg(pool.copy(good["jpg"])).crop(box).pixels(s);                                   // a copy has none
  (void)mr::jpeg(good["jpg"], {.decoder = mr::picture_decoder::libjpeg}).crop(box).pixels(s);   // does not use them
  expect(1, 1, 1);
  const auto p = mr::jpeg(good["jpg"]).crop(box);
  (void)rendered({p, p}, s);
  expect(3, 1, 1);
}
