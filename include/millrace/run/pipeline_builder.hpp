// Builds the segments of a flow, from the last segment to the first. A segment consists of stages that run together,
// without a queue between them.
//
//   mr::detail::pipeline_builder<layout> builder(options, batches);     // batches: the batch_ring that is filled
//   auto& first = builder.build<mr::record>(std::move(flow.stages));    // a sample_sink<record> for the read stage
//   builder.nodes();                                                    // the pipeline nodes to start and stop
//
// Consecutive maps become fused maps (one function). A segment ends at an expanding stage (such as expand or filter),
// at a stage that runs serially, and at batch. If one of the fused maps has the option `.blocking`, all of these maps
// run on separate threads instead of the workers.
#pragma once

#include <millrace/item/owner.hpp>
#include <millrace/order/batch_numbers.hpp>
#include <millrace/stages/batch.hpp>
#include <millrace/stages/shuffle.hpp>
#include <millrace/stages/take.hpp>
#include <millrace/stages/to_device.hpp>
#include <millrace/work/batch/batch_segment.hpp>
#include <millrace/work/segment/parallel_segment.hpp>
#include <millrace/work/segment/serial_segment.hpp>
#include <millrace/work/segment/serial_stages.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

template <class Stage>
inline constexpr bool is_map = false;
template <class F>
inline constexpr bool is_map<map_stage<F>> = true;
template <class Stage>
inline constexpr bool is_filter = false;
template <class Keep>
inline constexpr bool is_filter<filter_stage<Keep>> = true;
template <class Stage>
inline constexpr bool is_expand = requires { &Stage::expanding; };
/// True if each row of the stage combines several samples.
template <class Stage>
inline constexpr bool joins_samples = requires { typename Stage::joins_samples_mark; };
template <class Stage>
inline constexpr bool is_packing = requires { requires has_fill_level<decltype(Stage::expanding)>; };
template <class Stage>
inline constexpr bool is_batch = false;
template <auto... Members>
inline constexpr bool is_batch<batch_stage<Members...>> = true;

template <class Stage>
inline constexpr bool mixes_rows = requires { typename Stage::mixes_rows_mark; };

template <class Stage>
inline constexpr bool is_bucket = requires { typename Stage::bucket_mark; };

template <class Stage>
inline constexpr bool one_row_per_sample = !is_filter<Stage> && !is_expand<Stage> && !is_bucket<Stage> &&
                                           !std::is_same_v<Stage, shuffle_stage> && !std::is_same_v<Stage, take_stage>;

/// Returns the points from which a resumed run can replay this stage: after each sample, at the end of each pass, or
/// only at the start of the run. `Now` is the type of the items that the stage receives.
template <class Now, class Stage>
constexpr replay_start pipeline_replay_start() {
  if constexpr (std::is_same_v<Stage, shuffle_stage> || std::is_same_v<Stage, take_stage>) {
    return replay_start::pass;
  } else if constexpr (is_expand<Stage>) {
    if constexpr (Stage::template parallel<Now>) return replay_start::sample;
    else return finishes<decltype(Stage::expanding)> ? replay_start::pass : replay_start::run;
  } else {
    return replay_start::sample;
  }
}

/// True if each of these stages outputs exactly one item for each input item, in the same order.
template <class... Stages>
constexpr bool only_maps_before_batch() {
  return (one_row_per_sample<Stages> && ...);
}

/// Returns the points from which a resumed run can replay all these stages.
template <class Now, class Stage, class... Rest>
constexpr replay_start replay_start_of(const stage_list<Stage, Rest...>*) {
  constexpr replay_start here = pipeline_replay_start<Now, Stage>();
  if constexpr (is_packing<Stage> && only_maps_before_batch<Rest...>()) {
    return replay_start::sample;
  } else if constexpr (is_batch<Stage> || sizeof...(Rest) == 0) {
    return here;
  } else {
    const stage_list<Rest...>* const rest = nullptr;
    return std::max(here, replay_start_of<typename Stage::template out<Now>>(rest));
  }
}

/// The facts about the session that the builder needs.
struct pipeline_builder_options {
  std::uint64_t seed = 0;
  unsigned workers = 1;                          ///< 0 if everything runs inside next() on the calling thread
  worker_executor* arena = nullptr;              ///< the executor of the workers; null without workers
  std::size_t shuffle_bytes = ~std::size_t{0};   ///< maximum bytes of a shuffle buffer
  /// Whether the run continues from a resume text of an older version, and keeps the order of that version.
  bool keeps_older_order = false;
  batch_boundaries boundaries{};
  batch_numbers numbers{};
  sample_names* names = nullptr;          ///< null if batches have no keys
  const damage_rule* damaged = nullptr;   ///< null if damage is an error
};

/// The segments of a session, independent of their types.
class built_segments {
 public:
  using options = pipeline_builder_options;

