#include <millrace/text.hpp>

struct clip {
  std::vector<float> frames;
  int label;
};
struct window {
  std::span<const float> frames;
  int label;
};
struct windows_of {
  using output = window;
  std::size_t frames;
  std::size_t max_outputs(const clip& c) const { return c.frames.size() / frames; }
  void push(const clip& c, auto& emit) const { emit(window{c.frames, c.label}); }
};
struct sentences_of {
  using output = std::string;
  void push(const mr::line& l, auto& emit) const { emit(std::string(l.text())); }
};

void show(const std::vector<clip>& clips) {
EXAMPLE
}
