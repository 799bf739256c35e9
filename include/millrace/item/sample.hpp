// sample: an item that passes through a running flow, with its identity and its origin.
//
//   mr::detail::sample<mr::record> s{.item = r, .epoch = 2, .pass = 2, .id = mr::detail::sample_id(shard, index)};
//
// The id identifies the sample in the data set, and does not depend on its position in the epoch. The random numbers of
// a sample depend on its id and on the pass. The sample keeps its origin (its record, if there is one), so that an
// error can name shard and key.
#pragma once

#include <millrace/base/random.hpp>
#include <millrace/base/version.hpp>
#include <millrace/item/record.hpp>

#include <concepts>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// item_or_error: contains a value, an exception_ptr, or nothing. Its size is the size of the larger alternative plus
// one byte and padding.
//
//   mr::detail::item_or_error<mr::record> read = reader.next();   // an item, an optional item, or an error
//   if (!read && read.error()) std::rethrow_exception(read.error());
//   mr::record r = std::move(*read);
//   read.reset();                                                 // now neither an item nor an error
//
// Errors: the exceptions of the item's constructors. Threads: not synchronized.

/// Contains a T, an error, or nothing.
template <class T>
class item_or_error {
 public:
  item_or_error() noexcept {}
  item_or_error(T item) { emplace(std::move(item)); }
  item_or_error(std::optional<T> item) {
    if (item) emplace(std::move(*item));
  }
  item_or_error(std::exception_ptr error) noexcept : content_(error ? content::error : content::nothing) {
    if (error) std::construct_at(&error_, std::move(error));
  }
  item_or_error(item_or_error&& other) noexcept(noexcept(T(std::declval<T&&>()))) { move_from(other); }
  item_or_error& operator=(item_or_error&& other) noexcept(noexcept(T(std::declval<T&&>()))) {
    if (this == &other) return *this;
    clear();
    move_from(other);
    return *this;
  }
  ~item_or_error() { reset(); }

  /// Returns whether there is an item.
  explicit operator bool() const noexcept { return content_ == content::item; }
  T& operator*() noexcept { return item_; }
  const T& operator*() const noexcept { return item_; }
  T* operator->() noexcept { return &item_; }
  const T* operator->() const noexcept { return &item_; }

  /// Returns the error, or null if this object does not contain an error.
  std::exception_ptr error() const noexcept { return is_error() ? error_ : nullptr; }
  /// Returns whether there is an error.
  bool is_error() const noexcept { return content_ == content::error; }

  /// Replaces the content with a new item.
  template <class... Arguments>
  T& emplace(Arguments&&... arguments) {
    clear();
    std::construct_at(&item_, std::forward<Arguments>(arguments)...);
    content_ = content::item;
    return item_;
  }
  /// Replaces the content with an error, or with nothing if `error` is null.
  void set_error(std::exception_ptr error) noexcept {
    clear();
    if (!error) return;
    std::construct_at(&error_, std::move(error));
    content_ = content::error;
  }
  MILLRACE_ALWAYS_INLINE void reset() noexcept {
    if (content_ == content::item) std::destroy_at(&item_);
    else if (content_ == content::error) std::destroy_at(&error_);
    content_ = content::nothing;
  }

 private:
  enum class content : std::uint8_t { nothing, item, error };

  // Not MILLRACE_ALWAYS_INLINE, unlike reset(), so that emplace() needs fewer instructions.
  void clear() noexcept { reset(); }
  void move_from(item_or_error& other) {
    if (other.content_ == content::item) std::construct_at(&item_, std::move(other.item_));
    else if (other.content_ == content::error) std::construct_at(&error_, std::move(other.error_));
    content_ = other.content_;
  }

  union {
    T item_;
    std::exception_ptr error_;
  };
  content content_ = content::nothing;
};

