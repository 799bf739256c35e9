// The recipes of examples/guide, each in its own namespace: compiled, not run. images_2.hpp is the second block of C++
// in images.md. The headers that recipes include are included first, outside of the namespaces.
#include "includes_of_recipes.hpp"

#include <cstdint>
#include <cstdio>
#include <string>
#include <tuple>

namespace {

struct any_model {
  void step(const auto&...) {}
  void validate(const auto&...) {}
  void save(const std::string&) {}
  double correct(const auto&...) { return 0; }
  void train_on_batch(const std::uint8_t*, const std::int32_t*, std::size_t) {}
  millrace::stream_view stream() { return {}; }
};

}  // namespace

namespace pictures {
#include "images_1.hpp"
#include "images_2.hpp"
#include "README_3.hpp"
}
namespace png {
#include "images_3.hpp"
}
namespace masks {
#include "images_4.hpp"
}
namespace boxes {
#include "images_5.hpp"
}
namespace letterboxes {
#include "geometry_1.hpp"
}
namespace mosaics {
#include "geometry_2.hpp"
}
namespace mosaics_with_masks {
#include "geometry_3.hpp"
}
namespace several_sizes {
#include "geometry_4.hpp"
}
namespace optical_flow {
#include "geometry_5.hpp"
}
namespace same_geometry {
#include "images_6.hpp"
}
namespace many_crops {
#include "images_7.hpp"
}
namespace image_lists {
#include "images_8.hpp"
}
namespace text_and_images {
#include "images_9.hpp"
}
namespace sizes {
#include "images_10.hpp"
}
namespace mixed_rows {
#include "images_11.hpp"
}
namespace text {
#include "text_1.hpp"
}
namespace own_stage {
#include "stages_2.hpp"
}
namespace existing_trainer {
#include "trainers_1.hpp"
}
namespace several_ranks {
#include "ranks_1.hpp"
}

namespace evaluation {
#include "ranks_2.hpp"
}
namespace pictures_with_words {
#include "text_3.hpp"
}
namespace foreign_tokens {
#include "text_4.hpp"
}
#if __has_include(<soxr.h>)
namespace speech {
#include "audio_1.hpp"
}
#endif
namespace many_sources {
#include "sources_3.hpp"
}
namespace mix_within_mix {
#include "sources_5.hpp"
}
namespace some_samples {
#include "sources_6.hpp"
}
namespace joined_sets {
#include "sources_7.hpp"
}
namespace entry_points {
#include "decoding_1.hpp"
}
namespace damaged_samples {
#include "damage_1.hpp"
}
namespace erased_and_mixed_rows {
#include "images_12.hpp"
}
namespace ctrl_c {
#include "resume_1.hpp"
}
namespace own_file {
#include "building_1.hpp"
#include "building_2.hpp"
#include "building_3.hpp"
}
namespace loose_files {
#include "sources_1.hpp"
}
namespace with_c_header {
#include "trainers_2.hpp"
#include "trainers_3.hpp"
}
namespace from_webdataset {
#include "migration_1.hpp"
}
namespace from_dali {
#include "migration_2.hpp"
}
namespace from_tf_data {
#include "migration_3.hpp"
}
namespace from_ffcv {
#include "migration_4.hpp"
}
#if __has_include(<curl/curl.h>)
namespace from_streaming {
#include "migration_5.hpp"
}
#endif

std::vector<std::uint32_t> text::tokenize(std::string_view) { return {}; }
damaged_samples::example damaged_samples::prepare(const millrace::record& r) {
  return {millrace::jpeg(r["jpg"]), 0};
}
std::vector<std::uint32_t> text_and_images::tokenize(const std::string&) { return {}; }
std::vector<std::uint32_t> pictures_with_words::tokenize(std::string_view) { return {}; }
#if __has_include(<soxr.h>)
std::vector<std::uint32_t> speech::tokenize(std::string_view) { return {}; }
#endif
std::vector<std::uint32_t> from_tf_data::tokenize(std::string_view) { return {}; }

int main() {
  any_model model;
  pictures::train(model);
  pictures::train(millrace::shards("train.tar") | millrace::map(pictures::for_training) |
                      millrace::batch<pictures::example>({.size = 2}), model, "");
  (void)&png::prepare_png;
  (void)&masks::prepare_mask;
  (void)&boxes::prepare_boxes;
  (void)&same_geometry::prepare_pair;
  mixed_rows::train(model);
  text::train(model);
  own_stage::train({}, model);
  existing_trainer::train(model);
  several_ranks::train(model, "");
  auto alone = [](double mine) { return mine; };
  (void)evaluation::accuracy(model, alone);
  pictures_with_words::train(model);
  image_lists::train(model);
  text_and_images::train(model);
  sizes::train(model);
  joined_sets::train(model, "");
  foreign_tokens::train(model);
#if __has_include(<soxr.h>)
  speech::train(model);
#endif
  (void)mix_within_mix::flow();
  (void)some_samples::subset();
  (void)some_samples::without_damage();
  (void)some_samples::training();
  (void)some_samples::validation();
  (void)some_samples::balanced({}, 1);
  (void)entry_points::flow_with_entries();
  damaged_samples::train(model);
  own_file::train(model, "");
  with_c_header::loader_close(with_c_header::loader_open("", 1, ""));
  from_webdataset::train(model);
  from_dali::train(model, 0, 1);
  from_tf_data::train(model);
  from_ffcv::train(model);
#if __has_include(<curl/curl.h>)
  from_streaming::train(model, "");
#endif
  return ctrl_c::train(model, "");
}
