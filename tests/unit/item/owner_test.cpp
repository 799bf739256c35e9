// owner and owner_list: objects that are deleted once.
#include <millrace/item/owner.hpp>
#include <doctest/doctest.h>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace mr = millrace;

namespace {

struct owner_base {
  explicit owner_base(int& alive) : alive_(&alive) { ++*alive_; }
  owner_base(const owner_base&) = delete;
  owner_base& operator=(const owner_base&) = delete;
  virtual ~owner_base() { --*alive_; }
  virtual int kind() const { return 0; }

 private:
  int* alive_;
};
struct owner_derived final : owner_base {
  using owner_base::owner_base;
  int kind() const override { return 1; }
};
struct owner_keeper {
  void operator()(owner_base* object) const noexcept {
    if (object->kind() == 1) delete object;
  }
};

}   // namespace

TEST_CASE("an owner deletes its object once") {
  int alive = 0;
  {
    mr::detail::owner<owner_base> one(new owner_base(alive));
    CHECK(one);
    auto other = std::move(one);
    CHECK(!one);   // NOLINT(*-use-after-move): an owner that was moved from owns nothing
    CHECK(alive == 1);
    one = mr::detail::make_owner<owner_derived>(alive);
    CHECK(one->kind() == 1);
    CHECK((*other).kind() == 0);
    other = std::move(one);
    CHECK(alive == 1);
    CHECK(other.get()->kind() == 1);
    other.reset();
    CHECK(alive == 0);
    other.reset(new owner_base(alive));
    owner_base* const released = other.release();
    CHECK(!other);
    CHECK(alive == 1);
    other = mr::detail::owner<owner_base>(released);
    std::vector<mr::detail::owner<owner_base>> many;
    for (int i = 0; i < 9; ++i) many.push_back(mr::detail::make_owner<owner_derived>(alive));
    CHECK(alive == 10);
  }
  CHECK(alive == 0);
}

TEST_CASE("an owner accepts a std::unique_ptr, and nothing unrelated") {
  int alive = 0;
  mr::detail::owner<owner_base> one = std::make_unique<owner_derived>(alive);
  CHECK(one->kind() == 1);
  one = std::make_unique<owner_base>(alive);
  CHECK(alive == 1);
  one = nullptr;
  CHECK(alive == 0);
  static_assert(!std::is_constructible_v<mr::detail::owner<owner_derived>, std::unique_ptr<owner_base>>);
  static_assert(!std::is_copy_constructible_v<mr::detail::owner<owner_base>>);
  static_assert(sizeof(one) == sizeof(void*));
}

TEST_CASE("an owner calls its deleter") {
  int alive = 0;
  auto* const first = new owner_base(alive);
  { const mr::detail::owner<owner_base, owner_keeper> one(first); }
  CHECK(alive == 1);
  delete first;
  { const mr::detail::owner<owner_base, owner_keeper> one(new owner_derived(alive)); }
  CHECK(alive == 0);
}

TEST_CASE("shared objects are deleted with the last pointer") {
  int alive = 0;
  std::shared_ptr<const owner_base> one = mr::detail::make_shared_object<owner_derived>(alive);
  CHECK(one->kind() == 1);
  const std::weak_ptr<const owner_base> weak = one;
  auto other = one;
  one.reset();
  CHECK(alive == 1);
  CHECK(weak.lock() == other);
  other.reset();
  CHECK(alive == 0);
  CHECK(weak.expired());
}

TEST_CASE("a list of owned objects deletes each object once") {
  int alive = 0;
  {
    mr::detail::owner_list<owner_base> list;
    CHECK(list.empty());
    for (int i = 0; i < 9; ++i)
      list.push_back(i % 2 ? mr::detail::make_owner<owner_derived>(alive) : mr::detail::make_owner<owner_base>(alive));
    list.push_back(nullptr);
    CHECK(alive == 9);
    CHECK(list.size() == 10);
    CHECK(list[1].kind() == 1);
    CHECK(list.get(9) == nullptr);
    list.set_last(mr::detail::make_owner<owner_derived>(alive));
    list.set_last(mr::detail::make_owner<owner_base>(alive));
    CHECK(alive == 10);
    {
      const auto first = list.extract(0), last = list.extract(list.size() - 1);
      CHECK(first->kind() == 0);
      CHECK(last->kind() == 0);
      CHECK(list.size() == 8);
      CHECK(list[0].kind() == 1);
    }
    CHECK(alive == 8);
    CHECK(list.extract(2)->kind() == 1);
    CHECK(list[2].kind() == 0);
    list.insert(2, mr::detail::make_owner<owner_derived>(alive));
    CHECK(list[2].kind() == 1);
    mr::detail::owner_list<owner_base> other = std::move(list);
    CHECK(other.size() == 8);
    list = std::move(other);
    CHECK(list.size() == 8);
  }
  CHECK(alive == 0);
}
