// Packed rows on several ranks: each rank packs the documents of its shards as a plain loop does, and resumes after any
// batch. A resume point of other limits is refused by name.
#include "../../temporary_folder.hpp"
#include "quiet_sessions.hpp"

#include <millrace/text.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace mr = millrace;

namespace {

constexpr std::size_t packed_files = 12, packed_row_size = 20, rows_at_once = 2, packed_batches = 40;
constexpr std::uint32_t packed_separator = 9'999;

struct packed_document {
  std::int32_t id;
  std::int32_t cost;
};
struct packed_ids {
  std::array<std::int32_t, packed_row_size> ids;
};
using row_of_ids = std::vector<std::int32_t>;

/// A line is "id cost"; the hundreds of an id are the number of its file.
struct packed_corpus {
  temporary_folder folder;
  std::vector<std::string> names{};
  std::vector<std::size_t> documents{};   // of each file

  packed_corpus() {
    mr::rng random({.seed = 6});
    for (std::size_t f = 0; f < packed_files; ++f) {
      names.push_back(folder / (std::to_string(f) + ".txt"));
      documents.push_back(random.below(25) + 1);
      std::ofstream out(names.back());
      for (std::size_t i = 0; i < documents.back(); ++i)
        out << 100 * f + i << " " << random.below(i % 4 == 0 ? packed_row_size : 6) + 1 << "\n";
    }
  }
};

packed_document document_of(std::string_view line) {
  const std::string text(line);
  return {std::stoi(text), std::stoi(text.substr(text.find(' ')))};
}
auto documents_of(const packed_corpus& c) {
  return mr::lines(c.names, {.seed = 3}) | mr::shuffle({.window = 18}) | mr::map(document_of);
}
std::int32_t cost_of(const packed_document& d) { return d.cost; }
packed_ids ids_of(const std::vector<packed_document>& list) {
  packed_ids row;
  row.ids.fill(-1);
  for (std::size_t i = 0; i < list.size(); ++i) row.ids[i] = list[i].id;
  return row;
}
std::vector<std::uint32_t> packed_tokens(const packed_document& d) {
  return std::vector<std::uint32_t>(static_cast<std::size_t>(d.cost), static_cast<std::uint32_t>(d.id));
}

enum class packer { best_fit, next_fit, tokens };

struct packed_run {
  packer how = packer::best_fit;
  mr::world world{};
  int threads = 0;
  std::string resume{};
  mr::cost_options limits{.max_cost = packed_row_size, .open_rows = 3};
};
struct packed_result {
  std::vector<row_of_ids> rows;
  std::vector<std::string> positions;
};

template <auto Ids, class Flow>
packed_result packed_rows_of(Flow flow, const packed_run& o) {
  mr::session_options options = quiet(o.threads);
  options.world = o.world;
  options.resume = o.resume;
  options.epoch_batches = packed_batches;
  packed_result result;
  mr::session run{std::move(flow) | mr::batch<Ids>({.size = rows_at_once}), options};
  for (auto& b : run) {
    const auto ids = b.template get<Ids>();
    for (std::size_t i = 0; i < b.size(); ++i) result.rows.emplace_back(ids[i].span().begin(), ids[i].span().end());
    result.positions.push_back(mr::to_text(b.position()));
  }
  return result;
}
packed_result run_packed(const packed_corpus& c, const packed_run& o) {
  switch (o.how) {
    case packer::best_fit:
      return packed_rows_of<&packed_ids::ids>(documents_of(c) | mr::pack_best_fit(cost_of, o.limits) | mr::map(ids_of),
                                              o);
    case packer::next_fit:
      return packed_rows_of<&packed_ids::ids>(documents_of(c) | mr::pack(cost_of, o.limits) | mr::map(ids_of), o);
    default:
      return packed_rows_of<&mr::packed::ids>(documents_of(c) | mr::map(packed_tokens) |
                                                  mr::pack({.length = o.limits.max_cost,
                                                            .separator = packed_separator}),
                                              o);
  }
}

/// The documents of each pass of a rank, in the order in which a flow without pack() delivers them.
std::vector<std::vector<packed_document>> passes_of_rank(const packed_corpus& c, const mr::world& world) {
  mr::session_options options = quiet(0);
  options.world = world;
  options.epoch_batches = 1'200;
  mr::session run{documents_of(c) | mr::batch<&packed_document::id, &packed_document::cost>({.size = 1}), options};
  std::vector<std::vector<packed_document>> passes(1);
  std::map<std::int32_t, std::size_t> left;
  std::size_t complete = 0;
  for (auto& b : run) {
    const auto [ids, costs] = b.columns();
    if (complete == packed_files / world.size) {   // all shards of the pass
      passes.emplace_back();
      left.clear();
      complete = 0;
    }
    passes.back().push_back({ids[0], costs[0]});
    const std::int32_t file = ids[0] / 100;
    if (!left.contains(file)) left[file] = c.documents[static_cast<std::size_t>(file)];
    REQUIRE(left[file] > 0);
    if (--left[file] == 0) ++complete;
  }
  if (complete != packed_files / world.size) passes.pop_back();
  return passes;
}

/// The rows of a pass by plain loops.
void add_lists(std::vector<row_of_ids>& rows, const std::vector<packed_document>& pass, std::size_t most) {
  struct open_list {
    std::int32_t left;
    row_of_ids ids{};
  };
  std::vector<open_list> open;
  const auto close = [&](std::size_t i) {
    open[i].ids.resize(packed_row_size, -1);
    rows.push_back(open[i].ids);
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
  };
  const auto fullest_with = [&](std::int32_t space) {
    std::size_t best = open.size();
    for (std::size_t i = open.size(); i-- > 0;)
      if (open[i].left >= space && (best == open.size() || open[i].left <= open[best].left)) best = i;
    return best;
  };
  for (const packed_document& d : pass) {
    std::size_t row = fullest_with(d.cost);
    if (row == open.size()) {
      if (open.size() == most) close(fullest_with(0));
      row = open.size();
      open.push_back({static_cast<std::int32_t>(packed_row_size)});
    }
    open[row].ids.push_back(d.id);
    open[row].left -= d.cost;
    if (open[row].left == 0) close(row);
  }
  while (!open.empty()) close(0);
}
void add_tokens(std::vector<row_of_ids>& rows, const std::vector<packed_document>& pass) {
  row_of_ids all;
  for (const packed_document& d : pass) {
    all.insert(all.end(), static_cast<std::size_t>(d.cost), d.id);
    all.push_back(static_cast<std::int32_t>(packed_separator));
  }
  while (all.size() % packed_row_size != 0) all.push_back(static_cast<std::int32_t>(packed_separator));
  for (std::size_t at = 0; at < all.size(); at += packed_row_size)
    rows.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(at),
                      all.begin() + static_cast<std::ptrdiff_t>(at + packed_row_size));
}

}  // namespace

