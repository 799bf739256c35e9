// Millrace in a dlib trainer: the same network and dnn_trainer, first with the data loading of dlib's examples, then
// with Millrace. The loops train_before() and train_after() are between the two lines of dashes.
//
//   dlib_trainer     # prints the average loss of both; exit status 1 if they differ by more than 1e-6
//
// Without a shuffle, both loops use the same batches.
#include "command_line.hpp"
#include "shapes.hpp"

#include <millrace/millrace.hpp>

#include <dlib/dnn.h>

#include <cmath>

namespace mr = millrace;

namespace {

// The network and the decoder of the trainer.

struct trainer_sample {
  std::vector<std::byte> file;
  unsigned long label;
};

constexpr std::size_t trainer_side = 16, trainer_rows = 20, trainer_epochs = 3;

using trainer_picture = dlib::matrix<dlib::rgb_pixel>;

template <class Input>
using trainer_network = dlib::loss_multiclass_log<dlib::fc<10, dlib::relu<dlib::con<8, 3, 3, 2, 2, Input>>>>;

mr::image decode(const std::vector<std::byte>& file) {
  return mr::jpeg(mr::bytes::owned(file)).resize(trainer_side, trainer_side).pixels();
}
trainer_picture trainer_decode(const std::vector<std::byte>& file) {
  const mr::image pixels = decode(file);
  trainer_picture picture(trainer_side, trainer_side);
  std::memcpy(&picture(0, 0), pixels.data(), pixels.size());
  return picture;
}

template <class Network>
void set_up(dlib::dnn_trainer<Network>& trainer) {
  trainer.set_learning_rate(0.01);
  trainer.set_iterations_without_progress_threshold(100'000);   // keeps the learning rate
}

// For Millrace: an input layer that reads rows of a batch. That of dlib accepts matrices only.

struct rows_input : dlib::input_rgb_image {
  using dlib::input_rgb_image::to_tensor;
  template <class Row>
    requires std::is_same_v<std::iter_value_t<Row>, mr::tensor_view<std::uint8_t, 3>>
  void to_tensor(Row begin, Row end, dlib::resizable_tensor& data) const {   // [B, H, W, 3] u8 to dlib's NCHW
    const auto [height, width, channels] = begin->shape;
    data.set_size(end - begin, static_cast<long>(channels), static_cast<long>(height), static_cast<long>(width));
    const float mean[] = {get_avg_red(), get_avg_green(), get_avg_blue()};
    float* to = data.host_write_only();
    for (; begin != end; ++begin)
      for (std::size_t c = 0; c < channels; ++c)
        for (std::size_t p = 0; p < height * width; ++p)
          *to++ = (static_cast<float>(begin->data[channels * p + c]) - mean[c]) / 256.0F;
  }
};

// ---------------------------------------------------------------------------------------------------------------------
// Before: the trainer waits while images are decoded to matrices, one after the other.

double train_before(const std::vector<trainer_sample>& samples) {
  trainer_network<rows_input> network;   // converts matrices as input_rgb_image does
  dlib::dnn_trainer trainer(network, dlib::sgd(0, 0.9F));
  set_up(trainer);
  std::vector<trainer_picture> pixels(trainer_rows);
  std::vector<unsigned long> labels(trainer_rows);
  for (std::size_t epoch = 0; epoch < trainer_epochs; ++epoch)
    for (std::size_t start = 0; start + trainer_rows <= samples.size(); start += trainer_rows) {
      for (std::size_t i = 0; i < trainer_rows; ++i) {
        pixels[i] = trainer_decode(samples[start + i].file);
        labels[i] = samples[start + i].label;
      }
      trainer.train_one_step(pixels.begin(), pixels.end(), labels.begin());
    }
  return trainer.get_average_loss();
}

// After: workers decode into the batch, and the input layer reads its rows.

struct prepared {
  mr::image pixels;
  std::uint64_t label;
};

double train_after(const std::vector<trainer_sample>& samples) {
  trainer_network<rows_input> network;
  dlib::dnn_trainer trainer(network, dlib::sgd(0, 0.9F));
  set_up(trainer);
  auto flow = mr::from(samples) | mr::map([](const trainer_sample& s) { return prepared{decode(s.file), s.label}; }) |
              mr::batch<&prepared::pixels, &prepared::label>({.size = trainer_rows});
  for (auto& b : mr::session{std::move(flow), {.epochs = trainer_epochs, .notice = mr::quiet}}) {
    auto [pixels, labels] = b.columns();
    std::vector<mr::tensor_view<std::uint8_t, 3>> rows;
    for (std::size_t i = 0; i < b.size(); ++i) rows.push_back(pixels[i]);
    trainer.train_one_step(rows.begin(), rows.end(), labels.host().begin());   // has read the rows when it returns
  }
  return trainer.get_average_loss();
}

// ---------------------------------------------------------------------------------------------------------------------

void run(command_line& args) {
  if (!args.rest().empty()) args.refuse("dlib_trainer has no arguments");
  std::vector<trainer_sample> samples;
  for (std::uint64_t i = 0; i < 210; ++i) {   // the last ten do not fill a batch
    auto shape = make_shape({.seed = 1, .index = i});
    samples.push_back({.file = std::move(shape.jpeg), .label = static_cast<unsigned long>(shape.label)});
  }
  std::srand(1);   // seeds the initial weights of dlib
  const double before = train_before(samples);
  std::srand(1);
  const double after = train_after(samples);
  std::printf("average loss before %.9f, after %.9f, difference %.1e\n", before, after, std::abs(before - after));
  if (!(std::abs(before - after) <= 1e-6)) throw mr::data_error("the two losses differ", "Report this as a bug");
}

}   // namespace

int main(int argc, char** argv) { return run_program({argc, argv, "usage: dlib_trainer"}, run); }
