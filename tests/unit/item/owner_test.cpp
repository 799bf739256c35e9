// owner and owner_list: objects that are deleted once.
#include <millrace/item/owner.hpp>
#include <millrace/item/sample.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace mr = millrace;
using mr::detail::item_or_error;

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

namespace {

std::exception_ptr an_error() { return std::make_exception_ptr(std::runtime_error("torn")); }

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::runtime_error& e) {
    return e.what();
  }
}

}  // namespace

TEST_CASE("an item_or_error contains an item, an error, or neither") {
  item_or_error<std::string> nothing;
  CHECK_FALSE(nothing);
  CHECK_FALSE(nothing.is_error());
  CHECK(nothing.error() == nullptr);
  CHECK_FALSE(item_or_error<std::string>(std::optional<std::string>()));
  CHECK_FALSE(item_or_error<std::string>(std::exception_ptr()).is_error());

  item_or_error<std::string> item(std::string("a text that is longer than a string's internal buffer..."));
  REQUIRE(item);
  CHECK(item->size() == 56);
  CHECK(item.error() == nullptr);

  item_or_error<std::string> failed(an_error());
  CHECK_FALSE(failed);
  CHECK(text_of(failed.error()) == "torn");
}

TEST_CASE("an item_or_error that is assigned to or moved from leaks and doubles nothing") {
  const auto item = std::make_shared<int>(7);
  const std::exception_ptr error = an_error();
  for (const int before : {0, 1, 2})
    for (const int after : {0, 1, 2}) {
      const auto make_item = [&](int what) -> item_or_error<std::shared_ptr<int>> {
        if (what == 0) return {};
        return what == 1 ? item_or_error(item) : item_or_error<std::shared_ptr<int>>(error);
      };
      auto to = make_item(before), from = make_item(after);
      to = std::move(from);
      CHECK(static_cast<bool>(to) == (after == 1));
      CHECK(to.is_error() == (after == 2));
      CHECK(item.use_count() == (after == 1 ? 2 : 1));
      auto moved = std::move(to);
      CHECK(item.use_count() == (after == 1 ? 2 : 1));
      if (after == 1) CHECK(**moved == 7);
      if (after == 2) CHECK(text_of(moved.error()) == "torn");
      moved.emplace(item);
      CHECK(item.use_count() == 2);
      moved.reset();
      CHECK_FALSE(moved);
      CHECK(item.use_count() == 1);
    }
}

TEST_CASE("a sample whose item is one word fits into one cache line") {
  CHECK(sizeof(mr::detail::sample<std::uint64_t>) == 64);
  CHECK(sizeof(mr::detail::sample<mr::record>) == 64);
}
