// Images with a question and its answer, without a download: a bright object in a corner, "what colour is it".
//
//   auto shards = make_pair_shards("data");           // data/pairs-{000..003}.tar and data/pairs-val-000.tar
//   auto ids = query_words("where is the thing");     // {18, 16, 22, 23}; 0 is not a word
//
// Fields jpg (32 x 32), txt (2 to 14 words) and cls: four colors, four corners. Only the words state whether the color
// or the corner is the answer, and only the image shows it. The same bytes on any machine.
// Errors: data_error for a word outside of the vocabulary, io_error. Threads: pure.
#pragma once

#include <millrace/base/random.hpp>
#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/io/tar/write/shard_writer.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

inline constexpr std::size_t pair_answers = 8;   // red, green, blue, yellow; then corners, by rows
inline constexpr std::array<std::string_view, 27> pair_vocabulary{
    "",      "please", "tell",   "me",  "look", "at",    "this",   "picture", "and",
    "say",   "can",    "you",    "see", "what", "which", "colour", "is",      "has",
    "where", "in",     "corner", "it",  "the",  "thing", "bright", "only",    "there"};

inline std::vector<std::uint32_t> query_words(std::string_view text) {
  std::vector<std::uint32_t> ids;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const auto it = std::find(pair_vocabulary.begin() + 1, pair_vocabulary.end(), word);
    if (it == pair_vocabulary.end())
      throw millrace::data_error("the query has the unknown word '" + millrace::printable(word) + "'",
                                 "Create the data set again");
    ids.push_back(static_cast<std::uint32_t>(it - pair_vocabulary.begin()));
  }
  return ids;
}

struct questioned_image {
  millrace::image pixels{};
  std::string query{};
  std::size_t answer = 0;
};

inline questioned_image make_pair(std::uint64_t seed, std::uint64_t index) {
  constexpr std::size_t side = 32;
  constexpr std::uint8_t colors[4][3] = {{220, 40, 40}, {40, 200, 60}, {50, 70, 230}, {220, 210, 50}};
  constexpr std::array<std::string_view, 4> openers{"", "please tell me ", "look at this picture and say ",
                                                    "can you see "};
  constexpr std::array<std::string_view, 2> for_color{"what colour is ", "which colour has "};
  constexpr std::array<std::string_view, 2> for_corner{"where is ", "in which corner is "};
  constexpr std::array<std::string_view, 4> things{"it", "the thing", "the bright thing", "the only thing there"};

  millrace::rng random({.seed = seed, .epoch = 0, .sample = index, .stage = 0});
  const std::size_t color = random.below(4), corner = random.below(4);
  const double y = 8 + 16 * static_cast<double>(corner / 2) + random.uniform(-2, 2);
  const double x = 8 + 16 * static_cast<double>(corner % 2) + random.uniform(-2, 2);
  const double reach = random.uniform(4, 7), ground = random.uniform(10, 60);
  const bool round = random.chance(0.5);
  questioned_image sample{.pixels = millrace::image({side, side, 3})};
  for (std::size_t row = 0; row < side; ++row)
    for (std::size_t column = 0; column < side; ++column) {
      const double down = static_cast<double>(row) - y, across = static_cast<double>(column) - x;
      const bool inside = round ? down * down + across * across < reach * reach
                                : std::max(down * down, across * across) < reach * reach;
      for (std::size_t channel = 0; channel < 3; ++channel) {
        const double level = inside ? colors[color][channel] : ground;
        sample.pixels(row, column, channel) = static_cast<std::uint8_t>(level + random.uniform(0, 25));
      }
    }
  const bool asks_for_color = random.chance(0.5);
  sample.query = openers[random.below(4)];
  sample.query += asks_for_color ? for_color[random.below(2)] : for_corner[random.below(2)];
  sample.query += things[random.below(4)];
  sample.answer = asks_for_color ? color : 4 + corner;
  return sample;
}

/// Patterns of the shards.
struct pair_shards {
  std::string train{}, validation{};
};

/// Keeps the complete result of an earlier call.
inline pair_shards make_pair_shards(const std::string& folder) {
  const auto write = [&](const std::string& name, std::uint64_t samples, std::uint64_t seed) {
    millrace::shard_writer shards({.pattern = folder + "/" + name + "-%03d.tar", .max_samples = 320});
    for (std::uint64_t i = 0; i < samples; ++i) {
      const questioned_image sample = make_pair(seed, i);
      shards.write(name + "/" + std::to_string(i), {{"jpg", millrace::encode_jpeg(sample.pixels, {})},
                                                    {"txt", sample.query},
                                                    {"cls", std::to_string(sample.answer)}});
    }
    shards.close();
  };
  const std::filesystem::path stamp = std::filesystem::path(folder) / "pairs-sample.txt";   // written last
  if (!std::filesystem::exists(stamp)) {
    std::filesystem::create_directories(folder);
    write("pairs", 1280, 1);
    write("pairs-val", 320, 2);
    std::ofstream(stamp) << "complete\n";
  }
  return {folder + "/pairs-{000..003}.tar", folder + "/pairs-val-000.tar"};
}
