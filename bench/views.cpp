// views: several crops of one image, as in self-supervised recipes, rendered alone and as rows of a batch; and lists of
// images
//
// Each recipe's crops are drawn from photographs of set M (500 x 375). "alone" renders each crop separately, starting
// with the header. "in pairs" renders the crops of one image at once, but from separate copies of the file, so that
// they share nothing. "shared" renders them at once from one file, "as a batch does" those of eight images at once.
// Rows are in memory that has left the caches. All variants alternate on groups of eight images. Results are CPU times
// of this thread; ratios use least times: the sum of each group's least time of all rounds.
//
// "lists" renders the same images as batches of 28 rows: four images in every row, then one to seven. The second
// includes the move of the rows at the end of the batch.
#include "harness.hpp"
#include "photo_sets.hpp"

#include <millrace/millrace.hpp>
#include <millrace/image/picture/picture_list.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace mr = millrace;

namespace {

struct recipe {
  const char* name;
  std::size_t large_side, small_side, large_crops, small_crops;
  double border;   // of the area: large crops are above it, small ones below
  double least;
  mr::resize_filter filter;
  double target;   // least gain of "as a batch does" over "alone"
};

constexpr recipe recipes[] = {
    {"DINOv2", 224, 96, 2, 8, 0.32, 0.05, mr::resize_filter::bicubic, 1.8},
    {"DINO", 224, 96, 2, 8, 0.4, 0.05, mr::resize_filter::bicubic, 1.8},
    {"SwAV", 224, 96, 2, 6, 0.14, 0.05, mr::resize_filter::bilinear, 1.5},
    {"two views", 224, 96, 2, 0, 0.2, 0.2, mr::resize_filter::bilinear, 1},
};

constexpr std::size_t group_size = mr::picture::together, crop_limit = 10, row_bytes = 224 * 224 * 3;

/// Rows that have left the caches when they are written again.
class cold_rows {
 public:
  std::span<std::uint8_t> next(const mr::picture& p) noexcept {
    at_ = (at_ + 1) % count;
    return {static_cast<std::uint8_t*>(memory_.get()) + at_ * row_bytes, p.width() * p.height() * 3};
  }

 private:
  struct slot_deleter {
    void operator()(void* memory) const noexcept { mr::detail::free_slot(memory); }
  };
  static constexpr std::size_t count = 512;
  std::unique_ptr<void, slot_deleter> memory_{mr::detail::allocate_slot(count * row_bytes)};
  std::size_t at_ = 0;
};

class measurement {
 public:
  measurement(const recipe& r, std::size_t image_count) : recipe_(r) {
    const auto set = bench::make_photo_set(bench::photo_sets[0]);
    for (const auto& name : set.names) {
      mr::shard_reader reader(std::make_unique<mr::file_source>(name), pool_);
      for (auto record = reader.next(); record && files_.size() < image_count; record = reader.next()) {
        files_.push_back((*record)["jpg"]);
        auto& copies = copies_.emplace_back();
        for (std::size_t k = 0; k < crops(); ++k) copies.push_back(pool_.copy(files_.back()));
      }
    }
  }

  std::size_t crops() const noexcept { return recipe_.large_crops + recipe_.small_crops; }
  std::size_t image_count() const noexcept { return files_.size() / group_size * group_size; }

  void alone(std::size_t picture) {
    for (std::size_t k = 0; k < crops(); ++k) {
      const auto p = planned(files_[picture], picture, k);
      p.render(rows_.next(p), memory_);
    }
  }
  void in_pairs(std::size_t picture) {
    begin();
    for (std::size_t k = 0; k < crops(); ++k) join(copies_[picture][k], picture, k);
    group_.render(memory_);
  }
  void shared(std::size_t first, std::size_t end) {
    begin();
    for (std::size_t picture = first; picture < end; ++picture)
      for (std::size_t k = 0; k < crops(); ++k) join(files_[picture], picture, k);
    group_.render(memory_);
  }

