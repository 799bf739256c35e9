// The recipes of examples/README.md, each in a namespace of its own: compiled, not run. What a recipe includes has been
// included before it, so that nothing of that gets into its namespace.
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
#include "recipe_1.hpp"
#include "recipe_2.hpp"
}
namespace png {
#include "recipe_3.hpp"
}
namespace masks {
#include "recipe_4.hpp"
}
namespace boxes {
#include "recipe_5.hpp"
}
namespace same_geometry {
#include "recipe_6.hpp"
}
namespace many_crops {
#include "recipe_7.hpp"
}
namespace sizes {
#include "recipe_8.hpp"
}
namespace mixed_rows {
#include "recipe_9.hpp"
}
namespace text {
#include "recipe_10.hpp"
}
namespace own_stage {
#include "recipe_11.hpp"
}
namespace existing_trainer {
#include "recipe_12.hpp"
}
namespace several_ranks {
#include "recipe_13.hpp"
}

namespace evaluation {
#include "recipe_14.hpp"
}
namespace pictures_with_words {
#include "recipe_15.hpp"
}
namespace some_samples {
#include "recipe_16.hpp"
}
namespace entry_points {
#include "recipe_17.hpp"
}
namespace damaged_samples {
#include "recipe_18.hpp"
}
namespace erased_and_mixed_rows {
#include "recipe_19.hpp"
}
namespace ctrl_c {
#include "recipe_20.hpp"
}
namespace own_file {
#include "recipe_21.hpp"
#include "recipe_22.hpp"
#include "recipe_23.hpp"
}
namespace loose_files {
#include "recipe_24.hpp"
}
namespace behind_a_c_header {
#include "recipe_25.hpp"
#include "recipe_26.hpp"
}

std::vector<std::uint32_t> text::tokenize(std::string_view) { return {}; }
damaged_samples::example damaged_samples::prepare(const millrace::record& r) {
  return {millrace::jpeg(r["jpg"]), 0};
}
std::vector<std::uint32_t> pictures_with_words::tokenize(std::string_view) { return {}; }

int main() {
  any_model model;
  pictures::train(model);
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
  (void)some_samples::subset();
  (void)some_samples::without_damage();
  (void)some_samples::training();
  (void)some_samples::validation();
  (void)some_samples::balanced({}, 1);
  (void)entry_points::flow_with_entries();
  damaged_samples::train(model);
  own_file::train(model, "");
  behind_a_c_header::loader_close(behind_a_c_header::loader_open("", 1, ""));
  return ctrl_c::train(model, "");
}