  /// Returns the pipeline nodes in the order of the flow.
  std::vector<pipeline_node*> nodes() const;
  /// Returns the segment that renders into the batches.
  final_segment& last() noexcept { return *last_; }

 protected:
  built_segments(const options& o, batch_ring& batches);
  built_segments(const built_segments&) = delete;
  built_segments& operator=(const built_segments&) = delete;
  ~built_segments();

  /// Builds a segment and owns it.
  template <class Segment, class... Args>
  MILLRACE_RARE Segment& emplace(Args&&... args) {
    reserve_place();   // before `new`, so that the segment cannot leak
    auto* const segment = new Segment(std::forward<Args>(args)...);
    own(segment);
    return *segment;
  }

  /// Returns the maximum number of rows that wait for a worker in the last segment. If another segment precedes the
  /// last segment, the maximum is lower, because the items that the other segment outputs may be large.
  std::size_t max_waiting_rows() const noexcept { return follows_segment_ ? 256 : 4096; }
  /// Returns the options of the last segment.
  batch_rows::options last_options(const batch_options& o, unsigned own_threads);

  struct worker_counts {
    std::size_t count;
    worker_executor* workers;
  };
  /// Returns the number of workers of a segment, and their executor. `own_threads` is the number of separate threads
  /// that the segment requests; 0 if the segment uses the session's workers.
  worker_counts workers_for(unsigned own_threads);

  const options options_;
  batch_ring* const batches_;
  stage_passages passages_;
  bool follows_segment_ = false;   // whether another segment precedes the segment that is built next
  final_segment* last_ = nullptr;

 private:
  void reserve_place();
  void own(pipeline_node* segment) noexcept;

  // Declared before the segments, because the dispatchers of the segments submit tasks to these threads until the
  // segments are destroyed.
  owner_list<thread_executor> own_threads_;
  owner_list<pipeline_node> segments_;   // from the last to the first
};

/// Builds the segments of one session and owns them.
template <class Columns>
class pipeline_builder : public built_segments {
 public:
  using mixer = typename row_mixer_of<Columns>::type;

  /// `batches` is the batch ring that the last segment fills. The ring must outlive the builder.
  pipeline_builder(const options& o, batch_ring& batches) : built_segments(o, batches) {}

  /// Builds all segments. Returns the sink (the input of a segment) that receives the samples. `In` is the type of the
  /// samples.
  template <class In, class... Stages>
  [[gnu::cold]] sample_sink<In>& build(stage_list<Stages...>&& stages) {
    return next<In, In>(stage_list<>{}, map_entry{.seed = options_.seed}, map_entry{.seed = options_.seed},
                        std::move(stages));
  }

  /// Returns the layout of the batches.
  const Columns& layout() const noexcept { return *layout_; }

 private:
  /// Builds the segments for `maps` and `stages`. `maps` are the maps that have been fused so far. `begun` is the place
  /// in the flow of the first of these maps, and `In` is the input type of that map. `here` is the place of the next
  /// map.
  template <class In, class Now, class... Maps, class First, class... Rest>
  [[gnu::cold]] sample_sink<In>& next(stage_list<Maps...>&& maps, map_entry begun, map_entry here,
                                      stage_list<First, Rest...>&& stages) {
    First& stage = stages.first;
    auto& rest = stages.rest;
    if constexpr (is_map<First>) {
      using out = typename First::template out<Now>;
      ++here.first_map;
      here.first_random_stage += First::template draws<Now> ? 1 : 0;
      return next<In, out>(append(std::move(maps), std::move(stage)), begun, here, std::move(rest));
    } else if constexpr (is_filter<First>) {
      return add_parallel<In>(std::move(maps), begun, here, std::move(stage).template as_expanding<Now>(),
                              std::move(rest));
    } else if constexpr (std::is_same_v<First, take_stage>) {
      auto limit = stage.template as_expanding<Now>();
      return add_serial<In, Now>(std::move(maps), begun, here,
                                 stateful_expanding_stage<Now, decltype(limit)>(std::move(limit)), std::move(rest),
                                 &passages_.add("take", {}));
    } else if constexpr (is_expand<First>) {
      if constexpr (First::template parallel<Now>)
        return add_parallel<In>(std::move(maps), begun, here, std::move(stage), std::move(rest));
      else {
        if constexpr (is_packing<First>) stage.expanding.restore_fill_level(options_.boundaries.buffered_tokens);
        return add_serial<In, Now>(
            std::move(maps), begun, here, stateful_expanding_stage<Now, First>(std::move(stage), options_.names),
            std::move(rest), &passages_.add(is_packing<First> ? "pack" : "expand", {.may_buffer = true}));
      }
    } else if constexpr (is_bucket<First>) {
      const std::size_t size = rest.first.options.size;
      return add_serial<In, Now>(
          std::move(maps), begun, here,
          typename First::template serial<Now>(stage.options, {.max_rows = size, .max_bytes = options_.shuffle_bytes}),
          std::move(rest), &passages_.add("bucket", {.may_buffer = true}));
    } else if constexpr (std::is_same_v<First, shuffle_stage>) {
      const shard_order order({.seed = options_.seed,
                               .shards = 1,
                               .shuffled = true,
                               .window = stage.options.window,
                               .permutes = !options_.keeps_older_order});
      return add_serial<In, Now>(std::move(maps), begun, here,
                                 shuffling_segment_stage<Now>(order, options_.shuffle_bytes), std::move(rest), nullptr);
    } else {
      static_assert(is_batch<First>);
      return add_batch<In>(std::move(maps), begun, stage.options, mixer_options<mixer>(rest, here));
    }
  }

