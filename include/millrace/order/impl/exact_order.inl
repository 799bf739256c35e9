// Definitions for exact_order.hpp.
#pragma once

#include <millrace/order/exact_order.hpp>

#include <millrace/base/random.hpp>
#include <millrace/order/shard_order.hpp>

#include <numeric>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE pass_layout::pass_layout(options o)
    : shards_(std::move(o.shards)), dropped_(o.dropped), dropped_at_(o.dropped_at) {
  starts_.clear();
  starts_.reserve(shards_.size() + 1);
  std::uint64_t total = 0;
  for (const std::size_t shard : shards_) {
    starts_.push_back(total);
    total += o.counts[shard];
  }
  starts_.push_back(total);
}

MILLRACE_INLINE std::vector<located_sample> pass_layout::dropped() const {
  std::vector<located_sample> left_out;
  for (std::size_t k = 0; k < shards_.size(); ++k) {
    const std::uint64_t end = std::min(starts_[k + 1], dropped_at_ + dropped_);
    for (std::uint64_t ordinal = std::max(starts_[k], dropped_at_); ordinal < end; ++ordinal)
      left_out.push_back({shards_[k], ordinal - starts_[k]});
  }
  return left_out;
}

MILLRACE_RARE pass_permutation::pass_permutation(const options& o) {
  const auto shuffle = [&o](auto& table) {
    table.resize(static_cast<std::size_t>(o.length));
    std::iota(table.begin(), table.end(), 0);
    rng random({.seed = o.seed, .epoch = o.pass, .sample = permutation_stream, .stage = permutation_stream});
    for (std::uint64_t i = o.length; i > 1; --i) std::swap(table[i - 1], table[random.below(i)]);
  };
  if (o.length > std::uint64_t{1} << 32) shuffle(wide_);
  else shuffle(narrow_);
}

MILLRACE_INLINE std::uint64_t lane_jitter::key(std::uint64_t index) const noexcept {
  const auto& o = options_;
  rng random({.seed = o.seed, .epoch = o.pass, .sample = combine_keys(o.lane, index), .stage = jitter_stream});
  return (index << 16) + random.below(o.window);
}

MILLRACE_INLINE std::uint64_t lane_jitter::at(std::uint64_t ordinal) const {
  if (!moves()) return ordinal;
  std::vector<entry> around;
  static_cast<void>(gather(ordinal, around));
  return around.front().index;
}

MILLRACE_INLINE std::uint64_t lane_jitter::gather(std::uint64_t ordinal, std::vector<entry>& around) const {
  const auto& o = options_;
  const std::uint64_t at = ordinal << 16;
  const std::uint64_t begin = at < o.window ? 0 : ((at - o.window) >> 16) + 1;
  const std::uint64_t end = std::min(o.length, (at + o.window + one_place - 1) >> 16);
  around.clear();
  around.reserve(static_cast<std::size_t>(end - begin));
  for (std::uint64_t i = begin; i < end; ++i) around.push_back({key(i), i});
  // Samples before `begin` have already been delivered. The first `ordinal - begin` entries by key have been delivered
  // too.
  const auto here = around.begin() + static_cast<std::ptrdiff_t>(ordinal - begin);
  std::nth_element(around.begin(), here, around.end(),
                   [](const entry& a, const entry& b) { return sliding_jitter<entry>::sorts_after(b, a); });
  around.erase(around.begin(), here);
  return end;
}

MILLRACE_RARE lane_walk::lane_walk(const lane_jitter& order, std::uint64_t ordinal) : order_(order), ordinal_(ordinal) {
  if (!order_.moves() || ordinal_ >= order_.settings().length) return;
  std::vector<lane_jitter::entry> around;
  const std::uint64_t arrived = order_.gather(ordinal_, around);
  waiting_.start(arrived, std::move(around));
}

