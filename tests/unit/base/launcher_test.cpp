#include <millrace/base/launcher.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <iterator>
#include <string>

namespace mr = millrace;

TEST_CASE("a number of processes is digits and nothing else") {
  CHECK(mr::detail::launcher_number("0") == 0);
  CHECK(mr::detail::launcher_number("007") == 7);
  CHECK(mr::detail::launcher_number("1048575") == 1'048'575);
  for (const char* text : {"1048576", "99999999999999999999", "", " 1", "1 ", "-1", "+1", "1.0", "0x1", "a"})
    CHECK_MESSAGE(mr::detail::launcher_number(text) == -1, text);
  CHECK(mr::detail::launcher_number(nullptr) == -1);
}

TEST_CASE("the local rank is the innermost launcher's") {
  for (const mr::detail::launcher& l : mr::detail::launchers) unsetenv(l.local_rank);
  CHECK(mr::local_rank() == 0);
  int expected = 0;
  for (std::size_t i = std::size(mr::detail::launchers); i-- > 0;) {
    setenv(mr::detail::launchers[i].local_rank, std::to_string(++expected).c_str(), 1);
    CHECK(mr::local_rank() == expected);
  }
  setenv("LOCAL_RANK", "many", 1);
  CHECK(mr::local_rank() == expected - 1);
  for (const mr::detail::launcher& l : mr::detail::launchers) unsetenv(l.local_rank);
}