 private:
  mr::picture planned(const mr::bytes& file, std::size_t picture, std::size_t crop) const {
    mr::rng random({.seed = 5, .sample = picture, .stage = crop});
    const bool large = crop < recipe_.large_crops;
    const mr::random_crop_options o{.scale_min = large ? recipe_.border : recipe_.least,
                                    .scale_max = large ? 1 : recipe_.border};
    return mr::jpeg(file)
        .filter(recipe_.filter)
        .random_resized_crop(large ? recipe_.large_side : recipe_.small_side, random, o)
        .random_flip(random);
  }

  void begin() {
    group_.clear();
    planned_.clear();
    planned_.reserve(group_size * crop_limit);   // the group points to them
  }
  void join(const mr::bytes& file, std::size_t picture, std::size_t crop) {
    const auto& p = planned_.emplace_back(planned(file, picture, crop));
    p.join(group_, rows_.next(p));
  }

  const recipe recipe_;
  mr::block_pool pool_;
  std::vector<mr::bytes> files_;
  std::vector<std::vector<mr::bytes>> copies_;
  std::vector<mr::picture> planned_;
  mr::picture::group group_;
  cold_rows rows_;
  mr::scratch memory_;
};

void measure(bench::harness& run, const recipe& r) {
  measurement m(r, run.quick() ? 64 : 256);
  struct variant {
    const char* name;
    std::function<void(std::size_t first, std::size_t end)> run;
    std::vector<double> least{};   // of each group of images, in seconds
    std::vector<double> us{};      // per image, of each round
  };
  const auto one_by_one = [&m](void (measurement::*way)(std::size_t)) {
    return [&m, way](std::size_t first, std::size_t end) {
      for (std::size_t i = first; i < end; ++i) (m.*way)(i);
    };
  };
  variant variants[] = {{"alone", one_by_one(&measurement::alone)},
                        {"in pairs", one_by_one(&measurement::in_pairs)},
                        {"shared",
                         [&m](std::size_t first, std::size_t end) {
                           for (std::size_t i = first; i < end; ++i) m.shared(i, i + 1);
                         }},
                        {"as a batch does", [&m](std::size_t first, std::size_t end) { m.shared(first, end); }}};
  constexpr std::size_t count = std::size(variants);
  const std::size_t groups = m.image_count() / group_size;
  for (auto& v : variants) v.least.assign(groups, 1e9);
  const int rounds = run.quick() ? 8 : 20;
  for (int round = 0; round < rounds; ++round) {
    for (auto& v : variants) v.us.push_back(0);
    for (std::size_t g = 0; g < groups; ++g)
      for (std::size_t i = 0; i < count; ++i) {
        variant& v = variants[(i + g + static_cast<std::size_t>(round)) % count];
        const double before = bench::seconds_of(CLOCK_THREAD_CPUTIME_ID);
        v.run(g * group_size, (g + 1) * group_size);
        const double spent = bench::seconds_of(CLOCK_THREAD_CPUTIME_ID) - before;
        v.us.back() += spent * 1e6 / static_cast<double>(m.image_count());
        v.least[g] = std::min(v.least[g], spent);
      }
  }
  std::array<double, count> us{};
  const std::string name = r.name;
  std::printf("%s, %zu crops; us per image, median of rounds\n", r.name, m.crops());
  for (std::size_t i = 0; i < count; ++i) {
    for (const double spent : variants[i].least) us[i] += spent * 1e6 / static_cast<double>(m.image_count());
    std::printf("  %-18s %7.1f   %s\n", variants[i].name, us[i], bench::spread(variants[i].us, "%.1f").c_str());
  }
  for (std::size_t i = 0; i < count; ++i) run.result(name + ": " + variants[i].name, us[i], "us");
  run.result(name + ": as a batch does, times alone", us[0] / us[3], "x", bench::at_least(r.target));
}

struct fixed_row {
  std::array<mr::picture, 4> images;
};
struct listed_row {
  mr::picture_list images;
};

/// Renders images into batches of rows of one type.
template <class Row>
class list_batches {
 public:
  static constexpr std::size_t rows = 28, images = 4 * rows;

  explicit list_batches(const std::vector<mr::bytes>& files) : files_(files) {
    batch(0, [this](const Row& first) { columns_.fix_shapes(first, rows); }, 1);
    for (auto& slot : slots_) slot.reset(mr::detail::allocate_slot(columns_.batch_bytes()));
    lists_ = columns_.new_lists();
  }

