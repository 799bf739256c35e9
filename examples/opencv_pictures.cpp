// Images decoded by OpenCV, in batches: the usual loop, then the same with Millrace. Both also write images of a batch.
// The loops step_before() and step_after() are between the two lines of dashes.
//
//   opencv_pictures FOLDER     # writes batch.png and first.png; exit status 1 if the pixels of the loops differ
//
// Millrace decodes JPEGs faster without OpenCV (mr::jpeg). Use this for other formats or your own decoding.
#include "command_line.hpp"
#include "shapes.hpp"

#include <millrace/adapt/opencv.hpp>
#include <millrace/metrics.hpp>
#include <millrace/millrace.hpp>

#include <opencv2/imgcodecs.hpp>

namespace mr = millrace;

namespace {

struct trainer_sample {
  std::vector<std::byte> file;
  std::int32_t label;
};

constexpr int trainer_side = 24, trainer_rows = 20;

cv::Mat trainer_decode(const std::vector<std::byte>& file) {
  const cv::Mat bytes(1, static_cast<int>(file.size()), CV_8U, const_cast<std::byte*>(file.data()));
  // A crop, whose rows are not contiguous.
  return cv::imdecode(bytes, cv::IMREAD_COLOR)(cv::Rect(2, 1, trainer_side, trainer_side));
}

/// Replaces the network: returns a number that depends on every pixel, channel and label.
double trainer_step(const std::uint8_t* pixels, const std::int32_t* labels) {
  double sum = 0;
  for (int i = 0; i < trainer_rows * trainer_side * trainer_side * 3; ++i) sum += pixels[i] * (1 + 1e-3 * (i % 101));
  for (int i = 0; i < trainer_rows; ++i) sum += labels[i] * (i + 1);
  return sum;
}

// ---------------------------------------------------------------------------------------------------------------------
// Before: the network waits while each image is decoded, its channels are reversed, and it is copied into a batch.

double step_before(const std::vector<trainer_sample>& samples) {
  double sum = 0;
  std::vector<std::uint8_t> pixels(trainer_rows * trainer_side * trainer_side * 3);
  std::vector<std::int32_t> labels(trainer_rows);
  for (std::size_t start = 0; start + trainer_rows <= samples.size(); start += trainer_rows) {
    auto to = pixels.begin();
    for (std::size_t i = 0; i < trainer_rows; ++i) {
      const cv::Mat picture = trainer_decode(samples[start + i].file);
      for (int y = 0; y < trainer_side; ++y)
        for (int x = 0; x < trainer_side; ++x)
          for (int c = 2; c >= 0; --c) *to++ = picture.at<cv::Vec3b>(y, x)[c];
      labels[i] = samples[start + i].label;
    }
    sum += trainer_step(pixels.data(), labels.data());
  }
  return sum;
}

// After: workers decode the same images; mat_pixels writes them to their rows of the batch.

struct prepared {
  mr::mat_pixels pixels;
  std::int32_t label;
};

double step_after(const std::vector<trainer_sample>& samples, const std::string& folder) {
  double sum = 0;
  auto flow = mr::from(samples) | mr::map([](const trainer_sample& s) {
                return prepared{mr::mat_pixels(trainer_decode(s.file)), s.label};
              }) |
              mr::batch<&prepared::pixels, &prepared::label>({.size = trainer_rows});
  for (auto& b : mr::session{std::move(flow), {.notice = mr::quiet}}) {
    const auto [pixels, labels] = b.columns();
    if (b.step() == 0) {
      mr::save_grid(b, folder + "/batch.png");
      cv::imwrite(folder + "/first.png", mr::to_mat(pixels[0]));
    }
    sum += trainer_step(pixels.data, labels.data);
  }
  return sum;
}

// ---------------------------------------------------------------------------------------------------------------------

bool same(const cv::Mat& a, const cv::Mat& b) {
  return a.size() == b.size() && a.type() == b.type() && cv::norm(a, b, cv::NORM_INF) == 0;
}

void run(command_line& args) {
  const auto folders = args.rest();
  if (folders.size() != 1) args.refuse("expected one folder");
  std::vector<trainer_sample> samples;
  for (std::uint64_t i = 0; i < 210; ++i) {   // the last ten do not fill a batch
    auto shape = make_shape({.seed = 1, .index = i});
    samples.push_back({.file = std::move(shape.jpeg), .label = shape.label});
  }
  const double before = step_before(samples), after = step_after(samples, folders[0]);
  std::printf("before %.3f, after %.3f\n", before, after);
  if (before != after) throw mr::data_error("the pixels of the two loops differ", "Report this as a bug");
  // The written pixels must be those that OpenCV decoded: the first image alone, and in the corner of the batch.
  const cv::Mat first = trainer_decode(samples[0].file), batch = cv::imread(folders[0] + "/batch.png");
  if (!same(cv::imread(folders[0] + "/first.png"), first) || batch.empty() ||
      !same(batch(cv::Rect(0, 0, trainer_side, trainer_side)), first))
    throw mr::data_error("a written image has other pixels than the batch", "Report this as a bug");
}

}   // namespace

int main(int argc, char** argv) { return run_program({argc, argv, "usage: opencv_pictures FOLDER"}, run); }
