// Lists the members of an aggregate, for batch<Item>.
//
//   struct example { mr::picture pixels; std::int32_t label; };
//   static_assert(mr::detail::member_count<example>() == 2);
//
// An aggregate must have one to 16 members, no built-in arrays as members, and no base classes. The header declares,
// but does not define, a constant of the aggregate type. The names and indices of members are derived from the
// addresses of the members of this constant.
// Errors: none; member_count() is 0 for any other type. Threads: the functions are pure; any thread may call them.
// Source of the technique: the documentation of Boost.PFR.
#pragma once

#include <millrace/base/version.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-internal"
#pragma clang diagnostic ignored "-Wundefined-var-template"
#endif

/// Names member `Index` of an aggregate, like a member pointer.
template <class Item, std::size_t Index>
struct member_at {};

/// Converts to the type of any member of an Item.
template <class Item, std::size_t>
struct any_member {
  template <class Member>
    requires(!std::is_base_of_v<Member, Item>)
  operator Member() const;
};

/// Converts only to a base class of an Item.
template <class Item>
struct any_base {
  template <class Base>
    requires(std::is_base_of_v<Base, Item> && !std::is_same_v<Base, Item>)
  operator Base() const;
};

inline constexpr std::size_t max_members = 16;

/// Returns whether an Item can be initialized with some members, then an empty pair of braces, then more members.
template <class Item, std::size_t... Before, std::size_t... After>
constexpr bool accepts_empty(std::index_sequence<Before...>, std::index_sequence<After...>) {
  return requires { Item{any_member<Item, Before>{}..., {}, any_member<Item, After>{}...}; };
}
template <class Item, std::size_t... Index>
constexpr bool accepts_members(std::index_sequence<Index...>) {
  return requires { Item{any_member<Item, Index>{}...}; };
}

/// Returns the number of initializers that an Item accepts: one per member, and one per element of a built-in array.
template <class Item>
constexpr std::size_t initializer_count() {
  std::size_t count = 0;
  [&count]<std::size_t... Size>(std::index_sequence<Size...>) {
    ((accepts_members<Item>(std::make_index_sequence<Size>{}) ? static_cast<void>(count = Size) : void()), ...);
  }(std::make_index_sequence<max_members + 2>{});
  return count;
}

/// Returns whether initializer `Index` of `Count` begins a built-in array. At such an initializer, an empty pair of
/// braces initializes several elements.
template <class Item, std::size_t Count, std::size_t Index>
constexpr bool begins_array() {
  const auto accepts = []<std::size_t... After>(std::index_sequence<After...>) {
    return (accepts_empty<Item>(std::make_index_sequence<Index>{}, std::make_index_sequence<After>{}) || ...);
  };
  if (accepts_empty<Item>(std::make_index_sequence<Index>{}, std::make_index_sequence<Count - Index - 1>{}))
    return false;
  return accepts(std::make_index_sequence<Count - Index - 1>{});
}

/// Returns the number of members in an aggregate. Returns 0 if Item is not an aggregate, or if it has more than 16
/// members, a built-in array or a base class.
template <class Item>
constexpr std::size_t member_count() {
  if constexpr (std::is_aggregate_v<Item> && !std::is_array_v<Item> && !requires { Item{any_base<Item>{}}; }) {
    constexpr std::size_t count = initializer_count<Item>();
    if constexpr (count <= max_members) {
      constexpr bool has_array = []<std::size_t... Index>(std::index_sequence<Index...>) {
        return (begins_array<Item, count, Index>() || ...);
      }(std::make_index_sequence<count>{});
      if (!has_array) return count;
    }
  }
  return 0;
}

/// Returns pointers to all members, as a tuple.
template <class Item>
constexpr auto member_addresses(Item& item) {
  constexpr std::size_t count = member_count<std::remove_const_t<Item>>();
  const auto at = [](auto&... member) { return std::tuple(std::addressof(member)...); };
  if constexpr (count == 1) {
    auto& [a] = item;
    return at(a);
  } else if constexpr (count == 2) {
    auto& [a, b] = item;
    return at(a, b);
  } else if constexpr (count == 3) {
    auto& [a, b, c] = item;
    return at(a, b, c);
  } else if constexpr (count == 4) {
    auto& [a, b, c, d] = item;
    return at(a, b, c, d);
  } else if constexpr (count == 5) {
    auto& [a, b, c, d, e] = item;
    return at(a, b, c, d, e);
  } else if constexpr (count == 6) {
    auto& [a, b, c, d, e, f] = item;
    return at(a, b, c, d, e, f);
  } else if constexpr (count == 7) {
    auto& [a, b, c, d, e, f, g] = item;
    return at(a, b, c, d, e, f, g);
  } else if constexpr (count == 8) {
    auto& [a, b, c, d, e, f, g, h] = item;
    return at(a, b, c, d, e, f, g, h);
  } else if constexpr (count == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = item;
    return at(a, b, c, d, e, f, g, h, i);
  } else if constexpr (count == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = item;
    return at(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (count == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = item;
    return at(a, b, c, d, e, f, g, h, i, j, k);
  } else if constexpr (count == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = item;
    return at(a, b, c, d, e, f, g, h, i, j, k, l);
  } else if constexpr (count == 13) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = item;
    return at(a, b, c, d, e, f, g, h, i, j, k, l, m);
  } else if constexpr (count == 14) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = item;
    return at(a, b, c, d, e, f, g, h, i, j, k, l, m, n);
  } else if constexpr (count == 15) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = item;
    return at(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o);
  } else {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = item;
    return at(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
  }
}

template <class Item>
struct item_constant {
  Item value;
};
template <class Item>
extern const item_constant<Item> undefined_item;   // declared for its addresses, never defined

/// Wraps an address, because clang++ 14 requires an object of a class as the template argument.
template <class T>
struct address_constant {
  const T* address;
};

/// Returns the address of a member in `undefined_item`.
template <class Item, std::size_t Index>
consteval auto address_of_member() {
  return std::get<Index>(member_addresses(undefined_item<Item>.value));
}

/// Returns the address of a member as a constant, which is used as a template argument. The compiler's text for this
/// argument contains the name of the member.
template <class Item, std::size_t Index>
consteval auto name_of_member() {
  constexpr auto* address = address_of_member<Item, Index>();
  return address_constant<std::remove_const_t<std::remove_pointer_t<decltype(address)>>>{address};
}

/// Returns whether the pointer M names member `Index` of an aggregate.
template <class Item, std::size_t Index, auto M>
consteval bool is_member() {
  constexpr auto* named = &(undefined_item<Item>.value.*M);
  constexpr auto* listed = address_of_member<Item, Index>();
  if constexpr (std::same_as<decltype(named), decltype(listed)>) return named == listed;
  else return false;
}

#ifdef __clang__
#pragma clang diagnostic pop
#endif

}}}   // namespace millrace::detail
