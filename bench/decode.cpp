// decode: JPEG bytes to planes, and to rows of a batch, on one core, by the built-in decoder and by libjpeg-turbo
//
// Crops are random resized crops of photographs, with two pixels of margin. libjpeg-turbo decodes the crop alone to
// RGBX rows that are thrown away, which is its fastest way (crop and skip), and to raw planes down to the crop's last
// row. Rendering is all from the header to 224 x 224 pixels, exact, in a row that is not in the cache: by the library,
// so many pictures at once, and by the plain way: all of the picture by libjpeg-turbo, then an antialiased resize of
// the crop in floats. XL are large photographs, of which `fast` decodes less than all where the crop is large enough;
// the difference is that of its pixels from exact ones. All variants take turns on groups of eight pictures; counted is
// the CPU time of this thread. Neighbours slow whatever runs at their moment, so ratios are those of the least times:
// each group's least of all rounds, added up. The median of the rounds is printed beside it.
// Entry points (--only "entry points"): planes of the same crops, and rows as a batch does, of the files as they are,
// with entries beside them, and with restart markers in them (the same coefficients and codes).
#include "harness.hpp"
#include "photo_sets.hpp"

#include <millrace/image/baseline/jpeg_plane_decoder.hpp>
#include <millrace/image/jpeg_entries.hpp>
#include <millrace/image/libjpeg/libjpeg.hpp>
#include <millrace/item/record_builder.hpp>
#include <millrace/millrace.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>

namespace mr = millrace;

namespace {

constexpr std::size_t side = 224, row_bytes = side * side * 3;

struct crop_task {
  mr::bytes file;
  mr::detail::jpeg_planes_request ask;
  mr::crop_box box;
};

std::vector<crop_task> make_tasks(const bench::photo_set& set, std::size_t most) {
  std::vector<crop_task> tasks;
  mr::block_pool pool;
  for (const auto& name : set.names) {
    mr::shard_reader reader(std::make_unique<mr::file_source>(name), pool);
    while (auto record = reader.next()) {
      if (tasks.size() == most) return tasks;
      crop_task t{(*record)["jpg"], {}, {}};
      const auto header = mr::read_jpeg_header(t.file);
      mr::rng random({.seed = 3, .sample = tasks.size()});
      const auto box = mr::detail::random_crop_box({.width = header.width, .height = header.height}, random);
      t.box = box;
      constexpr std::size_t margin = 2;
      t.ask = {.bytes = t.file, .left = box.left - std::min(box.left, margin),
               .top = box.top - std::min(box.top, margin), .right = box.left + box.width + margin,
               .bottom = box.top + box.height + margin};
      tasks.push_back(t);
    }
  }
  return tasks;
}

/// Ends the program on an error: the files are the benchmark's own.
class turbo {
 public:
  turbo() {
    info_.err = jpeg_std_error(&messages_);
    jpeg_create_decompress(&info_);
  }
  ~turbo() { jpeg_destroy_decompress(&info_); }
  turbo(const turbo&) = delete;
  turbo& operator=(const turbo&) = delete;

  void region(const mr::detail::jpeg_planes_request& ask) {
    open(ask);
    info_.out_color_space = JCS_EXT_RGBX;
    jpeg_start_decompress(&info_);
    auto left = static_cast<JDIMENSION>(ask.left);
    auto width = static_cast<JDIMENSION>(std::min<std::size_t>(ask.right, info_.output_width)) - left;
    jpeg_crop_scanline(&info_, &left, &width);
    if (ask.top > 0) jpeg_skip_scanlines(&info_, static_cast<JDIMENSION>(ask.top));
    // libjpeg-turbo stores past the caches into rows that are aligned to 32 bytes, which costs it up to 40 % here.
    row_.resize(info_.output_width * 4 + 64);
    JSAMPROW row = row_.data() + 48 - reinterpret_cast<std::uintptr_t>(row_.data()) % 32;
    const auto bottom = std::min<std::size_t>(ask.bottom, info_.output_height);
    while (info_.output_scanline < bottom) jpeg_read_scanlines(&info_, &row, 1);
    jpeg_abort_decompress(&info_);
  }

