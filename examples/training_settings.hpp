// The options of train_images.
//
//   const training_settings s = read_training_settings(args);   // without --data: creates a data set of shapes
//
//   train_images --work FOLDER                 # for shapes and runs; else MILLRACE_EXAMPLE_DATA, or millrace-shapes
//   train_images --device host                 # even if there is a GPU; kernels: the kernels of the GPU on the host,
//                                              # slow, for a check
//   train_images --batch 24 --accumulate 4     # four micro-batches of 6 rows for each update
//   train_images --recipe                      # RandAugment, and rows mixed in pairs (mixup)
//   train_images --report                      # at the end: the bottleneck of the training
//   train_images --pictures                    # the first augmented images of each epoch
//   train_images --resume FOLDER/run-1         # resumes the run, to the same model
//
// Errors: setup_error, with the usage, for unknown and contradictory arguments; those of shape_shards.hpp.
#pragma once

#include "command_line.hpp"
#include "learner_place.hpp"
#include "shape_shards.hpp"

#include <millrace/run/session_options.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

inline constexpr auto training_usage =
    "usage: train_images [--data SHARDS [--val SHARDS] [--classes N]] [--work FOLDER] [--epochs N] "
    "[--seed N] [--batch N] [--accumulate N] [--threads N] [--device host|gpu|kernels] "
    "[--rotate-labels] [--recipe] [--report] [--pictures] [--resume RUN_FOLDER]";

struct training_settings {
  std::string data{}, validation{}, work{}, resume{};
  std::size_t classes = 0;   ///< 0: as many as the data have
  std::uint64_t epochs = 12, seed = 1;
  std::size_t batch = 24, accumulate = 1;
  std::optional<unsigned> threads{};
  learner_place place{};
  /// Gives each image the label of the one before it, to emulate a program error: nothing can be learned.
  bool rotate_labels = false;
  bool recipe = false, report = false, pictures = false;
};

inline training_settings read_training_settings(command_line& args) {
  training_settings s;
  const char* work = std::getenv("MILLRACE_EXAMPLE_DATA");
  s.work = args.text("--work", work && *work ? work : "millrace-shapes");
  s.data = args.text("--data", "");
  s.validation = args.text("--val", "");
  s.classes = args.number("--classes", s.classes);
  s.epochs = args.number("--epochs", s.epochs);
  s.seed = args.number("--seed", s.seed);
  s.batch = args.number("--batch", s.batch);
  s.accumulate = args.number("--accumulate", s.accumulate);
  s.threads = args.number("--threads", s.threads);
  s.report = args.flag("--report");
  s.pictures = args.flag("--pictures");
  s.resume = args.text("--resume", "");
  const std::string device = args.text("--device", "");
  s.rotate_labels = args.flag("--rotate-labels");
  s.recipe = args.flag("--recipe");
  s.place = choose_place(args, device, {.host_only = s.rotate_labels || s.recipe});
  if (!args.rest().empty()) args.refuse("expected options only");
  if (s.data.empty() && !s.validation.empty()) args.refuse("--val needs --data");
  if (s.epochs == 0 || s.accumulate == 0 || s.batch == 0 || s.batch % s.accumulate != 0)
    args.refuse("expected --epochs of at least 1, and --batch a multiple of --accumulate");
  if (s.data.empty()) {
    const shape_shards shapes = make_shape_shards({.folder = s.work});
    s.data = shapes.train;
    s.validation = shapes.validation;
  } else if (s.validation.empty()) {
    std::printf("no --val: the accuracy is that of the training data, without augmentation\n");
    s.validation = s.data;
  }
  return s;
}
