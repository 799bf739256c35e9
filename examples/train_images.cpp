// The sample training loop: a small convolutional network learns from a stream of labelled images.
//
//   train_images                                                     # creates a data set of shapes and trains on it
//   train_images --data 'my-{000..009}.tar' --val my-val.tar         # your shards: fields jpg (or jpeg) and cls
//
// training_settings.hpp lists the other options. training_run.hpp lists the files of a run, and describes Ctrl-C.
#include "training_run.hpp"

#include <millrace/millrace.hpp>
#include <millrace/mix_rows.hpp>

namespace mr = millrace;

namespace {

constexpr std::size_t side = 32, validation_rows = 96;   // pixels of the input of the network; rows of a batch

struct example {
  mr::picture pixels;
  std::int32_t label;
};

example for_training(const mr::record& r, mr::rng& rng) {
  return {mr::jpeg(r["jpg;jpeg"]).random_resized_crop(side, rng, {.scale_min = 0.5}).random_flip(rng),
          r["cls"].as<std::int32_t>()};
}
/// With --recipe: fewer operations than the usual two, because an image has 32 x 32 pixels only.
example for_recipe(const mr::record& r, mr::rng& rng) {
  example e = for_training(r, rng);
  mr::photometric_plan colors;
  colors.rand_augment({.width = side, .height = side}, rng, {.count = 1, .magnitude = 5});
  return {std::move(e.pixels).apply(colors), e.label};
}
example for_validation(const mr::record& r) {
  return {mr::jpeg(r["jpg;jpeg"]).resize_shorter(side).center_crop(side), r["cls"].as<std::int32_t>()};
}

int train_on(auto training, const training_settings& s, const training_start& start) {
  auto held_out = mr::shards(s.validation, {.fields = {"jpg;jpeg", "cls"}}) | mr::map(for_validation) |
                  mr::batch<&example::pixels, &example::label>({.size = validation_rows, .drop_last = false}) |
                  mr::to_device({.device = s.place.device});
  mr::session validation{std::move(held_out), {.epochs = s.epochs, .threads = s.threads, .notice = mr::quiet}};
  training_run run(s, start);
  for (std::uint64_t epoch = start.first_epoch; epoch < s.epochs && !run.stopped(); ++epoch) {
    run.begin_epoch(epoch);
    for (auto& b : training.epoch(epoch)) {
      run.record(b);
      auto columns = b.columns();
      auto& labels = std::get<1>(columns);
      if (s.rotate_labels) std::rotate(labels.span().begin(), labels.span().end() - 1, labels.span().end());
      learner::mixed_labels others;
      if constexpr (requires { b.lambda(); }) others = {b.label_b(), b.lambda()};
      start.net->backward(std::get<0>(columns), labels, run.sums(b), others);
      if ((b.step() + 1) % s.accumulate != 0) continue;   // accumulates the gradients of a batch
      start.net->update(run.next_rate(b), b.stream());
      if (!run.updated(b, training.stats().wait_ns)) break;
    }
    if (!run.trained()) break;
    for (auto& b : validation.epoch(epoch - start.first_epoch))
      start.net->evaluate(b.get<&example::pixels>(), b.get<&example::label>(), b.stream());
    run.validated(start.net->take_outcome({}));   // both sessions deliver to the default stream
  }
  return run.finish(training);
}

int train(command_line& args) {
  handle_end_signals();
  const training_settings s = read_training_settings(args);
  const training_start start(args, s, {.side = side, .validation_rows = validation_rows});
  const auto data = mr::shards(s.data, {.seed = s.seed, .fields = {"jpg;jpeg", "cls"}}) | mr::shuffle({.window = 2048});
  const auto batch = mr::batch<&example::pixels, &example::label>({.size = start.micro_batch});
  const mr::session_options options{.epochs = s.epochs, .threads = s.threads, .resume = start.from.position};
  const auto mixup = mr::mixup<&example::pixels, &example::label>({.alpha = 0.2});
  const auto to_device = mr::to_device({.device = s.place.device});
  if (s.recipe) return train_on(mr::session{data | mr::map(for_recipe) | batch | mixup, options}, s, start);
  return train_on(mr::session{data | mr::map(for_training) | batch | to_device, options}, s, start);
}

}   // namespace

int main(int argc, char** argv) { return run_program({argc, argv, training_usage}, train); }
