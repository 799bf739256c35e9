// A user-defined stage: clips of any length become windows of eight frames each.
//
//   own_stage        # prints: 11 windows in 2 batches of [8, 8, 24, 32, 3]; mean level 53.0
//
// A stage is a type with `output`, max_outputs() and push(): no base class, no registration (millrace/flow/stage.hpp).
// Its push is const, so all workers call it concurrently; its windows are still in the order of the clips.
#include "command_line.hpp"

#include <millrace/millrace.hpp>

namespace mr = millrace;

namespace {

using clip = std::vector<mr::image>;   // its frames

struct window {
  mr::tensor<std::uint8_t, 4> pixels;   // [frames, height, width, 3]
  std::int32_t first_level;             // of its first pixel
};

window stack(const clip& frames, std::size_t first, std::size_t count) {
  const auto& frame = frames[first].shape();
  window w{.pixels = mr::tensor<std::uint8_t, 4>({count, frame[0], frame[1], frame[2]}), .first_level = 0};
  auto to = w.pixels.span().begin();
  for (std::size_t i = 0; i < count; ++i) to = std::ranges::copy(frames[first + i].span(), to).out;
  w.first_level = w.pixels.span()[0];
  return w;
}

struct windows_of {
  using output = window;
  std::size_t frames;

  std::size_t max_outputs(const clip& c) const { return c.size() / frames; }
  void push(const clip& c, auto& emit) const {
    for (std::size_t i = 0; i + frames <= c.size(); i += frames) emit(stack(c, i, frames));
  }
};

/// Clips of 0 to 24 frames. All pixels of a frame have one level, which increases from frame to frame over all clips.
std::vector<clip> make_clips() {
  std::vector<clip> clips;
  std::uint8_t level = 0;
  for (const std::size_t frames : {20, 0, 7, 24, 9, 16, 8, 23}) {
    clip c(frames, mr::image({24, 32, 3}));
    for (auto& frame : c) std::ranges::fill(frame.span(), level++);
    clips.push_back(std::move(c));
  }
  return clips;
}

void run(command_line& args) {
  if (!args.rest().empty()) args.refuse("own_stage has no arguments");
  const std::vector<clip> clips = make_clips();
  auto flow = mr::from(clips) | mr::expand(windows_of{.frames = 8}) |
              mr::batch<&window::pixels, &window::first_level>({.size = 8, .drop_last = false});

  std::vector<std::int32_t> first_levels;
  double sum = 0, pixels = 0;
  std::size_t batches = 0;
  std::string shape;
  for (auto& b : mr::session{std::move(flow), {.notice = mr::quiet}}) {
    auto [windows, levels] = b.columns();
    if (batches++ == 0) shape = mr::to_string(windows.shape);
    for (const std::uint8_t p : windows.span()) sum += p;
    pixels += static_cast<double>(windows.size());
    first_levels.insert(first_levels.end(), levels.begin(), levels.end());
  }
  // Fails if the order of the clips was lost.
  if (!std::ranges::is_sorted(first_levels)) throw mr::data_error("the windows are out of order", "");
  std::printf("%zu windows in %zu batches of %s; mean level %.1f\n", first_levels.size(), batches, shape.c_str(),
              sum / pixels);
}

}   // namespace

int main(int argc, char** argv) { return run_program({argc, argv, "usage: own_stage"}, run); }
