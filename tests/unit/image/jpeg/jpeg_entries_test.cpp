#include <millrace/image/jpeg/baseline/entry_walk.hpp>
#include <millrace/image/jpeg/baseline/jpeg_plane_decoder.hpp>
#include <millrace/image/jpeg/jpeg_entries.hpp>
#include <millrace/image/render/picture_renderer.hpp>
#include <millrace/item/record_builder.hpp>
#include <millrace/pictures.hpp>

#include "../planned_pictures.hpp"
#include "../random_jpegs.hpp"

#include <doctest/doctest.h>

#include <string>

namespace mr = millrace;
using slow::count_of, slow::draw_file, slow::random_jpeg, slow::exact_request, slow::random_region, slow::seed_of_run;
using mr::detail::entry_origin, mr::detail::packed_entries_layout;

namespace {

/// Entries in memory of exactly their size, so that AddressSanitizer detects any read beyond it.
struct exact_entries {
  std::unique_ptr<std::byte[]> memory;
  std::span<const std::byte> view;

  explicit exact_entries(std::span<const std::byte> from) : memory(new std::byte[from.size()]) {
    std::copy(from.begin(), from.end(), memory.get());
    view = {memory.get(), from.size()};
  }
};

/// Entries wherever possible, even if they are larger than the file.
std::vector<std::byte> dense_entries(std::span<const std::byte> file, std::size_t every, mr::detail::entry_walk& walk) {
  return walk.run(file, {.every_mcus = every, .max_per_thousand = 1'000'000, .fewest_entries = 1});
}

/// Bytes that are not these entries, and may not be entries at all.
std::vector<std::byte> wrong(std::vector<std::byte> entries, mr::rng& d) {
  const auto any_byte = [&] { return static_cast<std::byte>(d.below(256)); };
  constexpr std::size_t header = packed_entries_layout::header_bytes;
  switch (d.below(5)) {
    case 0: entries.resize(d.below(entries.size())); break;
    case 1: entries.push_back(any_byte()); break;
    case 2:   // a header that may be accepted, with fields of noise
      for (std::size_t i = header; i < entries.size(); ++i) entries[i] = any_byte();
      break;
    case 3:   // other minimums
      for (std::size_t i = 10; i < header; ++i) entries[i] = any_byte();
      break;
    default:
      for (std::uint64_t k = d.below(4) + 1; k > 0; --k)
        entries[d.below(entries.size())] ^= static_cast<std::byte>(1U << d.below(8));
  }
  return entries;
}

random_jpeg photo_file(std::size_t height, std::size_t width, const slow::file_recipe& recipe,
                      std::size_t channels = 3) {
  return {recipe, height, width, channels, slow::make_file(slow::photo(height, width, channels, 3), recipe)};
}

}  // namespace

