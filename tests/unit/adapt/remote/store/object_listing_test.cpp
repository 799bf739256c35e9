// Listings of object stores, their XML, and the stores that a URL names.
#include "fake_environment.hpp"

#include <millrace/adapt/remote/store/object_access.hpp>
#include <millrace/adapt/remote/store/object_stores.hpp>
#include <millrace/adapt/remote/store/s3_access.hpp>
#include <millrace/adapt/remote/store/xml_reader.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace mr = millrace;
using mr::detail::parse_object_url;
using mr::detail::read_store_answer;
using mr::detail::object_stores;

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

namespace {

std::string elements(std::string_view xml) {
  std::string all;
  mr::detail::xml_reader(xml).for_each([&](std::string_view path, const std::string& content) {
    all.append(path).append("=").append(content).append(";");
  });
  return all;
}

std::string refusal(std::string_view xml) {
  try {
    return "accepted:  " + elements(xml);
  } catch (const mr::data_error& e) {
    return e.message();
  }
}

}  // namespace

TEST_CASE("elements are passed with their path and their text") {
  CHECK(elements("<?xml version=\"1.0\"?>\n<a x='1' y = \"2>\"><b>1</b><c/><b>2<d>3</d>4</b></a>\n") ==
        "a/b=1;a/c=;a/b/d=3;a/b=24;a=;");
  CHECK(elements("\xef\xbb\xbf<s:a xmlns:s=\"http://x\"><s:b>1</s:b></s:a>") == "a/b=1;a=;");
  CHECK(elements("<a><!-- <b> --><![CDATA[<&]]>]</a><!-- end -->") == "a=<&];");
  CHECK(elements("<a>&lt;&gt;&amp;&quot;&apos;&#65;&#x42;&#xe9;&#x20AC;&#x1F600;&#10;</a>") ==
        "a=<>&\"'AB\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\n;");
  CHECK(elements("<a >1</a >") == "a=1;");
}

