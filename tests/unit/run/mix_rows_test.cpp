// Runs whose rows are mixed in pairs: a slow loop over the batches of a run without mixing produces the same, for all
// workers, ranks, devices and resumes.
#include "mixed_runs.hpp"

namespace mr = millrace;
using namespace mixed_runs;

namespace {

/// Checks that two runs are equal, and reports the first batch that differs.
void check_same(const std::vector<batch_trace>& got, const std::vector<batch_trace>& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t b = 0; b < got.size(); ++b) {
    CAPTURE(b);
    REQUIRE(got[b].size() == expected[b].size());
    for (std::size_t row = 0; row < got[b].size(); ++row) {
      CAPTURE(row);
      REQUIRE(got[b][row].label_a == expected[b][row].label_a);
      REQUIRE(got[b][row].label_b == expected[b][row].label_b);
      REQUIRE(got[b][row].lambda == expected[b][row].lambda);
      REQUIRE(got[b][row] == expected[b][row]);
    }
  }
}

std::vector<std::string> with_stride(std::vector<std::string> positions, std::uint32_t stride) {
  for (std::string& text : positions) {
    mr::position p = mr::parse_position(text);
    p.stride = stride;
    text = mr::to_text(p);
  }
  return positions;
}

}  // namespace

TEST_CASE("rows are mixed as in a slow loop, for all workers, strides and devices") {
  const temporary_folder folder;
  const std::string shards = write_labels(folder);
  const run_trace plain = run_plain(shards, {});
  REQUIRE(plain.batches.size() == 12);
  for (const std::size_t stride : {0U, 1U, 2U, 3U, 12U}) {
    CAPTURE(stride);
    settings s;
    s.mix.stride = stride;
    const auto expected = slowly_mixed(plain, s, stride == 0 ? 1 : stride);
    for (const int threads : {0, 1, 4}) {
      s.threads = threads;
      s.copying = threads == 4;
      const run_trace got = run_mixed(shards, s);
      check_same(got.batches, expected);
      CHECK(got.positions == with_stride(plain.positions, stride == 0 ? 1 : static_cast<std::uint32_t>(stride)));
    }
  }
}

TEST_CASE("each kind of mixing, with its options, is executed by the flow") {
  const temporary_folder folder;
  const std::string shards = write_labels(folder);
  const run_trace plain = run_plain(shards, {});
  for (const mr::mix_rows_options& mix :
       {mr::mix_rows_options{.mixup_alpha = 0.2}, mr::mix_rows_options{.cutmix_alpha = 1},
        mr::mix_rows_options{.mixup_alpha = 1, .cutmix_alpha = 1, .switch_probability = 0.9, .probability = 0.5},
        mr::mix_rows_options{.cutmix_minmax = {0.2, 0.9}}, mr::mix_rows_options{.mixup_alpha = 1, .off_epoch = 1},
        mr::mix_rows_options{.mixup_alpha = 1, .off_epoch = 0}}) {
    const settings s{.mix = mix};
    check_same(run_mixed(shards, s).batches, slowly_mixed(plain, s, 1));
  }
  const settings by_words{.mix = {.mixup_alpha = 0.4}};
  auto by_mixup = batches_of(shards, {}) | mr::mixup<&example::pixels, &example::label>({.alpha = 0.4});
  check_same(run_rows(std::move(by_mixup), {}).batches, slowly_mixed(plain, by_words, 1));
  const settings boxes{.mix = {.cutmix_alpha = 0.7, .probability = 0.3}};
  auto by_cutmix = batches_of(shards, {}) |
                   mr::cutmix<&example::pixels, &example::label>({.alpha = 0.7, .probability = 0.3});
  check_same(run_rows(std::move(by_cutmix), {}).batches, slowly_mixed(plain, boxes, 1));
}

TEST_CASE("one stride produces the same rows on every number of ranks that divides it") {
  const temporary_folder folder;
  const std::string shards = write_labels(folder);
  settings s;
  s.mix.stride = 12;
  const run_trace full = run_mixed(shards, s);
  check_same(full.batches, slowly_mixed(run_plain(shards, {}), s, 12));
  for (const std::size_t ranks : {2, 3, 4, 6, 12}) {
    CAPTURE(ranks);
    s.threads = ranks % 2 == 0 ? 4 : 1;
    s.copying = ranks == 3;
    const run_trace got = run_on_ranks(shards, s, ranks);
    check_same(got.batches, full.batches);
    CHECK(got.positions == full.positions);
  }
}

