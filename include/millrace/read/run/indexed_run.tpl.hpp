// Defines the members of the templates in indexed_run.hpp.
#pragma once

#include <millrace/read/run/indexed_run.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

template <class Data>
MILLRACE_RARE indexed_run<Data>::indexed_run(std::shared_ptr<Data> data, const options& o)
    : data_(std::move(data)),
      world_(o.world),
      plan_(plan_of(*data_, o)),
      start_(start_of(o, data_->fingerprint())),
      source_(data_, plan_,
              {.world = o.world,
               .first_epoch = start_.epoch,
               .first_position = start_.next_position,
               .samples_per_block = samples_at_once(o, *data_)}),
      shards_({.seed = o.seed, .shards = source_.shards()}),
      account_({.epoch = start_.epoch,
                .batch = start_.next_position / plan_.settings().global_batch,
                .batches = plan_.batches(),
                .rows = exact_order::share(plan_.positions(), world_),
                .dropped = exact_order::share(plan_.dropped_per_pass(), world_),
                .delivered = exact_order::share(start_.next_position, world_),
                .digest = world_.rank == 0 ? start_.digest : 0}) {
  check_last_batch(o);
  if constexpr (requires { data_->expect({}); })
    held_bytes_ = data_->expect({.window = (plan_.permutes() ? plan_.samples() : o.window) / plan_.lane_step(world_),
                                 .lanes = plan_.settings().lanes / plan_.lane_step(world_),
                                 .max_held_bytes = o.max_held_bytes});
  if (o.epoch_batches == exact_order_options::endless && o.epochs > 1)
    throw setup_error("epoch_batches = endless allows one epoch, but epochs = " + std::to_string(o.epochs),
                      "Use session_options{.epochs = 1, .epoch_batches = endless}, or a number of batches");
  if (start_.epoch >= o.epochs)
    throw setup_error("the run is over: its resume point is the end of epoch " + std::to_string(start_.epoch) + " of " +
                          std::to_string(o.epochs),
                      "Raise session_options::epochs, which includes the epochs before the resume point");
}

template <class Data>
MILLRACE_INLINE std::uint64_t indexed_run<Data>::first_step() const noexcept {
  return start_.epoch * plan_.batches() + start_.next_position / plan_.settings().global_batch;
}

template <class Data>
MILLRACE_INLINE error_location indexed_run<Data>::locate(std::uint64_t epoch, std::uint64_t at) const {
  error_location location = data_->location_of(plan_.sample_at(epoch, at).sample);
  location.position = at;
  return location;
}

template <class Data>
MILLRACE_RARE std::string indexed_run<Data>::shuffle_advice() const {
  if constexpr (!source_type::observes) return {};
  else return lane_advice();
}

template <class Data>
MILLRACE_RARE std::vector<notice> indexed_run<Data>::notices() const {
  std::vector<notice> all;
  if constexpr (requires { data_->notices(); }) all = data_->notices();
  // All ranks report the start of a resumed run, because some ranks may have received the text of another checkpoint.
  if (first_step() > 0 || smaller_) all.push_back({.kind = notice_kind::resume, .text = resumed()});
  if (world_.rank > 0) return all;   // the remaining warnings are the same on all ranks
  if (std::string narrow = plan_.window_notice(); !narrow.empty())
    all.push_back({.kind = notice_kind::order, .severity = notice_severity::warning, .text = std::move(narrow)});
  if (!start_.is_share()) return all;
  all.push_back({.kind = notice_kind::resume,
                 .severity = notice_severity::warning,
                 .text = "the resume point's digest is not the digest of the run: got the share of one of " +
                         std::to_string(start_.share.ranks) +
                         " ranks, expected the sum of all. Order and samples are correct, but all later digests "
                         "are wrong. Sum position().digest over the ranks before to_text()"});
  return all;
}

template <class Data>
MILLRACE_RARE std::string indexed_run<Data>::resumed() const {
  const std::string steps = " (step " + std::to_string(first_step()) + ")";
  std::string text = "the run continues ";
  if (start_.next_position == 0) text += "at the beginning of epoch " + std::to_string(start_.epoch) + steps;
  else
    text += "after batch " + std::to_string(start_.next_position / plan_.settings().global_batch) + " of epoch " +
            std::to_string(start_.epoch) + steps;
  if (!smaller_) return text;
  const std::string then = counts_text(smaller_->counts);
  text += ", over " + counts_text(start_.counts) + (then.empty() ? "" : " instead of " + then);
  if (smaller_->next_position == 0) return text;
  return text + ". Epoch " + std::to_string(smaller_->epoch) + " ends after " +
         std::to_string(smaller_->next_position) + " samples; its other samples are part of this epoch";
}

template <class Data>
MILLRACE_RARE batch_origin indexed_run<Data>::account_for(ready_batch& b) {
  if (b.error) return {};
  account_.deliver(b);
  batch_origin origin{.first_step = first_step(), .next = after(b.batch)};
  const std::uint64_t in_epoch = (origin.first_step + b.batch) % plan_.batches();
  origin.global_rows = plan_.rows(in_epoch, {});
  origin.first_position = in_epoch * plan_.settings().global_batch;
  // While no other rank has received a row, the digest of this rank is the digest of the run. digest_share::ranks is
  // then 0, which marks a complete digest.
  others_rows_ += origin.global_rows - b.rows;
  origin.next.digest = account_.digest();
  origin.next.share = digest_share{.digest = account_.digest(),
                                   .ranks = others_rows_ > 0 ? static_cast<std::uint32_t>(world_.size) : 0};
  return origin;
}

