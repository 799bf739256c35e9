// decode: JPEG bytes to planes on one core, by the own decoder and by libjpeg-turbo
//
// Crops are random resized crops of photographs, with two pixels of margin. libjpeg-turbo decodes the crop alone to
// RGBX rows that are thrown away, which is its fastest way (crop and skip), and to raw planes down to the crop's last
// row. All variants take turns on the same pictures; counted is the CPU time of this thread.
#include "harness.hpp"
#include "photo_sets.hpp"

#include <millrace/image/jpeg_plane_decoder.hpp>
#include <millrace/millrace.hpp>

#include <algorithm>
#include <functional>
#include <memory>

namespace mr = millrace;

namespace {

struct crop_task {
  mr::bytes file;
  mr::jpeg_planes_request ask;
};

std::vector<crop_task> make_tasks(const bench::photo_set& set, std::size_t most) {
  std::vector<crop_task> tasks;
  mr::block_pool pool;
  for (const auto& name : set.names) {
    mr::shard_reader reader(std::make_unique<mr::file_source>(name), pool);
    while (auto record = reader.next()) {
      if (tasks.size() == most) return tasks;
      crop_task t{(*record)["jpg"], {}};
      const auto header = mr::read_jpeg_header(t.file);
      mr::draw random({.seed = 3, .sample = tasks.size()});
      const auto box = mr::draw_crop({.width = header.width, .height = header.height}, random);
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

  void region(const mr::jpeg_planes_request& ask) {
    open(ask);
    info_.out_color_space = JCS_EXT_RGBX;
    jpeg_start_decompress(&info_);
    auto left = static_cast<JDIMENSION>(ask.left);
    auto width = static_cast<JDIMENSION>(std::min<std::size_t>(ask.right, info_.output_width)) - left;
    jpeg_crop_scanline(&info_, &left, &width);
    if (ask.top > 0) jpeg_skip_scanlines(&info_, static_cast<JDIMENSION>(ask.top));
    row_.resize(info_.output_width * 4);
    JSAMPROW row = row_.data();
    const auto bottom = std::min<std::size_t>(ask.bottom, info_.output_height);
    while (info_.output_scanline < bottom) jpeg_read_scanlines(&info_, &row, 1);
    jpeg_abort_decompress(&info_);
  }

  void planes(const mr::jpeg_planes_request& ask) {
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
  void open(const mr::jpeg_planes_request& ask) {
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(ask.bytes.data()), ask.bytes.size());
    jpeg_read_header(&info_, 1);
    info_.raw_data_out = 0;
  }

  jpeg_decompress_struct info_{};
  jpeg_error_mgr messages_{};
  std::vector<JSAMPLE> row_;
};

struct variant {
  const char* name;
  std::function<void()> decode_all;
  std::vector<double> us{};   // for a picture, of each round
};

void measure(bench::harness& run, const bench::photo_set_recipe& recipe) {
  const auto set = bench::make_photo_set(recipe);
  const auto tasks = make_tasks(set, run.quick() ? 256 : 1'024);
  std::vector<mr::jpeg_planes_request> asked;
  for (const auto& t : tasks) asked.push_back(t.ask);
  mr::jpeg_plane_decoder own, portable(mr::jpeg_plane_decoder::code::portable);
  turbo libjpeg;
  std::size_t refused = 0;
  const auto in_pairs = [&](mr::jpeg_plane_decoder& decoder) {
    for (std::size_t i = 0; i + 1 < asked.size(); i += 2)
      for (const auto& result : decoder.decode(asked[i], asked[i + 1])) refused += !result;
  };
  variant variants[] = {
      {"libjpeg-turbo, the region to RGBX", [&] { for (const auto& ask : asked) libjpeg.region(ask); }},
      {"libjpeg-turbo, raw planes", [&] { for (const auto& ask : asked) libjpeg.planes(ask); }},
      {"own, alone", [&] { for (const auto& ask : asked) refused += !own.decode(ask); }},
      {"own, pairs", [&] { in_pairs(own); }},
      {"own, two of a list", [&] { own.decode_each(asked, [&](std::size_t, const auto& r) { refused += !r; }); }},
      {"own, portable code, pairs", [&] { in_pairs(portable); }}};
  for (int round = 0; round < (run.quick() ? 4 : 8); ++round)
    for (auto& v : variants) {
      const double before = bench::seconds_of(CLOCK_THREAD_CPUTIME_ID);
      v.decode_all();
      const double spent = bench::seconds_of(CLOCK_THREAD_CPUTIME_ID) - before;
      if (round > 0) v.us.push_back(spent * 1e6 / static_cast<double>(asked.size()));
    }
  const std::string set_name = recipe.name;
  std::printf("%s: %zu pictures of %.1f KB\n", recipe.name, tasks.size(), set.file_bytes / 1e3);
  for (const auto& v : variants)
    std::printf("  %-36s %s us\n", v.name, bench::spread(v.us, "%.1f").c_str());
  for (const auto& v : variants) run.result(set_name + ": " + v.name, bench::median(v.us), "us");
  const auto times_as_fast = [&](std::size_t which) {
    return bench::median(variants[0].us) / bench::median(variants[which].us);
  };
  run.result(set_name + ": own alone, times libjpeg-turbo's region", times_as_fast(2), "x");
  run.result(set_name + ": own pairs, times libjpeg-turbo's region", times_as_fast(3), "x");
  run.result(set_name + ": own list, times libjpeg-turbo's region", times_as_fast(4), "x");
  run.result(set_name + ": refused by the own decoder", static_cast<double>(refused), "pictures", bench::at_most(0));
}

}  // namespace

int main(int argc, char** argv) {
  bench::harness run(argc, argv, "decode");
  return bench::run_guarded([&] {
    for (const auto& recipe : bench::photo_sets)
      if (run.wants(recipe.name)) measure(run, recipe);
    return run.finish();
  });
}
