// Runs over an index: chosen samples, accounts of samples, and entry points; ranks, resume and digests.
#include "indexed_runs.hpp"

#include <millrace/base/digest.hpp>
#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/image/jpeg/jpeg_entries.hpp>
#include <millrace/io/index/set/shard_data.hpp>
#include <millrace/pictures.hpp>
#include <millrace/read/run/indexed_run.hpp>
#include <millrace/shards.hpp>
#include <millrace/sources/list/shard_list.hpp>
#include <millrace/stages/batch.hpp>
#include <millrace/stages/map.hpp>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace mr = millrace;
using namespace indexed_runs;

namespace {

bool is_chosen(int label) { return label % 4 != 1 && label < 200; }

mr::key_list keys_where(bool are_chosen) {
  std::vector<std::string> keys;
  for (int label = 0; label < samples; ++label)
    if (is_chosen(label) == are_chosen) keys.push_back("k" + std::to_string(label));
  return keys;
}

int label_of(std::string_view key) { return std::stoi(std::string(key.substr(1))); }

const run_options by_list{.source = {.only = keys_where(true)}};
const run_options by_predicate{
    .source = {.where = [](std::string_view key, std::string_view) { return is_chosen(label_of(key)); }}};
const run_options repeated{
    .source = {.repeats = [](std::string_view key, std::string_view) { return std::size_t(label_of(key) % 3); }}};

}  // namespace

TEST_CASE("each epoch has every chosen sample as often as requested, with the draws of a run over all") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  std::map<std::pair<std::uint64_t, int>, double> draws_over_all;
  const delivered all = run(shards, {.drop_last = false});
  for (std::size_t b = 0; b < all.batches.size(); ++b)
    for (const auto& [label, draw] : all.batches[b]) draws_over_all[{all.epochs[b], label}] = draw;
  for (const run_options& choice : {by_list, by_predicate, repeated}) {
    run_options o = choice;
    o.drop_last = false;
    const delivered d = run(shards, o);
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      std::map<int, std::set<double>> draws;
      std::map<int, std::size_t> times;
      for (std::size_t b = 0; b < d.batches.size(); ++b)
        if (d.epochs[b] == epoch)
          for (const auto& [label, draw] : d.batches[b]) {
            ++times[label];
            draws[label].insert(draw);
          }
      for (int label = 0; label < samples; ++label) {
        CAPTURE(label);
        const std::size_t expected = choice.source.repeats ? std::size_t(label % 3) : std::size_t(is_chosen(label));
        REQUIRE(times[label] == expected);
        REQUIRE(draws[label].size() == expected);   // each repeat draws its own numbers
        if (expected > 0) REQUIRE(draws[label].contains(draws_over_all[{epoch, label}]));
      }
    }
  }
}

TEST_CASE("a choice has one order for every number of workers and ranks; another list of the same samples is the same "
          "run") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  for (run_options o : {by_list, repeated}) {
    o.threads = 0;
    const delivered expected = run(shards, o);
    REQUIRE(expected.batches.size() > 10);
    for (const int threads : {1, 4}) {
      o.threads = threads;
      const delivered d = run(shards, o);
      CHECK(d.batches == expected.batches);
      CHECK(d.positions == expected.positions);
    }
    for (const std::size_t ranks : {2, 3, 6}) {
      CAPTURE(ranks);
      const delivered d = run_all_ranks(shards, o, ranks);
      CHECK(d.batches == expected.batches);
      CHECK(d.positions == expected.positions);
    }
  }
  CHECK(run(shards, by_list).positions == run(shards, by_predicate).positions);
  CHECK(run(shards, {.source = {.without = keys_where(false)}}).positions == run(shards, by_predicate).positions);
}

TEST_CASE("a choice resumes after any batch by another list of the same; another choice is refused by name") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  const delivered reference = run(shards, by_list);
  for (std::size_t cut = 0; cut + 1 < reference.batches.size(); cut += 3) {
    run_options o = by_predicate;
    o.resume = reference.positions[cut];
    CHECK(o.resume.size() < 300);
    const delivered rest = run(shards, o);
    CHECK(rest.batches == std::vector(reference.batches.begin() + std::ptrdiff_t(cut) + 1, reference.batches.end()));
    CHECK(rest.positions.back() == reference.positions.back());
  }
  for (run_options other : {run_options{}, repeated}) {
    other.resume = reference.positions[1];
    CHECK_THROWS_WITH_AS(run(shards, other),
                         doctest::Contains("the choice of samples (.having, .only, .without, .where, .repeats) was"),
                         mr::setup_error);
  }
  run_options o = by_list;
  o.resume = run(shards, {.max_batches = 2}).positions[1];
  CHECK_THROWS_WITH_AS(run(shards, o), doctest::Contains("was all, each once and is"), mr::setup_error);
}

