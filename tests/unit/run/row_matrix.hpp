// A flow on every number of workers and ranks, and resumed after 50 random batches: the rows must be the same.
//
//   row_matrix::check([&](std::size_t rows) { return mr::shards(...) | ... | mr::batch<example>({.size = rows}); },
//                     {.frozen = 1234});
//
// The flow must have an exact order. For a flow that is streamed, check_streamed() compares each rank with itself.
#pragma once

#include "quiet_sessions.hpp"

#include <millrace/base/digest.hpp>
#include <millrace/item/world.hpp>
#include <millrace/run/session.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace row_matrix {

namespace mr = millrace;

constexpr std::size_t global_batch = 12;

struct matrix_options {
  std::uint64_t frozen = 0;   // digest of all rows
  std::uint64_t epochs = 2;
  std::uint64_t epoch_batches = 0;
  int resumes = 50;
};

/// Row `i` of a column, without padding.
template <class View>
std::uint64_t row_digest(const View& v, std::size_t i, std::uint64_t seed) {
  using mr::detail::digest_bytes;
  if constexpr (requires { v.sizes; }) {
    const auto height = static_cast<std::size_t>(v.sizes(i, 0)), width = static_cast<std::size_t>(v.sizes(i, 1));
    for (std::size_t y = 0; y < height; ++y)
      seed = digest_bytes(std::as_bytes(std::span(&v.values(i, y, 0, 0), width * 3)), seed);
    return seed;
  } else if constexpr (requires { v[i].span(); }) {
    const auto row = v[i];
    return digest_bytes(std::as_bytes(row.span()), seed + row.shape[0]);
  } else {
    return digest_bytes(std::as_bytes(std::span(&v[i], 1)), seed);
  }
}

struct conduct {
  int threads = 2;
  mr::world world{};
  std::string resume{};
};

struct outcome {
  std::map<std::uint64_t, std::uint64_t> rows{};   // digests by global position
  std::vector<std::uint64_t> last{};               // of each batch, the position after it
  std::vector<std::string> points{};
  std::uint64_t digest = 0;

  std::uint64_t sum() const {
    std::uint64_t all = 0;
    for (const auto& [position, row] : rows) all += row * (2 * position + 1);
    return all;
  }
};

template <class Make>
outcome run(const Make& make, const matrix_options& m, const conduct& c) {
  auto options = quiet(c.threads, m.epochs);
  options.epoch_batches = m.epoch_batches;
  options.world = c.world;
  options.resume = c.resume;
  mr::session session{make(global_batch / c.world.size), options};
  outcome all;
  for (auto& b : session) {
    const std::uint64_t first = (b.epoch() * 10'000 + b.step()) * global_batch;
    const auto columns = b.columns();
    for (std::size_t i = 0; i < b.size(); ++i) {
      std::uint64_t digest = 0;
      std::apply([&](const auto&... view) { ((digest = row_digest(view, i, digest)), ...); }, columns);
      all.rows[first + i * c.world.size + c.world.rank] = digest;
    }
    all.last.push_back(first + global_batch);
    all.points.push_back(b.resume_text());
  }
  all.digest = session.stats().digest;
  return all;
}

/// Whether the rows of `part` are those of `full` that one rank has from position `from` on.
inline bool is_rest(const outcome& part, const outcome& full, std::uint64_t from, const mr::world& of) {
  std::map<std::uint64_t, std::uint64_t> expected;
  for (auto row = full.rows.lower_bound(from); row != full.rows.end(); ++row)
    if (row->first % of.size == of.rank) expected.insert(*row);
  return part.rows == expected;
}

template <class Make>
void check(const Make& make, const matrix_options& m) {
  const outcome alone = run(make, m, {.threads = 0});
  CHECK(alone.sum() == m.frozen);
  REQUIRE(alone.points.size() >= 6);
  for (const int threads : {1, 4}) {
    const outcome other = run(make, m, {.threads = threads});
    CHECK((other.rows == alone.rows && other.points == alone.points && other.digest == alone.digest));
  }
  for (const std::size_t ranks : {2U, 3U, 4U, 6U}) {
    CAPTURE(ranks);
    std::uint64_t digest = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const mr::world world{.rank = rank, .size = ranks};
      const outcome part = run(make, m, {.threads = static_cast<int>(rank % 3), .world = world});
      CHECK(is_rest(part, alone, 0, world));
      digest += part.digest;
    }
    CHECK(digest == alone.digest);
  }
  static constexpr std::size_t worlds[] = {1, 2, 3, 4, 6};
  mr::rng random({.seed = 12});
  for (int turn = 0; turn < m.resumes; turn += static_cast<int>(stride(5))) {
    const std::size_t cut = random.below(alone.points.size() - 1), size = worlds[random.below(5)];
    const mr::world world{.rank = random.below(size), .size = size};
    CAPTURE(cut);
    CAPTURE(world.size);
    const outcome rest = run(make, m, {.threads = turn % 3, .world = world, .resume = alone.points[cut]});
    REQUIRE(is_rest(rest, alone, alone.last[cut], world));
    if (size == 1) CHECK(rest.points.back() == alone.points.back());
  }
}

/// A streamed flow: each rank has its own rows, whatever the number of workers, and resumes after each of its batches.
template <class Make>
void check_streamed(const Make& make, const matrix_options& m) {
  mr::rng random({.seed = 13});
  std::uint64_t sum = 0;
  for (const std::size_t ranks : {1U, 2U, 3U, 4U, 6U})
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      CAPTURE(ranks);
      CAPTURE(rank);
      const mr::world world{.rank = rank, .size = ranks};
      const outcome full = run(make, m, {.threads = 0, .world = world});
      const outcome other = run(make, m, {.threads = 1 + static_cast<int>(rank % 4), .world = world});
      CHECK((other.rows == full.rows && other.points == full.points && other.digest == full.digest));
      sum = sum * 3 + full.sum();
      REQUIRE(full.points.size() >= 4);
      const int resumes = (m.resumes + static_cast<int>(ranks) - 1) / static_cast<int>(ranks);
      for (int turn = 0; turn < resumes; turn += static_cast<int>(stride(5))) {
        const std::size_t cut = random.below(full.points.size() - 1);
        CAPTURE(cut);
        const outcome rest = run(make, m, {.threads = turn % 3, .world = world, .resume = full.points[cut]});
        REQUIRE(is_rest(rest, full, full.last[cut], world));
        CHECK(rest.points.back() == full.points.back());
      }
    }
  CHECK(sum == m.frozen);
}

}  // namespace row_matrix
