#include <millrace/millrace.hpp>

struct clip {};
struct window {
  mr::image pixels;
  std::int32_t id;
};
window prepare(const clip&);

void show(const std::vector<clip>& clips) {
EXAMPLE
}