TEST_CASE("a choice of all samples equals the run over all") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  const run_options all{.source = {.where = [](std::string_view, std::string_view) { return true; }}};
  CHECK(run(shards, all).positions == run(shards, {}).positions);
  CHECK(run(shards, by_list).positions.back() != run(shards, {}).positions.back());
}

// delivered + dropped_last = planned: at the end of each epoch, on each rank.
namespace {

/// Shards whose one read, in the middle of the run, returns a sample fewer than requested, and no error.
class losing_data : public mr::detail::shard_data {
 public:
  losing_data(std::vector<std::string> names, std::uint64_t lost_reading)
      : shard_data(std::move(names), {.reader = {.fields = {"cls"}}}), lost_reading_(lost_reading) {}

  std::size_t read(std::span<const mr::detail::located_sample> positions, std::span<mr::record> records,
                   std::exception_ptr& failure) {
    const std::size_t good = shard_data::read(positions, records, failure);
    return readings_.fetch_add(1) == lost_reading_ ? good - 1 : good;
  }

 private:
  const std::uint64_t lost_reading_;
  std::atomic<std::uint64_t> readings_{0};
};

struct losing_source {
  using item = mr::record;
  using planned = mr::detail::indexed_run<losing_data>;

  std::unique_ptr<planned> plan(const mr::detail::indexed_run_options& o) const {
    return std::make_unique<planned>(data, o); }
  std::size_t shards() const { return data->counts().size(); }
  typename planned::source_type::reader open(std::size_t shard, std::uint64_t epoch) const;