TEST_CASE("text that is not well-formed is refused with the offset") {
  for (const char* wrong :
       {"", " ", "text", "<a>", "<a", "<", "</a>", "<a></b>", "<a><b></a></b>", "<a/><b/>", "<a/>text", "text<a/>",
        "<a>&b;</a>", "<a>&</a>", "<a>& b</a>", "<a>&#;</a>", "<a>&#x;</a>", "<a>&#xg;</a>", "<a>&#0;</a>",
        "<a>&#xd800;</a>", "<a>&#x110000;</a>", "<a>&#999999999;</a>", "<a x></a>", "<a x=1></a>", "<a x='1></a>",
        "<a x='1'y='2'></a>", "<a x='<'/>", "< a/>", "<a><!-- </a>", "<a><![CDATA[</a>", "<?xml", "<![CDATA[x]]><a/>",
        "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "<a / >", "<a></a", "<a></a x>", "\xef\xbb\xbf"}) {
    CAPTURE(wrong);
    const std::string message = refusal(wrong);
    CHECK(message.starts_with("the XML "));
    CHECK(message.find(", at byte ") != std::string::npos);
  }
}

TEST_CASE("depth has a limit") {
  std::string deep, end;
  for (int i = 0; i < 16; ++i) {
    deep += "<a>";
    end += "</a>";
  }
  CHECK(elements(deep + end).ends_with("a=;"));
  CHECK(refusal(deep + "<a></a>" + end).find("nested deeper than 16 levels") != std::string::npos);
}

TEST_CASE("a name selects its store") {
  fake_world world;
  object_stores stores({.s3 = {.endpoint = "http://s", .anonymous = true},
                        .gs = {.endpoint = "http://g", .anonymous = true}},
                       world.env());
  CHECK(stores.address("GET", "s3://photos/a b").url == "http://s/photos/a%20b");
  CHECK(stores.address("GET", "gs://photos/a b").url == "http://g/photos/a%20b");
  const std::string body = "<ListBucketResult><Contents><Key>a</Key></Contents><IsTruncated>false</IsTruncated>"
                           "</ListBucketResult>";
  world.answers["GET http://s/photos/?encoding-type=url&list-type=2"] = {.status = 200, .body = body};
  world.answers["GET http://g/photos/?encoding-type=url&list-type=2&prefix=a"] = {.status = 200, .body = body};
  CHECK(stores.list("s3://photos") == std::vector<std::string>{"s3://photos/a"});
  CHECK(stores.list("gs://photos/a") == std::vector<std::string>{"gs://photos/a"});
}

TEST_CASE("a bucket without a key cannot be read") {
  fake_world world;
  object_stores stores({.s3 = {.anonymous = true}}, world.env());
  for (const char* name : {"s3://photos", "s3://photos/"}) {
    CAPTURE(name);
    CHECK_THROWS_AS(stores.address("GET", name), mr::setup_error);
  }
}

TEST_CASE("keys are requested with the first object, and by each store separately") {
  fake_world world;
  int of_s3 = 0, of_gs = 0;
  object_stores stores({.s3 = {.credentials = [&] {
                          return mr::s3_credentials{.access_key_id = "AKID" + std::to_string(++of_s3),
                                                    .secret_access_key = "SECRET"};
                        }},
                        .gs = {.bearer_token = [&] { return "token" + std::to_string(++of_gs); }}},
                       world.env());
  CHECK(of_s3 == 0);
  const auto sent = stores.address("GET", "s3://photos/a");
  CHECK(of_s3 == 1);
  CHECK(of_gs == 0);
  const mr::detail::small_answer expired{.status = 400, .body = "<Error><Code>ExpiredToken</Code></Error>"};
  CHECK(stores.handle_refusal("s3://photos/a", sent, expired).what == mr::detail::remedy::kind::at_once);
  CHECK(of_s3 == 2);
  CHECK(stores.handle_refusal("s3://photos/a", sent, {.status = 404}).what == mr::detail::remedy::kind::none);
  const std::string text = stores.failure("s3://photos/a", sent, expired).what();
  CHECK(text.find("s3_options::credentials") != std::string::npos);
  CHECK(text.find("s3://photos/a") != std::string::npos);
  stores.address("GET", "gs://photos/a");
  CHECK(of_gs == 1);
}

TEST_CASE("the name of an object has a bucket and a key that is used unchanged") {
  const auto name = mr::detail::parse_object_url("s3://my.bucket-1/2026/a b+c=%20?x#y.tar");
  CHECK(name.kind == mr::detail::object_store_kind::s3);
  CHECK(name.bucket == "my.bucket-1");
  CHECK(name.key == "2026/a b+c=%20?x#y.tar");
  CHECK(name.name_of(name.key) == "s3://my.bucket-1/2026/a b+c=%20?x#y.tar");
  const auto other = mr::detail::parse_object_url("gs://bucket//a");
  CHECK(other.kind == mr::detail::object_store_kind::gs);
  CHECK(other.key == "/a");
  CHECK(other.name_of("b") == "gs://bucket/b");
  CHECK(mr::detail::parse_object_url("s3://bucket").key.empty());
  CHECK(mr::detail::parse_object_url("s3://bucket/").key.empty());
}

TEST_CASE("only s3:// and gs:// are names of objects") {
  CHECK(mr::detail::is_object_url("s3://"));
  CHECK(mr::detail::is_object_url("gs://a/b"));
  for (const char* other : {"", "s3:/a/b", "https://s3.amazonaws.com/b/k", "a/s3://b", "S3://b/k"})
    CHECK_MESSAGE(!mr::detail::is_object_url(other), other);
}

TEST_CASE("an invalid bucket name is refused before anything is sent") {
  for (const char* wrong : {"s3://", "s3:///key", "s3://ab/k", "s3://a b c/k", "s3://user@host/k", "s3://host:9000/k",
                            "s3://a..b/k", "s3://.ab/k", "s3://-ab/k", "s3://bucket*/k", "s3://b\xc3\xbcro/k",
                            "s3://arn:aws:s3:eu-west-1:123456789012:accesspoint/x/k"}) {
    CAPTURE(wrong);
    try {
      mr::detail::parse_object_url(wrong);
      FAIL("accepted");
    } catch (const mr::setup_error& e) {
      CHECK(e.message().find("the bucket of") == 0);
      CHECK(e.hint() == "Write s3://BUCKET/KEY");
    }
  }
  CHECK_THROWS_AS(mr::detail::parse_object_url("s3://" + std::string(256, 'a')), mr::setup_error);
  CHECK(mr::detail::parse_object_url("s3://" + std::string(255, 'a') + "/k").key == "k");
}