TEST_CASE("by default a rank mixes its rows 0 and 1, 2 and 3") {
  const temporary_folder folder;
  const std::string shards = write_labels(folder);
  const run_trace plain = run_plain(shards, {});
  for (const std::size_t ranks : {1, 2, 3, 4, 6}) {
    const run_trace got = run_on_ranks(shards, {}, ranks);
    check_same(got.batches, slowly_mixed(plain, {}, ranks));
    CHECK(mr::parse_position(got.positions[0]).stride == ranks);
  }
}

TEST_CASE("a short last batch, padded or not, leaves rows without partners unchanged") {
  for (const int count : {49, 60, 61, 73, 85}) {   // 1, 12, 13, 25 and 37 rows in the last batch
    CAPTURE(count);
    const temporary_folder folder;
    const std::string shards = write_labels(folder, count);
    const run_trace plain = run_plain(shards, {.drop_last = false});
    for (const bool pads : {false, true})
      for (const std::size_t stride : {1U, 12U}) {
        settings s{.drop_last = false, .pad_last = pads};
        s.mix.stride = stride;
        const auto expected = slowly_mixed(plain, s, stride);
        check_same(run_mixed(shards, s).batches, expected);
        if (stride == 12)
          for (const std::size_t ranks : {2, 4}) check_same(run_on_ranks(shards, s, ranks).batches, expected);
      }
  }
}

TEST_CASE("a resume after any batch, with any workers and ranks that divide the stride, continues with the same rows") {
  const temporary_folder folder;
  const std::string shards = write_labels(folder, 210);
  settings s{.drop_last = false};
  s.mix.stride = 12;
  const run_trace full = run_mixed(shards, s);
  REQUIRE(full.batches.size() == 10);   // the fifth of each epoch is short
  const std::vector<std::size_t> ranks = {1, 2, 3, 4, 6};
  for (std::size_t cut = 1; cut < full.batches.size(); ++cut) {
    CAPTURE(cut);
    settings rest = s;
    rest.mix.stride = cut % 2 == 0 ? 12 : 0;   // 0: that of the resume point
    rest.threads = cut % 3 == 0 ? 0 : 4;
    rest.resume = full.positions[cut - 1];
    const run_trace got = run_on_ranks(shards, rest, ranks[cut % ranks.size()]);
    check_same(got.batches, {full.batches.begin() + static_cast<long>(cut), full.batches.end()});
    CHECK(got.positions == std::vector(full.positions.begin() + static_cast<long>(cut), full.positions.end()));
  }
}

TEST_CASE("epochs of a fixed number of batches draw by their own epoch numbers") {
  const temporary_folder folder;
  const std::string shards = write_labels(folder, 210);
  const settings s{.epochs = 3, .epoch_batches = 3};
  const run_trace plain = run_plain(shards, s);
  REQUIRE(plain.batches.size() == 9);
  const auto expected = slowly_mixed(plain, s, 1);
  check_same(run_mixed(shards, s).batches, expected);
  for (std::size_t cut = 1; cut < 9; ++cut) {
    settings rest = s;
    rest.resume = with_stride(plain.positions, 1)[cut - 1];
    check_same(run_mixed(shards, rest).batches, {expected.begin() + static_cast<long>(cut), expected.end()});
  }
}

TEST_CASE("a damaged row leaves its partner unchanged, and a copy is that of the mixed row") {
  const temporary_folder folder;
  const std::string shards = write_labels(folder);
  const run_trace plain = run_plain(shards, {.drop_last = false});
  for (const auto policy : {mr::damage::replace, mr::damage::mask})
    for (const std::set<int>& bad : {every(17), every(3), std::set<int>{}, every(100, 0)}) {
      settings s{.bad = bad, .policy = policy, .drop_last = false};
      s.mix.stride = 12;
      const auto expected = slowly_mixed(plain, s, 12);
      for (const int threads : {0, 1, 4}) {
        s.threads = threads;
        s.copying = threads == 1;
        check_same(run_mixed(shards, s).batches, expected);
      }
      for (const std::size_t ranks : {2, 3, 6}) check_same(run_on_ranks(shards, s, ranks).batches, expected);
    }
}