template <class Data>
MILLRACE_RARE void indexed_run<Data>::add_to(run_stats& s) const {
  s.digest = account_.digest();
  s.dropped_last = account_.dropped();
  if constexpr (requires { data_->delivered(plan_, world_, start_, start_); })
    s.sources = data_->delivered(plan_, world_, start_, s.batches == 0 ? start_ : after(s.batches - 1));
}

template <class Data>
MILLRACE_RARE std::string indexed_run<Data>::describe() const {
  std::string text;
  if constexpr (requires { data_->describe(plan_); }) text = "; " + data_->describe(plan_);
  if constexpr (requires { data_->start_text(); })
    if (const std::string start = data_->start_text(); !start.empty()) text += "; " + start;
  const std::string choice = data_->choice_text();
  return choice.empty() ? text : text + "; " + choice;
}

template <class Data>
template <class Source>
MILLRACE_INLINE owner<read_stage> indexed_run<Data>::read(const Source&, shard_read_stage_options o,
                                                          sample_sink<typename Data::item>& next) {
  o.first_epoch = start_.epoch;
  o.first_shard = source_.first_shard();
  return make_owner<shard_read_stage<source_type>>(source_, shards_, o, next);
}

template <class Data>
MILLRACE_INLINE position indexed_run<Data>::after(std::uint64_t batch) const noexcept {
  const std::uint64_t done = first_step() + batch + 1;
  position p = start_;
  p.epoch = done / plan_.batches();
  p.next_position = done % plan_.batches() * plan_.settings().global_batch;
  return p;
}

template <class Data>
MILLRACE_RARE std::string indexed_run<Data>::order_text() const {
  position p = start_;
  p.epoch = p.next_position = p.digest = 0;
  p.share = {};
  return to_text(p);
}

template <class Data>
MILLRACE_RARE position indexed_run<Data>::start_of_grown(const position& from, position now) const {
  if (now.epoch_batches == exact_order_options::endless)
    throw setup_error("session_options::grown applies from the next epoch on, but an endless run has no "
                      "next epoch",
                      "Start a new run with another seed");
  if (from.counts.shards > now.counts.shards || from.counts.samples > now.counts.samples)
    throw setup_error("session_options::grown does not allow a smaller data set: got " + counts_text(now.counts) +
                          ", expected at least " + counts_text(from.counts),
                      "Restore the missing shards, or start without the resume point");
  position same = from;   // the window and the lanes may depend on the number of samples
  same.data_set = now.data_set;
  same.choice = now.choice;
  same.window = now.window;
  same.lanes = now.lanes;
  check_same(same, now);
  now.epoch = from.epoch + (from.next_position > 0 ? 1 : 0);
  now.digest = from.digest;
  now.share = from.share;
  return now;
}

template <class Data>
MILLRACE_RARE position indexed_run<Data>::start_of(const options& o, std::uint64_t data_set) {
  const std::optional<position> from = o.resume.empty() ? std::nullopt : std::optional(parse_position(o.resume));
  const position now{
      .version = run_order_rule_of(o).version,
      .seed = o.seed,
      .epoch = from ? 0 : o.first_epoch,
      .lanes = static_cast<std::uint32_t>(plan_.settings().lanes),
      .window = plan_.window(),
      .global_batch = plan_.settings().global_batch,
      .epoch_batches = o.epoch_batches,
      .drop_last = o.drop_last,
      .data_set = data_set,
      .choice = data_->choice(),
      .stride = row_stride(
          {.requested = o.stride, .of_resume_point = from ? from->stride : 0, .rows = o.rows, .mine = o.world}),
      .counts = {.shards = data_->counts().size(), .samples = total_samples(*data_)}};
  if (!from) return now;
  if (o.grown && from->has_index() && from->data_set != data_set) {
    smaller_ = from;
    return start_of_grown(*from, now);
  }
  if constexpr (requires { data_->check_same(from->data_set); }) data_->check_same(from->data_set);
  check_same(*from, now);
  if (from->next_position % now.global_batch != 0 || from->next_position >= plan_.positions() ||
      from->next_position > std::uint64_t{1} << 62)
    throw data_error("the resume point is within a batch, or after the epoch's last batch",
                     "Pass the text that batch::resume_text() returned");
  return *from;
}

/// Throws setup_error for batches without a row on some rank. With such a batch, a training loop could divide by zero,
/// or wait forever.
template <class Data>
MILLRACE_RARE void indexed_run<Data>::check_last_batch(const options& o) const {
  if (o.allow_empty || o.drop_last || o.epoch_batches != exact_order_options::exact_pass) return;
  const std::size_t rows = plan_.rows(plan_.batches() - 1, {});
  if (rows >= world_.size) return;
  throw setup_error("the last batch of an epoch leaves ranks without a row: got " + std::to_string(rows) +
                        (rows == 1 ? " row for " : " rows for ") + std::to_string(world_.size) +
                        " ranks, expected at least one for each (" + std::to_string(plan_.positions()) +
                        " samples in batches of " + std::to_string(o.global_batch()) + " rows over all ranks)",
                    "Set batch({.pad_last = true}), which fills the batch with masked rows, or batch({.allow_empty = "
                    "true}) if your loop accepts a batch of 0 rows");
}

template <class Data>
MILLRACE_INLINE std::uint64_t indexed_run<Data>::total_samples(const Data& data) {
  std::uint64_t samples = 0;
  for (const std::uint64_t count : data.counts()) samples += count;
  return samples;
}

template <class Data>
MILLRACE_RARE std::uint64_t indexed_run<Data>::samples_at_once(const options& o, const Data& data) {
  const std::uint64_t mean_bytes = data.size_bytes() / std::max<std::uint64_t>(1, total_samples(data));
  return std::clamp<std::uint64_t>(o.bytes_at_once / std::max<std::uint64_t>(1, mean_bytes), 16, 4096);
}

}}}   // namespace millrace::detail
