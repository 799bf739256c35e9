// Audio columns through complete runs: rows and digests over workers, ranks and resume, with damaged files.
#include "../../temporary_folder.hpp"
#include "../audio/wav_files.hpp"
#include "quiet_sessions.hpp"

#include <millrace/audio.hpp>
#include <millrace/base/digest.hpp>

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

namespace mr = millrace;

namespace {

constexpr int samples = 300, damaged_at[] = {17, 130, 201};

struct example {
  mr::audio sound;
  mr::ragged_audio<std::int16_t> speech;
  std::int32_t number;
};

example prepare(const mr::record& r, mr::rng& rng) {
  const mr::audio a = mr::wav(r["wav"]).mono();
  return {a.pad(0.02).random_crop(0.02, rng).random_gain(rng), {a, {.max_length = 800}}, r["cls"].as<std::int32_t>()};
}

/// Shards of files with one or two channels and 0 to 700 frames; some are damaged.
std::string write_shards(const temporary_folder& folder) {
  mr::shard_writer out({.pattern = folder / "sounds-%d.tar", .max_samples = 77});
  for (int i = 0; i < samples; ++i) {
    mr::rng random({.seed = 6, .sample = static_cast<std::uint64_t>(i)});
    const slow::wav_form form{.coding = slow::all_codings[i % 4], .channels = i % 5 == 0 ? 2U : 1U};
    std::string file = slow::wav_file(form, slow::random_samples(form, random.below(700), random));
    for (const int damaged : damaged_at)
      if (i == damaged) file.resize(40);
    out.write(std::to_string(i), {{"wav", file}, {"cls", std::to_string(i)}});
  }
  out.close();
  return folder / "sounds-*.tar";
}

struct run_options {
  int threads = 2;
  mr::world world{};
  std::string resume{};
  std::uint64_t max_batches = ~std::uint64_t{0};
};
struct outcome {
  std::map<std::uint64_t, std::uint64_t> rows{};   // digests by global position
  std::vector<std::string> points{};
  std::uint64_t digest = 0, masked = 0;
};

outcome deliver(const std::string& shards, const run_options& o) {
  constexpr std::size_t global_batch = 12;
  auto flow = mr::shards(shards, {.seed = 4}) | mr::shuffle({.window = 100}) | mr::map(prepare) |
              mr::batch<example>({.size = global_batch / o.world.size});
  mr::session run{std::move(flow), {.epochs = 2, .threads = o.threads, .notice = [](const mr::notice&) {},
                                    .world = o.world, .resume = o.resume,
                                    .on_damage = {.policy = mr::damage::mask}}};
  outcome all;
  for (auto& b : run) {
    const auto [sound, speech, number] = b.columns();
    for (std::size_t i = 0; i < b.size(); ++i) {
      const auto words = speech[i];
      std::uint64_t digest = mr::detail::digest_bytes(std::as_bytes(sound[i].span()), b.valid()[i]);
      digest = mr::detail::digest_bytes(std::as_bytes(words.span()), digest + static_cast<std::uint64_t>(number[i]));
      all.rows[(b.epoch() * 1'000 + b.step()) * global_batch + i * o.world.size + o.world.rank] = digest;
      all.masked += b.valid()[i] == 0 ? 1U : 0U;
    }
    all.points.push_back(b.resume_text());
    if (all.points.size() >= o.max_batches) break;
  }
  all.digest = run.stats().digest;
  return all;
}

}  // namespace

TEST_CASE("audio rows depend on neither workers nor ranks nor interruptions, and damaged files are masked") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  const outcome alone = deliver(shards, {.threads = 0});
  CHECK(alone.masked == 2 * std::size(damaged_at));
  CHECK(alone.rows.size() == 2 * samples);
  std::uint64_t all_rows = 0;
  for (const auto& [position, digest] : alone.rows) all_rows += digest * (2 * position + 1);
  CHECK(all_rows == 8285359153151141911U);
  CHECK(alone.digest == 18383243932912756369U);
  for (const int threads : {1, 3}) {
    const outcome other = deliver(shards, {.threads = threads});
    CHECK(other.rows == alone.rows);
    CHECK(other.digest == alone.digest);
  }
  for (const std::uint32_t ranks : {2U, 3U, 4U, 6U}) {
    outcome together;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const outcome one = deliver(shards, {.world = {.rank = rank, .size = ranks}});
      together.rows.insert(one.rows.begin(), one.rows.end());
      together.digest += one.digest;
    }
    CHECK(together.rows == alone.rows);
    CHECK(together.digest == alone.digest);
  }
  mr::rng random({.seed = 5});
  for (int round = 0; round < 50; ++round) {
    const std::size_t at = random.below(alone.points.size() - 1);
    const outcome rest = deliver(shards, {.threads = static_cast<int>(random.below(3)), .resume = alone.points[at]});
    CHECK(rest.rows.size() == 12 * (alone.points.size() - 1 - at));
    bool equal = true;
    for (const auto& [position, digest] : rest.rows) equal = equal && alone.rows.at(position) == digest;
    CHECK(equal);
    CHECK(rest.points.back() == alone.points.back());
  }
}
