#include <millrace/image/render/picture_renderer.hpp>
#include <millrace/image/values/jpeg_refusal.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mr = millrace;
using mr::detail::entry_origin;
using mr::jpeg_refusal;
using counted = std::vector<std::pair<std::string, std::uint64_t>>;

namespace {

counted counts_of(const mr::event_counts& counts) {
  counted all;
  for (const auto& c : counts.counts()) all.push_back({c.what, c.times});
  return all;
}

}  // namespace

TEST_CASE("each rendered image is counted by its decoder, its size and the savings of entry points") {
  const std::string file(100, 'x');
  const mr::bytes data = mr::bytes::borrowed(file);
  const mr::jpeg_header baseline{.width = 20, .height = 10}, progressive{.width = 4, .height = 3, .progressive = true};
  const std::array jobs{mr::detail::picture_job{.data = &data, .header = &baseline, .eighths = 4},
                        mr::detail::picture_job{.data = &data, .header = &progressive},
                        mr::detail::picture_job{.data = &data, .header = &progressive},
                        mr::detail::picture_job{.data = &data, .header = &baseline}};
  const std::array results{mr::detail::built_in_result{.entries = entry_origin::packed},
                           mr::detail::built_in_result{.entries = entry_origin::restart_markers,
                                                       .entries_refused = true},
                           mr::detail::built_in_result{.refusal = jpeg_refusal::sampling},
                           mr::detail::built_in_result{.refusal = jpeg_refusal::damaged}};
  mr::event_counts counts;
  mr::scratch s;
  s.count_into(counts);

  SUBCASE("several images of the built-in decoder") {
    mr::detail::render_counts sums{.shared = 1, .libjpeg = {.progressive = 1, .damaged = 1, .warnings = 7}};
    for (std::size_t i = 0; i < jobs.size(); ++i) sums.add(jobs[i], results[i]);
    CHECK(sums.built_in == 2);
    CHECK(sums.built_in_progressive == 1);
    sums.count_into(s, results);
    CHECK(counts_of(counts) ==
          counted{{text_of(mr::detail::event_name::own_together), 2},
                  {"JPEGs by libjpeg: sampling", 1},
                  {"JPEGs by libjpeg: damaged", 1},
                  {"bytes of JPEGs", 400},
                  {"pixels of JPEGs", 424},
                  {"JPEGs decoded smaller", 1},
                  {"JPEG crops accelerated by entry points", 1},
                  {"JPEG crops accelerated by restart markers", 1},
                  {"JPEGs with entry points of another file", 1},
                  {"images rendered from the planes of another image", 1},
                  {"progressive JPEGs", 2},
                  {"damaged JPEGs accepted", 1},
                  {"warnings of libjpeg", 7}});
  }
  SUBCASE("a single image") {
    mr::detail::render_counts sums;
    sums.add(jobs[3], {});
    sums.count_into(s, {});
    CHECK(counts_of(counts) ==
          counted{{text_of(mr::detail::event_name::own_alone), 1}, {"bytes of JPEGs", 100}, {"pixels of JPEGs", 200}});
  }
}

TEST_CASE("each reason has its name, and its event has the same one") {
  for (const auto& [why, name] :
       {std::pair{jpeg_refusal::none, "none"}, std::pair{jpeg_refusal::not_asked, "as requested"},
        std::pair{jpeg_refusal::scaled, "size"}, std::pair{jpeg_refusal::machine, "processor"},
        std::pair{jpeg_refusal::not_a_jpeg, "not a JPEG"}, std::pair{jpeg_refusal::process, "arithmetic or lossless"},
        std::pair{jpeg_refusal::precision, "precision"}, std::pair{jpeg_refusal::components, "components"},
        std::pair{jpeg_refusal::sampling, "sampling"}, std::pair{jpeg_refusal::several_scans, "several scans"},
        std::pair{jpeg_refusal::colors, "color space"}, std::pair{jpeg_refusal::unusual_header, "unusual header"},
        std::pair{jpeg_refusal::tables, "tables"}, std::pair{jpeg_refusal::damaged, "damaged"},
        std::pair{jpeg_refusal::wild_values, "extreme values"}, std::pair{jpeg_refusal::progressive, "progressive"},
        std::pair{jpeg_refusal::unrefined, "progressive, scans omitted"},
        std::pair{jpeg_refusal::limits, "progressive, beyond a limit"}}) {
    CHECK(std::string(refusal_name(why)) == name);
    CHECK(std::string(text_of(mr::detail::event_of(why))) == "JPEGs by libjpeg: " + std::string(name));
    CHECK(libjpeg_reason(mr::detail::event_of(why)) == std::string(name));
  }
}