  /// All of it, to RGB.
  const mr::image& whole(std::span<const std::byte> file) {
    open({.bytes = file});
    info_.out_color_space = JCS_RGB;
    jpeg_start_decompress(&info_);
    if (pixels_.shape() != std::array<std::size_t, 3>{info_.output_height, info_.output_width, 3})
      pixels_ = mr::image({info_.output_height, info_.output_width, 3});
    while (info_.output_scanline < info_.output_height) {
      JSAMPROW row = &pixels_(info_.output_scanline, 0, 0);
      jpeg_read_scanlines(&info_, &row, 1);
    }
    jpeg_finish_decompress(&info_);
    return pixels_;
  }

  void planes(const mr::detail::jpeg_planes_request& ask) {
    open(ask);
    info_.raw_data_out = 1;
    jpeg_start_decompress(&info_);
    const auto lines = static_cast<JDIMENSION>(info_.max_v_samp_factor * 8);
    const std::size_t stride = info_.comp_info[0].width_in_blocks * 8 + 64;
    row_.resize(stride * lines * 3);
    std::vector<JSAMPROW> rows(lines * 3);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = row_.data() + i * stride;
    JSAMPARRAY arrays[3] = {rows.data(), rows.data() + lines, rows.data() + 2 * lines};
    const auto bottom = std::min<std::size_t>(ask.bottom, info_.output_height);
    while (info_.output_scanline < bottom) jpeg_read_raw_data(&info_, arrays, lines);
    jpeg_abort_decompress(&info_);
  }

 private:
  void open(const mr::detail::jpeg_planes_request& ask) {
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(ask.bytes.data()), ask.bytes.size());
    jpeg_read_header(&info_, 1);
    info_.raw_data_out = 0;
  }

  jpeg_decompress_struct info_{};
  jpeg_error_mgr messages_{};
  std::vector<JSAMPLE> row_;
  mr::image pixels_;
};

/// The triangle of Pillow's "antialias", in floats, as one would write it down: columns first, then rows.
class plain_resize {
 public:
  void run(const mr::image& from, const mr::crop_box& box, std::uint8_t* to) {
    build(box.width, across_);
    build(box.height, down_);
    lines_.assign(box.height * side * 3, 0.0F);
    for (std::size_t y = 0; y < box.height; ++y)
      for (std::size_t o = 0; o < side; ++o)
        for (std::size_t k = 0; k < across_[o].weights.size(); ++k)
          for (std::size_t c = 0; c < 3; ++c)
            lines_[(y * side + o) * 3 + c] +=
                across_[o].weights[k] * from(box.top + y, box.left + across_[o].first + k, c);
    for (std::size_t o = 0; o < side; ++o) {
      row_.assign(side * 3, 0.5F);
      for (std::size_t k = 0; k < down_[o].weights.size(); ++k) {
        const float weight = down_[o].weights[k];
        const float* line = lines_.data() + (down_[o].first + k) * side * 3;
        for (std::size_t x = 0; x < side * 3; ++x) row_[x] += weight * line[x];
      }
      for (std::size_t x = 0; x < side * 3; ++x) to[o * side * 3 + x] = static_cast<std::uint8_t>(row_[x]);
    }
  }

 private:
  struct taps {
    std::size_t first = 0;
    std::vector<float> weights{};
  };

  static void build(std::size_t length, std::vector<taps>& all) {
    all.resize(side);
    const float scale = static_cast<float>(length) / side, reach = std::max(scale, 1.0F);
    for (std::size_t o = 0; o < side; ++o) {
      const float center = (static_cast<float>(o) + 0.5F) * scale;
      const auto first = static_cast<std::size_t>(std::max(0.0F, center - reach));
      const std::size_t end = std::min(length, static_cast<std::size_t>(center + reach) + 1);
      all[o].first = first;
      all[o].weights.clear();
      float sum = 0;
      for (std::size_t i = first; i < end; ++i) {
        const float weight = 1 - std::abs(static_cast<float>(i) + 0.5F - center) / reach;
        all[o].weights.push_back(std::max(weight, 0.0F));
        sum += all[o].weights.back();
      }
      for (auto& w : all[o].weights) w /= sum;
    }
  }

