// Learns a class for each pixel: images with masks, both with the same random crop and flip.
//
//   train_segmentation                                        # creates shapes with masks, and trains on them
//   train_segmentation --data 'my-{000..009}.tar' --val my-val.tar --classes 5     # fields jpg, and png or pgm
//   train_segmentation --shift-masks                          # each image with the mask of the next
//
// Files of WORK: train.jsonl, and batch.png, the first batch with its masks over it.
#include "command_line.hpp"
#include "mask_network.hpp"
#include "shape_shards.hpp"

#include <millrace/metrics.hpp>
#include <millrace/millrace.hpp>
#include <millrace/pictures.hpp>

namespace mr = millrace;

namespace {

constexpr std::size_t side = 32;   // of the input of the network, in pixels
struct example {
  mr::picture pixels;
  mr::label_map<> classes;
};

example for_training(const mr::record& r, mr::rng& rng) {
  mr::picture p = mr::jpeg(r["jpg"]).random_resized_crop(side, rng, {.scale_min = 0.5}).random_flip(rng);
  return {p, mr::labels(r["png;pgm"]).apply(p.geometry())};   // the same crop and flip as the image
}

example for_validation(const mr::record& r) {
  mr::picture p = mr::jpeg(r["jpg"]).resize_shorter(side).center_crop(side);
  return {p, mr::labels(r["png;pgm"]).apply(p.geometry())};
}

/// Emulates a program error that mixes up fields.
void shift(mr::tensor_view<std::uint8_t, 3> masks) {
  std::rotate(masks.span().begin(), masks.span().begin() + side * side, masks.span().end());
}

void train(command_line& args) {
  const std::string work = args.text("--work", "millrace-masks");
  std::string data = args.text("--data", ""), held_out = args.text("--val", "");
  const auto epochs = args.number("--epochs", std::uint64_t{6}), classes = args.number("--classes", std::uint64_t{11});
  const bool shifted = args.flag("--shift-masks");
  if (!args.rest().empty() || data.empty() != held_out.empty())
    args.refuse("expected both --data and --val, or neither");
  std::filesystem::create_directories(work);
  if (data.empty()) {
    const shape_shards shapes = make_shape_shards({.folder = work, .masks = true});
    data = shapes.train, held_out = shapes.validation;
  }
  mask_network net({.side = side, .classes = classes});
  mr::session training{mr::shards(data, {.seed = 1}) | mr::shuffle({.window = 2048}) | mr::map(for_training) |
                           mr::batch<&example::pixels, &example::classes>({.size = 12}),
                       {.epochs = epochs}};
  mr::session validation{mr::shards(held_out) | mr::map(for_validation) |
                             mr::batch<&example::pixels, &example::classes>({.size = 96, .drop_last = false}),
                         {.epochs = epochs}};
  mr::log out(mr::status_line{}, mr::json_lines(work + "/train.jsonl"));
  for (std::uint64_t epoch = 0, step = 0; epoch < epochs; ++epoch) {
    mask_outcome trained, valid;
    for (auto& b : training.epoch(epoch)) {
      const auto [pixels, masks] = b.columns();
      if (shifted) shift(masks);
      if (step == 0) mr::save_grid(b, work + "/batch.png", {.masks = masks});
      trained.add(net.step(pixels, masks, 4e-3 / (1 + 0.4 * static_cast<double>(epoch))));
      ++step;
    }
    for (auto& b : validation.epoch(epoch))
      valid.add(net.evaluate(b.get<&example::pixels>(), b.get<&example::classes>()));
    out.push({.step = step, .epoch = epoch, .values = {{"loss", trained.mean_loss()}, {"mean_iou", valid.mean_iou()}}});
    if (epoch + 1 == epochs) std::printf("summary: mean_iou=%.3f\n", valid.mean_iou());
  }
}

}   // namespace

int main(int argc, char** argv) {
  return run_program({argc, argv,
                      "usage: train_segmentation [--data SHARDS --val SHARDS] [--classes N] "
                      "[--work FOLDER] [--epochs N] [--shift-masks]"},
                     train);
}
