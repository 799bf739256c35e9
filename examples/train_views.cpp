// Self-supervised learning: two large and six small crops of each image, each with different colors.
//
//   train_views                                                 # creates shapes, and learns from their images alone
//   train_views --data 'my-{000..009}.tar' --val my-val.tar     # fields jpg and cls; labels are for the probe
//
// A linear classifier on the features measures their quality, before the training and after it.
#include "command_line.hpp"
#include "linear_probe.hpp"
#include "shape_shards.hpp"
#include "view_network.hpp"

#include <millrace/millrace.hpp>
#include <millrace/pictures.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// Several crops of one image as one column, each with different colors. The crops are consecutive in their row. A
/// column can be of any type with shape() and render().
template <std::size_t Count>
struct crops {
  using element = std::uint8_t;
  std::vector<millrace::picture> pictures{};
  std::vector<millrace::photometric_plan> colors{};

  std::array<std::size_t, 4> shape() const { return {Count, pictures[0].height(), pictures[0].width(), 3}; }
  void render(std::span<std::uint8_t> row, millrace::scratch& s) const {
    for (std::size_t i = 0; i < Count; ++i) {
      const auto crop = row.subspan(i * row.size() / Count, row.size() / Count);
      pictures[i].render(crop, s);
      colors[i].run(crop, pictures[i].width(), pictures[i].height(), s);
    }
  }
};

namespace mr = millrace;

namespace {

struct example {
  crops<2> globals;
  crops<6> locals;
};

/// Changes the colors. Otherwise the network would distinguish images by color, and ignore their shapes.
void add_crop(auto& to, const mr::picture& crop, mr::rng& rng) {
  to.pictures.push_back(crop.random_flip(rng));
  to.colors.emplace_back()
      .color_jitter({.brightness = 0.4, .contrast = 0.4, .saturation = 0.8, .hue = 0.5}, rng)
      .random_grayscale(rng, 0.5)
      .random_invert(rng);
}

example for_training(const mr::record& r, mr::rng& rng) {
  const mr::picture image = mr::jpeg(r["jpg"]);
  example e;
  for (int i = 0; i < 2; ++i) add_crop(e.globals, image.random_resized_crop(32, rng, {.scale_min = 0.5}), rng);
  for (int i = 0; i < 6; ++i)
    add_crop(e.locals, image.random_resized_crop(16, rng, {.scale_min = 0.5, .scale_max = 0.9}), rng);
  return e;
}

struct labelled {
  mr::picture pixels;
  std::int32_t label;
};
labelled for_probe(const mr::record& r) {
  return {mr::jpeg(r["jpg"]).resize_shorter(32).center_crop(32), r["cls"].as<std::int32_t>()};
}

double probe(view_network& net, const std::string& data, const std::string& held_out) {
  labelled_features training, test;
  for (auto [shards, features] : {std::pair(&data, &training), std::pair(&held_out, &test)}) {
    mr::session run{mr::shards(*shards) | mr::map(for_probe) |
                        mr::batch<&labelled::pixels, &labelled::label>({.size = 96, .drop_last = false}),
                    {.notice = mr::quiet}};
    for (auto& b : run) features->add(net.features(b.get<&labelled::pixels>()), b.get<&labelled::label>());
  }
  return linear_probe(training, test, view_network::feature_count);
}

void train(command_line& args) {
  std::string work = args.text("--work", "millrace-shapes"), data = args.text("--data", ""),
              held_out = args.text("--val", "");
  const auto epochs = args.number("--epochs", std::uint64_t{6});
  if (!args.rest().empty() || data.empty() != held_out.empty())
    args.refuse("expected both --data and --val, or neither");
  if (data.empty()) {
    const shape_shards shapes = make_shape_shards({.folder = work});
    data = shapes.train, held_out = shapes.validation;
  }
  view_network net({});
  const double untrained = probe(net, data, held_out);
  mr::session run{mr::shards(data, {.seed = 1}) | mr::shuffle({.window = 2048}) | mr::map(for_training) |
                      mr::batch<&example::globals, &example::locals>({.size = 32}),
                  {.epochs = epochs}};
  for (auto& b : run) net.step(b.get<&example::globals>(), b.get<&example::locals>(), 3e-3);
  std::printf("summary: probe=%.3f untrained=%.3f\n", probe(net, data, held_out), untrained);
}

}   // namespace

int main(int argc, char** argv) {
  return run_program({argc, argv, "usage: train_views [--data SHARDS --val SHARDS] [--work FOLDER] [--epochs N]"},
                     train);
}