  std::vector<taps> across_, down_;
  std::vector<float> lines_, row_;
};

/// Rows that have left the caches when they are written again, in memory as a session's slots have it.
class cold_rows {
 public:
  std::span<std::uint8_t> next() noexcept {
    at_ = (at_ + 1) % count;
    return {static_cast<std::uint8_t*>(memory_.get()) + at_ * row_bytes, row_bytes};
  }

 private:
  struct freed {
    void operator()(void* memory) const noexcept { mr::detail::free_slot(memory); }
  };
  static constexpr std::size_t count = 1'024;
  std::unique_ptr<void, freed> memory_{mr::detail::allocate_slot(count * row_bytes)};
  std::size_t at_ = 0;
};

mr::picture planned(const crop_task& t, const mr::jpeg_options& options,
                    mr::resize_filter filter = mr::resize_filter::bilinear) {
  return mr::jpeg(t.file, options).crop(t.box).filter(filter).resize(side, side);
}

/// `group` pictures at once, from their headers on.
void render_all(std::span<const crop_task> tasks, std::size_t group, const mr::jpeg_options& options,
                mr::resize_filter filter, cold_rows& ring, mr::scratch& s) {
  std::vector<mr::picture> pictures;
  std::array<const mr::picture*, mr::picture::together> items;
  std::array<std::span<std::uint8_t>, mr::picture::together> rows;
  pictures.reserve(group);
  for (std::size_t i = 0; i + group <= tasks.size(); i += group) {
    pictures.clear();
    for (std::size_t k = 0; k < group; ++k) {
      items[k] = &pictures.emplace_back(planned(tasks[i + k], options, filter));
      rows[k] = ring.next();
    }
    if (group == 1) pictures[0].render(rows[0], s);
    else mr::picture::render_together(std::span(items).first(group), std::span(rows).first(group), s);
  }
}

/// Of `fast` pixels from exact ones, in levels.
struct level_difference {
  double mean = 0, largest = 0;
};

level_difference difference_of_fast(const std::vector<crop_task>& tasks, mr::scratch& s) {
  level_difference d;
  std::size_t samples = 0;
  for (const auto& t : tasks) {
    const auto exact = planned(t, {}).pixels(s), fast = planned(t, {.quality = mr::picture_quality::fast}).pixels(s);
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const double gap = std::abs(exact.span()[i] - fast.span()[i]);
      d.mean += gap;
      d.largest = std::max(d.largest, gap);
    }
    samples += exact.size();
  }
  d.mean /= static_cast<double>(samples);
  return d;
}

/// What takes turns: tasks [begin, end) are given.
struct variant {
  const char* name;
  std::function<void(std::size_t begin, std::size_t end)> run;
  std::vector<double> us{};      // for a picture, of each round
  std::vector<double> least{};   // CPU time of each group
  double least_us = 0;           // for a picture, of the groups' least times
};

constexpr std::size_t group_size = 8;

void take_turns(std::span<variant> variants, std::size_t pictures, int rounds) {
  const std::size_t groups = pictures / group_size;
  for (auto& v : variants) v.least.assign(groups, 1e9);
  for (int round = 0; round < rounds; ++round) {
    for (auto& v : variants) v.us.push_back(0);
    for (std::size_t g = 0; g < groups; ++g)
      for (std::size_t i = 0; i < variants.size(); ++i) {
        variant& v = variants[(i + g + static_cast<std::size_t>(round)) % variants.size()];
        const double before = bench::seconds_of(CLOCK_THREAD_CPUTIME_ID);
        v.run(g * group_size, (g + 1) * group_size);
        const double spent = bench::seconds_of(CLOCK_THREAD_CPUTIME_ID) - before;
        v.us.back() += spent * 1e6 / static_cast<double>(groups * group_size);
        v.least[g] = std::min(v.least[g], spent);
      }
  }
  for (auto& v : variants)
    for (const double spent : v.least) v.least_us += spent * 1e6 / static_cast<double>(groups * group_size);
}

