// ---- diagnose.hpp
// block 1 is a message of a compiler

// ---- flow.hpp
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

// ---- refusals.hpp
#include <millrace/flow/flow.hpp>

EXAMPLE
flow<int> without_stages;

// ---- source_weight.hpp
#include <millrace/mix.hpp>

#include <cmath>

void weighted_web() {
  auto web = mr::shards("web.tar");
EXAMPLE
}

// ---- stage.hpp
#include <millrace/millrace.hpp>

struct example {
  mr::picture pixels;
};
void show() {
EXAMPLE 1
}
struct window {};
using clip = std::vector<mr::image>;
std::vector<window> cut(const clip& frames, std::size_t count);
EXAMPLE 2
EXAMPLE 3
void show(const std::vector<clip>& clips) {
  static_cast<void>(mr::from(clips) | mr::expand(windows_of{.frames = 8}));
  static_cast<void>(mr::from(numbers{}));
}

// ---- stage_list.hpp
#include <millrace/millrace.hpp>
#include <millrace/flow/stage_list.hpp>
template <class First, class Second>
void show(First first_stage, Second second_stage) {
EXAMPLE
}
void use() { show(mr::shuffle({.window = 9}), mr::take(9)); }
