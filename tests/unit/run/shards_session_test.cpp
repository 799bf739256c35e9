// Complete runs on real shards: files, records, images, batches; and the effects of damage.
#include <millrace/millrace.hpp>
#include <millrace/report/print/text_report.hpp>
#include <millrace/report/session_report.hpp>

#include "../io/tar_bytes.hpp"
#include "../../captured_stderr.hpp"
#include "quiet_sessions.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

namespace mr = millrace;

namespace {

struct example {
  mr::picture pixels;
  std::int32_t label;
};

example prepare(const mr::record& r) { return {mr::jpeg(r["jpg"]).resize(8, 8), r["cls"].as<std::int32_t>()}; }

/// Four shards of ten images, each of one gray level: 2 * its label.
std::string write_gray_shards(const temporary_folder& folder) {
  mr::shard_writer shards({.pattern = folder / "gray-%d.tar", .max_samples = 10});
  for (int i = 0; i < 40; ++i) {
    mr::image gray({20, 30, 3});
    std::fill(gray.span().begin(), gray.span().end(), static_cast<std::uint8_t>(2 * i));
    shards.write("k" + std::to_string(i), {{"jpg", mr::encode_jpeg(gray)}, {"cls", std::to_string(i)}});
  }
  shards.close();
  return folder / "gray-{0..3}.tar";
}

void truncate_file(const std::string& path, std::uintmax_t bytes) { std::filesystem::resize_file(path, bytes); }

}  // namespace

TEST_CASE("pixels and labels of a sample stay together from the shard to the batch") {
  const temporary_folder folder;
  const std::string pattern = write_gray_shards(folder);
  for (const int threads : {0, 1, 3}) {
    std::multiset<std::int32_t> label_counts;
    mr::feed(mr::shards(pattern, {.seed = 5, .index = mr::index::off}) | mr::shuffle({.window = 16}) |
                 mr::map(prepare) | mr::batch<&example::pixels, &example::label>({.size = 8}),
             quiet(threads, 2), [&](auto& b) {
               const auto pixels = b.template get<&example::pixels>();
               const auto labels = b.template get<&example::label>();
               CHECK(pixels.shape == std::array<std::size_t, 4>{8, 8, 8, 3});
               for (std::size_t i = 0; i < b.size(); ++i) {
                 const auto label = labels.host()[i];
                 label_counts.insert(label);
                 for (const auto p : pixels[i].host()) CHECK(std::abs(p - 2 * label) <= 1);
               }
             });
    CHECK(label_counts.size() == 80);
    for (int i = 0; i < 40; ++i) CHECK(label_counts.count(i) == 2);
  }
}

namespace {

struct raw_example {
  mr::bytes data;
};
raw_example raw(const mr::record& r) { return {r["bin"]}; }

}  // namespace

TEST_CASE("bytes of a record are a column of u8, unchanged, all of one length") {
  const temporary_folder folder;
  mr::shard_writer shards({.pattern = folder / "raw-%d.tar"});
  for (const std::string text : {"abcde", "fghij", "klmno", "pq"}) shards.write(text, {{"bin", text}});
  shards.close();
  for (const int threads : {0, 2}) {
    mr::session run{mr::shards(folder.path(), {.index = mr::index::off}) | mr::map(raw) |
                        mr::batch<&raw_example::data>({.size = 1}),
                    quiet(threads)};
    for (const std::string text : {"abcde", "fghij", "klmno"}) {
      const auto b = run.next();
      const auto column = b.get<&raw_example::data>();
      static_assert(std::is_same_v<decltype(column.host()[0]), std::uint8_t&>);
      CHECK(column.shape == std::array<std::size_t, 2>{1, 5});
      CHECK(std::string(column.host().begin(), column.host().end()) == text);
    }
    CHECK_THROWS_WITH_AS(static_cast<void>(run.next()), doctest::Contains("[2] here, but [5]"), mr::data_error);
  }
}