TEST_CASE("entries never change a plane, and wrong ones write no other memory") {
  mr::rng d({.seed = seed_of_run(), .sample = 21});
  mr::detail::jpeg_plane_decoder best, portable(mr::detail::jpeg_plane_decoder::code::portable);
  mr::detail::entry_walk walk;
  const std::size_t files = count_of("MILLRACE_TEST_ENTRIES", 1'500);
  std::size_t by_entries = 0, by_markers = 0, with_both = 0, refused_entries = 0, wrongly_accepted = 0, without = 0;
  for (std::size_t i = 0; i < files; ++i) {
    const random_jpeg f = draw_file(d, d.chance(0.3) ? 250 : 100), other = draw_file(d, 64);
    exact_request x(f.bytes, random_region(d, f)), y(other.bytes, random_region(d, other));
    const auto expected = slow::raw_reader().read(f.bytes, f.height, x.request.eighths);
    const auto expected_other = slow::raw_reader().read(other.bytes, other.height, y.request.eighths);
    INFO(describe(f));
    const auto expect = [&](const mr::detail::jpeg_planes_result& got) {
      CHECK(std::string(refusal_name(got.refusal)) == "none");
      CHECK(slow::covers(got.planes, x.request));
      CHECK(slow::difference_of(got.planes, expected) == "");
    };
    const auto plain = best.decode(x.request);
    expect(plain);
    by_markers += plain.entries == entry_origin::restart_markers;
    const exact_entries right(dense_entries(f.bytes, 1 + d.below(12), walk));
    if (right.view.empty()) {
      ++without;
      continue;
    }
    x.request.entries = right.view;
    for (auto* decoder : {&best, &portable}) {
      const auto alone = decoder->decode(x.request);
      expect(alone);
      CHECK(!alone.entries_refused);
      by_entries += alone.entries == entry_origin::packed;
      with_both += alone.entries == entry_origin::packed && f.recipe.restart_interval > 0;
      const auto both = decoder->decode(y.request, x.request);
      CHECK(slow::difference_of(both[0].planes, expected_other) == "");
      expect(both[1]);
    }
    const exact_entries bad(wrong({right.view.begin(), right.view.end()}, d));
    x.request.entries = bad.view;
    for (auto* decoder : {&best, &portable}) {
      const auto got = decoder->decode(x.request);
      if (got.entries_refused) {
        expect(got);
        ++refused_entries;
      } else if (got) {
        CHECK(slow::covers(got.planes, x.request));
        wrongly_accepted += !slow::difference_of(got.planes, expected).empty();
      }
      // All of it is removed.
      x.request.entries = right.view;
      expect(decoder->decode(x.request));
      const auto both = decoder->decode(x.request, y.request);
      expect(both[0]);
      CHECK(slow::difference_of(both[1].planes, expected_other) == "");
      x.request.entries = bad.view;
    }
  }
  CHECK(by_entries > files / 3);
  CHECK(by_markers > files / 20);
  CHECK(with_both > files / 20);
  CHECK(refused_entries > files / 4);
  CHECK(wrongly_accepted > 0);
  CHECK(without < files / 2);
}

TEST_CASE("entries have the values of the layout, for each MCU that has one") {
  const random_jpeg f = photo_file(100, 150, {.quality = 85});   // 10 by 7 MCUs
  mr::detail::entry_walk walk;
  const auto bytes = dense_entries(f.bytes, 4, walk);
  mr::detail::scan_header h;
  REQUIRE(mr::detail::read_scan_header(f.bytes, h) == mr::jpeg_refusal::none);
  mr::detail::packed_entries p;
  const mr::detail::packed_entries_file of{.file_bytes = f.bytes.size(), .data_offset_bytes = h.data_offset_bytes,
                                           .mcus = 70};
  REQUIRE(p.open(bytes, of));
  CHECK(p.every() == 4);
  CHECK(p.last() == 17);
  std::vector<mr::detail::jpeg_entry> entries;
  for (int n = 1; n <= 17; ++n) entries.push_back(p.at(n));
  for (std::size_t n = 0; n < entries.size(); ++n) {
    CHECK(entries[n].mcu == std::int64_t(n + 1) * 4);
    CHECK(entries[n].bit < 8);
    const std::size_t before = n == 0 ? h.data_offset_bytes : entries[n - 1].offset_bytes;
    CHECK(entries[n].offset_bytes > before);
    CHECK(entries[n].offset_bytes < f.bytes.size());
    // Never the 0 that is stuffed after a 0xff.
    CHECK(!(f.bytes[entries[n].offset_bytes - 1] == std::byte{0xff} &&
            f.bytes[entries[n].offset_bytes] == std::byte{0}));
  }
  CHECK(pack_entries(entries, {.file_bytes = of.file_bytes, .data_offset_bytes = of.data_offset_bytes, .mcus = 70,
                               .every = 4}) == bytes);
  CHECK(mr::jpeg_entries(f.bytes, {.every_mcus = 4}).size() <= f.bytes.size() * 35 / 1'000);
}

TEST_CASE("values at the limits of the layout survive a round trip") {
  using mr::detail::jpeg_entry;
  const std::vector<jpeg_entry> entries{{.mcu = 1, .offset_bytes = 600, .bit = 7, .dc = {-32'767, 32'767, 0}},
                                        {.mcu = 2, .offset_bytes = 600, .bit = 7, .dc = {32'767, 32'767, 0}},
                                        {.mcu = 3, .offset_bytes = 400'000'000, .bit = 0, .dc = {0, -32'767, 0}}};
  const mr::detail::packed_entries_file of{.file_bytes = 4'294'967'295, .data_offset_bytes = 500, .mcus = 4,
                                           .every = 1};
  const exact_entries bytes(pack_entries(entries, of));
  mr::detail::packed_entries p;
  REQUIRE(p.open(bytes.view, of));
  for (int n = 1; n <= 3; ++n) {
    const jpeg_entry got = p.at(n), &expected = entries[static_cast<std::size_t>(n - 1)];
    CHECK(got.mcu == expected.mcu);
    CHECK(got.offset_bytes == expected.offset_bytes);
    CHECK(got.bit == expected.bit);
    CHECK(got.dc == expected.dc);
  }
  auto beyond = entries;
  beyond[2].offset_bytes = 1'000'000'000;   // a distance of more than 32 bits
  CHECK(pack_entries(beyond, of).empty());
  CHECK(pack_entries(entries, {.file_bytes = 4'294'967'296, .data_offset_bytes = 500, .mcus = 4, .every = 1}).empty());
  CHECK(pack_entries({}, of).empty());
}

TEST_CASE("a photograph's entries need at most 3.5 % of its size, and a crop skips the bytes that it does not need") {
  struct kind {
    int quality;
    std::size_t channels;
  };
  for (const kind k : {kind{40, 3}, {75, 3}, {90, 3}, {97, 3}, {85, 1}})
    for (const int sampling : {1, 2}) {
      const auto file = photo_file(375, 500, {.quality = k.quality, .horizontal = sampling, .vertical = sampling},
                                   k.channels);
      mr::scratch s;
      const auto entries = mr::jpeg_entries(file.bytes, {.every_mcus = 4}, s);
      CAPTURE(k.quality);
      CHECK(!entries.empty());
      CHECK(entries.size() * 1'000 <= file.bytes.size() * 35);
      CHECK(entries == mr::jpeg_entries(file.bytes));
      mr::detail::jpeg_plane_decoder decoder;
      const mr::detail::jpeg_planes_request request{.bytes = file.bytes, .left = 200, .top = 200, .right = 300,
                                                .bottom = 300, .entries = entries};
      const auto got = decoder.decode(request);
      CHECK(got.entries == entry_origin::packed);
      CHECK(slow::difference_of(got.planes, slow::raw_reader().read(file.bytes, 375)) == "");
      CHECK(decoder.decode({.bytes = file.bytes, .entries = entries}).entries == entry_origin::none);
    }
}

TEST_CASE("files that entries do not help, or that are damaged anywhere, have none") {
  const auto file = photo_file(375, 500, {.quality = 85}).bytes;
  CHECK(!mr::jpeg_entries(file).empty());
  CHECK(mr::jpeg_entries({}).empty());
  CHECK(mr::jpeg_entries(std::span(file).first(300)).empty());
  CHECK(mr::jpeg_entries(file, {.every_mcus = 0}).empty());
  CHECK(mr::jpeg_entries(photo_file(32, 32, {}).bytes).empty());
  CHECK(mr::jpeg_entries(photo_file(375, 500, {.progressive = true}).bytes).empty());
  CHECK(mr::jpeg_entries(photo_file(375, 500, {.restart_interval = 8}).bytes).empty());
  CHECK(!mr::jpeg_entries(photo_file(375, 500, {.restart_interval = 32}).bytes).empty());
  auto cut = file;
  cut.resize(file.size() - 100);
  CHECK(mr::jpeg_entries(cut).empty());
  auto without_end = file;
  without_end.resize(file.size() - 2);
  CHECK(mr::jpeg_entries(without_end).empty());
  auto more = file;   // data between the last block and the end
  more.insert(more.end() - 2, 4, std::byte{0x12});
  CHECK(mr::jpeg_entries(more).empty());
}

TEST_CASE("entries of a file of another size, version or number of MCUs are refused, and all is decoded") {
  const auto file = photo_file(200, 300, {.quality = 85}), other = photo_file(200, 300, {.quality = 86});
  mr::detail::entry_walk walk;
  const auto right = dense_entries(file.bytes, 4, walk);
  const auto expected = slow::raw_reader().read(file.bytes, 200);
  mr::detail::jpeg_plane_decoder decoder;
  const auto expect_refused = [&](std::vector<std::byte> entries) {
    const auto got = decoder.decode({.bytes = file.bytes, .left = 150, .top = 100, .entries = entries});
    CHECK(got.entries_refused);
    CHECK(got.entries == entry_origin::none);
    CHECK(slow::difference_of(got.planes, expected) == "");
  };
  expect_refused(dense_entries(other.bytes, 4, walk));
  for (const std::size_t at : {0U, 1U, 2U, 5U, 6U, 7U}) {
    auto changed = right;
    changed[at] ^= std::byte{0x40};
    CAPTURE(at);
    expect_refused(changed);
  }
  for (std::size_t size = 1; size < right.size(); size += 7)
    expect_refused({right.begin(), right.begin() + static_cast<std::ptrdiff_t>(size)});
  CHECK(!decoder.decode({.bytes = file.bytes, .left = 150, .top = 100, .entries = right}).entries_refused);
  CHECK(!decoder.decode({.bytes = file.bytes, .left = 150, .top = 100}).entries_refused);
}

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
    const auto got = slow::rendered_together(with, s);
    for (std::size_t k = 0; k < with.size(); ++k) CHECK(slow::same(got[k], without[k].pixels(plain)));
  }
  CHECK(slow::all_counts(counts)[by_entries] > rounds);
  CHECK(slow::all_counts(counts)[by_restarts] > 0);
  CHECK(slow::all_counts(counts)[refused] == 0);
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
    auto totals = slow::all_counts(counts);
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
  (void)slow::rendered_together({p, p}, s);
  expect(3, 1, 1);
}
