// bytes: a view that keeps its memory alive. block_pool: provides this memory in blocks, and reuses the blocks. The
// fields of one or several records share a block.
//
//   mr::bytes jpg = record["jpg"];        // shares the record's block: a copy only increments a reference count
//   std::span<const std::byte> s = jpg;   // a raw view: valid while any `bytes` of that block lives
//   std::string_view text = jpg.text();   // mr::text(jpg) checks that the text is UTF-8, and copies it
//   auto label = record["cls"].as<std::int32_t>();   // the number in the text; see integer() and real()
//   jpg.name();                           // "jpg": the field's name, for error messages
//   jpg.entries();                        // points at which its decoder may start; empty for most fields
//   auto file = mr::bytes::owned(text);   // a copy of a std::string; for files, see io/file/read_file.hpp
//
// Threads: several threads may share a block; the last owner recycles it, on any thread. Only one thread at a time may
// use a `bytes` object.
// Lifetime: a block may outlive its block_pool object and the session. Debug builds overwrite recycled blocks, so that
// the use of an expired view is noticed.
#pragma once

#include <millrace/base/address_sanitizer.hpp>
#include <millrace/base/error.hpp>
#include <millrace/base/text.hpp>
#include <millrace/base/version.hpp>

#include <atomic>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

// Reads numbers from fields and other texts, with the syntax of Python's int() and float().
//
//   auto label = r["cls"].as<std::int32_t>();             // "7", " +7\n", "007", "1_000"
//   auto score = r["score"].as<float>();                  // "0.5", ".5", "5.", "1e-3", "-inf", "nan"
//   auto number = mr::integer<int>(r.key());              // any text: a std::string_view or a std::string
//
// White space is ASCII (blank, \t \n \v \f \r) and allowed only around the number. Digits are ASCII digits; an
// underscore is allowed between two digits. Nothing depends on the locale. A real number that is too close to 0 for T
// is rounded to the nearest value of T, as in Python. Unlike in Python, a real number whose magnitude is too large for
// T is an error. An integer that does not fit into T is an error too.
// Errors: data_error with an excerpt of the text. For a field, the error has the name of the field, the shard and the
// key. Threads: the functions are pure; any thread may call them.

namespace detail {

/// Types that integer() returns.
template <class T>
concept integer_scalar = std::integral<T> && !std::same_as<T, bool> && sizeof(T) <= 8;
/// Types that real() returns.
template <class T>
concept real_scalar = std::same_as<T, float> || std::same_as<T, double>;

/// Throws data_error for a text that is not a value of the expected kind. `field` is the name of the field, or empty
/// for other texts.
[[noreturn]] void throw_no_scalar(std::string_view text, std::string_view field, std::string_view problem,
                                  std::string hint);

/// Returns the integer in a text as 64 bits, in two's complement if it is negative. Throws data_error if it is not
/// between `lowest` and `largest`. `field` is used in errors (see throw_no_scalar()).
std::uint64_t parse_field_integer(std::string_view text, std::string_view field, std::int64_t lowest,
                                  std::uint64_t largest);

/// Reads the real number in a text. `field` is used in errors (see throw_no_scalar()).
void parse_real(std::string_view text, std::string_view field, float& value);
void parse_real(std::string_view text, std::string_view field, double& value);

/// Returns the number in a text. `field` is used in errors (see throw_no_scalar()).
template <class T>
  requires(integer_scalar<T> || real_scalar<T>)
T parse_scalar(std::string_view text, std::string_view field = {}) {
  if constexpr (integer_scalar<T>) {
    using limits = std::numeric_limits<T>;
    return static_cast<T>(parse_field_integer(text, field, static_cast<std::int64_t>(limits::min()),
                                              static_cast<std::uint64_t>(limits::max())));
  } else {
    T value = 0;
    parse_real(text, field, value);
    return value;
  }
}

}   // namespace detail