  template <class In, class... Maps, class Expanding, class Rest>
  sample_sink<In>& add_parallel(stage_list<Maps...>&& maps, map_entry begun, map_entry here, Expanding expanding,
                                Rest&& rest) {
    using maps_type = fused_maps<In, Maps...>;
    using segment = parallel_segment<maps_type, Expanding>;
    follows_segment_ = true;
    stage_passage& passage = passages_.add(renames_outputs<decltype(expanding.expanding)> ? "expand" : "filter", {});
    auto& after = next<typename segment::output, typename segment::output>(stage_list<>{}, here, here, std::move(rest));
    const worker_counts s = workers_for(own_threads_of(maps));
    return emplace<segment>(maps_type(begun, std::move(maps)), std::move(expanding),
                            typename segment::options{.max_workers = s.count,
                                                      .workers = s.workers,
                                                      .capacity = 32 * s.count,
                                                      .names = options_.names,
                                                      .passage = &passage},
                            after)
        .entrance();
  }

  template <class In, class Now, class... Maps, class Stage, class Rest>
  sample_sink<In>& add_serial(stage_list<Maps...>&& maps, map_entry begun, map_entry here, Stage stage, Rest&& rest,
                              stage_passage* passage) {
    follows_segment_ = true;
    auto& after = next<typename Stage::output, typename Stage::output>(stage_list<>{}, here, here, std::move(rest));
    using segment = serial_segment<Now, Stage>;
    auto& serial = emplace<segment>(
                       std::move(stage),
                       typename segment::options{.capacity = 64, .threaded = options_.workers > 0, .passage = passage},
                       after)
                       .entrance();
    if constexpr (sizeof...(Maps) == 0) {
      return serial;
    } else {
      using maps_type = fused_maps<In, Maps...>;
      using maps_only = parallel_segment<maps_type, no_expanding_stage>;
      const worker_counts s = workers_for(own_threads_of(maps));
      return emplace<maps_only>(
                 maps_type(begun, std::move(maps)), no_expanding_stage{},
                 typename maps_only::options{.max_workers = s.count, .workers = s.workers, .capacity = 32 * s.count},
                 serial)
          .entrance();
    }
  }

  template <class In, class... Maps>
  [[gnu::cold]] sample_sink<In>& add_batch(stage_list<Maps...>&& maps, map_entry begun, const batch_options& o,
                                           typename mixer::options mixing) {
    using maps_type = fused_maps<In, Maps...>;
    using segment = batch_segment<maps_type, Columns>;
    const unsigned own_threads = own_threads_of(maps);
    auto& last = emplace<segment>(
        maps_type(begun, std::move(maps)),
        typename segment::options{.batch = last_options(o, own_threads), .mixing = std::move(mixing)});
    layout_ = &last.layout();
    last_ = &last;
    return last.entrance();
  }

  /// Returns the settings of mix_rows() in `after_batch`; default settings without mix_rows().
  template <class Mixer, class... Stages>
  typename Mixer::options mixer_options(const stage_list<Stages...>& after_batch, const map_entry& here) const {
    typename Mixer::options result{};
    const auto read = [&](const auto& stage) {
      if constexpr (mixes_rows<std::remove_cvref_t<decltype(stage)>>)
        result = typename Mixer::options{.rule = stage.rule(),
                                         .settings = stage.options,
                                         .seed = options_.seed,
                                         .stage = here.first_random_stage,
                                         .numbers = options_.numbers};
    };
    for_each(after_batch, read);
    return result;
  }

  /// Returns the largest number of threads that any of the maps requests.
  template <class... Maps>
  static unsigned own_threads_of(const stage_list<Maps...>& maps) {
    if constexpr (sizeof...(Maps) == 0) return 0;
    else return std::max(maps.first.options.blocking ? maps.first.options.threads : 0u, own_threads_of(maps.rest));
  }

  const Columns* layout_ = nullptr;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/run/impl/pipeline_builder.inl>
#endif