MILLRACE_INLINE std::size_t automatic_lanes(const exact_order_options& o) {
  constexpr std::uint64_t single_lane_samples = std::uint64_t{1} << 18;
  constexpr std::uint64_t shards_per_lane = 8, window_per_lane = 128, windows_per_lane = 32;
  const std::uint64_t samples = std::accumulate(o.counts.begin(), o.counts.end(), std::uint64_t{0});
  if (!o.shuffled || samples < single_lane_samples || o.window > samples / windows_per_lane) return 1;
  const auto shards = static_cast<std::uint64_t>(
      std::count_if(o.counts.begin(), o.counts.end(), [](std::uint64_t count) { return count > 0; }));
  for (const std::size_t lanes : {48U, 24U, 16U, 12U, 8U, 6U, 4U, 3U, 2U})
    if (shards >= shards_per_lane * lanes && o.window >= window_per_lane * lanes) return lanes;
  return 1;
}

MILLRACE_RARE exact_order::exact_order(options o) : options_(std::move(o)), lanes_are_automatic_(options_.lanes == 0) {
  if (options_.global_batch == 0) throw setup_error("the batch size is 0", "Choose a size of at least 1");
  for (const std::uint64_t count : options_.counts) {
    samples_ += std::min(count, lane_jitter::max_places);
    if (samples_ >= lane_jitter::max_places)
      throw setup_error("the shards have 2^40 samples or more in total", "Check the sample counts");
  }
  if (samples_ == 0) throw setup_error("no shard has a sample", "Inspect the shards (examples/inspect)");
  const std::uint64_t batch = options_.global_batch;
  if (exact() && options_.drop_last) dropped_ = samples_ % batch;
  if (pass_length() == 0)
    throw setup_error("an epoch has only " + std::to_string(samples_) + " samples, fewer than the global batch of " +
                          std::to_string(batch) + ", and drop_last drops them",
                      "Use a smaller batch, more data, or batch({.drop_last = false})");
  if (!exact() && options_.epoch_batches != options::endless && options_.epoch_batches > max_positions / batch)
    throw setup_error("an epoch of " + std::to_string(options_.epoch_batches) + " batches is too long",
                      "Lower session_options::epoch_batches, or set it to endless");
  permutes_ = options_.permutes && options_.shuffled && options_.window >= samples_ && options_.window > 1;
  if (lanes_are_automatic_) options_.lanes = automatic_lanes(options_);
  lane_window_ = lane_jitter::places(options_.window) / options_.lanes;
}

MILLRACE_RARE std::string narrow_window_notice(std::size_t window, std::size_t lanes, std::string_view remedy) {
  if (window <= 1 || window / lanes >= 2) return {};
  return "the shuffle hardly moves samples: got a window of " + std::to_string(window) + " for " +
         std::to_string(lanes) + " lanes, expected at least 2 samples per lane. " + std::string(remedy);
}

MILLRACE_INLINE std::string_view remedy_for_lanes(bool older_order) noexcept {
  return older_order ? "Start a new run: only the order of this old resume point has lanes"
                     : "Omit session_options::lanes, or use a larger shuffle window";
}

MILLRACE_INLINE std::string exact_order::window_notice() const {
  if (!options_.shuffled || permutes()) return {};
  return narrow_window_notice(options_.window, options_.lanes, remedy_for_lanes(!options_.permutes));
}

MILLRACE_INLINE exact_order exact_order::with_window(std::size_t window) const {
  options o = options_;
  o.shuffled = true;
  o.window = window;
  if (lanes_are_automatic_) o.lanes = 0;
  return exact_order(std::move(o));
}

MILLRACE_INLINE double exact_order::lane_window() const noexcept {
  if (permutes()) return static_cast<double>(samples_);
  return options_.window > 1 ? static_cast<double>(lane_window_) / lane_jitter::one_place : 0;
}

MILLRACE_INLINE std::uint64_t exact_order::positions() const noexcept {
  if (exact()) return pass_length();
  if (options_.epoch_batches == options::endless) return options::endless;
  return options_.epoch_batches * options_.global_batch;
}

MILLRACE_INLINE std::uint64_t exact_order::batches() const noexcept {
  return exact() ? (pass_length() + options_.global_batch - 1) / options_.global_batch : options_.epoch_batches;
}