/// Returns the integer in a text, such as a key. Throws data_error if it is not an integer or does not fit into T.
template <detail::integer_scalar T>
T integer(std::string_view text) {
  return detail::parse_scalar<T>(text);
}
/// Returns the real number in a text, correctly rounded. Throws data_error if it is not a number or too large for T.
template <detail::real_scalar T>
T real(std::string_view text) {
  return detail::parse_scalar<T>(text);
}

/// Reuses blocks of memory; defined at the end of this header.
class block_pool;
/// A view of bytes that keeps their memory alive; defined below.
class bytes;

namespace detail {

/// Returns the error location of the record that contains `field`. Without a record, the location is empty.
error_location location_of(const bytes& field);

struct block_pool_state;

/// The location of the entry points of one field (positions at which its decoder may start), as offsets into the block.
struct entries_place {
  std::size_t data_at, data_size, entries_at, entries_size;
};

/// The header of a block. The payload follows the header in memory.
struct block {
  std::atomic<std::uint32_t> holders{0};
  /// Offset of the table of entries_place in the block, in units of the table's alignment. The table begins with the
  /// number of its rows. The rows follow in ascending order of data_at. The offset is 0 if no field in this block has
  /// entry points.
  std::uint32_t entries_table = 0;
  std::size_t capacity_bytes = 0;
  std::uint32_t size_class = 0;
  std::uint32_t parts = 0;   // number of other blocks that this block keeps alive; data() begins with their addresses
  std::shared_ptr<block_pool_state>
      home;   // set while the block is in use, so that the list of idle blocks outlives the block_pool object
  const void* head = nullptr;   // the record_head of the record in this block, if any

  std::byte* data() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
};

/// Returns the number of bytes that a table of `rows` rows needs in a block, including its alignment.
constexpr std::size_t entries_table_bytes(std::size_t rows) noexcept {
  return rows == 0 ? 0 : 2 * alignof(entries_place) + rows * sizeof(entries_place);
}

/// Writes the table of entry points into the block, at the first aligned offset from `at` on. The block must have space
/// for entries_table_bytes() bytes from `at` on. `rows` must be in ascending order of data_at. Returns the offset after
/// the table. If `rows` is empty, or if `at` is beyond 32 GiB, writes nothing and returns `at`.
std::size_t put_entries_table(block& b, std::size_t at, std::span<const entries_place> rows) noexcept;

/// Returns the entry points of the field that consists of exactly the bytes in `view`.
std::span<const std::byte> find_entries_of_block(block& b, std::span<const std::byte> view) noexcept;

inline void poison([[maybe_unused]] block& b) noexcept {
#ifndef NDEBUG
  std::memset(b.data(), 0xdd, b.capacity_bytes);
#endif
  forbid_access(b.data(), b.capacity_bytes);
}

inline void show_to_readers([[maybe_unused]] block& b) noexcept { allow_address_access(b.data(), b.capacity_bytes); }

/// Returns the size class for `bytes`. The blocks of this class are at most a quarter larger than `bytes`, but have at
/// least 256 bytes.
constexpr std::size_t size_class_of(std::size_t bytes) noexcept {
  const std::size_t at_least = bytes < 256 ? 256 : bytes;
  const auto power = static_cast<std::size_t>(std::bit_width(at_least - 1));
  const std::size_t quarter = std::size_t{1} << (power - 3);
  const std::size_t quarters = (at_least + quarter - 1) / quarter;   // 5..8 quarters of the next smaller power of two
  return power * 4 + (quarters - 5);
}
constexpr std::size_t bytes_of_class(std::size_t size_class) noexcept {
  const std::size_t power = size_class / 4;
  return (size_class % 4 + 5) << (power - 3);
}

struct block_pool_state {
  static constexpr std::size_t classes = 4 * 65;

  explicit block_pool_state(std::size_t limit) : idle_limit_bytes(limit) {}
  block_pool_state(const block_pool_state&) = delete;
  block_pool_state& operator=(const block_pool_state&) = delete;
  ~block_pool_state();

  static constexpr std::size_t larger_classes =
      3;   // a reused block may be larger than requested by up to this number of size classes

