#include <millrace/adapt/remote.hpp>
#include <millrace/adapt/remote/transfer/request_addresses.hpp>

#include <doctest/doctest.h>

#include <string>

namespace mr = millrace;

TEST_CASE("names of web servers become URLs that can be sent, with the user's headers") {
  mr::detail::request_addresses addresses({.headers = {{"Authorization", "Bearer x"}}});
  CHECK(addresses.address("https://h/a b#c").url == "https://h/a%20b");
  CHECK(addresses.address("http://h/\xc3\xbc").url == "http://h/%C3%BC");
  CHECK(addresses.address("http://h/%20?q=1").url == "http://h/%20?q=1");
  CHECK(addresses.address("http://h/").headers == mr::detail::header_list{{"Authorization", "Bearer x"}});
  CHECK_THROWS_WITH_AS(addresses.address("ftp://h/a"),
                       doctest::Contains("got ftp://h/a, expected http://, https://, s3:// or gs://"), mr::setup_error);
  CHECK_THROWS_WITH_AS(addresses.list("https://h/a*"), doctest::Contains("web servers cannot list their files"),
                       mr::setup_error);
}

TEST_CASE("headers of web servers may expire, and are requested again after a refusal") {
  using kind = mr::detail::remedy::kind;
  std::string token = "one";
  mr::detail::request_addresses addresses({.headers = {{"X-A", "b"}}, .current_headers = [&] {
    return std::vector<std::pair<std::string, std::string>>{{"Authorization", "Bearer " + token}};
  }, .retry = {.limit = {}}});
  const auto first = addresses.address("https://h/a");
  CHECK(first.headers == mr::detail::header_list{{"X-A", "b"}, {"Authorization", "Bearer one"}});
  token = "two";
  CHECK(addresses.handle_refusal("https://h/a", first, {.status = 404}).what == kind::none);
  CHECK(addresses.handle_refusal("https://h/a", first, {.status = 401}).what == kind::at_once);
  const auto second = addresses.address("https://h/a");
  CHECK(second.headers.back().second == "Bearer two");
  const auto last = addresses.handle_refusal("https://h/a", second, {.status = 403});
  CHECK(last.what == kind::none);
  CHECK_THROWS_WITH(throw addresses.failure("https://h/a", second, {.status = 403}, last.attempted),
                    doctest::Contains("got status 403, expected 206; searched for other keys 1 time in 0 s"));
  mr::detail::request_addresses fixed({.headers = {{"Authorization", "Bearer one"}}});
  CHECK(fixed.handle_refusal("https://h/a", fixed.address("https://h/a"), {.status = 401}).what == kind::none);
}

TEST_CASE("headers that a web server accepted once are requested again as long as transfers are retried") {
  using kind = mr::detail::remedy::kind;
  std::string notice;
  mr::detail::request_addresses addresses(
      {.current_headers = [] { return std::vector<std::pair<std::string, std::string>>{{"X-Token", "a"}}; },
       .notice = [&](const mr::notice& n) { notice = n.text; },
       .retry = {.limit = std::chrono::minutes(2)}});
  const auto sent = addresses.address("https://h/a");
  addresses.accepted("https://h/a", sent);
  CHECK(addresses.handle_refusal("https://h/a", sent, {.status = 401}).what == kind::later);
  CHECK(notice.find("searches for new keys for up to 120 s") != std::string::npos);
}

TEST_CASE("passwords and queries are not reported") {
  using mr::detail::without_secrets;
  CHECK(without_secrets("https://me:hush@host:1/a.tar?X-Amz-Signature=hush") == "https://host:1/a.tar?...");
  CHECK(without_secrets("https://host/a@b.tar") == "https://host/a@b.tar");
  CHECK(without_secrets("s3://bucket/key?x") == "s3://bucket/key?x");
}

TEST_CASE("a server's words are shown if they are text") {
  const auto words = [](const std::string& type, const std::string& body) {
    return mr::detail::request_addresses::refusal_message(
        {.status = 503, .headers = {{"Content-Type", type}}, .body = body});
  };
  CHECK(words("text/plain; charset=utf-8", " come back\nlater") == " (come back)");
  CHECK(words("application/json", R"({"error":"busy"})") == R"( ({"error":"busy"}))");
  CHECK(words("text/html", "<html>busy</html>") == "");
  CHECK(words("text/plain", "") == "");
  CHECK(words("application/xml", "<Error><Code>SlowDown</Code><Message>Reduce</Message></Error>") ==
        " (SlowDown: Reduce)");
}

TEST_CASE("options out of their range are refused, and nothing is connected before a name is opened") {
  for (const mr::remote_options& wrong :
       {mr::remote_options{.requests = 0}, mr::remote_options{.part_bytes = 1},
        mr::remote_options{.part_bytes = 1 << 20, .memory_bytes = 1 << 19},
        mr::remote_options{.connect_limit = {}}, mr::remote_options{.stall_limit = std::chrono::seconds(-1)},
        mr::remote_options{.retry = {.attempts = 0}}, mr::remote_options{.hedge = {.share = 0.9}}})
    CHECK_THROWS_AS(mr::remote(wrong), mr::setup_error);
  const auto place = mr::remote();
  CHECK(place.statistics().requests == 0);
  CHECK(mr::to_text(place.statistics()).find("given up 0") != std::string::npos);
  const mr::storage as_storage = place;
  CHECK_FALSE(as_storage.is_local());
}
