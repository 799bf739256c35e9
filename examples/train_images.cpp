// The sample training loop: a small convolutional network learns from a stream of labelled pictures.
//
//   train_images                                                     # makes a data set of shapes and trains on it
//   train_images --data 'my-{000..009}.tar' --val my-val.tar         # your own shards: fields jpg (or jpeg) and cls
//   train_images --device host                                       # where a GPU would be taken; kernels: the GPU's
//                                                                    # kernels on the host, slow, for a check
//   train_images --recipe                                            # RandAugment, and rows mixed in pairs (mixup)
//   train_images --report                                            # at the end: what limited the training
//   train_images --pictures                                          # what the network sees at each epoch's start
//   train_images --resume millrace-shapes/run-1                      # goes on to the same model
//
// Progress goes to stderr, files to WORK/run-N: train.jsonl, TensorBoard events, best.bin (the best model so far),
// last.bin (model, optimizer and resume point of one moment, at each epoch's end), and report.html, .txt, .json,
// .trace.json and batch.png, with the same pictures in TensorBoard, where they are asked for. Ctrl-C, or the SIGTERM of
// a batch system, ends the update under way, writes last.bin and what was asked for, and gives the exit status 130
// (143); a second one ends the program at once.
#include "checkpoint_note.hpp"
#include "command_line.hpp"
#include "gpu_metrics.hpp"
#include "learner.hpp"
#include "shape_shards.hpp"

#include <millrace/device/best_device.hpp>
#include <millrace/metrics.hpp>
#include <millrace/millrace.hpp>
#include <millrace/mix_rows.hpp>
#include <millrace/pictures.hpp>
#include <millrace/report.hpp>

#include <chrono>
#include <cmath>
#include <csignal>

namespace mr = millrace;

namespace {

constexpr std::size_t side = 32;   // of the network's input, in pixels
constexpr std::size_t validation_rows = 96;

struct example {
  mr::picture pixels;
  std::int32_t label;
};

example for_training(const mr::record& r, mr::rng& rng) {
  return {mr::jpeg(r["jpg;jpeg"]).random_resized_crop(side, rng, {.scale_min = 0.5}).random_flip(rng),
          mr::integer<std::int32_t>(r["cls"])};
}

/// With --recipe: fewer operations than the usual two, since a picture here has 32 x 32 pixels.
example for_recipe(const mr::record& r, mr::rng& rng) {
  example e = for_training(r, rng);
  mr::photometric_plan colors;
  colors.rand_augment({.width = side, .height = side}, rng, {.count = 1, .magnitude = 5});
  return {std::move(e.pixels).apply(colors), e.label};
}

example for_validation(const mr::record& r) {
  return {mr::jpeg(r["jpg;jpeg"]).resize_shorter(side).center_crop(side), mr::integer<std::int32_t>(r["cls"])};
}

/// The signal that asks the program to end; 0: none. A handler may write nothing else.
volatile std::sig_atomic_t asked_to_end = 0;

/// Each signal is taken once: the next of its kind ends the program as ever.
void take_signals() {
  struct sigaction once {};
  once.sa_handler = [](int signal) { asked_to_end = signal; };
  once.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &once, nullptr);
}

struct settings {
  std::string data{}, validation{}, work{}, resume{};
  std::size_t classes = 0;   // 0: as many as there are
  std::uint64_t epochs = 12, seed = 1;
  std::size_t batch = 24, accumulate = 1;
  int threads = mr::automatic;
  mr::device device = mr::host_device();
  bool kernels = false;   // where the device is the host: the GPU's kernels, one after the other
  bool rotate_labels = false;
  bool recipe = false;
  bool report = false;
  bool pictures = false;
};

/// Linear warm-up, then half a cosine; `progress` goes from 0 to 1.
double learning_rate(double progress) {
  constexpr double peak = 4e-3, warm_up = 0.1;
  if (progress < warm_up) return peak * progress / warm_up;
  return peak / 2 * (1 + std::cos(std::numbers::pi * (progress - warm_up) / (1 - warm_up)));
}

