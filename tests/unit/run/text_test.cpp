// Text flows: lines to tokens to rows. Every token is delivered once and in order, whatever the threads, and resumed
// after any batch the rest is the same as without the interruption.
#include "../io/tar_bytes.hpp"
#include "quiet_sessions.hpp"

#include <millrace/base/digest.hpp>
#include <millrace/text.hpp>

#include <doctest/doctest.h>

#include <map>
#include <random>

namespace mr = millrace;

namespace {

constexpr std::uint32_t separator = 7'000'000;

/// Numbers in blanks.
std::vector<std::uint32_t> tokens_of(std::string_view text) {
  std::vector<std::uint32_t> tokens;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    std::uint32_t token = 0;
    std::from_chars(text.data() + at, text.data() + end, token);
    tokens.push_back(token);
    at = end + 1;
  }
  return tokens;
}

/// Files of lines whose tokens are all different: 1, 2, 3, ...
struct corpus {
  temporary_folder folder;
  std::vector<std::string> names{};
  std::vector<std::vector<std::uint32_t>> documents{};

  corpus(unsigned seed, std::size_t files, std::size_t max_tokens) {
    std::mt19937 random(seed);
    std::uint32_t token = 0;
    for (std::size_t f = 0; f < files; ++f) {
      std::string text;
      for (std::size_t lines = random() % 9; lines > 0; --lines) {
        auto& document = documents.emplace_back();
        for (std::size_t n = random() % 5 ? random() % max_tokens : 0; n > 0; --n) document.push_back(++token);
        for (const std::uint32_t token_here : document) text += std::to_string(token_here) + " ";
        if (!document.empty()) text.pop_back();
        text += '\n';
      }
      names.push_back(folder / (std::to_string(f) + ".txt"));
      tar_test::save(names.back(), random() % 2 ? text : tar_test::through("gzip -c", text));
    }
  }
};

struct trace {
  std::vector<std::vector<std::uint32_t>> batches{};
  std::vector<std::string> positions{};
  std::vector<std::uint64_t> epochs{};
  mr::flow_statistics statistics{};
};

template <class Flow>
trace run_rows(Flow flow, const mr::session_options& options, std::size_t most = ~std::size_t{0}) {
  trace t;
  mr::session run{std::move(flow), options};
  for (auto& b : run) {
    const auto ids = b.template get<&mr::packed::ids>().host();
    t.batches.emplace_back(ids.begin(), ids.end());
    t.positions.push_back(mr::to_text(b.position()));
    t.epochs.push_back(b.epoch());
    if (t.batches.size() == most) break;
  }
  t.statistics = run.statistics();
  return t;
}

/// Of every token, in order.
std::uint64_t digest_of(std::uint64_t so_far, const std::vector<std::vector<std::uint32_t>>& batches) {
  for (const auto& b : batches)
    so_far = mr::detail::combine_keys(so_far, mr::detail::digest_bytes(std::as_bytes(std::span(b))));
  return so_far;
}

/// Documents of the corpus in the order in which they were delivered in a pass: from the tokens. Every one is
/// complete, followed by its separator, and padding is only at the end.
void check_pass(const corpus& c, const std::vector<std::uint32_t>& pass, bool shuffled) {
  std::map<std::uint32_t, const std::vector<std::uint32_t>*> by_first;
  for (const auto& d : c.documents)
    if (!d.empty()) by_first[d.front()] = &d;
  std::size_t at = 0, out_of_order = 0;
  std::uint32_t last = 0;
  while (!by_first.empty()) {
    REQUIRE(at < pass.size());
    const auto match = by_first.find(pass[at]);
    REQUIRE(match != by_first.end());
    const auto& d = *match->second;
    REQUIRE(pass.size() - at > d.size());
    REQUIRE(std::equal(d.begin(), d.end(), pass.begin() + static_cast<std::ptrdiff_t>(at)));
    out_of_order += d.front() < last;
    last = d.front();
    at += d.size();
    REQUIRE(pass[at++] == separator);
    by_first.erase(match);
  }
  for (; at < pass.size(); ++at) REQUIRE(pass[at] == separator);
  CHECK((out_of_order > 0) == shuffled);
}