  /// Renders batch `number`, whose images are the same for every type of row.
  void render(std::size_t number) {
    auto* const base = static_cast<std::byte*>(slots_[number % slots_.size()].get());
    std::vector<Row> all;
    std::vector<const Row*> claim;
    batch(number, [&all](Row&& row) { all.push_back(std::move(row)); }, rows);
    for (std::size_t first = 0; first < rows; first += columns_.together) {
      claim.clear();
      for (std::size_t i = first; i < std::min(rows, first + columns_.together); ++i) claim.push_back(&all[i]);
      columns_.place_lists(claim, first, *lists_);
      columns_.render(claim, base, first, memory_, lists_.get());
    }
    columns_.close(base, rows, lists_.get());
    for (auto& places : *lists_) places.clear();
  }

 private:
  struct slot_deleter {
    void operator()(void* memory) const noexcept { mr::detail::free_slot(memory); }
  };

  void batch(std::size_t number, const auto& take, std::size_t count) {
    std::size_t image = number * images;
    for (std::size_t row = 0; row < count; ++row) {
      const auto next = [&] {
        mr::rng random({.seed = 5, .sample = image});
        return mr::jpeg(files_[image++ % files_.size()]).random_resized_crop(224, random).random_flip(random);
      };
      if constexpr (std::is_same_v<Row, fixed_row>) {
        take(Row{{next(), next(), next(), next()}});
      } else {
        std::vector<mr::picture> list;
        for (std::size_t n = 0; n < row * 3 % 7 + 1; ++n) list.push_back(next());
        take(Row{{std::move(list), {.max_pictures = 7, .size = {.width = 224, .height = 224}}}});
      }
    }
  }

  const std::vector<mr::bytes>& files_;
  mr::detail::columns<&Row::images> columns_;
  mr::detail::owner<typename mr::detail::columns<&Row::images>::batch_lists> lists_;
  std::array<std::unique_ptr<void, slot_deleter>, 4> slots_;
  mr::scratch memory_;
};

void measure_lists(bench::harness& run) {
  mr::block_pool pool;
  std::vector<mr::bytes> files;
  const auto set = bench::make_photo_set(bench::photo_sets[0]);
  for (const auto& name : set.names) {
    mr::shard_reader reader(std::make_unique<mr::file_source>(name), pool);
    for (auto record = reader.next(); record; record = reader.next()) files.push_back((*record)["jpg"]);
  }
  list_batches<fixed_row> fixed(files);
  list_batches<listed_row> lists(files);
  const std::size_t batches = run.quick() ? 4 : 9;
  std::vector<std::array<double, 2>> least(batches, {1e9, 1e9});
  for (int round = 0; round < (run.quick() ? 8 : 20); ++round)
    for (std::size_t b = 0; b < batches; ++b)
      for (std::size_t i = 0; i < 2; ++i) {
        const bool listed = (i + b + static_cast<std::size_t>(round)) % 2 == 1;
        const double before = bench::seconds_of(CLOCK_THREAD_CPUTIME_ID);
        if (listed) lists.render(b);
        else fixed.render(b);
        double& best = least[b][listed ? 1 : 0];
        best = std::min(best, bench::seconds_of(CLOCK_THREAD_CPUTIME_ID) - before);
      }
  std::array<double, 2> us{};
  for (const auto& batch : least)
    for (std::size_t i = 0; i < 2; ++i)
      us[i] += batch[i] * 1e6 / static_cast<double>(batches * list_batches<fixed_row>::images);
  run.result("lists: four images in every row", us[0], "us");
  run.result("lists: one to seven images in a row", us[1], "us");
  run.result("lists: cost of an image, times that in fixed rows", us[1] / us[0], "x", bench::at_most(1.03));
}

}   // namespace

int main(int argc, char** argv) {
  bench::harness run(argc, argv, "views");
  return bench::run_guarded([&] {
    for (const auto& r : recipes)
      if (run.wants(r.name)) measure(run, r);
    if (run.wants("lists")) measure_lists(run);
    return run.finish();
  });
}
