#include <millrace/io/file/name_list.hpp>

#include <doctest/doctest.h>

TEST_CASE("the common folder of names ends at a slash") {
  using millrace::detail::name_list;
  CHECK(name_list({"s3://b/a/x.tar", "s3://b/ab/y.tar"}).common_folder() == "s3://b/");
  CHECK(name_list({"s3://b/train-0.tar", "s3://b/train-1.tar"}).common_folder() == "s3://b/");
  CHECK(name_list({"x.tar", "y.tar"}).common_folder().empty());
  CHECK(name_list({"a/x.tar"}).common_folder() == "a/");
  CHECK(name_list(std::vector<std::string>()).common_folder().empty());
}