struct labelled {
  std::int32_t label;
};
struct survey {
  std::uint64_t samples = 0;
  std::size_t classes = 0;
};

/// One pass over the labels alone.
survey count_labels(const std::string& pattern) {
  auto flow = mr::shards(pattern, {.fields = {"cls"}})
            | mr::map([](const mr::record& r) { return labelled{mr::integer<std::int32_t>(r["cls"])}; })
            | mr::batch<&labelled::label>({.size = 256, .drop_last = false});
  survey found;
  for (auto& b : mr::session{std::move(flow), {.announce = false}})
    for (const std::int32_t label : b.get<&labelled::label>()) {
      ++found.samples;
      found.classes = std::max(found.classes, static_cast<std::size_t>(std::max(label, 0)) + 1);
    }
  return found;
}

/// The first WORK/run-N that is not there yet.
std::string make_run_folder(const std::string& work) {
  std::filesystem::create_directories(work);
  for (int n = 1;; ++n) {
    const std::string folder = work + "/run-" + std::to_string(n);
    if (std::filesystem::create_directory(folder)) return folder;
  }
}

bool on_gpu(const mr::device& device) { return device.backend()->memory() == mr::memory_kind::device; }

/// A GPU where there is one and the build has kernels for it, unless another is asked for.
void choose_device(command_line& args, settings& s) {
  const std::string device = args.text("--device", "");
  s.rotate_labels = args.flag("--rotate-labels");
  s.recipe = args.flag("--recipe");
  const bool host_only = s.rotate_labels || s.recipe;
#ifdef MILLRACE_EXAMPLE_KERNELS
  constexpr bool have_kernels = true;
#else
  constexpr bool have_kernels = false;
#endif
  if (device == "kernels") s.kernels = true;
  else if (device == "gpu" || (device.empty() && have_kernels && !host_only)) s.device = mr::best_device();
  else if (device != "host" && !device.empty())
    args.refuse("--device is '" + mr::printable(device) + "', expected host, gpu or kernels");
  if ((device == "gpu" || device == "kernels") && !have_kernels)
    args.refuse("--device " + device + ": this build found no nvcc, and has no kernels");
  if (device == "gpu" && !on_gpu(s.device)) args.refuse("--device gpu: this machine has none");
  if (host_only && (s.kernels || on_gpu(s.device))) args.refuse("--rotate-labels and --recipe work on the host alone");
}

/// Sums of device columns add up where they lie.
std::shared_ptr<mr::device_sums> make_sums([[maybe_unused]] const settings& s) {
#ifdef MILLRACE_EXAMPLE_KERNELS
  if (on_gpu(s.device)) return make_gpu_sums(s.device.ordinal());
#endif
  return nullptr;
}

std::unique_ptr<learner> make_learner(const settings& s, std::size_t classes, std::size_t max_rows) {
  const network_options options{.side = side, .classes = classes, .seed = s.seed};
#ifdef MILLRACE_EXAMPLE_KERNELS
  if (s.kernels || on_gpu(s.device))
    return std::make_unique<kernel_learner>(
        options, gpu_network_options{.side = side, .classes = classes, .max_rows = max_rows,
                                     .weight_decay = options.weight_decay, .on_host = !on_gpu(s.device)});
#else
  static_cast<void>(max_rows);
#endif
  return std::make_unique<host_learner>(options);
}

settings read_settings(command_line& args) {
  settings s;
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
  choose_device(args, s);
  if (!args.rest().empty()) args.refuse("all arguments have a name");
  if (s.data.empty() != s.validation.empty()) args.refuse("--data and --val belong together");
  if (s.epochs == 0 || s.accumulate == 0 || s.batch == 0 || s.batch % s.accumulate != 0)
    args.refuse("--epochs is at least 1, and --batch a multiple of --accumulate");
  if (s.data.empty()) {
    const shape_shards made = make_shape_shards({.folder = s.work});
    s.data = made.train;
    s.validation = made.validation;
  }
  return s;
}

