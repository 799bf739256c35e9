// entries: JPEG crops by entry points, from restart markers in the file or stored separately, against untouched files
//
// Planes of random resized crops, and rows of a batch, by the built-in decoder. Restart markers are inserted with the
// same coefficients and codes. Variants alternate on groups of eight images. Results are CPU times of this thread: the
// sum of each group's least time of all rounds.
#include "crop_tasks.hpp"
#include "harness.hpp"
#include "photo_sets.hpp"

#include <millrace/image/jpeg/baseline/jpeg_plane_decoder.hpp>
#include <millrace/image/jpeg/jpeg_entries.hpp>
#include <millrace/image/jpeg/libjpeg/libjpeg.hpp>
#include <millrace/item/record_builder.hpp>
#include <millrace/millrace.hpp>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

namespace mr = millrace;
using bench::cold_rows, bench::crop_task, bench::make_tasks, bench::render_all, bench::take_turns, bench::variant;

namespace {

/// Returns a file of the same coefficients with a restart marker after every `interval` MCUs.
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
  jpeg_copy_critical_parameters(&from, &to);   // and the codes of T.81 annex K, as in the sets' files
  to.restart_interval = interval;
  jpeg_write_coefficients(&to, coefficients);
  jpeg_finish_compress(&to);
  jpeg_destroy_compress(&to);
  jpeg_finish_decompress(&from);
  jpeg_destroy_decompress(&from);
  const auto* begin = reinterpret_cast<const std::byte*>(memory);
  std::vector<std::byte> output(begin, begin + size);
  std::free(memory);
  return output;
}

/// Returns the tasks with restart markers or with entries, each file in a record.
std::vector<crop_task> changed(const std::vector<crop_task>& tasks, unsigned restarts, std::size_t every_mcus,
                               mr::block_pool& pool, double& more_bytes) {
  std::vector<crop_task> output;
  mr::scratch s;
  double before = 0, after = 0;
  mr::record_builder build(pool);
  for (const crop_task& t : tasks) {
    build.begin("set", "image", 0);
    const std::span<const std::byte> plain = t.file;
    const auto marked = restarts > 0 ? with_restarts(plain, restarts)
                                     : std::vector<std::byte>(plain.begin(), plain.end());
    const auto field = build.add_field("jpg", marked.size());
    std::copy(marked.begin(), marked.end(), field.begin());
    const auto entries = every_mcus > 0 ? mr::jpeg_entries(marked, {.every_mcus = every_mcus}, s)
                                        : std::vector<std::byte>();
    build.set_entries(entries);
    output.push_back({build.finish()["jpg"], t.request, t.box});
    output.back().request.bytes = output.back().file;
    output.back().request.entries = output.back().file.entries();
    before += static_cast<double>(plain.size());
    after += static_cast<double>(marked.size() + entries.size());
  }
  more_bytes = 100 * (after / before - 1);
  return output;
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
  const way ways[] = {{"as it is", 0, 0},      {"restarts of 4", 4, 0},
                      {"restarts of 8", 8, 0}, {"a restart a row", mcus_per_row, 0},
                      {"entries of 4", 0, 4},  {"entries of 8", 0, 8}};
  std::vector<std::vector<crop_task>> all;
  std::vector<std::vector<mr::detail::jpeg_planes_request>> requests;
  const std::string name = recipe.name;
  for (const way& w : ways) {
    const auto begin = bench::seconds_of(CLOCK_THREAD_CPUTIME_ID);
    all.push_back(changed(tasks, w.restarts, w.every, pool, more));
    const double spent = bench::seconds_of(CLOCK_THREAD_CPUTIME_ID) - begin;
    requests.emplace_back();
    for (const auto& t : all.back()) requests.back().push_back(t.request);
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
                          own.decode_each(std::span(requests[w]).subspan(i, end - i),
                                          [&](std::size_t, const auto& r) { refused += !r; });
                        }});
  for (std::size_t w = 0; w < std::size(ways); ++w)
    variants.push_back({ways[w].name, [&, w](std::size_t i, std::size_t end) {
                          render_all(std::span(all[w]).subspan(i, end - i), mr::picture::together, {},
                                     mr::resize_filter::bilinear, ring, memory);
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
  run.result(name + ": refused by the built-in decoder", static_cast<double>(refused), "images", bench::at_most(0));
}

}   // namespace

int main(int argc, char** argv) {
  bench::harness run(argc, argv, "entries");
  return bench::run_guarded([&] {
    for (const auto& recipe : bench::photo_sets)
      if (run.wants(recipe.name)) measure_entry_points(run, recipe);
    return run.finish();
  });
}
