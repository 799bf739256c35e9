// Names a member of an item: by a member pointer, or by its number in an aggregate (item/column/aggregate.hpp).
//
//   static_assert(std::same_as<mr::detail::member_type<&example::label>, std::int32_t>);
//   const std::int32_t& label = mr::detail::member_of<&example::label>(one);
//   mr::detail::member_spelling<&example::label>.data();                     // "example::label"
//
// Errors: none. Threads: the functions are pure; any thread may call them.
#pragma once

#include <millrace/item/column/aggregate.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

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

/// Returns the position of M among these members, or the number of members if M is not one of them. If M is a number,
/// returns M.
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

/// Extracts a template argument from the compiler's name of a function: the text after `before`, such as "M = ".
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
constexpr member_text text_of_member() {
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
  constexpr member_text text = text_of_member<M>();
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

/// In the type of a session, names the column b.label_b(): the labels of the partner rows.
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
