#include <millrace/adapt/remote/store/credential_sources.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

namespace mr = millrace;
using mr::detail::profile_file;

TEST_CASE("a profile file has sections, values, comments and indented values") {
  const auto file = profile_file::parse(
      "# my keys\r\n"
      "[default]\r\n"
      "aws_access_key_id = AKID\r\n"
      "aws_secret_access_key=a/b+c=d==\r\n"
      "  \r\n"
      "; other\n"
      "[profile  \"two words\"]\n"
      "Region = eu-west-1 # near\n"
      "color = a#b;c\n"
      "s3 =\n"
      "  max_concurrent_requests = 20\n"
      "  continued\n"
      "output = json\n"
      "[services mine]\n"
      "s3 =\n"
      "\tendpoint_url = http://127.0.0.1:9000\n"
      "[default]\n"
      "region = us-west-2",
      "config");
  CHECK(file.value("default", "aws_access_key_id") == "AKID");
  CHECK(file.value("default", "aws_secret_access_key") == "a/b+c=d==");
  CHECK(file.value("default", "region") == "us-west-2");
  CHECK(file.value("profile two words", "region") == "eu-west-1");
  CHECK(file.value("profile two words", "color") == "a#b;c");
  CHECK(file.value("profile two words", "s3.max_concurrent_requests") == "20");
  CHECK(file.value("profile two words", "output") == "json");
  CHECK(file.value("services mine", "s3.endpoint_url") == "http://127.0.0.1:9000");
  CHECK(file.value("services mine", "endpoint_url").empty());
  CHECK(file.value("none", "region").empty());
  CHECK(file.has("services mine"));
  CHECK(!file.has("none"));
  CHECK(!profile_file::parse("", "config").has("default"));
}

TEST_CASE("a wrong line is named by its number, and not quoted") {
  for (const char* wrong : {"[default\n", "[a]\nSECRET\n", "x = SECRET\n", "[a]\n= SECRET\n", "[a]\n\n  SECRET\n"}) {
    CAPTURE(wrong);
    const std::string text = wrong, all = "# first\n" + text;
    const std::size_t line = all.find("SECRET") == std::string::npos ? 2 : static_cast<std::size_t>(
        1 + std::count(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.find("SECRET")), '\n'));
    try {
      profile_file::parse(all, "/fake/.aws/credentials");
      FAIL("accepted");
    } catch (const mr::setup_error& e) {
      CHECK(e.message().find("line " + std::to_string(line) + " of /fake/.aws/credentials") != std::string::npos);
      CHECK(std::string(e.what()).find("SECRET") == std::string::npos);
    }
  }
}
