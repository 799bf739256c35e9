// A field of JSON documents: out of lines, out of a record's field; what is wrong is named with file and line.
#include "../run/quiet_sessions.hpp"
#include "../temporary_folder.hpp"

#include <millrace/adapt/json.hpp>
#include <millrace/item/record_builder.hpp>
#include <millrace/text.hpp>

#include <doctest/doctest.h>

#include <fstream>

namespace mr = millrace;

namespace {

std::string find(const std::string& name, std::string_view document) {
  mr::scratch memory;
  return mr::json_field(name)(mr::bytes::borrowed(document, "json"), memory);
}
std::string refusal(const std::string& name, std::string_view document) {
  try {
    static_cast<void>(find(name, document));
  } catch (const mr::data_error& e) {
    return e.message();
  }
  return "no error";
}

struct measured {
  std::int64_t bytes;
};

}  // namespace

TEST_CASE("a field by its name and by a pointer") {
  CHECK(find("text", R"({"id": 7, "text": "a \"b\"\n\u00e9 \ud83d\ude00", "more": [1]})") ==
        "a \"b\"\n\xc3\xa9 \xf0\x9f\x98\x80");
  CHECK(find("text", R"({"text": ""})") == "");
  CHECK(find("/meta/0/name", R"({"meta": [{"name": "x"}]})") == "x");
  CHECK(find("/a~1b", R"({"a/b": "y"})") == "y");
}

TEST_CASE("of a record its field json") {
  mr::block_pool pool;
  mr::record_builder build(pool);
  build.begin("train-0.tar", "dir/0001", 1536);
  constexpr std::string_view document = R"({"text": "a"})";
  build.add_field("txt", 1)[0] = std::byte{'b'};
  std::memcpy(build.add_field("json", document.size()).data(), document.data(), document.size());
  const mr::record r = build.finish();
  mr::scratch memory;
  CHECK(mr::json_field("text")(r, memory) == "a");
  CHECK_THROWS_WITH_AS(mr::json_field("title")(r, memory), doctest::Contains("the field 'json' has no field 'title'"),
                       mr::data_error);
  using texts = decltype(mr::shards("corpus.tar") | mr::map(mr::json_field("text")));
  static_assert(std::is_same_v<texts::item, std::string>);
}

TEST_CASE("what is no document, has no such field, or another type in it") {
  CHECK(refusal("text", R"({"text": "a")").starts_with("the field 'json' is no JSON document: "));
  CHECK(refusal("text", R"({"text": "a"} x)").starts_with("the field 'json' is no JSON document: "));
  CHECK(refusal("text", "").starts_with("the field 'json' is no JSON document: "));
  CHECK(refusal("text", "{\"text\": \"\xff\"}").starts_with("the field 'json' is no JSON document: "));
  CHECK(refusal("text", R"({"txt": "a"})") == "the field 'json' has no field 'text'; it begins \"{\"txt\": \"a\"}\"");
  CHECK(refusal("text", "[1]").starts_with("the field 'json' has no field 'text'"));
  CHECK(refusal("text", R"({"text": 7})").starts_with("the field 'json' has a field 'text' that is no string"));
}

TEST_CASE("in a flow, with file and line") {
  const temporary_folder folder;
  std::ofstream(folder / "a.jsonl") << "{\"text\": \"four\"}\n{\"text\": \"eleven\"}\n{\"text\": 3}\n";
  mr::session run{mr::lines(folder / "a.jsonl") | mr::map(mr::json_field("text")) |
                      mr::map([](std::string_view text) { return measured{static_cast<std::int64_t>(text.size())}; }) |
                      mr::batch<&measured::bytes>({.size = 2, .drop_last = false}),
                  quiet(2)};
  const auto first = run.next();
  CHECK(first.get<&measured::bytes>().host()[0] == 4);
  CHECK(first.get<&measured::bytes>().host()[1] == 6);
  try {
    static_cast<void>(run.next());
    FAIL("no error");
  } catch (const mr::data_error& e) {
    CHECK(e.where().shard == folder / "a.jsonl");
    CHECK(e.where().key == "line 3");
    CHECK(e.where().stage == "map 1");
  }
}