TEST_CASE("a batch has the keys of its rows on request, as long as it exists, and otherwise says how to get them") {
  const temporary_folder folder;
  const std::string pattern = write_gray_shards(folder);
  const auto flow = [&](const mr::batch_options& o) {
    return mr::shards(pattern, {.index = mr::index::off}) | mr::map(prepare) | mr::batch<&example::label>(o);
  };
  for (const int threads : {0, 1, 4}) {
    decltype(mr::session{flow({})})::batch lease;
    {
      mr::session run{flow({.size = 16, .drop_last = false, .keys = true}), quiet(threads, 2)};
      std::size_t batches = 0, rows = 0;
      for (auto& b : run) {
        CHECK(b.keys().size() == (batches % 3 < 2 ? 16 : 8));
        for (std::size_t i = 0; i < b.size(); ++i)
          CHECK(b.keys()[i] == "k" + std::to_string(b.get<&example::label>()[i]));
        rows += b.keys().size();
        if (batches++ == 2) lease = std::move(b);
      }
      CHECK(rows == 80);
    }
    REQUIRE(lease.keys().size() == 8);
    CHECK(lease.keys()[7] == "k39");
    lease.release();
    CHECK_THROWS_WITH_AS(static_cast<void>(lease.keys()), doctest::Contains("keys() was called on an empty batch"),
                         mr::setup_error);
  }
  mr::session without{flow({.size = 16}), quiet(1)};
  CHECK_THROWS_WITH_AS(static_cast<void>(without.next().keys()), doctest::Contains("expected batch({.keys = true})"),
                       mr::setup_error);
}