void measure(bench::harness& run, const bench::photo_set_recipe& recipe) {
  const auto set = bench::make_photo_set(recipe);
  const auto tasks = make_tasks(set, run.quick() ? 256 : 1'024);
  std::vector<mr::detail::jpeg_planes_request> asked;
  for (const auto& t : tasks) asked.push_back(t.ask);
  mr::detail::jpeg_plane_decoder own, portable(mr::detail::jpeg_plane_decoder::code::portable);
  turbo libjpeg;
  plain_resize plain;
  cold_rows ring;
  mr::scratch memory;
  std::size_t refused = 0;
  const auto in_pairs = [&](mr::detail::jpeg_plane_decoder& decoder, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i + 1 < end; i += 2)
      for (const auto& result : decoder.decode(asked[i], asked[i + 1])) refused += !result;
  };
  const auto rendered = [&](std::size_t together, const mr::jpeg_options& options,
                            mr::resize_filter filter = mr::resize_filter::bilinear) {
    return [&, together, options, filter](std::size_t begin, std::size_t end) {
      render_all(std::span(tasks).subspan(begin, end - begin), together, options, filter, ring, memory);
    };
  };
  constexpr auto fast = mr::picture_quality::fast;
  constexpr auto by_libjpeg = mr::picture_decoder::libjpeg;
  variant variants[] = {
      {"libjpeg-turbo, the region to RGBX", [&](std::size_t i, std::size_t end) {
         for (; i < end; ++i) libjpeg.region(asked[i]);
       }},
      {"libjpeg-turbo, raw planes", [&](std::size_t i, std::size_t end) {
         for (; i < end; ++i) libjpeg.planes(asked[i]);
       }},
      {"own, alone", [&](std::size_t i, std::size_t end) { for (; i < end; ++i) refused += !own.decode(asked[i]); }},
      {"own, pairs", [&](std::size_t i, std::size_t end) { in_pairs(own, i, end); }},
      {"own, two of a list", [&](std::size_t i, std::size_t end) {
         own.decode_each(std::span(asked).subspan(i, end - i), [&](std::size_t, const auto& r) { refused += !r; });
       }},
      {"own, portable code, pairs", [&](std::size_t i, std::size_t end) { in_pairs(portable, i, end); }},
      {"rendered, plain way", [&](std::size_t i, std::size_t end) {
         for (; i < end; ++i) plain.run(libjpeg.whole(tasks[i].file), tasks[i].box, ring.next().data());
       }},
      {"rendered, libjpeg-turbo's region", rendered(1, {.decoder = by_libjpeg})},
      {"rendered, alone", rendered(1, {})},
      {"rendered, 2 at once", rendered(2, {})},
      {"rendered, as a batch does", rendered(mr::picture::together, {})},
      {"rendered, fast, as a batch does", rendered(mr::picture::together, {.quality = fast})},
      {"rendered, fast, libjpeg-turbo's", rendered(1, {.quality = fast, .decoder = by_libjpeg})},
      {"rendered, bicubic, as a batch does", rendered(mr::picture::together, {}, mr::resize_filter::bicubic)},
      {"rendered, fast, bicubic, as a batch does",
       rendered(mr::picture::together, {.quality = fast}, mr::resize_filter::bicubic)}};
  take_turns(variants, tasks.size(), run.quick() ? 5 : 10);
  const std::string set_name = recipe.name;
  std::printf("%s: %zu pictures of %.1f KB; us for a picture, least and median of rounds\n", recipe.name, tasks.size(),
              set.file_bytes / 1e3);
  for (const auto& v : variants)
    std::printf("  %-36s %7.1f   %s\n", v.name, v.least_us, bench::spread(v.us, "%.1f").c_str());
  for (const auto& v : variants) run.result(set_name + ": " + v.name, v.least_us, "us");
  const auto ratio = [&](std::size_t of, std::size_t to) { return variants[of].least_us / variants[to].least_us; };
  run.result(set_name + ": own alone, times libjpeg-turbo's region", ratio(0, 2), "x");
  run.result(set_name + ": own pairs, times libjpeg-turbo's region", ratio(0, 3), "x");
  run.result(set_name + ": own list, times libjpeg-turbo's region", ratio(0, 4), "x");
  run.result(set_name + ": bicubic as a batch does, times the time of bilinear", ratio(13, 10), "x");
  run.result(set_name + ": fast bicubic as a batch does, times the time of bilinear", ratio(14, 11), "x");
  const auto gap = difference_of_fast(tasks, memory);
  run.result(set_name + ": fast from exact, mean", gap.mean, "levels");
  run.result(set_name + ": fast from exact, most", gap.largest, "levels");
  if (set_name == bench::large_photo_set.name) {
    run.result(set_name + ": fast as a batch does, times exact", ratio(10, 11), "x");
    run.result(set_name + ": fast as a batch does, times libjpeg-turbo's region alone", ratio(0, 11), "x");
    run.result(set_name + ": fast as a batch does, times libjpeg-turbo's decode of as little", ratio(12, 11), "x");
    run.result(set_name + ": fast as a batch does, times the plain way", ratio(6, 11), "x");
  } else {
    run.result(set_name + ": rendered as a batch does, times libjpeg-turbo's region alone", ratio(0, 10), "x",
               bench::at_least(2.1));
    run.result(set_name + ": rendered as a batch does, times the plain way", ratio(6, 10), "x",
               bench::at_least(set_name == "L" ? 4.4 : 5.0));
  }
  run.result(set_name + ": refused by the built-in decoder", static_cast<double>(refused), "pictures",
             bench::at_most(0));
}