TEST_CASE("each rank packs its shards as a plain loop does, and resumes after 50 random batches") {
  const packed_corpus c;
  mr::rng random({.seed = 8});
  for (const std::size_t ranks : {1U, 2U, 3U, 4U, 6U}) {
    CAPTURE(ranks);
    for (const packer how : {packer::best_fit, packer::next_fit, packer::tokens}) {
      CAPTURE(static_cast<int>(how));
      std::vector<packed_result> full;
      std::vector<std::size_t> times(100 * packed_files);
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const mr::world world{.rank = rank, .size = ranks};
        std::vector<row_of_ids> expected;
        const auto passes = passes_of_rank(c, world);
        REQUIRE(passes.size() > 2);
        for (const packed_document& d : passes[0]) ++times[static_cast<std::size_t>(d.id)];
        std::vector<std::vector<packed_document>> parts(ranks == 1 ? 0 : 1);   // of which each ends with padding
        for (const auto& pass : passes) {
          if (ranks == 1) parts.push_back(pass);
          else parts[0].insert(parts[0].end(), pass.begin(), pass.end());
        }
        for (const auto& part : parts) {
          if (how == packer::tokens) add_tokens(expected, part);
          else add_lists(expected, part, how == packer::best_fit ? 3 : 1);
        }
        full.push_back(run_packed(c, {.how = how, .world = world, .threads = static_cast<int>(rank % 3)}));
        REQUIRE(full.back().rows.size() == rows_at_once * packed_batches);
        REQUIRE(expected.size() >= full.back().rows.size());
        REQUIRE(std::equal(full.back().rows.begin(), full.back().rows.end(), expected.begin()));
      }
      for (std::size_t f = 0; f < packed_files; ++f)   // the first passes of all ranks contain each document once
        for (std::size_t i = 0; i < c.documents[f]; ++i) REQUIRE(times[100 * f + i] == 1);
      for (int resumes = 0; resumes < 50; ++resumes) {
        const std::size_t rank = random.below(ranks), cut = random.below(packed_batches - 1);
        CAPTURE(rank);
        CAPTURE(cut);
        const packed_result rest =
            run_packed(c, {.how = how, .world = {.rank = rank, .size = ranks}, .threads = resumes % 3 == 0 ? 2 : 0,
                           .resume = full[rank].positions[cut]});
        REQUIRE(rest.rows.size() == rows_at_once * (packed_batches - cut - 1));
        REQUIRE(std::equal(rest.rows.rbegin(), rest.rows.rend(), full[rank].rows.rbegin()));
        REQUIRE(rest.positions.back() == full[rank].positions.back());
      }
    }
  }
}

TEST_CASE("a resume point of another rank, max_cost, open_rows or length is refused by name") {
  const packed_corpus c;
  for (const packer how : {packer::best_fit, packer::next_fit, packer::tokens}) {
    const std::string resume = run_packed(c, {.how = how}).positions[7];
    const auto refusal = [&](mr::cost_options limits) -> std::string {
      try {
        run_packed(c, {.how = how, .resume = resume, .limits = limits});
        return "accepted";
      } catch (const mr::setup_error& e) {
        return e.message();
      }
    };
    CHECK(refusal({.max_cost = 20, .open_rows = 3}) == "accepted");
    CHECK(refusal({.max_cost = 19, .open_rows = 3}).find("the row of pack() (length or max_cost) was 20 and is 19") !=
          std::string::npos);
    if (how == packer::best_fit)
      CHECK(refusal({.max_cost = 20, .open_rows = 4}).find("open_rows of pack_best_fit() was 3 and is 4") !=
            std::string::npos);
    // An earlier release did not record the limits.
    mr::position older = mr::parse_position(resume);
    older.packing = {};
    const packed_result rest = run_packed(c, {.how = how, .resume = mr::to_text(older)});
    CHECK(rest.rows == run_packed(c, {.how = how, .resume = resume}).rows);
    CHECK(mr::parse_position(rest.positions[0]).packing.row == packed_row_size);
  }
  const std::string of_two = run_packed(c, {.world = {.rank = 1, .size = 2}}).positions[7];
  CHECK_THROWS_WITH_AS(run_packed(c, {.world = {.rank = 0, .size = 2}, .resume = of_two}),
                       doctest::Contains("was rank 1 of 2 and is rank 0 of 2"), mr::setup_error);
}
