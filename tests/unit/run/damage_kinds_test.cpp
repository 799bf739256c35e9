// One of a hundred samples is damaged, in twenty ways, and one shard is cut; a run replaces them.
#include "../../copying_device.hpp"
#include "../../temporary_folder.hpp"
#include "../../thorough.hpp"
#include "quiet_sessions.hpp"

#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/image/picture/picture.hpp>
#include <millrace/io/tar/write/shard_writer.hpp>
#include <millrace/item/tensor/array.hpp>
#include <millrace/item/tensor/ragged.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/shards.hpp>
#include <millrace/sources/keys_from.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace mr = millrace;

namespace {

constexpr int samples = 2'000, samples_per_shard = 250, cut_shard = 5;
constexpr std::size_t global_batch = 96, lanes = 24, kinds = 20;

struct example {
  mr::picture pixels;
  std::int32_t label;
  std::array<float, 3> camera;
  mr::ragged<std::uint16_t> words;
};

struct number {
  std::int32_t label;
};

/// The fields of a sample, as written.
struct fields_of {
  std::vector<std::byte> jpg, words;
  std::string cls, camera;
  bool with_words = true;
};

std::vector<std::byte> bytes_of(std::string_view text) {
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

fields_of good_fields(int number) {
  static const std::vector<std::vector<std::byte>> files = [] {
    std::vector<std::vector<std::byte>> files;
    for (int i = 0; i < 8; ++i) {
      mr::image picture({24, 32, 3});
      for (std::size_t k = 0; k < picture.size(); ++k) picture.data()[k] = static_cast<std::uint8_t>(k * 7 + 31U * i);
      files.push_back(mr::encode_jpeg(picture, {.quality = 80}));
    }
    return files;
  }();
  fields_of f{.jpg = files[static_cast<std::size_t>(number % 8)], .words = {}, .cls = std::to_string(number),
              .camera = "0.5,1,2"};
  for (int i = 0; i < number % 9; ++i) f.words.insert(f.words.end(), {std::byte(number), std::byte(0)});
  return f;
}

/// Damages a sample in one of twenty ways.
fields_of damaged_fields(int number, std::size_t kind) {
  fields_of f = good_fields(number);
  auto& jpg = f.jpg;
  const auto find = [&](int marker) {
    for (std::size_t i = 0; i + 1 < jpg.size(); ++i)
      if (jpg[i] == std::byte(0xff) && jpg[i + 1] == std::byte(marker)) return i;
    return std::size_t{0};
  };
  switch (kind) {
    case 0: jpg.clear(); break;
    case 1: jpg.resize(jpg.size() / 2); break;                      // cut in the scan
    case 2: jpg.resize(20); break;                                  // cut in the header
    case 3: jpg = bytes_of("<html>404 Not Found</html>"); break;
    case 4: std::fill(jpg.begin(), jpg.end(), std::byte(0)); break;
    case 5: jpg[0] = std::byte('G'); break;                         // no start of image
    case 6: std::memset(jpg.data() + find(0xc0) + 5, 0, 2); break;  // height 0
    case 7: std::memset(jpg.data() + find(0xc0) + 5, 0xff, 4); break;   // 65535 x 65535
    case 8: jpg[find(0xc0) + 9] = std::byte(7); break;              // seven components
    case 9: jpg[find(0xc4) + 2] = std::byte(0xff); break;           // a Huffman table longer than the file
    case 10: jpg[find(0xdb) + 1] = std::byte(0x01); break;          // no quantization table
    case 11: jpg.erase(jpg.begin() + static_cast<std::ptrdiff_t>(find(0xda)), jpg.end()); break;   // no scan
    case 12: f.cls = "dog"; break;
    case 13: f.cls.clear(); break;
    case 14: f.cls = "99999999999"; break;                          // beyond int32
    case 15: f.camera = "0.5,1"; break;                             // two of three
    case 16: f.camera = "0.5,x,2"; break;
    case 17: f.words.push_back(std::byte(1)); break;                // half a number
    case 18: f.words.resize(2 * 40); break;                         // longer than max_length
    default: f.with_words = false;                                  // a missing field
  }
  return f;
}

/// The labels of the damaged samples, each with its kind.
std::map<int, std::size_t> damaged_samples() {
  std::map<int, std::size_t> all;
  mr::rng random({.seed = 4});
  while (all.size() < kinds) all.emplace(static_cast<int>(random.below(samples)), all.size());
  return all;
}

std::string write_set(const std::string& folder, const std::map<int, std::size_t>& damaged) {
  mr::shard_writer shard({.pattern = folder + "/s-%d.tar", .max_samples = samples_per_shard});
  for (int i = 0; i < samples; ++i) {
    const auto damage = damaged.find(i);
    const fields_of f = damage == damaged.end() ? good_fields(i) : damaged_fields(i, damage->second);
    const std::string key = "k" + std::to_string(i);
    if (f.with_words) shard.write(key, {{"jpg", f.jpg}, {"cls", f.cls}, {"camera", f.camera}, {"words", f.words}});
    else shard.write(key, {{"jpg", f.jpg}, {"cls", f.cls}, {"camera", f.camera}});
  }
  shard.close();
  return folder;
}

example prepare(const mr::record& r, mr::rng& random) {
  const mr::bytes words = r["words"];
  if (words.size() % 2 != 0) throw mr::data_error("half a word", "Write whole ones");
  std::vector<std::uint16_t> numbers(words.size() / 2);
  if (words.size() > 0) std::memcpy(numbers.data(), words.data(), words.size());
  const std::string camera(r["camera"].text());
  std::array<float, 3> values{};
  std::size_t at = 0;
  for (float& v : values) {
    std::size_t end = 0;
    try {
      v = std::stof(camera.substr(at), &end);
    } catch (const std::exception&) {
      throw mr::data_error("'" + camera + "' is no three numbers", "Write 0.5,1,2");
    }
    at = std::min(camera.size(), at + end + 1);
  }
  return {mr::jpeg(r["jpg"]).resize(16, 16).random_flip(random), r["cls"].as<std::int32_t>(), values,
          mr::ragged<std::uint16_t>(std::move(numbers), {.max_length = 32})};
}

struct options_of {
  mr::damage policy = mr::damage::replace;
  int threads = 2;
  mr::world world{};
  std::string resume{}, quarantine{};
  std::uint64_t max_batches = ~std::uint64_t{0};
};

/// A batch as text, so that batches of all ranks can be merged by row; and the resume point after it.
struct trace {
  std::vector<std::vector<std::string>> batches{};
  std::vector<std::string> positions{};
  std::uint64_t digest = 0, bad_rows = 0;
};

trace run(const std::string& shards, const options_of& o) {
  auto options = quiet(o.threads, 2);
  options.world = o.world;
  options.lanes = lanes;
  options.resume = o.resume;
  options.on_damage = {.policy = o.policy, .at_most_share = 0.5, .in_a_row = 500, .quarantine = o.quarantine};
  mr::session session{
      mr::shards(shards, {.seed = 3, .damaged_shards_at_most = o.policy == mr::damage::fail ? 0U : 1U}) |
          mr::shuffle({.window = 500}) | mr::map(prepare) |
          mr::batch<&example::pixels, &example::label, &example::camera, &example::words>(
              {.size = global_batch / o.world.size}),
      options};
  trace all;
  for (auto& b : session) {
    auto& rows = all.batches.emplace_back(b.size());
    REQUIRE(b.size() == global_batch / o.world.size);
    const auto [pixels, labels, camera, words] = b.columns();
    for (std::size_t i = 0; i < b.size(); ++i) {
      std::string row(reinterpret_cast<const char*>(pixels.data + i * 768), 768);
      row += " " + std::to_string(labels[i]) + " " + std::to_string(camera(i, 2)) + " " +
             std::to_string(words.lengths[i]);
      for (std::int32_t w = 0; w < words.lengths[i]; ++w)
        row += "," + std::to_string(words.values(i, static_cast<std::size_t>(w)));
      if (o.policy != mr::damage::fail) row += b.valid()[i] == 0 ? " masked" : b.replaced()[i] != 0 ? " replaced" : "";
      rows[i] = row;
    }
    all.positions.push_back(mr::to_text(b.position()));
    if (all.batches.size() == o.max_batches) break;
  }
  all.digest = session.stats().digest;
  all.bad_rows = session.stats().replaced + session.stats().masked;
  return all;
}

trace run_on_ranks(const std::string& shards, options_of o, std::size_t ranks) {
  trace all;
  for (std::size_t r = 0; r < ranks; ++r) {
    o.world = {.rank = r, .size = ranks};
    const trace one = run(shards, o);
    if (r == 0) all.batches.assign(one.batches.size(), std::vector<std::string>(global_batch));
    for (std::size_t b = 0; b < one.batches.size(); ++b)
      for (std::size_t i = 0; i < one.batches[b].size(); ++i) all.batches[b][i * ranks + r] = one.batches[b][i];
    all.digest += one.digest;
    all.bad_rows += one.bad_rows;
  }
  return all;
}

/// The digest of a clean run in which only some labels count: masking omits the terms of the others.
std::uint64_t digest_without(const std::string& clean, const std::set<int>& labels) {
  auto options = quiet(2, 2);
  options.lanes = lanes;
  options.on_damage = {.policy = mr::damage::mask, .at_most_share = 1, .in_a_row = 10'000};
  mr::session session{mr::shards(clean, {.seed = 3}) | mr::shuffle({.window = 500}) |
                          mr::map([&](const mr::record& r) {
                            const auto label = r["cls"].as<std::int32_t>();
                            if (labels.contains(label)) throw mr::data_error("left out", "Nothing");
                            return number{label};
                          }) |
                          mr::batch<&number::label>({.size = global_batch}),
                      options};
  for (auto& b : session) static_cast<void>(b.size());
  return session.stats().digest;
}

}  // namespace

TEST_CASE("twenty kinds of damage and a cut shard: batches stay full, digest, workers, ranks, resumes, quarantine") {
  const temporary_folder clean_folder, folder;
  const auto damaged = damaged_samples();
  const std::string clean = write_set(clean_folder.path(), {}), shards = write_set(folder.path(), damaged);
  for (const auto& one_of : damaged) {   // each of them is detected, whatever the others are
    const int label = one_of.first;
    const std::size_t kind = one_of.second;
    CAPTURE(kind);
    const temporary_folder one;
    mr::shard_writer shard({.pattern = one / "s-%d.tar"});
    const fields_of f = damaged_fields(label, kind), g = good_fields(1);
    shard.write("good", {{"jpg", g.jpg}, {"cls", g.cls}, {"camera", g.camera}, {"words", g.words}});
    if (f.with_words) shard.write("bad", {{"jpg", f.jpg}, {"cls", f.cls}, {"camera", f.camera}, {"words", f.words}});
    else shard.write("bad", {{"jpg", f.jpg}, {"cls", f.cls}, {"camera", f.camera}});
    shard.close();
    mr::session strict{mr::shards(one.path()) | mr::map(prepare) |
                           mr::batch<&example::pixels, &example::label, &example::camera, &example::words>({.size = 2}),
                       quiet(0, 1)};
    CHECK_THROWS_AS(strict.next(), mr::data_error);
  }
  {
    mr::session indexing{mr::shards(shards) |
                             mr::map([](const mr::record& r) { return number{static_cast<int>(r.key().size())}; }) |
                             mr::batch<&number::label>({.size = 100}),
                         quiet(1, 1)};
    for (auto& b : indexing) static_cast<void>(b.size());   // builds the indexes, and learns all checksums
  }
  const std::string cut = folder / ("s-" + std::to_string(cut_shard) + ".tar");
  std::filesystem::resize_file(cut, std::filesystem::file_size(cut) / 3 * 2 + 100);

  const trace good = run(clean, {.policy = mr::damage::fail});
  const trace first = run(shards, {.threads = 0, .quarantine = folder / "q/list"});
  // The quarantine list names the samples that the cut has cost; all of them are at the end of their shard.
  const mr::key_list listed = mr::keys_from(folder / "q/list-0.jsonl");
  std::set<int> bad;
  int first_cut = samples;
  for (int label = 0; label < samples; ++label) {
    const std::string shard = "s-" + std::to_string(label / samples_per_shard) + ".tar";
    if (!listed.contains("k" + std::to_string(label), shard)) continue;
    bad.insert(label);
    if (!damaged.contains(label)) {
      REQUIRE(label / samples_per_shard == cut_shard);
      first_cut = std::min(first_cut, label);
    }
  }
  CHECK(bad.size() == listed.size());
  CHECK(bad.size() > 60);
  CHECK(bad.size() < 110);
  std::ifstream list(folder / "q/list-0.jsonl");
  CHECK(static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(list), {}, '\n')) == bad.size());

