#include <millrace/item/sample.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace mr = millrace;
using mr::detail::item_or_error;

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
