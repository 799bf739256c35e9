// Fields of samples: .having of streams and indexed shards, on ranks and in resume points, and keys in pieces.
#include "../io/tar_bytes.hpp"
#include "indexed_runs.hpp"

#include <millrace/io/index/format/tar_index_scan.hpp>
#include <millrace/io/tar/format/required_fields.hpp>
#include <millrace/io/tar/read/returning_keys.hpp>
#include <millrace/millrace.hpp>
#include <millrace/shards.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace mr = millrace;
using namespace tar_test;

namespace {

struct numbered {
  std::int32_t number;
};

numbered number_of(const mr::record& r) { return {r["id"].as<std::int32_t>()}; }

/// Sample i has "id" always, "jpg" unless i % 3 is 0, "png" if i % 4 is 0, "txt" if i is even.
bool has(int i, std::string_view field) {
  return field == "id" || (field == "jpg" && i % 3 != 0) || (field == "png" && i % 4 == 0) ||
         (field == "txt" && i % 2 == 0);
}

std::vector<std::string> write_shards(const temporary_folder& folder, int count = 400, int shards = 8) {
  std::vector<std::string> names;
  for (int s = 0; s < shards; ++s) {
    std::string tar;
    for (int i = s * count / shards; i < (s + 1) * count / shards; ++i)
      for (const char* field : {"jpg", "id", "png", "txt"})
        if (has(i, field)) tar += file("k" + std::to_string(1'000 + i) + "." + field, std::to_string(i));
    names.push_back(folder / ("s" + std::to_string(s) + ".tar"));
    save(names.back(), tar + end_marker());
  }
  return names;
}

template <class Predicate>
std::vector<std::int32_t> those(const Predicate& matches, int count = 400) {
  std::vector<std::int32_t> all;
  for (int i = 0; i < count; ++i)
    if (matches(i)) all.push_back(i);
  return all;
}

template <class Flow>
std::vector<std::int32_t> numbers_of(Flow flow, mr::session_options o = {.threads = 1, .notice = mr::quiet},
                                     std::string* resume = nullptr, std::size_t batches = ~std::size_t{0}) {
  std::vector<std::int32_t> all;
  mr::session run{std::move(flow) | mr::map(number_of) | mr::batch<&numbered::number>({.size = 5, .drop_last = false}),
                  std::move(o)};
  for (auto& b : run) {
    for (const std::int32_t n : b.template get<&numbered::number>().host()) all.push_back(n);
    if (resume) *resume = mr::to_text(b.position());
    if (--batches == 0) break;
  }
  return all;
}

std::vector<std::int32_t> sorted(std::vector<std::int32_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

const mr::required_fields& conditions(int which) {
  static const mr::required_fields all[] = {"jpg", "jpg;png", {"jpg;png", "txt"}, {"png", "jpg"}};
  return all[which];
}
bool meets(int i, int which) {
  const bool jpg = has(i, "jpg"), png = has(i, "png"), txt = has(i, "txt");
  return which == 0 ? jpg : which == 1 ? jpg || png : which == 2 ? (jpg || png) && txt : png && jpg;
}

}  // namespace

TEST_CASE("having chooses the same samples as a slow loop, in streams and by an index, whether the fields are "
          "requested or not") {
  const temporary_folder folder;
  const auto names = write_shards(folder);
  for (int which = 0; which < 4; ++which) {
    CAPTURE(which);
    const auto expected = those([&](int i) { return meets(i, which); });
    for (const std::vector<std::string>& fields : {std::vector<std::string>{}, std::vector<std::string>{"id"}}) {
      CHECK(numbers_of(mr::shards(names, {.index = mr::index::off, .fields = fields, .having = conditions(which)})) ==
            expected);
      CHECK(numbers_of(mr::shards(names, {.fields = fields, .having = conditions(which)})) == expected);
    }
    CHECK(sorted(numbers_of(mr::shards(names, {.seed = 3, .having = conditions(which)}) |
                            mr::shuffle({.window = 100}))) == expected);
  }
  const auto both = those([](int i) { return has(i, "jpg") && i != 7; });
  CHECK(numbers_of(mr::shards(names, {.having = "jpg", .without = std::vector<std::string>{"k1007"}})) == both);
}

TEST_CASE("ranks share the samples that have the fields exactly, and a run resumes only with the same choice") {
  const temporary_folder folder;
  const auto names = write_shards(folder);
  const auto flow = [&](const mr::required_fields& having) {
    return mr::shards(names, {.seed = 5, .having = having}) | mr::shuffle({.window = 64});
  };
  std::vector<std::int32_t> all;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const auto own = numbers_of(flow("jpg"), {.threads = 1, .notice = mr::quiet,
                                              .world = mr::world{.rank = rank, .size = 4}});
    all.insert(all.end(), own.begin(), own.end());
  }
  CHECK(sorted(all) == those([](int i) { return has(i, "jpg"); }));
  std::string text;
  const auto first = numbers_of(flow("jpg"), {.threads = 1, .notice = mr::quiet}, &text, 10);
  auto resumed = first;
  const auto rest = numbers_of(flow("jpg"), {.threads = 1, .notice = mr::quiet, .resume = text});
  resumed.insert(resumed.end(), rest.begin(), rest.end());
  CHECK(resumed == numbers_of(flow("jpg")));
  CHECK_THROWS_WITH_AS(numbers_of(flow("txt"), {.threads = 1, .notice = mr::quiet, .resume = text}),
                       doctest::Contains("the choice of samples (.having"), mr::setup_error);
  const auto stream = [&](const mr::required_fields& having) {
    return mr::shards(names, {.index = mr::index::off, .having = having});
  };
  static_cast<void>(numbers_of(stream("jpg"), {.threads = 1, .notice = mr::quiet}, &text, 3));
  CHECK(numbers_of(stream("jpg"), {.threads = 1, .notice = mr::quiet, .resume = text}).size() ==
        those([](int i) { return has(i, "jpg"); }).size() - 15);
  CHECK_THROWS_AS(numbers_of(stream("txt"), {.threads = 1, .notice = mr::quiet, .resume = text}), mr::setup_error);
}

TEST_CASE("conditions that no sample meets, and names that no field has, are errors that name them") {
  const temporary_folder folder;
  const auto names = write_shards(folder);
  CHECK_THROWS_WITH_AS(load_indexes(names, {.having = "webp"}),
                       doctest::Contains("no sample is chosen: 0 of 400 samples have 'webp'"), mr::setup_error);
  CHECK_THROWS_WITH_AS(mr::shards(names, {.index = mr::index::off, .having = "JPG"}), doctest::Contains("upper-case"),
                       mr::setup_error);
  CHECK_THROWS_WITH_AS(mr::shards(names, {.index = mr::index::off, .having = {"jpg", ""}}),
                       doctest::Contains("empty name"), mr::setup_error);
}

TEST_CASE("the start reports how many samples lack the fields, and a lost shard does not count") {
  const temporary_folder folder;
  const auto names = write_shards(folder, 100, 2);
  const mr::session run{mr::shards(names, {.having = {"jpg", "txt"}}) | mr::map(number_of) |
                            mr::batch<&numbered::number>({.size = 5}),
                        {.threads = 1, .notice = mr::quiet}};
  CHECK_MESSAGE(run.description().find("; 33 of 100 samples chosen (67 lack 'jpg' and 'txt')") != std::string::npos,
                run.description());
  std::ifstream in(names[1], std::ios::binary);
  std::string spoiled(std::istreambuf_iterator<char>(in), {});
  spoiled.resize(spoiled.size() / 2 / 512 * 512);
  spoiled.append(1'024, 'x');
  save(names[1], spoiled);
  const auto rows = [&](const mr::required_fields& having) {
    return numbers_of(mr::shards(names, {.index = mr::index::off, .having = having}),
                      {.threads = 1, .notice = mr::quiet,
                       .on_damage = {.policy = mr::damage::mask, .at_most_share = 1}})
        .size();
  };
  const std::size_t before = rows("jpg");
  CHECK(before < 60);
  save(folder / "sizes.json", "{\"s0.tar\": 50, \"s1.tar\": 50}");   // of all samples
  CHECK(rows("jpg") == before);
  CHECK(rows({}) == 100);
}

TEST_CASE("a source or a rank's share of it without a sample that has the fields: the error names them") {
  const temporary_folder folder;
  const std::vector<std::string> names = write_shards(folder, 40, 4);
  const auto error_of = [](auto flow, mr::session_options o) {
    try {
      numbers_of(std::move(flow), std::move(o));
    } catch (const mr::data_error& e) {
      return e.message() + " / " + e.hint();
    }
    return std::string("no error");
  };
  const std::string all = error_of(mr::shards(names, {.index = mr::index::off, .having = {"webp;gif", "id"}}),
                                   {.threads = 1, .notice = mr::quiet});
  CHECK(all.find("the source has no sample: its 4 shards were read to the end in epoch 0; .having omits samples "
                 "without 'webp;gif' and 'id'") != std::string::npos);
  CHECK(all.find("Compare .having with the fields that examples/inspect lists") != std::string::npos);
  save(names[0], file("a.id", "1") + file("a.gif", "x") + end_marker());   // only this shard has one
  for (const int threads : {0, 2}) {
    const std::string share = error_of(mr::shards(names, {.index = mr::index::off, .having = "gif"}),
                                       {.epoch_batches = 4, .threads = threads, .notice = mr::quiet,
                                        .world = mr::world{.rank = 1, .size = 4}});
    // Without a shuffle each pass reads the same samples, so that further passes add no others.
    CHECK(share.find("the shards of a rank have no sample: got none in 2 passes") != std::string::npos);
    CHECK(share.find("; .having omits samples without 'gif'") != std::string::npos);
    CHECK(share.find("With an index, each rank gets its share") != std::string::npos);
  }
  CHECK(numbers_of(mr::shards(names, {.index = mr::index::off, .having = "gif"}),
                   {.epoch_batches = 1, .threads = 1, .notice = mr::quiet,
                    .world = mr::world{.rank = 0, .size = 4}}).size() == 5);
}

// Shards whose samples are in pieces, because the members of a key are not next to each other: counts, errors, notices.
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

struct run_outcome {
  std::uint64_t rows = 0;
  std::string error{};
  std::vector<mr::notice> notices{};
  std::uint64_t counted = 0;
};

template <class Flow>
run_outcome run_over(Flow flow, int threads, std::uint64_t epochs = 1) {
  run_outcome all;
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
  const auto check = [](const run_outcome& s) {
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
    const run_outcome s = indexed ? run_over(mr::shards(plain) | mr::map(label_of), 2)
                           : run_over(mr::shards(plain, {.index = mr::index::off}) | mr::map(label_of), 2);
    CHECK(s.rows == 10);
    CHECK_MESSAGE(s.error.find("its key occurs again later in the shard, at offset ") != std::string::npos, s.error);
  }
  std::string apart;
  for (int i = 0; i < 20; ++i) apart += file(key_of(i) + (i % 2 ? ".cls" : ".txt"), "1");
  save(plain, apart + end_marker());
  const run_outcome other = run_over(mr::shards(plain, {.index = mr::index::off}) | mr::map(label_of), 0);
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
      const run_outcome s = indexed
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