  CHECK(first.batches.size() == good.batches.size());
  CHECK(first.digest == digest_without(clean, bad));
  std::size_t equal = 0, marked = 0;
  for (std::size_t b = 0; b < good.batches.size(); ++b)
    for (std::size_t i = 0; i < global_batch; ++i) {
      const std::string& row = first.batches[b][i];
      const bool replaced = row.ends_with(" replaced"), masked = row.ends_with(" masked");
      marked += replaced || masked;
      if (!replaced && !masked) {
        REQUIRE(row == good.batches[b][i]);
        ++equal;
      }
    }
  CHECK(marked == first.bad_rows);
  CHECK(equal + marked == good.batches.size() * global_batch);

  for (const int threads : {1, 4}) {
    const trace d = run(shards, {.threads = threads, .quarantine = folder / "q/list"});
    CHECK(d.batches == first.batches);
    CHECK(d.positions == first.positions);
  }
  for (const std::size_t ranks : {2, 3, 4, 6}) {
    CAPTURE(ranks);
    const trace d = run_on_ranks(shards, {.quarantine = folder / "q/list"}, ranks);
    CHECK(d.batches == first.batches);
    CHECK(d.digest == first.digest);
    CHECK(d.bad_rows == first.bad_rows);
  }
  mr::rng random({.seed = 9});
  for (std::size_t i = 0; i < 50; i += stride(10)) {
    const auto cut_at = static_cast<std::size_t>(random.below(first.batches.size() - 1));
    const trace rest = run(shards, {.resume = first.positions[cut_at], .quarantine = folder / "q/list"});
    REQUIRE(rest.batches == std::vector(first.batches.begin() + std::ptrdiff_t(cut_at) + 1, first.batches.end()));
    REQUIRE(rest.digest == first.digest);
  }
  // Later runs have added no line to rank 0's list.
  CHECK(mr::keys_from(folder / "q/list-0.jsonl").size() == bad.size());
}