  std::shared_ptr<losing_data> data;
};

/// Runs three epochs, with 24 samples to each reading, and returns the exception.
std::string loss_of(const std::string& shards, std::uint64_t lost_reading, run_options o, std::uint64_t& batches) {
  auto data = std::make_shared<losing_data>(mr::list_shards(shards), lost_reading);
  mr::detail::flow<mr::record, losing_source> source{{}, {std::move(data)}, o.seed};
  auto options = quiet(o.threads, o.epochs);
  options.epoch_batches = o.epoch_batches;
  options.world = o.world;
  options.memory_bytes = 24 * 1'600 * 128;   // for parts of about 24 samples
  mr::session session{flow_of(std::move(source), o), options};
  batches = 0;
  try {
    for (auto& b : session) batches += b.size() > 0;
  } catch (const mr::conservation_error& e) {
    CHECK_THROWS_WITH_AS(session.next(), doctest::Contains("the session has ended with an error"), mr::setup_error);
    return e.message();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a source that loses a sample is detected at the end of that epoch, with both sums") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  std::uint64_t batches = 0;
  for (const int threads : {0, 2}) {
    CHECK(loss_of(shards, 9'999, {.threads = threads}, batches) == "no error");
    CHECK(batches == 24);
    const std::string first = loss_of(shards, 1, {.threads = threads}, batches);
    CHECK(first.starts_with("epoch 0 delivered 168 samples in 7 batches, 19 dropped (187 in total): expected 192 in "
                            "8 batches, 19 dropped (211 in total on this rank)"));
    CHECK(batches == 7);
    const std::string short_last = loss_of(shards, 1, {.threads = threads, .drop_last = false}, batches);
    CHECK(short_last.starts_with("epoch 0 delivered 210 samples in 9 batches, 0 dropped (210 in total): expected 211 "
                                 "in 9 batches, 0 dropped (211"));
    const std::string other_rank = loss_of(
        shards, 1, {.world = {.rank = 1, .size = 2}, .threads = threads, .drop_last = false}, batches);
    CHECK(other_rank.starts_with("epoch 0 delivered 104 samples in 9 batches, 0 dropped (104 in total): expected "
                                 "105 in 9"));
    const std::string at_the_end = loss_of(shards, 2, {.epochs = 1, .epoch_batches = 9, .threads = threads}, batches);
    CHECK(at_the_end.starts_with("epoch 0 was interrupted by the end of the run: it delivered 192 samples in 8 "
                                 "batches"));
    CHECK(batches == 8);
  }
}

TEST_CASE("over all ranks, planned, delivered and dropped samples add up to the data set") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  for (const std::size_t ranks : {1U, 2U, 3U, 4U, 6U, 8U, 12U, 24U}) {
    std::uint64_t delivered = 0, dropped = 0;
    for (std::size_t r = 0; r < ranks; ++r) {
      const auto d = run(shards, {.epochs = 2, .world = {.rank = r, .size = ranks}, .threads = 0});
      delivered += d.stats.samples;
      dropped += d.stats.dropped_last;
    }
    CHECK(delivered == 2 * 192);
    CHECK(dropped == 2 * 19);
  }
}

TEST_CASE("an epoch that is longer than planned is a violation, and so is each batch out of its epoch") {
  const mr::detail::delivery_account_options o{.batches = 2, .rows = 5, .dropped = 1};
  mr::detail::delivery_account good(o);
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch)
    for (const std::size_t rows : {3U, 2U}) good.deliver({.epoch = epoch, .rows = rows, .digest = 7});
  CHECK(good.digest() == 42);
  CHECK(good.dropped() == 3);
  good.finish();
  mr::detail::delivery_account longer(o);
  longer.deliver({.rows = 3});
  CHECK_THROWS_WITH_AS(longer.deliver({.rows = 3}),
                       doctest::Contains("(7 in total): expected 5 in 2 batches, 1 dropped (6 in total"),
                       mr::conservation_error);
  mr::detail::delivery_account early(o);
  CHECK_THROWS_AS(early.deliver({.epoch = 1, .rows = 3}), mr::conservation_error);
  mr::detail::delivery_account unfinished(o);
  unfinished.deliver({.rows = 3});
  CHECK_THROWS_AS(unfinished.finish(), mr::conservation_error);
  mr::detail::delivery_account resumed({.epoch = 4, .batch = 1, .batches = 2, .rows = 5, .delivered = 3, .digest = 1});
  resumed.deliver({.epoch = 4, .rows = 2, .digest = 2});
  CHECK(resumed.digest() == 3);
}

// Entry points in indexes reduce the cost of crops and change nothing else: pixels, order, digests and resume points.
namespace {

constexpr int images = 60;

struct example {
  mr::picture pixels;
  std::int32_t label;
};

example prepare_crop(const mr::record& r, mr::rng& random) {
  return {mr::jpeg(r["jpg"]).random_resized_crop(48, random).random_flip(random), r["cls"].as<std::int32_t>()};
}

/// Images with an edge in every block, so that each has its words and its DC values.
std::vector<std::byte> picture_number(int n) {
  mr::image picture({static_cast<std::size_t>(150 + 7 * (n % 9)), static_cast<std::size_t>(260 - 5 * (n % 7)), 3});
  mr::rng random({.seed = 9, .sample = static_cast<std::uint64_t>(n)});
  std::uint8_t value = 0;
  for (std::uint8_t& v : picture.span())
    v = static_cast<std::uint8_t>((value = static_cast<std::uint8_t>(value + random.below(9))) / 2 + random.below(40));
  return mr::encode_jpeg(picture, {.quality = 85});
}

std::string write_images(const temporary_folder& folder) {
  mr::shard_writer shards({.pattern = folder / "s-%d.tar", .max_samples = 25});
  for (int i = 0; i < images; ++i)
    shards.write("k" + std::to_string(i), {{"cls", std::to_string(i)}, {"jpg", picture_number(i)}});
  shards.close();
  return folder / "s-{0..2}.tar";
}

std::vector<std::byte> entries_for(std::string_view field, std::span<const std::byte> payload) {
  return field == "jpg" ? mr::jpeg_entries(payload) : std::vector<std::byte>();
}

struct outcome {
  std::vector<std::uint64_t> pixels;    // a digest of each batch
  std::vector<std::string> positions;   // after each batch
  std::uint64_t with_entries = 0, used = 0, refused = 0;
};

struct entry_options {
  int threads = 2;
  bool makes_entries = false;
  std::string resume{};
};

outcome run_crops(const std::string& pattern, const entry_options& o) {
  mr::shards_options source{.seed = 7, .notice = mr::quiet};
  if (o.makes_entries) source.entries = entries_for;
  auto options = quiet(o.threads, 2);
  options.resume = o.resume;
  mr::session session{mr::shards(pattern, source) | mr::shuffle({.window = 30}) | mr::map(prepare_crop) |
                          mr::batch<&example::pixels, &example::label>({.size = 10}),
                      options};
  outcome all;
  for (auto& b : session) {
    auto [pixels, labels] = b.columns();
    std::uint64_t digest = 0;
    for (std::size_t row = 0; row < b.size(); ++row)
      digest = mr::detail::digest_bytes(std::as_bytes(pixels[row].span()),
                                        digest + static_cast<std::uint64_t>(labels[row]));
    all.pixels.push_back(digest);
    all.positions.push_back(mr::to_text(b.position()));
  }
  for (const auto& c : session.stats().counts) {
    if (std::string_view(c.what) == "fields read with entry points") all.with_entries = c.times;
    if (std::string_view(c.what) == "JPEG crops accelerated by entry points") all.used = c.times;
    if (std::string_view(c.what) == "fields with wrong or damaged entry points") all.refused = c.times;
  }
  return all;
}

void flip_bit(const std::string& path, std::uint64_t at) {
  const auto time = std::filesystem::last_write_time(path);
  {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(at));
    const char old = static_cast<char>(file.get());
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(old ^ 4));
  }
  std::filesystem::last_write_time(path, time);
}

}  // namespace

