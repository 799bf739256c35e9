// Writes a small labelled data set, images of ten shapes, as tar shards: train-*.tar and val-*.tar.
//
//   make_shapes data             # fields jpg and cls
//   make_shapes data --masks     # also pgm, a label map, and json, the box of the shape: see shape_shards.hpp
//   make_shapes data --restarts-per-row auto      # restart markers: see restart_choice.hpp
#include "command_line.hpp"
#include "shape_shards.hpp"

namespace {

void make(command_line& args) {
  shape_shards_options options;
  options.samples = args.number("--samples", options.samples);
  options.shards = args.number("--shards", options.shards);
  options.seed = args.number("--seed", options.seed);
  options.masks = args.flag("--masks");
  options.restarts = read_restarts(args);
  const auto folders = args.rest();
  if (folders.size() != 1) args.refuse("expected one folder to write to");
  options.folder = folders[0];
  const shape_shards shapes = make_shape_shards(options);
  std::printf("train: %s\nvalidation: %s\n", millrace::printable(shapes.train).c_str(),
              millrace::printable(shapes.validation).c_str());
}

}   // namespace

int main(int argc, char** argv) {
  return run_program({argc, argv,
                      "usage: make_shapes FOLDER [--samples N] [--shards N] [--seed N] [--masks]\n"
                      "                   [--restarts-per-row N|auto]"},
                     make);
}