/// What is known before the first batch.
struct run_plan {
  std::size_t micro_batch = 0;
  std::uint64_t epoch_batches = 0, samples_per_epoch = 0, first_epoch = 0;
  checkpoint_note from{};
};

int train_on(auto& training, const settings& s, const run_plan& plan, learner* net) {
  const auto& [micro_batch, epoch_batches, samples_per_epoch, first_epoch, from] = plan;
  mr::session validation{mr::shards(s.validation, {.fields = {"jpg;jpeg", "cls"}})
                           | mr::map(for_validation)
                           | mr::batch<&example::pixels, &example::label>({.size = validation_rows, .drop_last = false})
                           | mr::to_device({.device = s.device}),
                         {.epochs = s.epochs, .threads = s.threads, .announce = false}};

  const std::string run = s.resume.empty() ? make_run_folder(s.work) : s.resume;
  mr::tensorboard board(run);
  const std::string events = board.path();
  mr::log out(mr::status_line{}, mr::json_lines(run + "/train.jsonl"), std::move(board));
  mr::metrics metrics({.every = 20, .device = make_sums(s)});
  auto loss = metrics.mean("loss"), rate_used = metrics.mean("learning_rate");
  auto accuracy = metrics.accuracy("accuracy");

  network_outcome held_out;
  double best = from.best;
  std::uint64_t training_ns = 0, waited_ns = 0;
  bool stopped = false;
  const auto now_ns = [] {
    return static_cast<std::uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch())
                                          .count());
  };

  for (std::uint64_t epoch = first_epoch; epoch < s.epochs && !stopped; ++epoch) {
    const std::uint64_t start_ns = now_ns();
    std::string position;   // behind the last update
    bool look = s.pictures;   // at the epoch's first batch
    for (auto& b : training.epoch(epoch)) {
      auto pixels = b.template get<&example::pixels>();
      auto labels = b.template get<&example::label>();
      if (std::exchange(look, false)) {
        mr::save_grid(b, run + "/batch.png");
        out.push({.step = net->updates(), .epoch = epoch, .images = {mr::encode_grid(b, "augmented")}});
      }
      // What a mix-up between columns would do: each picture gets the label of the one before it.
      if (s.rotate_labels) std::rotate(labels.span().begin(), labels.span().end() - 1, labels.span().end());

      learner::mixed_labels others;
      if constexpr (requires { b.lambda(); }) others = {b.label_b(), b.lambda()};
      net->backward(pixels, labels, {.loss = loss, .accuracy = accuracy, .stream = b.stream()}, others);
      metrics.count("samples", b.size());
      if ((b.step() + 1) % s.accumulate != 0) continue;   // gradients add up until the whole batch is through

      const auto samples_seen = static_cast<double>((b.step() + 1) * micro_batch);
      const double rate = learning_rate(samples_seen / static_cast<double>(s.epochs * samples_per_epoch));
      net->update(rate, b.stream());
      rate_used.add(rate);
      const std::uint64_t wait_ns = training.stats().wait_ns;
      metrics.spent_ns("data_wait", wait_ns - std::exchange(waited_ns, wait_ns));
      metrics.maybe_log({.step = net->updates(), .epoch = epoch}, out);
      position = mr::to_text(b.position());
      stopped = asked_to_end != 0 && (b.step() + 1) % epoch_batches != 0;   // one that is through is validated first
      if (stopped) break;
    }
    metrics.finish(out);
    training_ns += now_ns() - start_ns;
    if (stopped) {
      net->save(run + "/last.bin", checkpoint_note{best, position}.text(), {});
      break;
    }

    for (auto& b : validation.epoch(epoch - first_epoch))
      net->evaluate(b.get<&example::pixels>(), b.get<&example::label>(), b.stream());
    held_out = net->take_outcome({});   // both sessions deliver to the default stream
    out.push({.step = net->updates(), .epoch = epoch,
              .values = {{"validation_loss", held_out.mean_loss()},
                         {"validation_accuracy", held_out.accuracy(), mr::quantity_unit::share}}});
    if (held_out.accuracy() > best) net->save(run + "/best.bin", {}, {});
    best = std::max(best, held_out.accuracy());
    if (!position.empty()) net->save(run + "/last.bin", checkpoint_note{best, position}.text(), {});
    stopped = asked_to_end != 0 && epoch + 1 < s.epochs;
    metrics.restart();   // the next row's rates leave out the validation
  }
  out.close();

  if (s.report) {
    const mr::run_report report = mr::report_of(training);
    mr::write_reports(report, run + "/report");
    std::printf("%sreport: %s/report.html\n", mr::text_report(report).c_str(), run.c_str());
  }
  const auto stats = training.stats();
  std::printf("log: %s/train.jsonl\nTensorBoard: %s\n", run.c_str(), events.c_str());
  if (stopped) {
    std::printf("stopped: %llu updates; go on with the same arguments and --resume %s\n",
                static_cast<unsigned long long>(net->updates()), run.c_str());
    return 128 + asked_to_end;
  }
  std::printf("model: %s/best.bin (accuracy %.3f)\n", run.c_str(), best);
  std::printf("summary: accuracy=%.3f images_per_second=%.0f data_wait_share=%.3f\n", held_out.accuracy(),
              static_cast<double>(stats.samples) * 1e9 / static_cast<double>(training_ns),
              static_cast<double>(stats.wait_ns) / static_cast<double>(training_ns));
  return 0;
}

