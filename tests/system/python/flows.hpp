// The flows of the tests of adapt/python.hpp: loop.cpp iterates over them in C++, module.cpp opens them to Python.
#pragma once

#include <millrace/lines.hpp>
#include <millrace/millrace.hpp>

#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <thread>

namespace mr = millrace;

struct options {
  std::string shards;
  std::size_t batch = 4;
  std::uint64_t seed = 0;
  std::size_t wide = 8;      // numbers in a row of `values`
  int gate_at = -1;          // the sample whose map waits until the file `gate` exists
  int throw_at = -1;         // the sample whose map throws
  double scale = 1;
  bool pad = false;
  std::vector<std::string> words{};
  std::optional<std::string> gate{};
};

struct example {
  mr::tensor<float, 1> values;
  mr::ragged<std::uint16_t> words;
  std::uint32_t id;
  std::uint64_t wide_id;
  bool odd;
  std::int64_t label;
};

inline auto numbers(const options& o) {
  const auto prepare = [o](const mr::record& r, mr::rng& rng) {
    const auto id = r["cls"].as<std::int32_t>();
    if (id == o.throw_at) throw std::runtime_error("sample " + std::to_string(id) + " is unwanted");
    while (id == o.gate_at && !std::filesystem::exists(o.gate.value()))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    mr::tensor<float, 1> values({o.wide});
    for (float& v : values.span()) v = static_cast<float>(rng.uniform() * o.scale);
    return example{.values = std::move(values),
                   .words = mr::ragged(std::vector<std::uint16_t>(static_cast<std::size_t>(id % 4), 60'000),
                                       {.max_length = 5, .padding = 1}),
                   .id = static_cast<std::uint32_t>(id) + 3'000'000'000U,
                   .wide_id = static_cast<std::uint64_t>(id),
                   .odd = id % 2 == 1,
                   .label = id};
  };
  return mr::shards(o.shards, {.seed = o.seed}) | mr::shuffle({.window = 20}) | mr::map(prepare) |
         mr::batch<&example::values, &example::words, &example::id, &example::wide_id, &example::odd, &example::label>(
             {.size = o.batch, .pad_last = o.pad, .keys = o.pad}) |
         mr::to_device();
}

/// An endless stream, which has no index. The compiler's name of its column contains the parameters of this function.
inline auto stream(const options& o) {
  struct number {
    std::int64_t n;
  };
  return mr::lines(o.shards) | mr::map([](std::string_view line) { return number{std::stoll(std::string(line))}; }) |
         mr::batch<&number::n>({.size = o.batch});
}