TEST_CASE("shards without an end marker are complete, counted once for all epochs, and one of them is reported") {
  const temporary_folder folder;
  for (const std::string name : {"a", "b", "c"})
    tar_test::save(folder / (name + ".tar"),
                   tar_test::file(name + "1.bin", "one  ") + tar_test::file(name + "2.bin", "two  ") +
                       std::string(name == "a" ? 1'024 : name == "b" ? 512 : 0, '\0'));
  for (const int threads : {0, 2})
    for (const bool announce : {false, true}) {
      std::uint64_t rows = 0, times = 0;
      const std::string text = captured_stderr([&] {
        auto options = quiet(threads, 3);
        if (announce) options.notice = nullptr;
        mr::session run{mr::shards(folder.path(), {.index = mr::index::off}) | mr::map(raw) |
                            mr::batch<&raw_example::data>({.size = 1}),
                        options};
        for (auto& b : run) rows += b.size();
        for (const auto& c : run.stats().counts)
          if (std::string_view(c.what) == "shards that ended without a marker") times = c.times;
      });
      CHECK(rows == 18);
      CHECK(times == 2);
      const std::string line = ".tar ended without an end marker (two blocks of 512 zeros): all of its samples are "
                               "delivered";
      CHECK(text.find(line) != std::string::npos);
      CHECK(text.find(line) == text.rfind(line));
      CHECK((text.find(" workers, ") != std::string::npos) == announce);
    }
  mr::session strict{mr::shards(folder.path(), {.index = mr::index::off, .strict = true}) | mr::map(raw) |
                         mr::batch<&raw_example::data>({.size = 1}),
                     quiet(0)};
  CHECK_THROWS_WITH_AS(for (auto& b : strict) b.release(), doctest::Contains("ends without an end marker"),
                       mr::data_error);
}

TEST_CASE("before a truncation every sample is delivered, then one error that names shard, offset and last key") {
  const temporary_folder folder;
  const std::string pattern = write_gray_shards(folder);
  truncate_file(folder / "gray-2.tar", 5'000);
  std::vector<std::int32_t> expected;
  for (const int threads : {0, 1, 4}) {
    mr::session run{mr::shards(pattern, {.index = mr::index::off}) | mr::map(prepare) |
                        mr::batch<&example::label>({.size = 1}),
                    quiet(threads)};
    std::vector<std::int32_t> labels;
    try {
      for (auto& b : run) labels.push_back(b.get<&example::label>().host()[0]);
      FAIL("no error");
    } catch (const mr::data_error& e) {
      CHECK(e.where().shard == folder / "gray-2.tar");
      CHECK(e.where().offset_bytes != mr::error_location::unknown);
      CHECK(std::string(e.what()).find("k" + std::to_string(labels.back())) != std::string::npos);
      CHECK(e.where().position == labels.size());
    }
    CHECK(labels.size() > 20);
    CHECK(labels.size() < 30);
    for (std::size_t i = 0; i < labels.size(); ++i) CHECK(labels[i] == static_cast<std::int32_t>(i));
    if (expected.empty()) expected = labels;
    CHECK(labels == expected);
  }
}

TEST_CASE("with a shuffle the same batches precede the damage, whatever the threads") {
  const temporary_folder folder;
  const std::string pattern = write_gray_shards(folder);
  truncate_file(folder / "gray-1.tar", 6'000);
  std::vector<std::int32_t> expected;
  for (const int threads : {0, 1, 4}) {
    mr::session run{mr::shards(pattern, {.seed = 4, .index = mr::index::off}) | mr::shuffle({.window = 6}) |
                        mr::map(prepare) | mr::batch<&example::label>({.size = 2}),
                    quiet(threads)};
    std::vector<std::int32_t> labels;
    CHECK_THROWS_AS(
        for (auto& b
             : run) {
          for (const auto label : b.get<&example::label>().host()) labels.push_back(label);
        },
        mr::data_error);
    if (expected.empty()) expected = labels;
    CHECK(labels == expected);
  }
}

TEST_CASE("a bad label and a bad image are named with shard, key, stage and position") {
  const temporary_folder folder;
  mr::shard_writer shards({.pattern = folder / "bad-%d.tar"});
  mr::image gray({20, 30, 3});
  auto jpg = mr::encode_jpeg(gray);
  for (int i = 0; i < 12; ++i) {
    const bool bad_label = i == 5, bad_picture = i == 9;
    auto bytes = jpg;
    if (bad_picture) bytes.resize(bytes.size() / 2);
    shards.write("k" + std::to_string(i), {{"jpg", bytes}, {"cls", bad_label ? "five" : "3"}});
  }
  shards.close();
  const auto train = [&](std::size_t size, auto prepare_one) {
    mr::feed(mr::shards(folder / "bad-0.tar", {.index = mr::index::off}) | mr::map(prepare_one) |
                 mr::batch<&example::pixels, &example::label>({.size = size}),
             quiet(2), [](auto&) {});
  };
  try {
    train(4, prepare);
    FAIL("no error");
  } catch (const mr::data_error& e) {
    CHECK(e.where().key == "k5");
    CHECK(e.where().position == 5);
    CHECK(std::string(e.what()).find("five") != std::string::npos);
  }
  try {
    train(4, [](const mr::record& r) { return example{mr::jpeg(r["jpg"]).resize(8, 8), 0}; });
    FAIL("no error");
  } catch (const mr::data_error& e) {
    CHECK(e.where().key == "k9");
    CHECK(e.where().shard == folder / "bad-0.tar");
    CHECK(e.where().stage == "jpeg");
    CHECK(e.where().position == 9);
  }
}

TEST_CASE("images of another size than the first are named with both shapes") {
  const temporary_folder folder;
  mr::shard_writer shards({.pattern = folder / "sizes-%d.tar"});
  for (std::size_t i = 0; i < 6; ++i)
    shards.write("k" + std::to_string(i),
                 {{"jpg", mr::encode_jpeg(mr::image({i == 4 ? 21U : 20U, 30, 3}))}, {"cls", "1"}});
  shards.close();
  mr::session run{mr::shards(folder / "sizes-0.tar", {.index = mr::index::off}) | mr::map([](const mr::record& r) {
                    return example{mr::jpeg(r["jpg"]), 0};
                  }) | mr::batch<&example::pixels>({.size = 2}),
                  quiet(2)};
  CHECK(run.next().size() == 2);
  CHECK(run.next().size() == 2);
  CHECK_THROWS_WITH_AS(run.next(), doctest::Contains("[21, 30, 3] here, but [20, 30, 3]"), mr::data_error);
}

TEST_CASE("passed-over and accepted data are counted") {
  const temporary_folder folder;
  const std::vector<std::byte> intact = mr::encode_jpeg(mr::image({64, 64, 3}));
  const std::vector<std::byte> cut(intact.begin(), intact.end() - 8);
  const auto text = [](const std::vector<std::byte>& data) {
    return std::string_view(reinterpret_cast<const char*>(data.data()), data.size());
  };
  std::string tar;
  for (const std::string n : {"0", "1", "2", "3", "4"})
    tar += tar_test::file("k" + n + ".jpg", text(intact)) + tar_test::file("c" + n + ".jpg", text(cut)) +
           tar_test::file("._c" + n + ".jpg", "Finder's");
  tar_test::save(folder / "counts-0.tar", tar + tar_test::end_marker());
  for (const int threads : {0, 2}) {
    mr::session run{mr::shards(folder / "counts-0.tar", {.index = mr::index::off}) | mr::map([](const mr::record& r) {
                      return example{mr::jpeg(r["jpg"], {.accept_damaged = true}), 0};
                    }) | mr::batch<&example::pixels>({.size = 5}),
                    quiet(threads)};
    for (auto& b : run) CHECK(b.size() == 5);
    std::map<std::string, std::uint64_t> counts;
    std::uint64_t decoded = 0;   // the decoder depends on the processor
    for (const auto& c : run.stats().counts) {
      counts[c.what] = c.times;
      if (std::string_view(c.what).starts_with("JPEGs by ")) decoded += c.times;
    }
    CHECK(decoded == 10);
    CHECK(counts["damaged JPEGs accepted"] == 5);
    CHECK(counts["dot files passed over"] == 5);
    const mr::run_report report = mr::report_of(run);
    CHECK(report.pictures.pictures() == 10);
    CHECK(report.pictures.libjpeg() >= 5);   // at least the damaged ones
    CHECK(report.pictures.damaged == 5);
    CHECK(report.pictures.bytes == 5 * (intact.size() + cut.size()));
    CHECK(report.pictures.pixels == 10 * 64 * 64);
    REQUIRE(report.counts.size() == 1);
    CHECK(mr::text_report(report).find("counted    dot files passed over 5\n") != std::string::npos);
  }
}

TEST_CASE("a missing shard is named at once") {
  CHECK_THROWS_WITH_AS(mr::shards("no-such-{0..3}.tar", {.index = mr::index::off}), doctest::Contains("no-such-0.tar"),
                       mr::setup_error);
}

TEST_CASE("a shard that is missing when the session starts is named at once: its size is part of each resume point") {
  const temporary_folder folder;
  const std::string pattern = write_gray_shards(folder);
  const auto flow = [&] {
    return mr::shards(pattern, {.index = mr::index::off}) | mr::map(prepare) | mr::batch<&example::label>({.size = 4});
  };
  auto missing = flow();
  std::filesystem::remove(missing.source.shard_name(1));
  CHECK_THROWS_WITH_AS(mr::session(std::move(missing), quiet(2)), doctest::Contains("cannot get the size of the file"),
                       mr::io_error);
  write_gray_shards(folder);
  mr::session there(flow(), quiet(2));
  CHECK(there.next().size() == 4);
}

TEST_CASE("bytes kept by an item stay valid after the session") {
  const temporary_folder folder;
  const std::string pattern = write_gray_shards(folder);
  struct keyed {
    std::int32_t label;
  };
  std::mutex mutex;
  std::vector<mr::bytes> views;
  mr::feed(mr::shards(pattern, {.index = mr::index::off}) | mr::map([&](const mr::record& r) {
             const std::lock_guard lock(mutex);
             views.push_back(r["cls"]);
             return keyed{r["cls"].as<std::int32_t>()};
           }) | mr::batch<&keyed::label>({.size = 4}),
           quiet(2), [](auto&) {});
  std::set<std::string> labels;
  for (const auto& b : views) labels.emplace(b.text());
  CHECK(labels.size() == 40);
}
