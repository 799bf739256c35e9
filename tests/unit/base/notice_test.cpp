#include <millrace/base/notice.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <string>

namespace mr = millrace;

TEST_CASE("a notice function calls its callable, and its copies do, too") {
  std::string texts;
  mr::notice_function first = [&](const mr::notice& n) { texts += n.text; };
  const mr::notice_function second = first;
  first({.text = "a"});
  second({.text = "b"});
  CHECK(texts == "ab");
  CHECK(first);
  CHECK(second.informs());
}

TEST_CASE("an empty function is not a notice function") {
  CHECK_FALSE(mr::notice_function());
  CHECK_FALSE(mr::notice_function(nullptr));
  CHECK_FALSE(mr::notice_function(std::function<void(const mr::notice&)>()));
  CHECK(mr::notice_function().informs());   // then all notices are printed
  CHECK(mr::notice_function([](const mr::notice&) {}));
}

TEST_CASE("quiet uses no information, and neither do its copies") {
  const mr::notice_function first = mr::quiet;
  const mr::notice_function second = first;
  CHECK(second);
  CHECK_FALSE(second.informs());
}
