#include <millrace/adapt/remote/transfer/range_answer.hpp>

#include <doctest/doctest.h>

#include <string>
#include <utility>

namespace mr = millrace;
using mr::detail::answer_kind;
using mr::detail::byte_interval;
using mr::detail::parse_content_range;

namespace {

mr::detail::judged_answer judged(const byte_interval& request, const mr::file_identity* expected, int status,
                                 const mr::detail::header_list& headers) {
  return mr::detail::judge(request, expected, {status, headers});
}

}  // namespace

TEST_CASE("Content-Range contains the range of the bytes and their total number") {
  const auto content = parse_content_range("bytes 0-99/1234");
  REQUIRE(content);
  CHECK(content->range->first_byte == 0);
  CHECK(content->range->end_byte == 100);
  CHECK(content->total_bytes == 1234);
  CHECK_FALSE(parse_content_range("Bytes 7-7/*")->total_bytes);
  CHECK(parse_content_range("bytes */0")->total_bytes == 0);
  CHECK_FALSE(parse_content_range("bytes */5")->range);
  for (const char* wrong : {"", "bytes", "bytes ", "bytes 5-4/10", "bytes 0-10/10", "bytes 0-9", "bytes -9/10",
                            "bytes 0-/10", "bytes 0-9/x", "items 0-9/10", "bytes */*", "bytes 0-9/10, 20-29/40",
                            "bytes 0-18446744073709551615/*", "bytes 0-99999999999999999999/*", "bytes +1-2/3"})
    CHECK_MESSAGE(!parse_content_range(wrong), wrong);
}

TEST_CASE("an answer is accepted if it has the requested bytes of the expected version") {
  const mr::file_identity expected{1000, "\"a\""};
  const auto part = judged({100, 200}, &expected, 206, {{"Content-Range", "bytes 100-199/1000"}, {"ETag", "\"a\""}});
  CHECK(part.what == answer_kind::bytes);
  CHECK(part.first_byte == 100);
  CHECK(part.end_byte == 200);
  const auto less = judged({100, 200}, &expected, 206, {{"content-range", "bytes 100-149/1000"}, {"etag", "W/\"a\""}});
  CHECK(less.what == answer_kind::bytes);
  CHECK(less.end_byte == 150);
  const auto complete = judged({100, 200}, &expected, 200, {{"Content-Range", "bytes 100-199/1000"}});
  CHECK(complete.what == answer_kind::bytes);
  CHECK(complete.first_byte == 100);
  const auto all = judged({100, 200}, &expected, 200, {{"Content-Length", "1000"}, {"ETag", "\"a\""}});
  CHECK(all.what == answer_kind::bytes);
  CHECK(all.first_byte == 0);
  CHECK(all.end_byte == 1000);
}

TEST_CASE("the first answer contains size and version") {
  const auto first = judged({0, 64}, nullptr, 206, {{"Content-Range", "bytes 0-63/1000"}, {"ETag", "\"a\""}});
  CHECK(first.identity == mr::file_identity{1000, "\"a\""});
  const auto short_one = judged({0, 64}, nullptr, 206, {{"Content-Range", "bytes 0-9/10"}, {"Last-Modified", "Mon"}});
  CHECK(short_one.identity == mr::file_identity{10, "changed Mon"});
  CHECK(short_one.end_byte == 10);
  CHECK(judged({0, 64}, nullptr, 200, {{"Content-Length", "10"}}).identity == mr::file_identity{10, ""});
  for (const auto& empty : {judged({0, 64}, nullptr, 416, {{"Content-Range", "bytes */0"}}),
                            judged({0, 64}, nullptr, 416, {}),
                            judged({0, 64}, nullptr, 200, {{"Content-Length", "0"}})}) {
    CHECK(empty.what == answer_kind::nothing);
    CHECK(empty.identity->size_bytes == 0);
  }
  CHECK(judged({0, 64}, nullptr, 206, {{"Content-Range", "bytes 0-63/*"}}).what == answer_kind::wrong);
  CHECK(judged({0, 64}, nullptr, 200, {}).what == answer_kind::wrong);
}

TEST_CASE("other bytes, other versions and compressed bytes are never accepted") {
  const mr::file_identity expected{1000, "\"a\""}, by_time{1000, "changed Mon"};
  const auto kind = [&](int status, const mr::detail::header_list& headers, const mr::file_identity* identity) {
    return judged({100, 200}, identity, status, headers).what;
  };
  using enum answer_kind;
  CHECK(kind(206, {{"Content-Range", "bytes 101-200/1000"}}, &expected) == wrong);
  CHECK(kind(206, {{"Content-Range", "bytes 100-200/1000"}}, &expected) == wrong);
  CHECK(kind(206, {}, &expected) == wrong);
  CHECK(kind(200, {{"Content-Range", "nonsense"}}, &expected) == wrong);
  CHECK(kind(206, {{"Content-Range", "bytes 100-199/1000"}, {"Content-Encoding", "gzip"}}, &expected) == wrong);
  CHECK(kind(416, {}, &expected) == wrong);
  CHECK(kind(416, {{"Content-Range", "bytes */1000"}}, &expected) == wrong);
  CHECK(kind(416, {{"Content-Range", "bytes */90"}}, &expected) == replaced);
  CHECK(kind(206, {{"Content-Range", "bytes 100-199/1001"}}, &expected) == replaced);
  CHECK(kind(206, {{"Content-Range", "bytes 100-199/1000"}, {"ETag", "\"b\""}}, &expected) == replaced);
  CHECK(kind(206, {{"Content-Range", "bytes 100-199/1000"}, {"Last-Modified", "Tue"}}, &by_time) == replaced);
  CHECK(kind(206, {{"Content-Range", "bytes 100-199/1000"}, {"Last-Modified", "Mon"}}, &by_time) == bytes);
  CHECK(kind(200, {{"Content-Length", "999"}}, &expected) == replaced);
  CHECK(kind(412, {}, &expected) == replaced);
  CHECK(kind(404, {}, &expected) == replaced);
  CHECK(kind(404, {}, nullptr) == other);
  CHECK(kind(503, {}, &expected) == other);
  CHECK(kind(302, {}, &expected) == other);
}
