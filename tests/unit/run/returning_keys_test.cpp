// Shards whose samples are in pieces, because the members of a key are not next to each other: counts, errors, notices.
#include <millrace/io/index/format/tar_index_scan.hpp>
#include <millrace/io/tar/read/returning_keys.hpp>
#include <millrace/millrace.hpp>
#include <millrace/shards.hpp>

#include "../io/tar_bytes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace mr = millrace;
using namespace tar_test;

namespace {

struct labeled {
  std::int32_t label;
};

std::string key_of(int i) { return "k" + std::to_string(1'000 + i); }

/// All .txt, then all .cls, as `tar -cf` writes them in the order of the folder.
std::string unsorted(int count) {
  std::string tar;
  for (int i = 0; i < count; ++i) tar += file(key_of(i) + ".txt", "x");
  for (int i = 0; i < count; ++i) tar += file(key_of(i) + ".cls", std::to_string(i));
  return tar + end_marker();
}

struct outcome {
  std::uint64_t rows = 0;
  std::string error{};
  std::vector<mr::notice> notices{};
  std::uint64_t counted = 0;
};

template <class Flow>
outcome run_over(Flow flow, int threads, std::uint64_t epochs = 1) {
  outcome all;
  try {
    mr::session run{std::move(flow) | mr::batch<&labeled::label>({.size = 5}),
                    {.epochs = epochs, .threads = threads,
                     .notice = [&](const mr::notice& n) {
                       if (n.kind == mr::notice_kind::returning_keys) all.notices.push_back(n);
                     }}};
    for (auto& b : run) all.rows += b.size();
    for (const auto& c : run.stats().counts)
      if (std::string_view(c.what) == "keys that occur again later in their shard") all.counted = c.times;
  } catch (const mr::error& e) {
    all.error = e.what();
  }
  return all;
}

labeled label_of(const mr::record& r) { return {r["cls"].as<std::int32_t>()}; }
labeled label_if_any(const mr::record& r) {
  return {r.has("cls") ? r["cls"].as<std::int32_t>() : std::int32_t{-1}};
}

}  // namespace

TEST_CASE("the error of a missing field says that its key occurs again later in the shard, and how to sort it") {
  const temporary_folder folder;
  const std::string plain = folder / "a.tar", packed = folder / "b.tar.gz";
  save(plain, unsorted(20));
  if (have("gzip")) save(packed, through("gzip -c", unsorted(20)));
  const auto check = [](const outcome& s) {
    CHECK_MESSAGE(s.error.find("the record has no field 'cls'; it has 'txt'; its key occurs again later in the shard, "
                               "at offset 20480 with 'cls'") != std::string::npos,
                  s.error);
    CHECK(s.error.find("write the shard again with `tar --sort=name`") != std::string::npos);
  };
  for (const int threads : {0, 2}) {
    CAPTURE(threads);
    check(run_over(mr::shards(plain, {.index = mr::index::off}) | mr::map(label_of), threads));
    check(run_over(mr::shards(plain) | mr::map(label_of), threads));
    if (have("gzip")) check(run_over(mr::shards(packed, {.index = mr::index::off}) | mr::map(label_of), threads));
  }
  // After a batch that is complete, too.
  std::string late;
  for (int i = 0; i < 10; ++i) late += file("a" + key_of(i) + ".cls", "1");
  save(plain, late + unsorted(20));
  for (const bool indexed : {false, true}) {
    const outcome s = indexed ? run_over(mr::shards(plain) | mr::map(label_of), 2)
                           : run_over(mr::shards(plain, {.index = mr::index::off}) | mr::map(label_of), 2);
    CHECK(s.rows == 10);
    CHECK_MESSAGE(s.error.find("its key occurs again later in the shard, at offset ") != std::string::npos, s.error);
  }
  std::string apart;
  for (int i = 0; i < 20; ++i) apart += file(key_of(i) + (i % 2 ? ".cls" : ".txt"), "1");
  save(plain, apart + end_marker());
  const outcome other = run_over(mr::shards(plain, {.index = mr::index::off}) | mr::map(label_of), 0);
  CHECK(other.error.find("Name a field that every sample has") != std::string::npos);
  CHECK(other.error.find("occurs again") == std::string::npos);
}

TEST_CASE("a run that uses has() gets one warning about keys that reappear, however many shards and passes") {
  const temporary_folder folder;
  for (const char* name : {"a.tar", "b.tar"}) save(folder / name, unsorted(20));
  const std::vector<std::string> names{folder / "a.tar", folder / "b.tar"};
  for (const int threads : {0, 2})
    for (const bool indexed : {false, true}) {
      CAPTURE(threads);
      CAPTURE(indexed);
      const outcome s = indexed
                         ? run_over(mr::shards(names) | mr::map(label_if_any), threads, 2)
                         : run_over(mr::shards(names, {.index = mr::index::off}) | mr::map(label_if_any), threads, 2);
      REQUIRE_MESSAGE(s.error.empty(), s.error);
      CHECK(s.rows == 160);
      CHECK(s.counted == (indexed ? 40 : 80));   // an index counts once, a stream in each pass
      REQUIRE(s.notices.size() == 1);
      CHECK(s.notices[0].severity == mr::notice_severity::warning);
      CHECK(s.notices[0].text.find("tar --sort=name") != std::string::npos);
    }
}

TEST_CASE("keys that reappear are counted alike by the reader and by the index, and none in a sorted shard") {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    std::string tar;
    std::set<std::string> before;
    std::string last;
    std::uint64_t expected = 0;
    const unsigned keys = round % 2 ? 4 : 400;
    for (int i = 0; i < 300; ++i) {
      const std::string key = "k" + std::to_string(random() % keys);
      if (key == last) continue;
      expected += !before.insert(key).second;
      last = key;
      tar += file(key + ".cls", "1") + file(key + ".txt", "2");
    }
    tar += end_marker();
    memory_source source(tar);
    CHECK(mr::detail::scan_shard(source, shared_pool()).facts().counters.returning_keys == expected);
    CHECK(read_source(std::make_unique<memory_source>(tar)).counters.returning_keys == expected);
  }
  CHECK(read_source(std::make_unique<memory_source>(mixed_shard(2'000))).counters.returning_keys == 0);
}

TEST_CASE("a memory of keys is exact up to its limit, and beyond it an estimate of bounded memory") {
  constexpr int keys = 40'000;
  for (const std::size_t limit : {100'000, 1'000}) {
    mr::detail::key_memory memory(limit);
    for (int i = 0; i < keys; ++i) CHECK_FALSE(memory.is_returning(key_of(i)));
    for (int i = 0; i < keys; i += 2) static_cast<void>(memory.is_returning(key_of(i)));
    CHECK(memory.exact() == (limit > keys));
    if (memory.exact()) CHECK(memory.returned() == keys / 2);
    else CHECK(std::abs(static_cast<double>(memory.returned()) - keys / 2) < keys / 2 * 0.3);   // 6 standard errors
  }
}
