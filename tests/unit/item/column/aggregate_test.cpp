// The members of aggregates, and their names, compared with explicit lists.
#include <millrace/item/column/member.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace mr = millrace;
using mr::detail::member_at;
using mr::detail::member_count;

namespace {

struct hidden {
  std::int32_t only;
};

}  // namespace

namespace outer {

struct pair_of_numbers {
  std::int32_t first;
  double second;
};

}  // namespace outer

namespace {

struct not_default {
  explicit not_default(int) {}
};
struct mixed_members {
  not_default a;
  std::array<std::vector<float>, 3> b;
  std::string c;
  std::unique_ptr<int> d;
  std::span<const int> e;
  std::optional<int> f;
  std::variant<int, float> g;
  std::function<void()> h;
};
struct sixteen {
  int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p;
};
struct seventeen {
  int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q;
};
struct with_array {
  int a[3];
  int b;
};
struct with_array_at_end {
  not_default a;
  int b[2];
};
struct with_base : outer::pair_of_numbers {
  int c;
};
struct with_private {
  int a;

 private:
  [[maybe_unused]] int b = 0;
};
struct with_initializers {
  int a = 3;
  std::vector<int> b{1, 2};
};
struct same_types {
  std::int32_t a, b;
};

template <auto M>
std::string spelling() {
  return mr::detail::member_spelling<M>.data();
}
template <class Item, std::size_t... Index>
std::vector<const void*> addresses(const Item& item, std::index_sequence<Index...>) {
  return {std::addressof(mr::detail::member_of<member_at<Item, Index>{}>(item))...};
}

}  // namespace

TEST_CASE("the members of an aggregate are counted") {
  CHECK(member_count<hidden>() == 1);
  CHECK(member_count<outer::pair_of_numbers>() == 2);
  CHECK(member_count<mixed_members>() == 8);
  CHECK(member_count<sixteen>() == 16);
  CHECK(member_count<with_initializers>() == 2);
}

TEST_CASE("types whose members cannot be listed have none") {
  CHECK(member_count<seventeen>() == 0);
  CHECK(member_count<with_array>() == 0);
  CHECK(member_count<with_array_at_end>() == 0);
  CHECK(member_count<with_base>() == 0);
  CHECK(member_count<with_private>() == 0);
  CHECK(member_count<std::string>() == 0);
  CHECK(member_count<int>() == 0);
  CHECK(member_count<int[3]>() == 0);
}

TEST_CASE("members by their number are those by their names") {
  const mixed_members m{.a = not_default(1), .b = {}, .c = "c", .d = {}, .e = {}, .f = 2, .g = 3, .h = {}};
  CHECK(addresses(m, std::make_index_sequence<8>{}) ==
        std::vector<const void*>{&m.a, &m.b, &m.c, &m.d, &m.e, &m.f, &m.g, &m.h});
  const sixteen s{};
  const auto all = addresses(s, std::make_index_sequence<16>{});
  CHECK(all.front() == &s.a);
  CHECK(all[9] == &s.j);
  CHECK(all.back() == &s.p);
}

TEST_CASE("a number and a pointer name the same member, and no other") {
  using mr::detail::same_member;
  CHECK(same_member<&same_types::a, member_at<same_types, 0>{}>());
  CHECK(same_member<member_at<same_types, 1>{}, &same_types::b>());
  CHECK(!same_member<&same_types::a, member_at<same_types, 1>{}>());
  CHECK(!same_member<member_at<same_types, 0>{}, &same_types::b>());
  CHECK(!same_member<&same_types::a, &same_types::b>());
  CHECK(same_member<member_at<same_types, 1>{}, member_at<same_types, 1>{}>());
  CHECK(!same_member<member_at<same_types, 1>{}, member_at<sixteen, 1>{}>());
  CHECK(!same_member<&hidden::only, member_at<same_types, 0>{}>());
  CHECK(mr::detail::index_of_member<&sixteen::j, member_at<sixteen, 3>{}, member_at<sixteen, 9>{}>() == 1);
  CHECK(mr::detail::index_of_member<&sixteen::a, member_at<sixteen, 3>{}, member_at<sixteen, 9>{}>() == 2);
  CHECK(mr::detail::index_of_member<1, member_at<sixteen, 3>{}, member_at<sixteen, 9>{}>() == 1);
  CHECK(mr::detail::index_of_member<2, member_at<sixteen, 3>{}, member_at<sixteen, 9>{}>() == 2);
}

TEST_CASE("a member has the same name by its number and by a pointer") {
  CHECK(spelling<member_at<outer::pair_of_numbers, 1>{}>() == spelling<&outer::pair_of_numbers::second>());
  CHECK(spelling<member_at<hidden, 0>{}>() == spelling<&hidden::only>());
  CHECK(spelling<member_at<sixteen, 15>{}>() == spelling<&sixteen::p>());
  CHECK(spelling<member_at<mixed_members, 1>{}>() == spelling<&mixed_members::b>());
  // Joined tests compile several files together, each in its own namespace.
  CHECK(spelling<&outer::pair_of_numbers::second>().ends_with("outer::pair_of_numbers::second"));
  CHECK(spelling<member_at<hidden, 0>{}>().ends_with("hidden::only"));
  CHECK(mr::detail::without_anonymous("(anonymous namespace)::hidden::only") == "hidden::only");
  CHECK(mr::detail::without_anonymous("{anonymous}::hidden::only") == "hidden::only");
}
