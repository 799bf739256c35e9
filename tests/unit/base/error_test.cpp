#include <millrace/base/error.hpp>
#include <millrace/base/notice.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <new>
#include <stdexcept>
#include <string>

namespace mr = millrace;

TEST_CASE("an error contains the problem, the place and the remedy") {
  const mr::data_error e("the header is damaged", "Fetch the shard again",
                         {.stage = "tar", .shard = "a.tar", .key = "k\n1", .offset_bytes = 512, .position = 7});
  CHECK(std::string(e.what()) ==
        "millrace: the header is damaged (shard a.tar, offset 512, key k\\x0a1, stage tar, position 7). "
        "Fetch the shard again");
}

TEST_CASE("a located exception keeps its type and its own fields") {
  std::exception_ptr located;
  try {
    throw mr::data_error("bad label", "", {.key = "inner"});
  } catch (...) {
    located = mr::located_exception({.stage = "map 1", .shard = "s.tar", .key = "outer", .position = 3});
  }
  try {
    std::rethrow_exception(located);
  } catch (const mr::data_error& e) {
    CHECK(e.where().key == "inner");
    CHECK(e.where().shard == "s.tar");
    CHECK(e.where().position == 3);
  }
}

TEST_CASE("a foreign exception becomes a stage_error that contains it") {
  std::exception_ptr located;
  try {
    throw std::out_of_range("index 9");
  } catch (...) {
    located = mr::located_exception({.stage = "map 1"});
  }
  try {
    std::rethrow_exception(located);
  } catch (const mr::stage_error& e) {
    CHECK(e.message() == "index 9");
    CHECK_THROWS_AS(std::rethrow_exception(e.cause()), std::out_of_range);
  }
}

TEST_CASE("exhausted memory is a failure of the machine, with its location") {
  std::exception_ptr located;
  try {
    throw std::bad_alloc();
  } catch (...) {
    located = mr::located_exception({.stage = "map 1", .shard = "s.tar"});
  }
  try {
    std::rethrow_exception(located);
  } catch (const mr::io_error& e) {
    CHECK(e.message() == "memory is exhausted: the system refused an allocation");
    CHECK(e.where().shard == "s.tar");
  }
}

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
