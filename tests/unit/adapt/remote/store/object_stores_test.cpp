#include <millrace/adapt/remote/store/object_access.hpp>
#include <millrace/adapt/remote/store/object_stores.hpp>

#include "fake_environment.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace mr = millrace;
using mr::detail::object_stores;

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
