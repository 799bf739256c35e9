// Names a member of an item: by a member pointer, or by its number in an aggregate; lists the members of an aggregate.
//
//   static_assert(std::same_as<mr::detail::member_type<&example::label>, std::int32_t>);
//   const std::int32_t& label = mr::detail::member_of<&example::label>(one);
//   mr::detail::member_spelling<&example::label>.data();                     // "example::label"
//
// Errors: none. Threads: the functions are pure; any thread may call them.
#pragma once

#include <millrace/base/version.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

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

/// Returns the number of initializers that an Item accepts: one for each member. A member that is a built-in array
/// accepts one for each element instead.
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
constexpr bool is_array_type_name() {
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
        return (is_array_type_name<Item, count, Index>() || ...);
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

/// Wraps an address, because clang++ 14 does not accept the address of a member as a template argument.
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

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// The class and the type of a member that a pointer or a member_at names.
template <class M>
struct member_traits;
template <class T, class Owner>
struct member_traits<T Owner::*> {
  using type = T;
  using owner = Owner;
};
template <class Owner, std::size_t Index>
struct member_traits<member_at<Owner, Index>> {
  using type = std::remove_cvref_t<decltype(*std::get<Index>(member_addresses(std::declval<Owner&>())))>;
  using owner = Owner;
};
template <auto M>
using member_type = typename member_traits<std::remove_const_t<decltype(M)>>::type;
template <auto M>
using member_owner = typename member_traits<std::remove_const_t<decltype(M)>>::owner;

/// True if M can name a column.
template <auto M>
concept names_member = requires { typename member_traits<std::remove_const_t<decltype(M)>>::type; };

/// Returns the member of an item that M names.
template <auto M>
constexpr const member_type<M>& member_of(const member_owner<M>& item) noexcept {
  if constexpr (std::is_member_object_pointer_v<decltype(M)>) {
    return item.*M;
  } else {
    return []<std::size_t Index>(member_at<member_owner<M>, Index>, const member_owner<M>& object) -> const auto& {
      return *std::get<Index>(member_addresses(object));
    }(M, item);
  }
}

/// Returns whether A and B name the same member.
template <auto A, auto B>
consteval bool same_member() {
  using a = std::remove_const_t<decltype(A)>;
  using b = std::remove_const_t<decltype(B)>;
  if constexpr (!names_member<A> || !names_member<B>) {
    return false;
  } else if constexpr (!std::same_as<member_owner<A>, member_owner<B>>) {
    return false;
  } else if constexpr (std::is_member_object_pointer_v<a> && std::is_member_object_pointer_v<b>) {
    if constexpr (std::same_as<a, b>) return A == B;
    else return false;
  } else if constexpr (std::is_member_object_pointer_v<a>) {
    return same_member<B, A>();
  } else if constexpr (std::is_member_object_pointer_v<b>) {
    return
        []<std::size_t Index>(member_at<member_owner<A>, Index>) { return is_member<member_owner<A>, Index, B>(); }(A);
  } else {
    return std::same_as<a, b>;
  }
}

/// Returns the index of M in `Members`. If M is a number, this number is the index. If M is not in `Members`, returns
/// the number of members.
template <auto M, auto... Members>
consteval std::size_t index_of_member() {
  if constexpr (std::integral<decltype(M)>) {
    return static_cast<std::size_t>(M) < sizeof...(Members) ? static_cast<std::size_t>(M) : sizeof...(Members);
  } else {
    std::size_t index = 0;
    static_cast<void>(((same_member<M, Members>() || (++index, false)) || ...));
    return index;
  }
}

/// Extracts a template argument from __PRETTY_FUNCTION__. `before` is the text in front of the argument, such as "M =
/// ".
constexpr std::string_view argument_after(std::string_view before, std::string_view function) {
  const std::size_t begin = function.find(before) + before.size();
  return function.substr(begin, function.find_first_of(";]", begin) - begin);
}
/// Returns the compiler's text for the template argument M, for use in reports.
template <auto M>
constexpr std::string_view compiler_text() {
  return argument_after("M = ", __PRETTY_FUNCTION__);
}
template <class T>
constexpr std::string_view compiler_text_of_type() {
  return argument_after("T = ", __PRETTY_FUNCTION__);
}
/// Returns a name without an anonymous namespace at its front.
constexpr std::string_view without_anonymous(std::string_view name) {
  for (const std::string_view anonymous : {"{anonymous}::", "(anonymous namespace)::"})   // g++, clang++
    if (name.starts_with(anonymous)) return name.substr(anonymous.size());
  return name;
}

/// The class and the name of a member. If `name` is empty, `owner` contains the class and the name.
struct member_text {
  std::string_view owner, name;
};

template <auto M>
constexpr member_text column_member_text() {
  if constexpr (std::is_member_object_pointer_v<decltype(M)>) {
    constexpr std::string_view full = compiler_text<M>();
    return {.owner = without_anonymous(full.substr(full[0] == '(' || full[0] == '&' ? full.find('&') + 1 : 0)),
            .name = {}};
  } else {
    return []<class Item, std::size_t Index>(member_at<Item, Index>) -> member_text {
      constexpr std::string_view full = compiler_text<name_of_member<Item, Index>()>();
      constexpr std::string_view front = full.substr(0, full.find_last_not_of("})") + 1);
      return {.owner = without_anonymous(compiler_text_of_type<Item>()),
              .name = front.substr(front.find_last_of(".:") + 1)};
    }(M);
  }
}

/// Returns "example::pixels", from the compiler's texts; omits an anonymous namespace.
template <auto M>
constexpr auto spell_member() {
  constexpr member_text text = column_member_text<M>();
  constexpr std::string_view separator = text.name.empty() ? "" : "::";
  std::array<char, text.owner.size() + separator.size() + text.name.size() + 1> spelling{};
  auto end = std::copy(text.owner.begin(), text.owner.end(), spelling.begin());
  end = std::copy(separator.begin(), separator.end(), end);
  std::copy(text.name.begin(), text.name.end(), end);
  return spelling;
}
template <auto M>
inline constexpr auto member_spelling = spell_member<M>();

/// Returns the name for error messages: "the column example::pixels".
template <auto M>
std::string named_column() {
  return std::string("the column ") + member_spelling<M>.data();
}

/// The columns of a session, in order.
template <auto... Columns>
struct column_list {};

template <auto A, auto B>
constexpr bool same_column() {
  if constexpr (names_member<A> || names_member<B>) return same_member<A, B>();
  else return std::same_as<std::remove_const_t<decltype(A)>, std::remove_const_t<decltype(B)>>;
}
template <auto... A, auto... B>
constexpr bool same_columns(column_list<A...>, column_list<B...>) {
  if constexpr (sizeof...(A) != sizeof...(B)) return false;
  else return (same_column<A, B>() && ...);
}

/// In the type of a session, names the column b.label_b(): for each row, the label of its partner, the row that is
/// mixed into it.
template <auto Label>
struct label_b_column {};
/// In the type of a session, names the column b.lambda(): the weight of each row's own label.
struct lambda_column {};

}   // namespace detail

/// Columns as a value, for batch(), mix_rows(), mixup(), cutmix() and bucket():
///   constexpr mr::columns<&example::pixels, &example::label> both;
///   auto batches = std::move(items) | mr::batch(both, {.size = 256}) | mr::mixup(both);
template <auto... Members>
struct columns {};

/// Names b.label_b() in the type of a session: session<&example::pixels, &example::label, label_b<&example::label>,
/// lambda>.
template <auto Label>
inline constexpr detail::label_b_column<Label> label_b{};
/// Names b.lambda() in the type of a session.
inline constexpr detail::lambda_column lambda{};

}}   // namespace millrace
