#include <millrace/millrace.hpp>

// block 1 is a table of words
struct example {
  mr::picture pixels;
};
void show() {
EXAMPLE 2
}
struct window {};
using clip = std::vector<mr::image>;
std::vector<window> cut(const clip& frames, std::size_t count);
EXAMPLE 3
// block 4 is text
EXAMPLE 5
// block 6 is text
void show(const std::vector<clip>& clips) {
  static_cast<void>(mr::from(clips) | mr::expand(windows_of{.frames = 8}));
  static_cast<void>(mr::from(numbers{}));
}
