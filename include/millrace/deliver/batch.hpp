// A delivered batch: typed views of its columns, and the lease on their memory.
//
//   for (auto& b : run) {
//     auto [pixels, labels] = b.columns();               // or b.get<&example::pixels>()
//     train_step(pixels, labels, b.stream());            // b.size() rows, b.epoch(), b.step()
//   }
//
// A batch is move-only. Its destructor releases the slot in the stream given to to_device, and in the streams given to
// also_used_on(). A batch moved out of the loop is kept until it is destroyed. Any thread may destroy it, even after
// the end of its session.
// Errors: keys() and also_used_on() throw setup_error if the batch was released. Device errors are io_error.
// Threads: one thread at a time uses a batch. Lifetime: views and keys are valid until release().
#pragma once

#include <millrace/deliver/batch_output.hpp>
#include <millrace/flow/diagnose.hpp>
#include <millrace/item/columns.hpp>
#include <millrace/item/position.hpp>

#include <array>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A leased batch with one column for each of `Members`.
template <auto... Members>
class batch_of {
 public:
  using layout = millrace::detail::columns<Members...>;

  batch_of() = default;
  /// The state of the run around a batch.
  struct origin {
    static constexpr std::size_t unknown = ~std::size_t{0};

    std::uint64_t first_step = 0;                     ///< batches of the run before the session
    std::size_t global_rows = 0;                      ///< rows of all ranks in this step, or unknown
    millrace::position next{};                        ///< resume point after this batch
  };
  /// Called by the session.
  batch_of(std::shared_ptr<batch_output> from, const ready_batch& meta, const layout& where, stream_view stream,
           const origin& place)
      : from_(std::move(from)), meta_(meta), layout_(where), origin_(place) {
    streams_[0] = stream;
  }
  batch_of(batch_of&& other) noexcept
      : from_(std::move(other.from_)),
        meta_(other.meta_),
        layout_(other.layout_),
        origin_(other.origin_),
        streams_(other.streams_),
        stream_count_(other.stream_count_) {}
  batch_of& operator=(batch_of&& other) noexcept {
    if (this != &other) {
      release();
      from_ = std::move(other.from_);
      meta_ = other.meta_;
      layout_ = other.layout_;
      origin_ = other.origin_;
      streams_ = other.streams_;
      stream_count_ = other.stream_count_;
    }
    return *this;
  }
  batch_of(const batch_of&) = delete;
  /// Exists for its message: the compiler shows it for `for (auto b : run)`.
  template <std::same_as<batch_of> SameBatch>
  __attribute__((unavailable("millrace: a batch cannot be copied: it is a lease on memory. Write for (auto& b : run), "
                             "or std::move it.")))
  batch_of(SameBatch&);
  ~batch_of() { release(); }

  /// Returns the column of a member: a view [size(), ...]. A ragged column has values and lengths
  /// (item/tensor_view.hpp).
  template <auto M>
    requires(layout::template holds<M>)
  auto get() const {
    return layout_.template view<M>(where());
  }
  /// Exists for its message: the compiler shows it for a column that the batch does not have.
  template <auto M>
    requires(!layout::template holds<M>)
  __attribute__((unavailable("millrace: get<...> names a column that batch<...> does not list. Add it to batch<...>.")))
  broken_batch get() const;
  /// Returns the views of all columns, as a tuple in the order of batch<...>.
  auto columns() const { return layout_.views(where()); }

  /// Returns a copy of a view of this batch in host memory, wherever the batch lies. Blocks until the batch's stream
  /// has done all work queued so far, so it is meant for inspection.
  template <class T, std::size_t N>
  tensor<std::remove_const_t<T>, N> to_host(const tensor_view<T, N>& view) const {
    tensor<std::remove_const_t<T>, N> copy(view.shape);
    if (view.memory == memory_kind::host) std::copy_n(view.data, view.size(), copy.data());
    else from_->backend().copy_to_host(copy.data(), view.data, view.size_bytes(), stream());
    return copy;
  }

  /// Returns the key of each row's sample: [size()]. work/sample_names.hpp describes the keys of sources without shards
  /// of records. The keys are valid until release(). Throws setup_error if the batch was released, or batch({.keys =
  /// true}) did not request keys.
  std::span<const std::string_view> keys() const {
    if (!from_) throw setup_error("keys() of an empty batch", "Look at them before the batch is released");
    if (!meta_.keys)
      throw setup_error("the batch has no keys: got batch({.keys = false}), expected batch({.keys = true})",
                        "Ask for them: batch<...>({.size = n, .keys = true})");
    return {meta_.keys, meta_.rows};
  }

  /// Returns the rows; fewer in a short last batch, even 0.
  std::size_t size() const noexcept { return meta_.rows; }
  /// Returns the rows of all ranks together in this step, the divisor of a mean over the global batch. It is never 0.
  /// With an index, a short last batch counts too; ranks may have unequal shares of it, or none. Without an index,
  /// several ranks run epochs of a fixed number of batches. No batch is short then, so it is size() x world size. With
  /// one rank it is size(). Throws setup_error after bucket() on several ranks, where the samples of each rank
  /// determine its rows.
  std::size_t global_size() const {
    if (origin_.global_rows == origin::unknown)
      throw setup_error("global_size() is not known: got bucket() on several ranks, expected batches of one size on "
                        "all of them",
                        "Add up size() over the ranks");
    return origin_.global_rows;
  }
  /// Returns the epoch, from 0.
  std::uint64_t epoch() const noexcept { return meta_.epoch; }
  /// Returns the number of batches before this one in the run, including those before a resume.
  std::uint64_t step() const noexcept { return origin_.first_step + meta_.batch; }
  /// Returns the resume point after this batch. Its to_text() is the value for session_options::resume.
  const millrace::position& position() const noexcept { return origin_.next; }
  /// Returns the stream that was given to to_device.
  stream_view stream() const noexcept { return streams_[0]; }
  /// Returns the GPU of the batch, as cudaSetDevice numbers it; -1 on the host.
  int device_ordinal() const noexcept { return from_->backend().ordinal(); }
  /// Returns the slot of the batch, in [0, session::slots()). With to_device({.fixed_slots = true}) it is step() %
  /// slots().
  std::size_t slot() const noexcept { return meta_.slot; }

  /// Names another stream that uses this batch. From here on, that stream waits until the batch arrives. The slot is
  /// not written again before that stream has finished with it. Throws setup_error if the batch was released, or is
  /// used on too many streams.
  void also_used_on(stream_view stream) {
    if (!from_) throw setup_error("also_used_on() of an empty batch", "Name streams before the batch is released");
    if (stream_count_ == streams_.size())
      throw setup_error("a batch is used on more than " + std::to_string(streams_.size()) + " streams",
                        "Let one of the streams wait for the others and name only that one");
    from_->used_on(meta_.slot, stream);
    streams_[stream_count_++] = stream;
  }

  /// Releases the slot now. The views are no longer valid.
  void release() noexcept {
    if (!from_) return;
    from_->release(meta_.slot, std::span(streams_).first(stream_count_));
    from_.reset();
  }
  /// Returns whether this object (still) holds a batch.
  explicit operator bool() const noexcept { return from_ != nullptr; }

 private:
  typename layout::delivered where() const {
    return {.base = meta_.data, .rows = meta_.rows, .extent = meta_.extent, .memory = from_->backend().memory()};
  }

  std::shared_ptr<batch_output> from_;
  ready_batch meta_{};
  layout layout_{};
  origin origin_{};
  std::array<stream_view, batch_output::max_streams> streams_{};
  std::size_t stream_count_ = 1;
};

}}}  // namespace millrace::detail
