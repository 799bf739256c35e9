// Parallel sets joined by key: partners, order, ranks, resume, damage, errors. The expected values are those of a loop
// over the written samples, and of shards() over the first set alone.
#include "../run/cellar.hpp"

#include <millrace/base/digest.hpp>
#include <millrace/base/text.hpp>
#include <millrace/join.hpp>
#include <millrace/millrace.hpp>

#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <tuple>

namespace mr = millrace;
namespace fs = std::filesystem;
using cellars::message_of;

namespace {

constexpr std::size_t global_batch = 12;

/// The text of a partner's field. Samples 5, 18, 31, ... have no partner in the second set.
std::string partner_of(int number) { return std::to_string(1'000 + 7 * number); }
bool has_partner(int number) { return number % 13 != 5; }

/// Three sets with fields "n" and "pad"; "emb"; "cap".
struct parallel_sets {
  static constexpr int samples = 130;
  temporary_folder folder{};
  std::vector<int> order_of_second{};   // the numbers of its samples

  /// `mixed`: the second set has another order. Its shards always have other boundaries.
  explicit parallel_sets(bool mixed = true) {
    write("a", {40, 1, 89}, numbers(samples), [](int n) {
      return std::map<std::string, std::string>{{"n", std::to_string(n)},
                                                {"pad", std::string(static_cast<std::size_t>(n % 7 * 100), 'x')}};
    });
    for (int i = 0; i < samples + 20; ++i)   // the last 20 are unused
      if (const int n = mixed ? i * 37 % (samples + 20) : i; has_partner(n)) order_of_second.push_back(n);
    write("b", {70, 0, 30, 1'000}, order_of_second,
          [](int n) { return std::map<std::string, std::string>{{"emb", partner_of(n)}, {"other", "b"}}; });
    write("c", {1'000}, numbers(samples),
          [](int n) { return std::map<std::string, std::string>{{"cap", std::to_string(-n)}}; });
  }

  std::string pattern(const char* set) const { return folder / (std::string(set) + "-*.tar"); }

  template <class Fields>
  void write(const std::string& set, const std::vector<std::size_t>& counts, const std::vector<int>& all,
             const Fields& fields_of) const {
    std::size_t at = 0;
    for (std::size_t shard = 0; shard < counts.size(); ++shard) {
      const std::string path = folder / (set + "-" + std::to_string(shard) + "%d.tar");
      mr::shard_writer writer({.pattern = path});
      for (std::size_t i = 0; i < counts[shard] && at < all.size(); ++i, ++at) {
        std::vector<mr::named_bytes> fields;
        const auto texts = fields_of(all[at]);
        for (const auto& [name, text] : texts) fields.emplace_back(name, text);
        writer.write("k/" + std::to_string(all[at]), fields);
      }
      writer.close();
    }
  }
};

struct row {
  std::int32_t number, partner;
  double draw;
};
/// The partner is -1 if the record has none.
row prepare(const mr::record& r, mr::rng& random) {
  return {r["n"].as<std::int32_t>(), r.has("emb") ? r["emb"].as<std::int32_t>() : -1, random.uniform()};
}

struct join_run {
  mr::join_options join{.missing = mr::missing::skip};
  mr::world world{};
  int threads = 2;
  std::string resume{};
  std::size_t window = 30, batch = global_batch;
  std::uint64_t epochs = 3;
  mr::damage_options on_damage{};
};
using rows = std::vector<std::tuple<std::int32_t, std::int32_t, double>>;
struct delivered {
  std::vector<rows> batches{};
  std::vector<std::string> positions{}, masked{};
  std::uint64_t digest = 0;
  std::string description;

  rows all() const {
    rows joined;
    for (const rows& b : batches) joined.insert(joined.end(), b.begin(), b.end());
    return joined;
  }
};

template <class Flow>
delivered run_flow(Flow source, const join_run& o) {
  const auto run = [&](auto flow) {
    mr::session session{std::move(flow) | mr::map(prepare) |
                            mr::batch<&row::number, &row::partner, &row::draw>(
                                {.size = o.batch / o.world.size, .drop_last = false, .keys = true}),
                        {.epochs = o.epochs, .threads = o.threads, .notice = mr::quiet, .world = o.world,
                         .resume = o.resume, .on_damage = o.on_damage}};
    delivered d;
    for (auto& b : session) {
      auto [number, partner, draw] = b.columns();
      rows& batch = d.batches.emplace_back();
      for (std::size_t i = 0; i < b.size(); ++i) {
        batch.emplace_back(number.host()[i], partner.host()[i], draw.host()[i]);
        if (o.on_damage.policy == mr::damage::mask && !b.valid()[i]) d.masked.emplace_back(b.keys()[i]);
      }
      d.positions.push_back(mr::to_text(b.position()));
    }
    d.digest = session.stats().digest;
    d.description = session.description();
    return d;
  };
  return o.window == 0 ? run(std::move(source)) : run(std::move(source) | mr::shuffle({.window = o.window}));
}

auto first_of(const parallel_sets& sets) { return mr::shards(sets.pattern("a"), {.seed = 7}); }
auto second_of(const parallel_sets& sets) { return mr::shards(sets.pattern("b"), {.fields = {"emb"}}); }

delivered run(const parallel_sets& sets, const join_run& o = {}) {
  return run_flow(mr::join(first_of(sets), second_of(sets), o.join), o);
}

/// The rows of shards() over the first set, with the partners that a loop over all samples finds.
rows expected(const parallel_sets& sets, const join_run& o, const auto& is_used) {
  const auto first = mr::shards(sets.pattern("a"), {.seed = 7, .where = [&](std::string_view key, std::string_view) {
                                                      return is_used(std::stoi(std::string(key.substr(2))));
                                                    }});
  rows all = run_flow(first, o).all();
  for (auto& [number, partner, draw] : all)
    for (const int n : sets.order_of_second)
      if (n == number) partner = std::stoi(partner_of(n));
  return all;
}

}  // namespace

TEST_CASE("join: every sample has the fields of its partner, in the order of the first set alone") {
  for (const bool mixed : {false, true}) {
    const parallel_sets sets(mixed);
    for (const std::size_t window : {0, 30}) {
      const join_run skip{.window = window}, partial{.join = {.missing = mr::missing::partial}, .window = window};
      const delivered d = run(sets, skip);
      CHECK(d.all() == expected(sets, skip, has_partner));
      CHECK(d.description.find("join of 2 sets: 120 samples (10 skipped), set 2 has partners of 120 of 130 (the first "
                               "without one is 'k/5' in ") != std::string::npos);
      CHECK(d.description.find(" and 18 unused samples") != std::string::npos);
      CHECK(run(sets, partial).all() == expected(sets, partial, [](int) { return true; }));
    }
    rows in_order;
    for (int n = 0; n < parallel_sets::samples; ++n)
      if (has_partner(n)) in_order.emplace_back(n, std::stoi(partner_of(n)), 0);
    rows got = run(sets, {.window = 0, .epochs = 1}).all();
    for (auto& r : got) std::get<2>(r) = 0;
    CHECK(got == in_order);
  }
}

TEST_CASE("join: order, digest and resume points do not depend on workers and ranks") {
  const parallel_sets sets;
  const delivered one = run(sets, {.threads = 0});
  REQUIRE(one.batches.size() == 30);
  for (const int threads : {1, 4}) {
    const delivered d = run(sets, {.threads = threads});
    CHECK((d.batches == one.batches && d.positions == one.positions && d.digest == one.digest));
  }
  for (const std::size_t ranks : {2U, 3U, 4U, 6U}) {
    std::uint64_t digest = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const delivered d = run(sets, {.world = {.rank = rank, .size = ranks}});
      digest += d.digest;
      for (std::size_t b = 0; b < one.batches.size(); ++b)
        for (std::size_t i = 0; i < d.batches[b].size(); ++i)
          REQUIRE(d.batches[b][i] == one.batches[b][i * ranks + rank]);
    }
    CHECK(digest == one.digest);
  }
}

TEST_CASE("join: a run resumes after 50 random batches, with other ranks and workers") {
  const parallel_sets sets;
  const join_run complete{.epochs = 12};
  const delivered full = run(sets, complete);
  REQUIRE(full.batches.size() == 120);
  std::uint64_t random = 1;
  for (std::size_t turn = 0; turn < 50; turn += stride(5)) {
    random = mr::detail::mix_bits(random + 1);
    const std::size_t cut = random % (full.batches.size() - 1), ranks = std::size_t{1} + turn % 3, rank = turn % ranks;
    join_run o = complete;
    o.resume = full.positions[cut];
    o.threads = static_cast<int>(turn % 4);
    o.world = {.rank = rank, .size = ranks};
    const delivered rest = run(sets, o);
    REQUIRE(rest.batches.size() == full.batches.size() - cut - 1);
    for (std::size_t b = 0; b < rest.batches.size(); ++b)
      for (std::size_t i = 0; i < rest.batches[b].size(); ++i)
        REQUIRE(rest.batches[b][i] == full.batches[cut + 1 + b][i * ranks + rank]);
    if (ranks == 1) CHECK(rest.positions.back() == full.positions.back());
  }
}

TEST_CASE("join: digest and resume point are frozen") {
  const parallel_sets sets;
  const delivered skip = run(sets), partial = run(sets, {.join = {.missing = mr::missing::partial}});
  CHECK(skip.digest == 7474668118088412823U);
  CHECK(skip.positions[3] == "millrace version=6 seed=7 epoch=0 position=48 lanes=1 window=30 global_batch=12 "
                             "epoch_batches=0 drop_last=0 data=81301eb7b629f12a digest=17bd27df400878b7 shards=3 "
                             "samples=120 crc32c=16393782");
  CHECK(partial.digest == 12649359906401591774U);
  CHECK(partial.positions[3] == "millrace version=6 seed=7 epoch=0 position=48 lanes=1 window=30 global_batch=12 "
                                "epoch_batches=0 drop_last=0 data=81301eb7b6c25efb digest=ee71343ac1c7e059 shards=3 "
                                "samples=130 crc32c=75c42177");
}

TEST_CASE("join: a resume point is valid only for the same sets and partners") {
  const parallel_sets sets, same;
  const std::string resume = run(sets).positions[3];
  CHECK(message_of([&] { run(same, {.resume = resume}); }) == "no error");
  CHECK(message_of([&] { run(sets, {.join = {.missing = mr::missing::partial}, .resume = resume}); })
            .find("but another set, the choice of samples or the partners are different") != std::string::npos);
  CHECK(message_of([&] { run_flow(first_of(sets), {.resume = resume}); }) != "no error");
  const auto is_used = [](std::string_view key, std::string_view) { return key != "k/0"; };
  const auto some = mr::shards(sets.pattern("b"), {.fields = {"emb"}, .where = is_used});
  const auto fewer = mr::join(first_of(sets), some, {.missing = mr::missing::skip});
  CHECK(message_of([&] { run_flow(fewer, {.resume = resume}); })
            .find("but another set, the choice of samples or the partners are different") != std::string::npos);
  same.write("b-extra", {1}, {999}, [](int) { return std::map<std::string, std::string>{{"emb", "1"}}; });
  CHECK(message_of([&] { run(same, {.resume = resume}); }).find("but another set, the choice of samples") !=
        std::string::npos);
  sets.write("a-extra", {1}, {0}, [](int) { return std::map<std::string, std::string>{{"n", "0"}}; });
  CHECK(message_of([&] { run(sets, {.resume = resume}); }).find("the first set of join() has other shards") !=
        std::string::npos);
}

TEST_CASE("join: three sets, prefixes, selections and repeats") {
  const parallel_sets sets;
  const auto third = mr::shards(sets.pattern("c"));
  const auto fields_of = [](auto flow) {
    std::vector<std::string> all;
    mr::session session{std::move(flow) | mr::map([&](const mr::record& r) {
                          std::string& text = all.emplace_back(std::string(r.key()) + "@" +
                                                               fs::path(std::string(r.shard())).filename().string());
                          for (const mr::bytes& f : r.fields())
                            if (f.name() != "pad") text += " " + std::string(f.name()) + "=" + std::string(f.text());
                          return row{};
                        }) | mr::batch<&row::number>({.size = 1}),
                        quiet(0)};
    for (auto& b : session) CHECK(b.size() == 1);
    return all;
  };
  const auto three =
      fields_of(mr::join(std::vector{first_of(sets), second_of(sets), third}, {.missing = mr::missing::skip}));
  REQUIRE(three.size() == 120);
  CHECK(three[0] == "k/0@a-00.tar n=0 emb=1000 cap=0");
  CHECK(three[119] == "k/129@a-20.tar n=129 emb=1903 cap=-129");
  const auto renamed = fields_of(mr::join(third, mr::shards(sets.pattern("b")), {.missing = mr::missing::partial,
                                                                                  .prefixes = {"", "second."}}));
  CHECK(renamed[4] == "k/4@c-00.tar cap=-4 second.emb=1028 second.other=b");
  CHECK(renamed[5] == "k/5@c-00.tar cap=-5");
  const auto few = mr::shards(sets.pattern("b"), {.fields = {"emb"}, .only = mr::key_list({"k/1", "k/3"})});
  CHECK(fields_of(mr::join(third, few, {.missing = mr::missing::skip})) ==
        std::vector<std::string>{"k/1@c-00.tar cap=-1 emb=1007", "k/3@c-00.tar cap=-3 emb=1021"});
  // Repeats in the first set share a partner. Repeats in another set do not count as a second partner.
  const auto twice = [](std::string_view key, std::string_view) -> std::size_t {
    return key == "k/1" || key == "k/3" ? 2 : 0;
  };
  const auto repeated = fields_of(mr::join(mr::shards(sets.pattern("c"), {.repeats = twice}),
                                           mr::shards(sets.pattern("b"), {.fields = {"emb"}, .repeats = twice})));
  CHECK(repeated.size() == 4);
  CHECK(std::count(repeated.begin(), repeated.end(), "k/3@c-00.tar cap=-3 emb=1021") == 2);
}

TEST_CASE("join: errors name both sets") {
  const parallel_sets sets;
  const auto error_of = [&](const auto& first, const auto& second, const mr::join_options& o) {
    return message_of([&] { run_flow(mr::join(first, second, o), {.window = 0}); });
  };
  const auto has = [](const std::string& text, std::initializer_list<const char*> parts) {
    CAPTURE(text);
    for (const char* part : parts) CHECK_MESSAGE(text.find(part) != std::string::npos, part);
  };
  has(error_of(first_of(sets), second_of(sets), {}),
      {"10 of 130 samples of set 1 (", "a-00.tar, ...) have no partner in set 2 (", "the first is 'k/5' in ",
       "Set join_options::missing to skip"});
  has(error_of(first_of(sets), first_of(sets), {}),
      {"join() would create records with two fields 'n': got one from set 1 (", " and one from set 2 ("});
  has(error_of(first_of(sets), second_of(sets), {.prefixes = {"", "", ""}}), {"too many texts: got 3 for 2 sets"});
  has(message_of([&] { mr::join(std::vector{first_of(sets)}); }), {"too few sets: got 1, expected at least 2"});
  has(error_of(first_of(sets), mr::shards(sets.pattern("b"), {.index = mr::index::off}), {}),
      {"set 2 has none: .index is off"});
  sets.write("x", {3}, {500, 501, 502}, [](int) { return std::map<std::string, std::string>{{"x", "1"}}; });
  has(error_of(first_of(sets), mr::shards(sets.pattern("x")), {.missing = mr::missing::skip}),
      {"have no key in common: set 1 (", "has keys such as 'k/0', 'k/1', 'k/2'; set 2 (", "'k/500'"});
  // One key in two shards, and in two places of a shard.
  for (const std::vector<std::size_t>& counts : {std::vector<std::size_t>{2, 2}, std::vector<std::size_t>{4}}) {
    sets.write("twice" + std::to_string(counts.size()), counts, {1, 2, 3, 1},
               [](int) { return std::map<std::string, std::string>{{"y", "1"}}; });
    has(error_of(first_of(sets), mr::shards(sets.folder / ("twice" + std::to_string(counts.size()) + "-*.tar")),
                 {.missing = mr::missing::skip}),
        {"the key 'k/1' of join() is ambiguous: got two samples in set 2 (", ", one in ", " at offset ",
         "same_shard_names"});
  }
  has(message_of([&] {
        mr::session{mr::join(first_of(sets), second_of(sets), {.missing = mr::missing::skip}) |
                        mr::filter([](const mr::record&) { return true; }) | mr::map(prepare) |
                        mr::batch<&row::number>({.size = 1}),
                    quiet(0)};
      }),
      {"needs one row for each sample"});
  const std::string packed = sets.folder / "packed.tar.gz";
  REQUIRE(std::system(("gzip -c '" + (sets.folder / "c-00.tar") + "' > '" + packed + "'").c_str()) == 0);
  for (const mr::index use : {mr::index::automatic, mr::index::required})
    has(error_of(first_of(sets), mr::shards(packed, {.index = use}), {}),
        {"join() needs an index of each set, but set 2 has none: the shard ", "packed.tar.gz is compressed",
         "Decompress"});
}

TEST_CASE("join: keys with equal hashes are compared") {
  const std::string key = "aaaaaaaabbbbbbbb", other = "10058055ZeHqMxZT";
  REQUIRE(mr::detail::digest_bytes(mr::detail::bytes_of(key)) == mr::detail::digest_bytes(mr::detail::bytes_of(other)));
  const temporary_folder folder;
  const auto write = [&](const char* field, std::initializer_list<std::string> keys) {
    const std::string set = folder / (field + std::to_string(keys.size()));
    mr::shard_writer writer({.pattern = set + "-%d.tar"});
    int number = 0;
    for (const std::string& k : keys) writer.write(k, {{field, std::to_string(number++)}});
    writer.close();
    return mr::shards(set + "-*.tar");
  };
  const auto first = write("n", {key, "common"});
  const auto partners = [&](const auto& second) {
    const auto flow = mr::join(first, second, {.missing = mr::missing::partial});
    std::vector<std::int32_t> all;
    for (const auto& r : run_flow(flow, {.window = 0, .epochs = 1}).all()) all.push_back(std::get<1>(r));
    return all;
  };
  CHECK(partners(write("emb", {other, "common"})) == std::vector<std::int32_t>{-1, 1});
  CHECK(partners(write("emb", {other, key, "common"})) == std::vector<std::int32_t>{1, 2});
}

TEST_CASE("join: same_shard_names joins keys that repeat in every shard") {
  const parallel_sets sets;
  for (const char* folder : {"left", "right"}) {
    fs::create_directory(sets.folder / folder);
    for (const char* shard : {"0", "1"})
      sets.write(std::string(folder) + "/" + shard, {3}, {0, 1, 2}, [&](int n) {
        const std::string number = std::to_string(n + 10 * (*shard - '0'));
        return std::map<std::string, std::string>{{*folder == 'l' ? "n" : "emb", number}};
      });
  }
  const auto left = mr::shards(sets.folder / "left", {.seed = 7}), right = mr::shards(sets.folder / "right");
  CHECK(message_of([&] { run_flow(mr::join(left, right), {.window = 0}); }).find("is ambiguous") != std::string::npos);
  const rows all = run_flow(mr::join(left, right, {.same_shard_names = true}), {.window = 0, .epochs = 1}).all();
  CHECK(all.size() == 6);
  for (const auto& [number, partner, draw] : all) CHECK(number == partner);
}

TEST_CASE("join: a damaged partner is an error that names its shard, or one masked sample of the first set") {
  const parallel_sets sets;
  const rows clean = run(sets, {.epochs = 1}).all();   // also learns the checksums
  const std::string path = sets.folder / "b-00.tar";
  std::string bytes = cellars::text_of(path);
  const std::size_t at = bytes.find(partner_of(37));   // the second sample
  REQUIRE(at != std::string::npos);
  const auto time = fs::last_write_time(path);
  bytes[at] ^= 1;
  std::ofstream(path, std::ios::binary) << bytes;
  fs::last_write_time(path, time);
  const std::string error = message_of([&] { run(sets, {.epochs = 1}); });
  CHECK(error.find("the sample was changed") != std::string::npos);
  CHECK(error.find("(shard " + path + ", offset 2560, key k/37") != std::string::npos);
  const delivered masked = run(sets, {.epochs = 1, .on_damage = {.policy = mr::damage::mask, .at_most_share = 1}});
  CHECK(masked.masked == std::vector<std::string>{"k/37"});
  const rows all = masked.all();
  REQUIRE(all.size() == clean.size());
  std::size_t equal = 0;
  for (std::size_t i = 0; i < all.size(); ++i) equal += all[i] == clean[i];
  CHECK(equal == clean.size() - 1);
}

TEST_CASE("join: sets in a storage have the batches and resume points of local files") {
  const parallel_sets sets;
  const delivered local = run(sets);
  const auto files = std::make_shared<cellars::cellar>(sets.folder.path());
  const mr::storage at = cellars::listing_storage{{files}};
  const auto first = mr::shards("cellar://box/a-*.tar", {.seed = 7, .storage = at});
  for (const bool both : {false, true}) {
    const auto second = both ? mr::shards("cellar://box/b-*.tar", {.fields = {"emb"}, .storage = at}) : second_of(sets);
    const delivered remote = run_flow(mr::join(first, second, {.missing = mr::missing::skip}), {});
    CHECK((remote.batches == local.batches && remote.positions == local.positions));
  }
}
