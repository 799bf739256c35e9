#include "../read/stage/lane_flows.hpp"

#include <millrace/stages/expand.hpp>

#include <algorithm>

namespace mr = millrace;
using namespace lane_flows;

TEST_CASE("damage that only the end of a part reveals: the first position whose samples may be wrong") {
  using enum mr::late_data_error::suspect_samples;
  struct outcome {
    mr::late_data_error::suspect_samples suspects = not_said;
    std::uint64_t first = 0;
    std::size_t earliest = 0;   // position of a number of the part
    bool exact = false;
    std::string text{};
  };
  // The numbers of part 7 are 41 .. 60.
  const auto run_into_damage = [](auto&& flow, const mr::session_options& options, std::int64_t divisor = 1) {
    mr::session session{std::move(flow), options};
    outcome o;
    std::size_t position = 0;
    o.earliest = ~std::size_t{0};
    try {
      for (auto& b : session)
        for (const std::int64_t n : b.template get<&numbered_row::number>().host()) {
          if (n / divisor >= 41 && n / divisor <= 60) o.earliest = std::min(o.earliest, position);
          ++position;
        }
      FAIL("no error");
    } catch (const mr::late_data_error& e) {
      o.suspects = e.suspects();
      o.first = e.first_suspect();
      o.exact = e.is_exact();
      o.text = e.what();
    }
    return o;
  };
  numbers_in_shards source = many_shards;
  source.damaged = 7;
  REQUIRE(source.open(7, 0).at == 41);
  REQUIRE(source.open(7, 0).end == 61);
  const auto in_order = [&](std::size_t rows) {
    return mr::from(source, {.seed = 7}) | mr::map(with_draw) | mr::batch<&numbered_row::number>({.size = rows});
  };
  for (const int threads : {0, 1, 3}) {
    CAPTURE(threads);
    const outcome listed = run_into_damage(in_order(1), quiet(threads));
    CHECK(listed.suspects == since);
    CHECK(listed.first == 41);
    CHECK(listed.earliest == 41);
    CHECK(listed.text.find("position 61). Samples of this shard delivered since position 41 (its first sample) may be "
                           "wrong: resume from a point before this position") != std::string::npos);
    const outcome shuffled = run_into_damage(flow(source, 24), quiet(threads));
    CHECK(shuffled.suspects == since);
    CHECK_FALSE(shuffled.exact);
    CHECK(shuffled.first <= shuffled.earliest);
    CHECK(shuffled.first + 60 >= shuffled.earliest);
    for (const std::size_t ranks : {1, 3, 8})
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        CAPTURE(rank);
        auto options = in_epochs(threads, 1, 200);
        options.world = {.rank = rank, .size = ranks};
        if (rank != 7 % ranks) continue;   // lane 7 of 24 may have another part in a later pass, which nobody reaches
        const outcome o = run_into_damage(flow(source, ranks, 1), options);
        CHECK(o.suspects == since);
        CHECK(o.first <= o.earliest);
        CHECK(o.first + 24 >= o.earliest);
      }
    const outcome expanded =
        run_into_damage(mr::from(source, {.seed = 7}) | mr::shuffle({.window = 60}) | mr::expand(copies_of{}) |
                            mr::map(with_draw) | mr::batch<&numbered_row::number, &numbered_row::draw>({.size = 7}),
                        quiet(threads), 1'000);
    CHECK(expanded.suspects == some);
    CHECK(expanded.text.find("already delivered may be wrong: resume from a point before its first sample") !=
          std::string::npos);
  }
  // Resumed after some of them, the others are known to be older.
  auto options = quiet(0);
  options.resume = run_flow(mr::from(source, {.seed = 7}) | mr::map(with_draw) |
                                mr::batch<&numbered_row::number, &numbered_row::draw>({.size = 1}),
                            quiet(0), 50).positions.back();
  CHECK(run_into_damage(in_order(1), options).suspects == some);
  source.lengths[7] = 0;
  CHECK(run_into_damage(in_order(1), quiet(0)).suspects == none);
}
