// Crops of photographs to decode and render, and variants that take turns on them. For decode.cpp and entries.cpp.
//
//   const auto tasks = bench::make_tasks(set, 256);
//   bench::variant all[] = {{"one way", [&](std::size_t begin, std::size_t end) { ... }}, ...};
//   bench::take_turns(all, tasks.size(), 5);                    // all[0].least_us, all[0].us
#pragma once

#include "harness.hpp"
#include "photo_sets.hpp"

#include <millrace/image/baseline/jpeg_plane_decoder.hpp>
#include <millrace/millrace.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace bench {

inline constexpr std::size_t side = 224, row_bytes = side * side * 3;

struct crop_task {
  mr::bytes file;
  mr::detail::jpeg_planes_request ask;
  mr::crop_box box;
};

inline std::vector<crop_task> make_tasks(const bench::photo_set& set, std::size_t most) {
  std::vector<crop_task> tasks;
  mr::block_pool pool;
  for (const auto& name : set.names) {
    mr::shard_reader reader(std::make_unique<mr::file_source>(name), pool);
    while (auto record = reader.next()) {
      if (tasks.size() == most) return tasks;
      crop_task t{(*record)["jpg"], {}, {}};
      const auto header = mr::read_jpeg_header(t.file);
      mr::rng random({.seed = 3, .sample = tasks.size()});
      const auto box = mr::detail::random_crop_box({.width = header.width, .height = header.height}, random);
      t.box = box;
      constexpr std::size_t margin = 2;
      t.ask = {.bytes = t.file, .left = box.left - std::min(box.left, margin),
               .top = box.top - std::min(box.top, margin), .right = box.left + box.width + margin,
               .bottom = box.top + box.height + margin};
      tasks.push_back(t);
    }
  }
  return tasks;
}

/// Rows that have left the caches when they are written again, in memory as a session's slots have it.
class cold_rows {
 public:
  std::span<std::uint8_t> next() noexcept {
    at_ = (at_ + 1) % count;
    return {static_cast<std::uint8_t*>(memory_.get()) + at_ * row_bytes, row_bytes};
  }

 private:
  struct freed {
    void operator()(void* memory) const noexcept { mr::detail::free_slot(memory); }
  };
  static constexpr std::size_t count = 1'024;
  std::unique_ptr<void, freed> memory_{mr::detail::allocate_slot(count * row_bytes)};
  std::size_t at_ = 0;
};

inline mr::picture planned(const crop_task& t, const mr::jpeg_options& options,
                    mr::resize_filter filter = mr::resize_filter::bilinear) {
  return mr::jpeg(t.file, options).crop(t.box).filter(filter).resize(side, side);
}

/// `group` pictures at once, from their headers on.
inline void render_all(std::span<const crop_task> tasks, std::size_t group, const mr::jpeg_options& options,
                mr::resize_filter filter, cold_rows& ring, mr::scratch& s) {
  std::vector<mr::picture> pictures;
  std::array<const mr::picture*, mr::picture::together> items;
  std::array<std::span<std::uint8_t>, mr::picture::together> rows;
  pictures.reserve(group);
  for (std::size_t i = 0; i + group <= tasks.size(); i += group) {
    pictures.clear();
    for (std::size_t k = 0; k < group; ++k) {
      items[k] = &pictures.emplace_back(planned(tasks[i + k], options, filter));
      rows[k] = ring.next();
    }
    if (group == 1) pictures[0].render(rows[0], s);
    else mr::picture::render_together(std::span(items).first(group), std::span(rows).first(group), s);
  }
}

/// What takes turns: tasks [begin, end) are given.
struct variant {
  const char* name;
  std::function<void(std::size_t begin, std::size_t end)> run;
  std::vector<double> us{};      // for a picture, of each round
  std::vector<double> least{};   // CPU time of each group
  double least_us = 0;           // for a picture, of the groups' least times
};

inline constexpr std::size_t group_size = 8;

inline void take_turns(std::span<variant> variants, std::size_t pictures, int rounds) {
  const std::size_t groups = pictures / group_size;
  for (auto& v : variants) v.least.assign(groups, 1e9);
  for (int round = 0; round < rounds; ++round) {
    for (auto& v : variants) v.us.push_back(0);
    for (std::size_t g = 0; g < groups; ++g)
      for (std::size_t i = 0; i < variants.size(); ++i) {
        variant& v = variants[(i + g + static_cast<std::size_t>(round)) % variants.size()];
        const double before = bench::seconds_of(CLOCK_THREAD_CPUTIME_ID);
        v.run(g * group_size, (g + 1) * group_size);
        const double spent = bench::seconds_of(CLOCK_THREAD_CPUTIME_ID) - before;
        v.us.back() += spent * 1e6 / static_cast<double>(groups * group_size);
        v.least[g] = std::min(v.least[g], spent);
      }
  }
  for (auto& v : variants)
    for (const double spent : v.least) v.least_us += spent * 1e6 / static_cast<double>(groups * group_size);
}

}  // namespace bench