auto flow_of(const corpus& c, std::size_t window, std::size_t length, const mr::batch_options& rows,
             std::uint64_t seed = 5) {
  return mr::lines(c.names, {.seed = seed}) | mr::shuffle({.window = window}) | mr::map(tokens_of) |
         mr::pack({.length = length, .separator = separator}) | mr::batch<&mr::packed::ids>(rows);
}
auto flow_of(const corpus& c, std::size_t window, std::size_t length, std::size_t rows, std::uint64_t seed = 5) {
  return flow_of(c, window, length, {.size = rows, .drop_last = false}, seed);
}

}  // namespace

TEST_CASE("rows of pack() consist of several samples: requesting their keys is an error at start") {
  const corpus c(1, 2, 9);
  CHECK_THROWS_WITH_AS((mr::session{flow_of(c, 4, 8, {.size = 2, .keys = true}), quiet(1)}),
                       doctest::Contains("the rows of pack() have no keys, because each row combines several samples"),
                       mr::setup_error);
}

TEST_CASE("every token is delivered once, with any number of threads, and after any resume point") {
  std::uint64_t digest = 0;
  for (const unsigned seed : {1U, 2U, 3U, 4U})
    for (const std::size_t length : {1U, 13U, 64U}) {
      CAPTURE(seed);
      CAPTURE(length);
      const corpus c(seed, 12, seed == 4 ? 200 : 30);
      const auto flow = [&] { return flow_of(c, 6, length, length == 1 ? 200 : 3); };
      const trace reference = run_rows(flow(), quiet(0, 2));
      digest = digest_of(digest, reference.batches);
      std::vector<std::vector<std::uint32_t>> passes(2);
      for (std::size_t i = 0; i < reference.batches.size(); ++i) {
        const std::size_t pass = reference.epochs[i];
        passes[pass].insert(passes[pass].end(), reference.batches[i].begin(), reference.batches[i].end());
      }
      for (const auto& pass : passes) check_pass(c, pass, true);
      CHECK(passes[0] != passes[1]);
      for (const int threads : {1, 3}) {
        const trace again = run_rows(flow(), quiet(threads, 2));
        REQUIRE(again.batches == reference.batches);
        REQUIRE(again.positions == reference.positions);
        // Reading is the time for the files' bytes, in two passes; the rest of the I/O threads' time is processor time.
        std::uint64_t file_bytes = 0;
        for (const auto& name : c.names) file_bytes += 2 * std::filesystem::file_size(name);
        CHECK(again.statistics.find(mr::stage_kind::read)->bytes == file_bytes);
        CHECK(again.statistics.find(mr::stage_kind::unpack) != nullptr);
      }
      std::size_t in_the_middle = 0;
      for (std::size_t cut = 0; cut + 1 < reference.batches.size(); cut += length == 13 ? stride(2) : 3 * stride(7)) {
        CAPTURE(reference.positions[cut]);
        mr::session_options options = quiet(static_cast<int>(cut % 3), 2);
        options.resume = reference.positions[cut];
        const trace rest = run_rows(flow(), options);
        const auto offset = static_cast<std::ptrdiff_t>(cut) + 1;
        REQUIRE(std::equal(rest.batches.begin(), rest.batches.end(), reference.batches.begin() + offset,
                           reference.batches.end()));
        REQUIRE(std::equal(rest.positions.begin(), rest.positions.end(), reference.positions.begin() + offset,
                           reference.positions.end()));
        CHECK(reference.positions[cut].size() < 300);
        const mr::replay_point from = mr::parse_position(reference.positions[cut]).replay;
        in_the_middle += from.shard > 0 && from.held > 0;
      }
      if (length == 13) CHECK(in_the_middle > 3);   // it does not read from the beginning, but rebuilds a row
      if (length == 1) CHECK(in_the_middle == 0);
    }
  CHECK(digest == 3868432999814243181U);   // with every compiler and flag
}

TEST_CASE("two ranks, each with its own rows: each token once, and each rank resumes") {
  const corpus c(8, 24, 30);
  std::vector<std::uint32_t> all;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    mr::session_options options = quiet(2);
    options.world = {.rank = rank, .size = 2};
    options.epoch_batches = 12;
    options.epochs = 2;
    options.lanes = 4;
    const auto flow = [&] { return flow_of(c, 6, 13, 2); };
    const trace reference = run_rows(flow(), options);
    REQUIRE(reference.batches.size() == 24);
    for (std::size_t cut = 0; cut + 1 < 24; cut += 4) {
      options.threads = static_cast<int>(cut % 3);
      options.resume = reference.positions[cut];
      const trace rest = run_rows(flow(), options);
      REQUIRE(std::equal(rest.batches.begin(), rest.batches.end(),
                         reference.batches.begin() + static_cast<std::ptrdiff_t>(cut) + 1, reference.batches.end()));
    }
    // No lane has finished its files by then.
    for (std::size_t i = 0; i < 3; ++i)
      for (const std::uint32_t t : reference.batches[i])
        if (t != separator) all.push_back(t);
  }
  std::sort(all.begin(), all.end());
  CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
}

