#include <millrace/adapt/remote/store/object_access.hpp>

#include <doctest/doctest.h>

#include <string>

namespace mr = millrace;

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