MILLRACE_INLINE std::size_t exact_order::rows(std::uint64_t batch, const world& mine) const noexcept {
  if (batch >= batches()) return 0;
  const std::uint64_t left = positions() - batch * options_.global_batch;
  return static_cast<std::size_t>(share(std::min<std::uint64_t>(left, options_.global_batch), mine));
}

MILLRACE_INLINE std::uint64_t exact_order::share(std::uint64_t positions, const world& mine) noexcept {
  return positions > mine.rank ? (positions - mine.rank - 1) / mine.size + 1 : 0;
}

MILLRACE_RARE void exact_order::check(const world& r) const {
  if (r.size == 0 || r.rank >= r.size)
    throw setup_error("the world is invalid: got " + r.describe(), "Number the ranks from 0 to size - 1");
  if (options_.global_batch % r.size != 0)
    throw setup_error("the global batch of " + std::to_string(options_.global_batch) + " is not divisible by " +
                          std::to_string(r.size) + " ranks",
                      "Choose a global batch that is a multiple of the number of ranks");
}

MILLRACE_INLINE exact_order::spot exact_order::spot_of(std::uint64_t epoch, std::uint64_t position) const {
  if (position >= positions())
    throw setup_error("position " + std::to_string(position) + " is out of range: an epoch has " +
                          std::to_string(positions()) + " positions",
                      "Choose a position from 0 to the last one of the epoch");
  if (exact()) return {epoch, position};
  const bool one_epoch = options_.epoch_batches == options::endless;
  if (one_epoch ? epoch > 0 : epoch > max_positions / positions())
    throw setup_error("epoch " + std::to_string(epoch) + " does not exist",
                      "Choose a smaller epoch. An endless run has only epoch 0");
  const std::uint64_t since_start = one_epoch ? position : epoch * positions() + position;
  return {since_start / samples_, since_start % samples_};
}

MILLRACE_INLINE pass_layout exact_order::layout_of(std::uint64_t pass) const {
  const shard_order shards({.seed = options_.seed, .shards = options_.counts.size(), .shuffled = options_.shuffled});
  rng random({.seed = options_.seed, .epoch = pass, .sample = drop_stream, .stage = drop_stream});
  return pass_layout({.counts = options_.counts,
                      .shards = shards.shards_of(pass),
                      .dropped = dropped_,
                      .dropped_at = options_.shuffled ? random.below(pass_length() + 1) : pass_length()});
}

MILLRACE_INLINE pass_permutation exact_order::permutation_of(std::uint64_t pass) const {
  return pass_permutation({.seed = options_.seed, .pass = pass, .length = pass_length()});
}

MILLRACE_INLINE std::size_t exact_order::lane_step(const world& mine) const noexcept {
  return std::gcd(options_.lanes, mine.size);
}

MILLRACE_INLINE lane_jitter exact_order::lane_of(std::uint64_t pass, std::uint64_t lane) const noexcept {
  return lane_jitter({.seed = options_.seed,
                      .pass = pass,
                      .lane = lane,
                      .length = lane_begin(lane + 1) - lane_begin(lane),
                      .window = options_.window > 1 ? lane_window_ : 0});
}

MILLRACE_INLINE std::uint64_t exact_order::lane_begin(std::uint64_t lane) const noexcept {
  return pass_length() / options_.lanes * lane + std::min<std::uint64_t>(pass_length() % options_.lanes, lane);
}

MILLRACE_INLINE ordered_sample exact_order::sample_at(std::uint64_t epoch, std::uint64_t position) const {
  const spot s = spot_of(epoch, position);
  std::uint64_t number = s.number;
  if (permutes()) {
    number = permutation_of(s.pass)[number];
  } else if (options_.shuffled) {
    const std::uint64_t lane = s.number % options_.lanes;
    number = lane_begin(lane) + lane_of(s.pass, lane).at(s.number / options_.lanes);
  }
  return {epoch, position, s.pass, layout_of(s.pass).find(number)};
}

MILLRACE_INLINE std::vector<located_sample> exact_order::dropped(std::uint64_t epoch) const {
  return exact() ? layout_of(epoch).dropped() : std::vector<located_sample>{};
}

}}}   // namespace millrace::detail