int train(command_line& args) {
  take_signals();
  const settings s = read_settings(args);
  const survey found = count_labels(s.data);
  run_plan plan{.micro_batch = s.batch / s.accumulate};
  plan.epoch_batches = found.samples / plan.micro_batch;
  plan.samples_per_epoch = plan.epoch_batches * plan.micro_batch;
  if (plan.samples_per_epoch == 0) args.refuse("the training data do not fill one batch");

  const auto net = make_learner(s, s.classes ? s.classes : found.classes, std::max(plan.micro_batch, validation_rows));
  if (!s.resume.empty()) plan.from = checkpoint_note::parse(net->load(s.resume + "/last.bin"));
  plan.first_epoch = net->updates() * s.accumulate / plan.epoch_batches;
  if (plan.first_epoch >= s.epochs) args.refuse("the checkpoint has all epochs: raise --epochs to go on");

  const auto shards = mr::shards(s.data, {.seed = s.seed, .fields = {"jpg;jpeg", "cls"}})
                    | mr::shuffle({.window = 2048});
  const auto batch = mr::batch<&example::pixels, &example::label>({.size = plan.micro_batch});
  const mr::session_options options{.epochs = s.epochs, .threads = s.threads, .resume = plan.from.position};
  if (s.recipe) {
    mr::session training{shards | mr::map(for_recipe) | batch |
                             mr::mixup<&example::pixels, &example::label>({.alpha = 0.2}), options};
    return train_on(training, s, plan, net.get());
  }
  mr::session training{shards | mr::map(for_training) | batch | mr::to_device({.device = s.device}), options};
  return train_on(training, s, plan, net.get());
}

}  // namespace

int main(int argc, char** argv) {
  return run_program({argc, argv,
                      "usage: train_images [--data SHARDS --val SHARDS [--classes N]] [--work FOLDER] [--epochs N] "
                      "[--seed N] [--batch N] [--accumulate N] [--threads N] [--device host|gpu|kernels] "
                      "[--rotate-labels] [--recipe] [--report] [--pictures] [--resume RUN_FOLDER]"},
                     train);
}
