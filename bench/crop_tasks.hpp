// Crops of photographs to decode and render; variants alternate on them (turns.hpp). For decode.cpp and entries.cpp.
//
//   const auto tasks = bench::make_tasks(set, 256);
//   bench::variant all[] = {{"one way", [&](std::size_t begin, std::size_t end) { ... }}, ...};
//   bench::take_turns(all, tasks.size(), 5);                    // all[0].least_us, all[0].us
#pragma once

#include "harness.hpp"
#include "parts/turns.hpp"
#include "photo_sets.hpp"

#include <millrace/image/jpeg/baseline/jpeg_plane_decoder.hpp>
#include <millrace/millrace.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <vector>

namespace bench {

inline constexpr std::size_t side = 224, row_bytes = side * side * 3;

struct crop_task {
  mr::bytes file;
  mr::detail::jpeg_planes_request request;
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
      t.request = {.bytes = t.file,
                   .left = box.left - std::min(box.left, margin),
                   .top = box.top - std::min(box.top, margin),
                   .right = box.left + box.width + margin,
                   .bottom = box.top + box.height + margin};
      tasks.push_back(t);
    }
  }
  return tasks;
}

/// Rows that have left the caches when they are written again, in the same kind of memory as a session's slots.
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

/// Renders `group` images at once, starting with their headers.
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

}   // namespace bench