/// The same coefficients with a restart marker behind every `interval` MCUs.
std::vector<std::byte> with_restarts(std::span<const std::byte> file, unsigned interval) {
  jpeg_error_mgr messages{};
  jpeg_decompress_struct from{};
  from.err = jpeg_std_error(&messages);
  jpeg_create_decompress(&from);
  jpeg_mem_src(&from, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&from, 1);
  jvirt_barray_ptr* coefficients = jpeg_read_coefficients(&from);
  jpeg_compress_struct to{};
  to.err = &messages;
  jpeg_create_compress(&to);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&to, &memory, &size);
  jpeg_copy_critical_parameters(&from, &to);   // and the codes of T.81 annex K, which the sets' files have
  to.restart_interval = interval;
  jpeg_write_coefficients(&to, coefficients);
  jpeg_finish_compress(&to);
  jpeg_destroy_compress(&to);
  jpeg_finish_decompress(&from);
  jpeg_destroy_decompress(&from);
  const auto* begin = reinterpret_cast<const std::byte*>(memory);
  std::vector<std::byte> made(begin, begin + size);
  std::free(memory);
  return made;
}

/// The tasks with other files, or with entries, each in a record.
std::vector<crop_task> changed(const std::vector<crop_task>& tasks, unsigned restarts, std::size_t every_mcus,
                               mr::block_pool& pool, double& more_bytes) {
  std::vector<crop_task> made;
  double before = 0, after = 0;
  mr::record_builder build(pool);
  for (const crop_task& t : tasks) {
    build.begin("set", "picture", 0);
    const std::span<const std::byte> plain = t.file;
    const auto marked = restarts > 0 ? with_restarts(plain, restarts)
                                     : std::vector<std::byte>(plain.begin(), plain.end());
    const auto field = build.add_field("jpg", marked.size());
    std::copy(marked.begin(), marked.end(), field.begin());
    const auto entries = every_mcus > 0 ? mr::jpeg_entries(marked, {.every_mcus = every_mcus})
                                        : std::vector<std::byte>();
    build.set_entries(entries);
    made.push_back({build.finish()["jpg"], t.ask, t.box});
    made.back().ask.bytes = made.back().file;
    made.back().ask.entries = made.back().file.entries();
    before += static_cast<double>(plain.size());
    after += static_cast<double>(marked.size() + entries.size());
  }
  more_bytes = 100 * (after / before - 1);
  return made;
}