/// Returns the number from which the ids of all samples of a shard are computed. The id of sample `index` is
/// combine_keys(id_key(shard), index).
constexpr std::uint64_t id_key(std::uint64_t shard) noexcept { return combine_keys(0, shard); }
/// Returns the id of sample `index` of a shard. `shard` is the ordinal of the shard in the user's list.
constexpr std::uint64_t sample_id(std::uint64_t shard, std::uint64_t index) noexcept {
  return combine_keys(id_key(shard), index);
}
/// Returns the id of an output item of a stage. `parent` is the id of the input item. `child` counts the output items
/// of this input item, from 0.
constexpr std::uint64_t child_id(std::uint64_t parent, std::uint64_t child) noexcept {
  return combine_keys(parent, child);
}

/// The location of a sample in the data set.
struct located_sample {
  std::uint64_t shard = 0;   ///< ordinal in the user's list
  std::uint64_t index = 0;   ///< number of the sample in the shard, from 0

  /// Returns the identity of the sample.
  std::uint64_t id() const noexcept { return sample_id(shard, index); }
  friend bool operator==(const located_sample&, const located_sample&) = default;
};
template <class T>
concept names_its_origin = requires(const T& item) {
  { item.origin() } -> std::same_as<record>;
};
template <class T>
concept has_origin = std::is_base_of_v<record, T> || names_its_origin<T>;

/// If an item is a record or refers to a record, returns this record. For other types, returns an empty record.
template <class T>
record origin_of(const T& item) noexcept {
  if constexpr (names_its_origin<T>) return item.origin();
  else if constexpr (has_origin<T>) return item;
  else return {};
}

/// An item in a running flow, or a mark between items. If the item has at most 8 bytes, the sample fits into one cache
/// line.
template <class T>
struct sample {
  /// - void_row: a row without a sample
  /// - batch_end: the end of a batch
  /// - epoch_end: the end of a pass at which stages emit their remaining items, in finish()
  /// - pass_end: the end of a pass at which stages keep their remaining items for the next pass
  /// - damaged: a sample that could not be read, with an error instead of an item
  /// - failed: the end of the run, with an error instead of an item
  enum class kind : std::uint8_t { item, void_row, batch_end, epoch_end, pass_end, damaged, failed };

  [[no_unique_address]] item_or_error<T> item{};
  kind what = kind::item;
  std::uint64_t epoch : 48 = 0;
  std::uint64_t pass = 0;   ///< number of the pass through the data set; also the value of rng::key::epoch
  std::uint64_t id = 0;
  std::uint64_t digest = 0;    ///< added to the digest of the run, if the run has one
  std::uint64_t ordinal = 0;   ///< ordinal of the source's sample in its pass; derived items have the same ordinal
  std::uint64_t held = 0;      ///< tokens in the packing stage when the source's sample arrived
  record origin{};

  /// Sets the origin from the item, if the item has an origin. Call it before the item is moved away.
  void keep_origin() {
    if constexpr (has_origin<T>)
      if (item && origin.empty()) origin = origin_of(*item);
  }
};

static_assert(sizeof(sample<record>) <= 64);

/// Returns the bytes that an item keeps alive, for memory budgets. The number may be an estimate.
template <class T>
std::size_t held_bytes_of(const T& item) noexcept {
  if constexpr (requires { item.held_bytes(); }) {
    return item.held_bytes();
  } else if constexpr (requires { item.size() * sizeof(*item.data()); }) {
    using element = std::remove_cvref_t<decltype(*item.data())>;
    std::size_t bytes = sizeof(T);
    if constexpr (std::is_trivially_copyable_v<element>) bytes += item.size() * sizeof(element);
    else
      for (std::size_t i = 0; i < item.size(); ++i) bytes += held_bytes_of(item.data()[i]);
    return bytes;
  } else {
    return sizeof(T);
  }
}

/// Returns the bytes that the item of a sample keeps alive; 0 without an item.
template <class T>
std::size_t held_bytes_of(const sample<T>& s) noexcept {
  return s.item ? held_bytes_of(*s.item) : 0;
}

/// Issues CPU prefetches for the memory that held_bytes_of() reads. Use it for an item that is probably no longer in
/// the CPU cache.
template <class T>
void prefetch_held_bytes([[maybe_unused]] const sample<T>& s) noexcept {
  if constexpr (requires { s.item->prefetch_held_bytes(); })
    if (s.item) s.item->prefetch_held_bytes();
}

}}}   // namespace millrace::detail