  /// Removes and returns an idle block of this class or of a slightly larger class. Returns null if no such block
  /// exists. The caller must have locked `mutex`.
  block* pop_idle(std::size_t size_class) noexcept;
  static void destroy(block* b) noexcept;

  std::mutex mutex;
  std::vector<block*> idle[classes];
  std::size_t idle_bytes = 0;
  const std::size_t idle_limit_bytes;
};

/// Releases the blocks that this block keeps alive.
void release_parts(block& b) noexcept;

inline void release_block(block* b) noexcept {
  if (b->holders.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (b->parts > 0) [[unlikely]]
    release_parts(*b);
  const std::shared_ptr<block_pool_state> home = std::move(b->home);
  b->head = nullptr;
  b->entries_table = 0;
  {
    const std::lock_guard lock(home->mutex);
    auto& list = home->idle[b->size_class];
    // push_back cannot throw: the capacity of the list was reserved when the block was created.
    if (home->idle_bytes + b->capacity_bytes <= home->idle_limit_bytes && list.size() < list.capacity()) {
      poison(*b);
      list.push_back(b);
      home->idle_bytes += b->capacity_bytes;
      return;
    }
  }
  block_pool_state::destroy(b);
}

/// A container of 1-byte elements, such as std::vector<std::uint8_t>. bytes::owned() has other overloads for texts and
/// for containers of std::byte.
template <class C>
concept byte_container = !std::is_convertible_v<const C&, std::string_view> &&
                         !std::is_convertible_v<const C&, std::span<const std::byte>> && !std::is_array_v<C> &&
                         requires(const C& data) {
                           { *std::data(data) } -> std::convertible_to<unsigned char>;
                           requires sizeof(*std::data(data)) == 1;
                           std::size(data);
                         };

/// Returns the block itself. item/record.hpp defines the overload for the head of a record.
inline block* block_of(block* b) noexcept { return b; }

/// A counted reference to a block, through a pointer to the block or to an object in it.
template <class T>
class counted_ref {
 public:
  counted_ref() = default;
  explicit counted_ref(T* at) noexcept : at_(at) {
    if (at_) block_of(at_)->holders.fetch_add(1, std::memory_order_relaxed);
  }
  counted_ref(const counted_ref& other) noexcept : counted_ref(other.at_) {}
  counted_ref(counted_ref&& other) noexcept : at_(std::exchange(other.at_, nullptr)) {}
  counted_ref& operator=(counted_ref other) noexcept {
    std::swap(at_, other.at_);
    return *this;
  }
  [[gnu::always_inline]] ~counted_ref() {
    if (at_) release_block(block_of(at_));
  }

  T* get() const noexcept { return at_; }
  T* operator->() const noexcept { return at_; }
  explicit operator bool() const noexcept { return at_ != nullptr; }

 private:
  T* at_ = nullptr;
};

using block_ref = counted_ref<block>;

}   // namespace detail

/// A view of bytes and a reference to the block that contains them; 40 bytes, cheap to copy.
class bytes {
 public:
  /// Creates an empty object: no bytes and no block.
  bytes() = default;
  /// References `block` and views a part of it; `name` must be in the block, or outlive the block.
  bytes(detail::block_ref block, std::span<const std::byte> view, std::string_view name = {}) noexcept
      : block_(std::move(block)), view_(view), name_(name) {}

  /// Returns bytes that own a copy of `data` and of `name`.
  static bytes owned(std::span<const std::byte> data, std::string_view name = {});
  /// Returns bytes that own a copy of a text, for example of a file in a std::string.
  static bytes owned(std::string_view text, std::string_view name = {}) { return owned(detail::bytes_of(text), name); }
  /// Returns bytes that own a copy of a container of bytes, such as std::vector<std::uint8_t>.
  template <detail::byte_container C>
  static bytes owned(const C& data, std::string_view name = {}) {
    return owned({reinterpret_cast<const std::byte*>(std::data(data)), std::size(data)}, name);
  }