void measure_entry_points(bench::harness& run, const bench::photo_set_recipe& recipe) {
  const auto set = bench::make_photo_set(recipe);
  mr::block_pool pool;
  double more = 0;
  const auto tasks = changed(make_tasks(set, run.quick() ? 256 : 1'024), 0, 0, pool, more);
  const auto mcus_per_row = static_cast<unsigned>((recipe.width + 15) / 16);
  struct way {
    const char* name;
    unsigned restarts;
    std::size_t every;
  };
  const way ways[] = {{"as it is", 0, 0},  {"restarts of 4", 4, 0}, {"restarts of 8", 8, 0},
                      {"a restart a row", mcus_per_row, 0}, {"entries of 4", 0, 4}, {"entries of 8", 0, 8}};
  std::vector<std::vector<crop_task>> all;
  std::vector<std::vector<mr::detail::jpeg_planes_request>> asked;
  const std::string name = recipe.name;
  for (const way& w : ways) {
    const auto begin = bench::seconds_of(CLOCK_THREAD_CPUTIME_ID);
    all.push_back(changed(tasks, w.restarts, w.every, pool, more));
    const double spent = bench::seconds_of(CLOCK_THREAD_CPUTIME_ID) - begin;
    asked.emplace_back();
    for (const auto& t : all.back()) asked.back().push_back(t.ask);
    run.result(name + ": " + w.name + ", more bytes", more, "%");
    if (w.every == 4) run.result(name + ": made in", spent * 1e6 / static_cast<double>(tasks.size()), "us");
  }
  mr::detail::jpeg_plane_decoder own;
  cold_rows ring;
  mr::scratch memory;
  std::size_t refused = 0;
  std::vector<variant> variants;
  for (std::size_t w = 0; w < std::size(ways); ++w)
    variants.push_back({ways[w].name, [&, w](std::size_t i, std::size_t end) {
      own.decode_each(std::span(asked[w]).subspan(i, end - i), [&](std::size_t, const auto& r) { refused += !r; });
    }});
  for (std::size_t w = 0; w < std::size(ways); ++w)
    variants.push_back({ways[w].name, [&, w](std::size_t i, std::size_t end) {
      render_all(std::span(all[w]).subspan(i, end - i), mr::picture::together, {}, mr::resize_filter::bilinear, ring,
                 memory);
    }});
  take_turns(variants, tasks.size(), run.quick() ? 5 : 10);
  for (std::size_t v = 0; v < variants.size(); ++v) {
    const bool planes = v < std::size(ways);
    const std::string what = name + ": " + (planes ? "planes, " : "rows, ") + variants[v].name;
    run.result(what, variants[v].least_us, "us");
    const double plain = variants[planes ? 0 : std::size(ways)].least_us;
    run.result(what + ", of as it is", 100 * variants[v].least_us / plain, "%");
    std::printf("  %-36s %7.1f   %s\n", what.c_str(), variants[v].least_us,
                bench::spread(variants[v].us, "%.1f").c_str());
  }
  run.result(name + ": refused by the built-in decoder", static_cast<double>(refused), "pictures", bench::at_most(0));
}

}  // namespace

int main(int argc, char** argv) {
  bench::harness run(argc, argv, "decode");
  return bench::run_guarded([&] {
    for (const auto& recipe : bench::photo_sets)
      if (run.wants(recipe.name)) measure(run, recipe);
    if (run.wants(bench::large_photo_set.name)) measure(run, bench::large_photo_set);
    for (const auto& recipe : bench::photo_sets)
      if (run.wants("entry points")) measure_entry_points(run, recipe);
    return run.finish();
  });
}
