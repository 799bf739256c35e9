// The state of train_images before the first batch: the length of an epoch, the learner, and the resume point.
//
//   training_start start(args, settings, {.side = 32, .validation_rows = 96});   // one pass over the labels
//   start.net->backward(...);                                                    // new, or from last.bin of --resume
//   mr::session training{..., {.resume = start.from.position}};
//   for (std::uint64_t epoch = start.first_epoch; epoch < settings.epochs; ++epoch) ...
//
// Errors: setup_error, with the usage, if the data do not fill a batch or the checkpoint has all epochs; those of
// survey_labels() and learner.hpp.
#pragma once

#include "checkpoint_note.hpp"
#include "command_line.hpp"
#include "learner.hpp"
#include "training_settings.hpp"

#include <millrace/millrace.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

/// The number of samples and classes of shards, in one pass over the labels.
struct label_survey {
  std::uint64_t samples = 0;
  std::size_t classes = 0;
};

namespace label_survey_detail {

struct labelled {
  std::int32_t label;
};

}   // namespace label_survey_detail

inline label_survey survey_labels(const std::string& pattern) {
  namespace mr = millrace;
  using label_survey_detail::labelled;
  auto flow = mr::shards(pattern, {.fields = {"cls"}}) |
              mr::map([](const mr::record& r) { return labelled{r["cls"].as<std::int32_t>()}; }) |
              mr::batch<&labelled::label>({.size = 256, .drop_last = false});
  label_survey survey;
  // Each rank of a launcher counts all samples.
  for (auto& b : mr::session{std::move(flow), {.notice = mr::quiet, .world = mr::single_process}})
    for (const std::int32_t label : b.get<&labelled::label>()) {
      ++survey.samples;
      survey.classes = std::max(survey.classes, static_cast<std::size_t>(std::max(label, 0)) + 1);
    }
  return survey;
}

struct learner_size {
  std::size_t side = 0;              ///< of the images, in pixels
  std::size_t validation_rows = 0;   ///< of a batch
};

struct training_start {
  std::size_t micro_batch = 0;   ///< rows of a batch; settings.accumulate batches for each update
  std::uint64_t epoch_batches = 0, samples_per_epoch = 0, first_epoch = 0;
  std::unique_ptr<learner> net{};
  checkpoint_note from{};

  training_start(const command_line& args, const training_settings& s, const learner_size& size)
      : micro_batch(s.batch / s.accumulate) {
    const label_survey survey = survey_labels(s.data);
    epoch_batches = survey.samples / micro_batch;
    samples_per_epoch = epoch_batches * micro_batch;
    if (samples_per_epoch == 0) args.refuse("the training data do not fill one batch");

    net = make_learner(s.place, {.side = size.side, .classes = s.classes ? s.classes : survey.classes, .seed = s.seed},
                       std::max(micro_batch, size.validation_rows));
    if (!s.resume.empty()) from = checkpoint_note::parse(net->load(s.resume + "/last.bin"));
    first_epoch = net->updates() * s.accumulate / epoch_batches;
    if (first_epoch >= s.epochs) args.refuse("the checkpoint has all epochs: raise --epochs to continue");
  }
};
