// Choosing samples by their fields: .having of streams and indexed shards, on ranks, and in resume points.
#include <millrace/io/tar/format/required_fields.hpp>
#include <millrace/millrace.hpp>
#include <millrace/shards.hpp>

#include "../io/tar_bytes.hpp"
#include "loaded_shards.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
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
  CHECK(all.find("Compare .having with the fields that examples/inspect counts") != std::string::npos);
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
