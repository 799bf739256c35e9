// A delivered batch: typed views of its columns, and the lease on the memory that they lie in.
//
//   for (auto& b : run) {
//     auto [pixels, labels] = b.columns();               // or b.get<&example::pixels>()
//     train_step(pixels, labels, b.stream());            // b.size() rows, b.epoch(), b.step()
//   }
//
// Move-only. Destroying it releases its slot: in the stream given to to_device, and in those named by also_used_on().
// A batch moved out of the loop is kept until it is destroyed, on any thread, even after its session.
#pragma once

#include <millrace/deliver/batch_output.hpp>
#include <millrace/flow/diagnose.hpp>
#include <millrace/item/columns.hpp>
#include <millrace/item/position.hpp>

#include <array>

namespace millrace { inline namespace MILLRACE_ABI {

template <auto... Members>
class batch_of {
 public:
  using layout = millrace::columns<Members...>;

  batch_of() = default;
  struct origin {
    static constexpr std::size_t unknown = ~std::size_t{0};

    std::uint64_t first_step = 0;                     ///< of the session
    std::size_t global_rows = 0;                      ///< of all ranks, or unknown
    millrace::position next{};                        ///< behind this batch
  };
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
  /// What `for (auto b : run)` is told.
  template <std::same_as<batch_of> SameBatch>
  __attribute__((unavailable("millrace: a batch cannot be copied: it is a lease on memory. Write for (auto& b : run), "
                             "or std::move it.")))
  batch_of(SameBatch&);
  ~batch_of() { release(); }

  /// The column of that member: [size(), ...]; of a ragged one its values and its lengths (item/padded_view.hpp).
  template <auto M>
    requires(layout::template holds<M>)
  auto get() const {
    return layout_.template view<M>(where());
  }
  /// What get() of another column is told.
  template <auto M>
    requires(!layout::template holds<M>)
  __attribute__((unavailable("millrace: get<...> names a column that batch<...> does not list. Add it to batch<...>.")))
  poison get() const;
  /// All columns, as a tuple in the order of batch<...>.
  auto columns() const { return layout_.views(where()); }

  /// A copy of a view of this batch in host memory, wherever the batch lies. To look at it: it waits for what its
  /// stream has been given so far.
  template <class T, std::size_t N>
  tensor<std::remove_const_t<T>, N> to_host(const tensor_view<T, N>& view) const {
    tensor<std::remove_const_t<T>, N> copy(view.shape);
    if (view.memory == memory_kind::host) std::copy_n(view.data, view.size(), copy.data());
    else from_->backend().copy_to_host(copy.data(), view.data, view.size_bytes(), stream());
    return copy;
  }

  /// The key of each row's sample, where batch({.keys = true}) asked for them; work/sample_names.hpp says what samples
  /// of other sources than shards are called. Like the views they are valid until the batch is released.
  std::span<const std::string_view> keys() const {
    if (!from_) throw setup_error("keys() of an empty batch", "Look at them before the batch is released");
    if (!meta_.keys)
      throw setup_error("the batch has no keys: got batch({.keys = false}), expected batch({.keys = true})",
                        "Ask for them: batch<...>({.size = n, .keys = true})");
    return {meta_.keys, meta_.rows};
  }

  std::size_t size() const noexcept { return meta_.rows; }       ///< rows; fewer in a short last batch, even none
  /// Rows that all ranks together have in this step: what a mean over the global batch divides by. Never 0. With an
  /// index a short last batch counts too, of which ranks may have unlike shares, or none. Without one several ranks run
  /// epochs of a fixed number of batches, where no batch is short: size() x world size. One rank: size().
  /// Errors: setup_error behind bucket() on several ranks, where each has as many rows as its own samples make.
  std::size_t global_size() const {
    if (origin_.global_rows == origin::unknown)
      throw setup_error("global_size() is not known: got bucket() on several ranks, expected batches of one size on "
                        "all of them",
                        "Add up size() over the ranks");
    return origin_.global_rows;
  }
  std::uint64_t epoch() const noexcept { return meta_.epoch; }   ///< counted from 0
  /// Batches before this one in the run, those before a resume point among them.
  std::uint64_t step() const noexcept { return origin_.first_step + meta_.batch; }
  /// Where a run that has this batch behind it goes on: to_text() of it is session_options::resume.
  const millrace::position& position() const noexcept { return origin_.next; }
  stream_view stream() const noexcept { return streams_[0]; }
  /// Of the GPU that it lies on, as cudaSetDevice counts; -1 on the host.
  int device_ordinal() const noexcept { return from_->backend().ordinal(); }
  /// Which of session::slots() pieces of memory it lies in; with to_device({.fixed_slots = true}) step() % slots().
  std::size_t slot() const noexcept { return meta_.slot; }

  /// Names one more stream that uses this batch: from here on it waits for the batch to arrive, and the batch's slot is
  /// not written again before that stream is through.
  void also_used_on(stream_view stream) {
    if (!from_) throw setup_error("also_used_on() of an empty batch", "Name streams before the batch is released");
    if (stream_count_ == streams_.size())
      throw setup_error("a batch is used on more than " + std::to_string(streams_.size()) + " streams",
                        "Let one of the streams wait for the others and name only that one");
    from_->used_on(meta_.slot, stream);
    streams_[stream_count_++] = stream;
  }

  /// Gives the slot back now; the views are no longer valid.
  void release() noexcept {
    if (!from_) return;
    from_->release(meta_.slot, std::span(streams_).first(stream_count_));
    from_.reset();
  }
  /// Whether this object (still) holds a batch.
  explicit operator bool() const noexcept { return from_ != nullptr; }

 private:
  typename layout::delivered where() const {
    return {.base = meta_.data, .rows = meta_.rows, .extent = meta_.extent, .memory = from_->backend().memory()};
  }

  std::shared_ptr<batch_output> from_;
  ready_batch meta_{};
  layout layout_{};
  origin origin_{};
  std::array<stream_view, batch_output::most_streams> streams_{};
  std::size_t stream_count_ = 1;
};

}}  // namespace millrace
