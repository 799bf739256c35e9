#include <millrace/adapt/remote/store/object_listing.hpp>
#include <millrace/adapt/remote/store/s3_access.hpp>

#include "fake_environment.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace mr = millrace;
using mr::detail::parse_object_url;
using mr::detail::read_store_answer;

namespace {

std::string page(const std::string& keys, const std::string& next = "", bool encoded = true) {
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
                     "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>photos</Name>";
  for (std::size_t at = 0; at < keys.size();) {
    const std::size_t end = std::min(keys.find('|', at), keys.size());
    text += "<Contents><Key>" + keys.substr(at, end - at) + "</Key><Owner><ID>x</ID></Owner></Contents>";
    at = end + 1;
  }
  if (encoded) text += "<EncodingType>url</EncodingType>";
  text += next.empty() ? "<IsTruncated>false</IsTruncated>"
                       : "<IsTruncated>true</IsTruncated><NextContinuationToken>" + next + "</NextContinuationToken>";
  return text + "</ListBucketResult>";
}

const std::string base = "GET http://h/photos/?", query = "encoding-type=url&list-type=2";

/// A store and its listing.
struct store {
  fake_world world;
  mr::detail::s3_access access{{.endpoint = "http://h", .anonymous = true}, world.env()};

  std::vector<std::string> list(const std::string& prefix) {
    return mr::detail::list_objects(access, world.env(), parse_object_url(prefix));
  }
  std::string failure(const std::string& prefix) {
    try {
      list(prefix);
    } catch (const mr::error& e) {
      return e.what();
    }
    return "none";
  }
};

using names = std::vector<std::string>;

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("names are listed page by page, decoded and sorted") {
  store s;
  s.world.answers[base + query] = {.status = 200, .body = page("b|a+b%2B%3D%C3%BC|folder/", "t/1=&amp;")};
  s.world.answers[base + "continuation-token=t%2F1%3D%26&" + query] = {.status = 200, .body = page("0&#x41;")};
  CHECK(s.list("s3://photos/") == names{"s3://photos/0A", "s3://photos/a b+=\xc3\xbc", "s3://photos/b"});
  CHECK(s.list("s3://photos").size() == 3);
}

TEST_CASE("a prefix is sent encoded, and keys that do not begin with it are omitted") {
  store s;
  s.world.answers[base + query + "&prefix=a%2Fb%20c%2B"] = {.status = 200, .body = page("a/b+c%2B1|other")};
  CHECK(s.list("s3://photos/a/b c+") == names{"s3://photos/a/b c+1"});
}

TEST_CASE("keys are used unchanged if the server does not encode them") {
  store s;
  s.world.answers[base + query] = {.status = 200, .body = page("a+b%20&amp;&lt;", "", false)};
  CHECK(s.list("s3://photos/") == names{"s3://photos/a+b%20&<"});
}

TEST_CASE("invalid listings are refused, with their place") {
  store s;
  auto& answer = s.world.answers[base + query];
  for (const std::string& wrong :
       {std::string("<html></html>"), std::string("<ListBucketResult/>"), std::string("nonsense"), std::string(),
        std::string("<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"), page("a%2"),
        page("a%xx")}) {
    CAPTURE(wrong);
    answer = {.status = 200, .body = wrong};
    CHECK_THROWS_AS(s.list("s3://photos/"), mr::data_error);
    CHECK(has(s.failure("s3://photos/"), "s3://photos/"));
  }
  answer.body = "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>";
  CHECK(has(s.failure("s3://photos/"), "is truncated, but has no continuation token"));
  answer = {.status = 200, .body = page("a", "t")};
  s.world.answers[base + "continuation-token=t&" + query] = {.status = 200, .body = page("b", "t")};
  CHECK(has(s.failure("s3://photos/"), "does not end"));
}

TEST_CASE("transient errors are retried, with increasing pauses") {
  store s;
  auto& answer = s.world.answers[base + query];
  answer = {.status = 503, .body = "<Error><Code>SlowDown</Code><Message>Please reduce your rate</Message></Error>"};
  CHECK(has(s.failure("s3://photos/"), "got status 503 SlowDown (Please reduce your rate), expected 200"));
  REQUIRE(s.world.slept.size() == 7);
  for (std::size_t i = 1; i < 7; ++i) CHECK(s.world.slept[i] == 2 * s.world.slept[i - 1]);
  CHECK(s.world.sent.size() == 8);
  s.world.slept.clear();
  answer = {.status = 404, .body = "<Error><Code>NoSuchBucket</Code></Error>"};
  s.world.answers[base + query + "&prefix=x"] = answer;
  CHECK(has(s.failure("s3://photos/x"), "got status 404 NoSuchBucket"));
  CHECK(has(s.failure("s3://photos/x"), "s3://photos/x"));
  CHECK(s.world.slept.empty());
}

TEST_CASE("a bucket of another region is listed there, and expired keys are renewed") {
  fake_world world;
  int providers = 0;
  const auto keys = [&] {
    return mr::s3_credentials{.access_key_id = "AKID" + std::to_string(++providers), .secret_access_key = "SECRET"};
  };
  mr::detail::s3_access access({.credentials = keys}, world.env());
  const std::string there = "GET https://photos.s3.eu-west-1.amazonaws.com/?" + query;
  world.answers["GET https://photos.s3.us-east-1.amazonaws.com/?" + query] = {
      .status = 301, .headers = {{"x-amz-bucket-region", "eu-west-1"}},
      .body = "<Error><Code>PermanentRedirect</Code></Error>"};
  world.answers[there] = {.status = 403, .body = "<Error><Code>ExpiredToken</Code></Error>"};
  auto env = world.env();
  env.fetch = [&, send = env.fetch](const mr::detail::small_request& request) {
    const auto answer = send(request);
    if (answer.status == 403) world.answers[there] = {.status = 200, .body = page("a")};
    return answer;
  };
  CHECK(mr::detail::list_objects(access, env, parse_object_url("s3://photos/")) ==
        names{"s3://photos/a"});
  CHECK(providers == 2);
  CHECK(world.slept.empty());
}

TEST_CASE("a listing waits for keys that are replaced some seconds late") {
  fake_world world;
  const std::string there = "GET http://s/photos/?" + query;
  world.files["/fake/.aws/credentials"] = "[default]\naws_access_key_id = OLD\naws_secret_access_key = S\n";
  mr::detail::s3_access access({.endpoint = "http://s"}, world.env());
  world.answers[there] = {.status = 200, .body = page("a")};
  CHECK(mr::detail::list_objects(access, world.env(), parse_object_url("s3://photos/")).size() == 1);
  world.answers[there] = {.status = 400, .body = "<Error><Code>ExpiredToken</Code></Error>"};
  auto env = world.env();
  env.sleep = [&](double seconds) {
    world.env().sleep(seconds);
    if (world.now < 1'700'000'020) return;
    world.files["/fake/.aws/credentials"] = "[default]\naws_access_key_id = NEW\naws_secret_access_key = S\n";
    world.answers[there] = {.status = 200, .body = page("b")};
  };
  CHECK(mr::detail::list_objects(access, env, parse_object_url("s3://photos/")) == names{"s3://photos/b"});
  CHECK(world.slept == std::vector<double>{1, 2, 4, 8, 16});
  const auto last = std::string(mr::detail::header_value(world.sent.back().headers, "Authorization"));
  CHECK(has(last, "Credential=NEW/"));

  world.answers[there] = {.status = 400, .body = "<Error><Code>ExpiredToken</Code></Error>"};
  world.slept.clear();
  try {
    mr::detail::list_objects(access, world.env(), parse_object_url("s3://photos/"));
    FAIL("accepted");
  } catch (const mr::io_error& e) {
    CHECK(has(e.what(), "got status 400 ExpiredToken, expected 200; searched for other keys 15 times in 180 s"));
  }
}

TEST_CASE("a listing that begins before the keys are complete waits for them") {
  fake_world world;
  const std::string path = "/fake/.aws/credentials";
  world.files[path] = "[default]\naws_access_key_id = NEW\naws_secr";
  world.answers["GET http://s/photos/?" + query] = {.status = 200, .body = page("a")};
  auto env = world.env();
  env.sleep = [&](double seconds) {
    world.env().sleep(seconds);
    world.files[path] = "[default]\naws_access_key_id = NEW\naws_secret_access_key = S\n";
  };
  mr::detail::s3_access access({.endpoint = "http://s"}, world.env());
  CHECK(mr::detail::list_objects(access, env, parse_object_url("s3://photos/")) == names{"s3://photos/a"});
  CHECK(world.slept == std::vector<double>{1});
}

TEST_CASE("an error answer is read, and reported without the data that it repeats") {
  const auto answer = read_store_answer(
      {.status = 403,
       .headers = {{"Date", "Tue, 14 Nov 2023 22:13:20 GMT"}},
       .body = "<Error><Code>SignatureDoesNotMatch</Code><Message>It does not match\x1b[0m</Message>"
               "<AWSAccessKeyId>AKID</AWSAccessKeyId><StringToSign>SECRET</StringToSign><Token-0>SECRET</Token-0>"
               "</Error>"});
  CHECK(answer.code == "SignatureDoesNotMatch");
  CHECK(!answer.is_transient());
  CHECK(answer.concerns_keys());   // perhaps the key file was half-written
  const std::string text = answer.failure("s3://photos/a", "the environment", 0).what();
  CHECK(has(text, "got status 403 SignatureDoesNotMatch (It does not match\\x1b[0m), expected 200"));
  CHECK(has(text, "Correct the secret access key. The request was signed with keys of the environment"));
  CHECK(has(text, "s3://photos/a"));
  CHECK(!has(text, "AKID"));
  CHECK(!has(text, "SECRET"));
  const auto html = read_store_answer({.status = 502, .body = "<html><body>SECRET<br></html>"});
  CHECK(html.code.empty());
  CHECK(html.is_transient());
  CHECK(!has(html.failure("s3://photos/a", "", 0).what(), "SECRET"));
}

TEST_CASE("a wrong clock is reported with the difference") {
  const mr::detail::small_answer answer{
      .status = 403, .headers = {{"Date", "Tue, 14 Nov 2023 22:13:20 GMT"}},
      .body = "<Error><Code>RequestTimeTooSkewed</Code><Message>too large</Message></Error>"};
  const auto text = [](const mr::detail::small_answer& a, std::int64_t now) {
    return std::string(read_store_answer(a).failure("s3://b/a", "", now).what());
  };
  CHECK(has(text(answer, 1'700'001'800), "this machine's clock is 1800 seconds ahead of the server's"));
  CHECK(has(text(answer, 1'699'999'000), "this machine's clock is 1000 seconds behind the server's"));
  auto exact = answer;
  exact.body = "<Error><Code>RequestTimeTooSkewed</Code><ServerTime>2023-11-14T22:13:19Z</ServerTime></Error>";
  CHECK(has(text(exact, 1'700'001'800), "1801 seconds ahead"));
}

TEST_CASE("answers are classified: retry, refresh the keys, or not found") {
  const auto of = [](int status, const char* code) { return mr::detail::store_answer{.status = status, .code = code}; };
  for (const int status : {408, 429, 500, 502, 503, 504}) CHECK(of(status, "").is_transient());
  CHECK(of(400, "RequestTimeout").is_transient());
  CHECK(of(200, "InternalError").is_transient());
  for (const int status : {301, 400, 401, 403, 404, 412, 416}) CHECK(!of(status, "").is_transient());
  for (const char* code : {"ExpiredToken", "InvalidToken", "TokenRefreshRequired"})
    CHECK(of(400, code).concerns_keys());
  CHECK(of(401, "").concerns_keys());
  CHECK(of(403, "").concerns_keys());   // HEAD has no body
  CHECK(of(400, "").concerns_keys());
  CHECK(!of(403, "AccessDenied").concerns_keys());
  CHECK(!of(404, "").concerns_keys());
  CHECK(of(404, "").is_missing_object());
  CHECK(of(404, "NoSuchKey").is_missing_object());
  CHECK(!of(404, "NoSuchBucket").is_missing_object());
}
