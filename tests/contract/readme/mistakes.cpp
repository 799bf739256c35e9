// The mistakes of examples/guide/mistakes.md that a running program reports. Prints the name and the message of each.
// readme.py compares the messages with the guide, and finds the guide's lines of code here.
#include <millrace/millrace.hpp>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace mr = millrace;

namespace {

struct example {
  mr::picture pixels;
  std::int32_t label;
};

example prepare(const mr::record& r) { return {mr::jpeg(r["jpg"]).resize(32, 32), r["cls"].as<std::int32_t>()}; }

auto small_batches() { return mr::batch<example>({.size = 4}); }

mr::session_options quiet(mr::session_options o = {}) {
  o.notice = mr::quiet;
  return o;
}

void read_all(auto flow, mr::session_options options = {}) {
  mr::session run{std::move(flow), quiet(std::move(options))};
  for (auto& b : run) static_cast<void>(b.size());
}

void wrong_pattern() {
  auto flow = mr::shards("trian-*.tar") | mr::map(prepare) | mr::batch<example>({.size = 4});
  read_all(flow);
}

void missing_field() {
  auto prepare = [](const mr::record& r) -> example {
    return {mr::jpeg(r["jpeg"]).resize(32, 32), r["cls"].as<std::int32_t>()};
  };
  read_all(mr::shards("train-*.tar") | mr::map(prepare) | small_batches());
}

void class_is_a_name() { read_all(mr::shards("named-*.tar") | mr::map(prepare) | small_batches()); }

void no_resize() {
  auto prepare = [](const mr::record& r) -> example {
    return {mr::jpeg(r["jpg"]), r["cls"].as<std::int32_t>()};
  };
  read_all(mr::shards("train-*.tar") | mr::map(prepare) | small_batches());
}

void retained_batches() {
  auto flow = mr::shards("train-*.tar") | mr::map(prepare) | small_batches() | mr::prefetch({.batches = 4});
  mr::session run{std::move(flow), quiet({.epochs = 90})};
  std::vector<decltype(run.next())> batches;
  while (auto b = run.next()) batches.push_back(std::move(b));
}

void unset_world() {
  const char* const variables[][2] = {
      {"RANK", "1"}, {"LOCAL_RANK", "1"}, {"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "4"}};
  for (auto& [name, value] : variables) setenv(name, value, 1);
  const auto unset = [&](const void*) {
    for (auto& [name, value] : variables) unsetenv(name);
  };
  const std::unique_ptr<const void, decltype(unset)> at_the_end(&variables, unset);
  auto flow = mr::shards("train-*.tar") | mr::map(prepare) | small_batches();
  mr::session run{std::move(flow), {.epochs = 90}};
}

void other_window() {
  const auto flow_of = [](std::uint64_t window) {
    return mr::shards("train-*.tar", {.seed = 7}) | mr::shuffle({.window = window}) | mr::map(prepare) |
           small_batches();
  };
  std::string text;
  {
    mr::session run{flow_of(8), quiet({.epochs = 90})};
    text = run.next().resume_text();
  }
  auto flow = flow_of(16);
  mr::session run{std::move(flow), {.epochs = 90, .resume = text}};
}

void print(const char* name, void (*mistake)()) {
  try {
    mistake();
    std::printf("== %s\nno error\n", name);
  } catch (const std::exception& e) {
    std::printf("== %s\n%s\n", name, e.what());
  }
}

}  // namespace

int main() {
  mr::shard_writer photos({.pattern = "train-%03d.tar", .max_samples = 8});
  for (std::size_t i = 0; i < 24; ++i) {
    const mr::image photo({i == 2 ? 333U : 375U, 500, 3});
    photos.write("photo-" + std::to_string(i), {{"jpg", mr::encode_jpeg(photo)}, {"cls", std::to_string(i % 10)}});
  }
  photos.close();
  mr::shard_writer named({.pattern = "named-%03d.tar", .max_samples = 8});
  for (int i = 0; i < 8; ++i)
    named.write("photo-" + std::to_string(i), {{"jpg", mr::encode_jpeg(mr::image({375, 500, 3}))}, {"cls", "cat"}});
  named.close();
  print("wrong_pattern", wrong_pattern);
  print("missing_field", missing_field);
  print("class_is_a_name", class_is_a_name);
  print("no_resize", no_resize);
  print("retained_batches", retained_batches);
  print("unset_world", unset_world);
  print("other_window", other_window);
}