  /// Returns bytes that own nothing. Keep `view` and `name` alive until nothing uses the bytes. Borrow from a string
  /// literal, a memory-mapped file, or a buffer that outlives the session. An image plan reads its bytes later, when
  /// its batch is rendered. Therefore never borrow from a local variable of the function passed to map(). Use owned()
  /// or read_file() in this function. The decoder reports borrowed bytes that were freed or changed in the meantime.
  static bytes borrowed(std::span<const std::byte> view, std::string_view name = {}) noexcept {
    return {detail::block_ref(), view, name};
  }
  /// Returns a text as bytes that own nothing. Keep the text alive until nothing uses the bytes.
  static bytes borrowed(std::string_view text, std::string_view name = {}) noexcept {
    return borrowed(detail::bytes_of(text), name);
  }

  /// Returns the first byte.
  const std::byte* data() const noexcept { return view_.data(); }
  /// Returns the number of bytes.
  std::size_t size() const noexcept { return view_.size(); }
  /// Returns true if there are no bytes.
  bool empty() const noexcept { return view_.empty(); }
  /// Returns a view; valid while any `bytes` of the block lives.
  operator std::span<const std::byte>() const noexcept { return view_; }
  // clang-format off
  /// Declared only for its error message, which the compiler shows for std::stoi(r["cls"]) and std::string s =
  /// r["txt"].
  __attribute__((unavailable("millrace: a field is bytes, not a std::string: write field.as<int>(), field.as<float>(), "
                             "mr::text(field) or field.text().")))
  operator std::string() const;
  // clang-format on
  /// Returns the bytes as text; valid while any `bytes` of the block lives.
  std::string_view text() const noexcept { return {reinterpret_cast<const char*>(view_.data()), view_.size()}; }
  /// Returns the number in the text: an integer, float or double. The syntax is that of Python's int() and float(). If
  /// the text is not a number, or T cannot represent the number, throws data_error, which names field, shard and key.
  template <class T>
    requires(detail::integer_scalar<T> || detail::real_scalar<T>)
  T as() const {
    try {
      return detail::parse_scalar<T>(text(), name_);
    } catch (error& e) {
      e.locate(detail::location_of(*this));
      throw;
    }
  }
  // clang-format off
  /// Declared only for its error message, which the compiler shows for any other type, such as std::string.
  template <class T>
  __attribute__((unavailable("millrace: as<T>() reads an integer, a float or a double. For text write field.text(), or "
                             "mr::text(field), which checks UTF-8.")))
  T as() const;
  // clang-format on

  /// Returns the field's name, or an empty text.
  std::string_view name() const noexcept { return name_; }
  /// Returns the stored entry points of this field: positions at which its decoder may start, in the format of the code
  /// that created them. The entry points were checked against the bytes of the field. Most fields have no entry points.
  /// Parts of a field and copies by owned() never have entry points. The returned span is valid while any `bytes` of
  /// the block lives.
  std::span<const std::byte> entries() const noexcept {
    if (!block_ || (block_.get()->entries_table == 0 && block_.get()->parts == 0)) return {};
    return detail::find_entries_of_block(*block_.get(), view_);
  }
  /// Returns the block; null for borrowed bytes.
  const detail::block_ref& block() const noexcept { return block_; }

 private:
  detail::block_ref block_;
  std::span<const std::byte> view_;
  std::string_view name_;
};

/// Returns the text in `field`. If the text is not UTF-8, throws data_error, which names field, shard and key.
std::string text(const bytes& field);

/// Reuses blocks of memory. Any thread may use the pool.
class block_pool {
 public:
  /// Retains at most `idle_limit_bytes` for reuse (default: 256 MiB); all other idle blocks are freed to the heap.
  explicit block_pool(std::size_t idle_limit_bytes = std::size_t{256} << 20);

  /// Returns a block of at least `bytes`; its content is undefined.
  detail::block_ref take(std::size_t bytes);

  /// Returns a copy of `data` in its own block.
  bytes copy(std::span<const std::byte> data, std::string_view name = {});

 private:
  std::shared_ptr<detail::block_pool_state> state_;
};

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/item/impl/bytes.inl>
#endif