TEST_CASE("runs with entry points deliver the same as runs without them, for any number of workers, and resume alike") {
  const temporary_folder folder;
  const std::string pattern = write_images(folder);
  const outcome plain = run_crops(pattern, {});
  REQUIRE(plain.pixels.size() == 12);
  CHECK(plain.with_entries == 0);
  CHECK(plain.used == 0);
  const mr::entry_points built = mr::make_entry_points(pattern, entries_for, {.notice = mr::quiet});
  CHECK(built.shards == 3);
  CHECK(built.processed == 3);
  CHECK(built.samples == images);
  CHECK(built.damaged_samples == 0);
  CHECK(built.fields == images);
  CHECK(built.share() > 0.001);
  CHECK(built.share() < 0.035);
  CHECK(mr::make_entry_points(pattern, entries_for, {.notice = mr::quiet}).processed == 0);
  CHECK(mr::entry_points_of(folder / "s-1.tar").fields == 25);
  for (const int threads : {0, 1, 4}) {
    const outcome with = run_crops(pattern, {.threads = threads});
    CHECK(with.pixels == plain.pixels);
    CHECK(with.positions == plain.positions);
    CHECK(with.used > images);
    CHECK(with.with_entries >= 2 * images);
    CHECK(with.refused == 0);
  }
  const outcome rest = run_crops(pattern, {.threads = 1, .resume = plain.positions[4]});
  REQUIRE(rest.pixels.size() == 7);
  CHECK(std::equal(rest.pixels.begin(), rest.pixels.end(), plain.pixels.begin() + 5));
  CHECK(std::equal(rest.positions.begin(), rest.positions.end(), plain.positions.begin() + 5));
}

TEST_CASE("a run builds the entry points itself on request, once") {
  const temporary_folder folder;
  const std::string pattern = write_images(folder);
  const outcome plain = run_crops(pattern, {});
  const outcome makes = run_crops(pattern, {.makes_entries = true});
  CHECK(makes.pixels == plain.pixels);
  CHECK(makes.positions == plain.positions);
  CHECK(makes.used > images);
  const auto time = std::filesystem::last_write_time(folder / "s-0.tar.millrace-index");
  const outcome again = run_crops(pattern, {.makes_entries = true});
  CHECK(again.pixels == plain.pixels);
  CHECK(again.used > images);
  CHECK(std::filesystem::last_write_time(folder / "s-0.tar.millrace-index") == time);
}

TEST_CASE("damaged entry points are refused and counted, and pixels stay; a damaged payload is reported as always") {
  const temporary_folder folder;
  const std::string pattern = write_images(folder);
  const outcome plain = run_crops(pattern, {});
  const mr::entry_points built = mr::make_entry_points(pattern, entries_for, {.notice = mr::quiet});
  const std::string index = folder / "s-1.tar.millrace-index";
  flip_bit(index, std::filesystem::file_size(index) - 20);   // in the entries of its last image
  const outcome damaged = run_crops(pattern, {});
  CHECK(damaged.pixels == plain.pixels);
  CHECK(damaged.positions == plain.positions);
  CHECK(damaged.refused == 2);   // in each epoch
  CHECK(damaged.with_entries == 2 * built.fields - 2);
  flip_bit(folder / "s-2.tar", std::filesystem::file_size(folder / "s-2.tar") / 2);
  CHECK_THROWS_WITH_AS(run_crops(pattern, {}), doctest::Contains("the sample was changed"), mr::data_error);
}