TEST_CASE("deferred rows stay unchanged, and their labels are those of mixed ones") {
  const temporary_folder folder;
  const std::string shards = write_labels(folder);
  settings s{.bad = every(17), .policy = mr::damage::replace};
  const run_trace mixed = run_mixed(shards, s);
  const run_trace plain = run_plain(shards, s);
  s.mix.deferred = true;
  run_trace got = run_mixed(shards, s);
  REQUIRE(got.batches.size() == mixed.batches.size());
  for (std::size_t b = 0; b < got.batches.size(); ++b)
    for (std::size_t row = 0; row < got.batches[b].size(); ++row) {
      REQUIRE(got.batches[b][row].pixels == plain.batches[b][row].pixels);
      got.batches[b][row].pixels = mixed.batches[b][row].pixels;
    }
  check_same(got.batches, mixed.batches);
  s.finishes = true;
  for (const bool copying : {false, true}) {
    s.copying = copying;
    check_same(run_mixed(shards, s).batches, mixed.batches);
  }
}

TEST_CASE("dense labels are computed from a batch") {
  const temporary_folder folder;
  const std::string shards = write_labels(folder);
  const settings s{};
  mr::session run{batches_of(shards, s) | mr::mixup<&example::pixels, &example::label>(), options_of(s)};
  auto b = run.next();
  mr::tensor<float, 2> dense({b.size(), 300});
  mr::dense_labels(b.mixed_labels(), dense.view(), {.smoothing = 0.1});
  const float off = 0.1F / 300;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const auto a = static_cast<std::size_t>(b.label_a()[i]), other = static_cast<std::size_t>(b.label_b()[i]);
    REQUIRE(a != other);
    CHECK(dense(i, a) == doctest::Approx(off + 0.9F * b.lambda()[i]));
    CHECK(dense(i, other) == doctest::Approx(off + 0.9F * (1 - b.lambda()[i])));
    float sum = 0;
    for (const float v : dense[i]) sum += v;
    CHECK(sum == doctest::Approx(1));
  }
}

TEST_CASE("invalid strides, ranks and resume points are refused by name") {
  const temporary_folder folder;
  const std::string shards = write_labels(folder);
  const auto refusal = [&](const settings& s) { return message_of([&] { run_mixed(shards, s); }); };
  const auto with = [](std::size_t stride, std::size_t ranks, const std::string& resume = {}) {
    settings s{.world = {.rank = 0, .size = ranks}, .resume = resume, .max_batches = 1};
    s.mix.stride = stride;
    return s;
  };
  CHECK(refusal(with(4, 3)).find("mix_rows() would pair rows of different ranks: got a stride of 4, "
                                 "expected a multiple of the 3 ranks") != std::string::npos);
  const std::string text = run_mixed(shards, with(4, 1)).positions[0];
  CHECK(text.find(" stride=4 ") != std::string::npos);
  CHECK(refusal(with(0, 3, text)).find("got a stride of 4 (from the resume point), expected a multiple of "
                                       "the 3 "
                                       "ranks. Resume with a number of ranks that divides") != std::string::npos);
  CHECK(refusal(with(2, 1, text)).find("the stride of mixed rows was 4 and is 2") != std::string::npos);
  CHECK(refusal(with(12, 3, text)).find("the stride of mixed rows was 4 and is 12") != std::string::npos);
  CHECK(refusal(with(0, 2, text)) == "no error");
  const std::string unmixed = run_plain(shards, {.max_batches = 1}).positions[0];
  CHECK(unmixed.find("stride") == std::string::npos);
  CHECK(refusal(with(0, 1, unmixed)).find("the stride of mixed rows was none and is 1") != std::string::npos);
  CHECK(message_of([&] { run_plain(shards, {.resume = text}); }).find("the stride of mixed rows was 4 and is none") !=
        std::string::npos);
  settings many{.world = {.rank = 0, .size = 12}};
  many.mix.stride = 12;
  CHECK(refusal(many) == "no error");
}
