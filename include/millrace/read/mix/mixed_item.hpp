// The items of a mix (several sources by weight). Each item has the number of its source.
//
//   item.number();                              // number of the source, from 0
//   auto image = std::move(item).alone<0>();    // moves out the item; requires item.number() == 0
//
// If the items of all sources are records, the items of the mix are also records (mixed_record).
// Threads: not synchronized.
#pragma once

#include <millrace/item/record.hpp>

#include <type_traits>
#include <utility>
#include <variant>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// An item of one of several sources. value.index() is the number of the source.
template <class... Items>
struct mixed_item {
  std::variant<Items...> value;

  /// Returns the number of the item's source, from 0.
  std::size_t number() const noexcept { return value.index(); }
  /// Moves out the item. Its source must have the number `Source`.
  template <std::size_t Source>
  auto alone() && {
    return std::get<Source>(std::move(value));
  }
  /// If the item is a record, returns the item. If the item was created from a record, returns that record. For other
  /// types, returns an empty record.
  record origin() const noexcept {
    return std::visit([](const auto& item) { return origin_of(item); }, value);
  }
  /// Returns the bytes that the item keeps alive.
  std::size_t held_bytes() const noexcept {
    return std::visit([](const auto& item) { return held_bytes_of(item); }, value);
  }
};

/// An item of a mix whose sources all have the same type.
template <class Item>
struct listed_item {
  Item value;
  std::size_t source = 0;   ///< number of its source in the mix, from 0

  /// Returns the number of the item's source, from 0.
  std::size_t number() const noexcept { return source; }
  /// Moves out the item.
  template <std::size_t>
  Item alone() && {
    return std::move(value);
  }
  /// If the item is a record, returns the item. If the item was created from a record, returns that record. For other
  /// types, returns an empty record.
  record origin() const noexcept { return origin_of(value); }
  /// Returns the bytes that the item keeps alive.
  std::size_t held_bytes() const noexcept { return held_bytes_of(value); }
};

/// A record of a mix.
struct mixed_record : record {
  std::size_t source = 0;   ///< number of its source in the mix, from 0

  /// Returns the number of its source in the mix, from 0.
  std::size_t number() const noexcept { return source; }
  /// Moves out the record.
  template <std::size_t Source>
  record alone() && noexcept {
    return std::move(*this);
  }
};

/// The item type of a mix whose sources have the item types `Items`. If all types in `Items` are `record`, the item
/// type is mixed_record.
template <class... Items>
struct item_of_mix {
  using type = mixed_item<Items...>;
  template <std::size_t Source, class Item>
  static type make(Item&& item) {
    return {std::variant<Items...>(std::in_place_index<Source>, std::forward<Item>(item))};
  }
};
template <class... Items>
  requires(std::is_same_v<Items, record> && ...)
struct item_of_mix<Items...> {
  using type = mixed_record;
  template <std::size_t Source>
  static type make(record&& item) {
    return {std::move(item), Source};
  }
};

}}}   // namespace millrace::detail