TEST_CASE("best fit and a shuffle of its rows: every token once, resumed by reading the pass again") {
  std::uint64_t digest = 0;
  for (const unsigned seed : {9U, 10U, 11U}) {
    CAPTURE(seed);
    const corpus c(seed, 12, 40);
    const auto flow = [&] {
      return mr::lines(c.names, {.seed = 5}) | mr::shuffle({.window = 6}) | mr::map(tokens_of) |
             mr::pack_best_fit({.length = 32, .separator = separator, .padding = 0, .segments = true, .open_rows = 4}) |
             mr::shuffle({.window = 8}) |
             mr::batch<&mr::packed::ids, &mr::packed::segments>({.size = 2, .drop_last = false});
    };
    const trace reference = run_rows(flow(), quiet(0, 2));
    REQUIRE(reference.batches.size() > 12);
    digest = digest_of(digest, reference.batches);
    std::vector<std::uint32_t> tokens, expected;
    for (const auto& b : reference.batches)
      for (const std::uint32_t t : b)
        if (t != 0 && t != separator) tokens.push_back(t);
    for (const auto& d : c.documents)
      for (int pass = 0; pass < 2; ++pass) expected.insert(expected.end(), d.begin(), d.end());
    std::sort(tokens.begin(), tokens.end());
    std::sort(expected.begin(), expected.end());
    CHECK(tokens == expected);
    for (const int threads : {1, 3}) CHECK(run_rows(flow(), quiet(threads, 2)).batches == reference.batches);
    for (std::size_t cut = 0; cut + 1 < reference.batches.size(); cut += 5) {
      mr::session_options options = quiet(static_cast<int>(cut % 3), 2);
      options.resume = reference.positions[cut];
      const trace rest = run_rows(flow(), options);
      REQUIRE(std::equal(rest.batches.begin(), rest.batches.end(),
                         reference.batches.begin() + static_cast<std::ptrdiff_t>(cut) + 1, reference.batches.end()));
    }
  }
  CHECK(digest == 17411809024477233238U);   // with every compiler and flag
}

TEST_CASE("a resume point of rows of another length is refused") {
  const corpus c(1, 12, 30);
  const trace some = run_rows(flow_of(c, 6, 64, 3), quiet(0, 2));
  mr::session_options options = quiet(0, 2);
  for (const std::string& text : some.positions)
    if (mr::parse_position(text).replay.held >= 13) options.resume = text;
  CHECK_THROWS_WITH_AS(run_rows(flow_of(c, 6, 13, 3), options),
                       doctest::Contains("the row of pack() (length or max_cost) was 64 and is 13"), mr::setup_error);
  mr::position older = mr::parse_position(options.resume);   // of a release that did not record the length
  older.packing = {};
  options.resume = mr::to_text(older);
  CHECK_THROWS_WITH_AS(run_rows(flow_of(c, 6, 13, 3), options), doctest::Contains("got a pack_options::length of 13"),
                       mr::data_error);
}

TEST_CASE("rows report the buffered samples of their time, even if the sample became several documents") {
  using packs = mr::detail::pack_stage<mr::detail::packing>;
  mr::detail::stateful_expanding_stage<std::vector<std::uint32_t>, packs> stage(mr::pack({.length = 4}));
  std::vector<mr::detail::sample<mr::packed>> rows;
  const auto push = [&](std::uint64_t place, std::vector<std::uint32_t> document) {
    mr::detail::sample<std::vector<std::uint32_t>> s;
    s.item = std::move(document);
    s.ordinal = place;
    stage.push(std::move(s), rows);
  };
  push(5, {1, 2, 3});
  push(6, {4, 5, 6});
  push(6, {7, 8});
  push(7, {9, 10, 11, 12, 13, 14, 15, 16});
  REQUIRE(rows.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(rows[i].ordinal == (i < 2 ? 6 : 7));
    CHECK(rows[i].held == (i < 2 ? 3 : 0));
  }
}
