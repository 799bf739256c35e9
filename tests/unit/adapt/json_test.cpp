// Fields of JSON documents, from lines and from a field of a record. Errors name the file and the line.
#include "../run/quiet_sessions.hpp"
#include "../../temporary_folder.hpp"

#include <millrace/adapt/json.hpp>
#include <millrace/item/record_builder.hpp>
#include <millrace/text.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <limits>

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
std::string hint_on_line(std::string_view document) {
  mr::scratch memory;
  try {
    static_cast<void>(mr::json_field("text")(mr::bytes::borrowed(document, "line"), memory));
  } catch (const mr::data_error& e) {
    return e.hint();
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

TEST_CASE("the field json of a record") {
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
  using texts = decltype(mr::shards("corpus.tar", {.index = mr::index::off}) | mr::map(mr::json_field("text")));
  static_assert(std::is_same_v<texts::item, std::string>);
}

TEST_CASE("an invalid document, a missing field and a field of another type are errors") {
  CHECK(refusal("text", R"({"text": "a")").starts_with("the field 'json' is not valid JSON: "));
  CHECK(refusal("text", R"({"text": "a"} x)").starts_with("the field 'json' is not valid JSON: "));
  CHECK(refusal("text", "").starts_with("the field 'json' is not valid JSON: "));
  CHECK(refusal("text", "{\"text\": \"\xff\"}").starts_with("the field 'json' is not valid JSON: "));
  CHECK(refusal("text", R"({"txt": "a"})") == "the field 'json' has no field 'text'; it begins \"{\"txt\": \"a\"}\"");
  CHECK(hint_on_line("") ==
        "Write one complete document per line (JSON Lines). lines_options::skip_empty omits empty lines");
  CHECK(hint_on_line("{").ends_with("one complete document per line (JSON Lines)"));
  CHECK(refusal("text", "[1]").starts_with("the field 'json' has no field 'text'"));
  CHECK(refusal("text", R"({"text": 7})") ==
        "the field 'json' has an invalid field 'text': got 7, expected a string; it begins \"{\"text\": 7}\"");
}

namespace {

template <class T>
T value_of(std::string_view json, const typename mr::json_field<T>::options& options = {}) {
  mr::scratch memory;
  const std::string document = R"({"v": )" + std::string(json) + "}";
  return mr::json_field<T>("v", options)(mr::bytes::borrowed(document, "json"), memory);
}
/// "got ..., expected ...".
template <class T>
std::string got_instead(std::string_view json, const typename mr::json_field<T>::options& options = {}) {
  try {
    static_cast<void>(value_of<T>(json, options));
  } catch (const mr::data_error& e) {
    const std::string what = e.message(), before = "the field 'json' has an invalid field 'v': ";
    REQUIRE(what.starts_with(before));
    return what.substr(before.size(), what.find("; it begins") - before.size());
  }
  return "no error";
}

}  // namespace

TEST_CASE("numbers of any type, in its range") {
  CHECK(value_of<std::int32_t>("-7") == -7);
  CHECK(value_of<std::uint8_t>("255") == 255);
  CHECK(value_of<std::uint64_t>("18446744073709551615") == ~std::uint64_t{0});
  CHECK(value_of<std::int64_t>("-9223372036854775808") == std::numeric_limits<std::int64_t>::min());
  CHECK(value_of<float>("0.1") == 0.1F);
  CHECK(value_of<double>("3") == 3);
  CHECK(value_of<mr::f16>("1.5") == mr::f16{0x3e00});
  CHECK(value_of<bool>("true"));
  CHECK(value_of<std::string>("\"x\"") == "x");
  CHECK(got_instead<std::uint8_t>("256") == "got 256, expected an integer from 0 to 255");
  CHECK(got_instead<std::uint8_t>("-1") == "got -1, expected an integer from 0 to 255");
  CHECK(got_instead<std::int8_t>("1.0") == "got 1.0, expected an integer from -128 to 127");
  CHECK(got_instead<std::int64_t>("9223372036854775808").starts_with("got 9223372036854775808, expected an integer"));
  CHECK(got_instead<std::int32_t>("\"7\"").starts_with("got \"7\", expected an integer from -2147483648 to"));
  CHECK(got_instead<float>("1e39").ends_with("expected a number in the range of f32"));
  CHECK(got_instead<mr::f16>("65520").ends_with("expected a number in the range of f16"));
  CHECK(got_instead<bool>("1") == "got 1, expected true or false");
  CHECK(got_instead<float>("null") == "got null, expected a number in the range of f32");
  CHECK(got_instead<float>("[1]") == "got [1], expected a number in the range of f32");
}

TEST_CASE("NaN and infinities as json.dumps() writes them") {
  const char* const document = R"({"a": NaN, "b": -Infinity, "c": Infinity, "text": "NaN \"-Infinity", "d": [1, NaN]})";
  mr::scratch memory;
  const auto from = mr::bytes::borrowed(std::string_view(document), "json");
  CHECK(std::isnan(mr::json_field<float>("a")(from, memory)));
  CHECK(mr::json_field<double>("b")(from, memory) == -std::numeric_limits<double>::infinity());
  CHECK(mr::json_field<float>("c")(from, memory) == std::numeric_limits<float>::infinity());
  CHECK(mr::json_field("text")(from, memory) == "NaN \"-Infinity");
  const auto d = mr::json_field<std::vector<float>>("d")(from, memory);
  CHECK(d[0] == 1);
  CHECK(std::isnan(d[1]));
  CHECK_THROWS_WITH_AS(mr::json_field<std::int32_t>("a")(from, memory),
                       doctest::Contains("got NaN, expected an integer"), mr::data_error);
  CHECK(refusal("b", document).find("got -Infinity, expected a string") != std::string::npos);
  for (const char* wrong :
       {"{\"a\": Nan}", "{\"a\": NaNa}", "{\"a\": +Infinity}", "{NaN: 1}", "{NaN : 1}", "{\"a\": NaN"})
    CHECK_MESSAGE(refusal("a", wrong).find("is not valid JSON") != std::string::npos, wrong);
}

TEST_CASE("arrays become vectors, tensors and ragged rows; a wrong shape is an error with its place") {
  CHECK(value_of<std::vector<float>>("[1, 2.5]") == std::vector{1.0F, 2.5F});
  const auto matrix = value_of<mr::tensor<std::int16_t, 2>>("[[1, 2, 3], [4, 5, 6]]", {.shape = {0, 3}});
  CHECK(matrix.shape() == std::array<std::size_t, 2>{2, 3});
  CHECK(matrix(1, 0) == 4);
  CHECK(value_of<mr::tensor<double, 3>>("[[[1], [2]]]").shape() == std::array<std::size_t, 3>{1, 2, 1});
  const auto words = value_of<mr::ragged<std::uint32_t>>("[7, 8, 9]", {.max_length = 2, .truncate = true});
  CHECK(words.length() == 2);
  using boxes = mr::ragged<float, 2>;
  const mr::json_field<boxes>::options four_columns{.row_shape = {4}, .rows = {.max_length = 9}};
  CHECK(value_of<boxes>("[[1, 2, 3, 4], [5, 6, 7, 8]]", four_columns).elements()[5] == 6);
  CHECK(value_of<boxes>("[]", four_columns).shape() == std::array<std::size_t, 2>{9, 4});   // like all other samples
  CHECK(value_of<boxes>("[]", four_columns).length() == 0);

  CHECK(got_instead<mr::tensor<float, 2>>("[[1, 2], [3]]") == "got 1 element at [1], expected 2");
  CHECK(got_instead<mr::tensor<float, 2>>("[[1], [2]]", {.shape = {2, 3}}) == "got 1 element at [0], expected 3");
  CHECK(got_instead<std::vector<float>>("[]", {.shape = {2}}) == "got 0 elements, expected 2");
  CHECK(got_instead<boxes>("[[1, 2, 3]]", four_columns) == "got 3 elements at [0], expected 4");
  CHECK(got_instead<mr::tensor<float, 2>>("[[1], 2]") == "got 2 at [1], expected an array of numbers");
  CHECK(got_instead<mr::tensor<float, 2>>("7") == "got 7, expected an array of arrays");
  CHECK(got_instead<mr::tensor<std::uint8_t, 2>>("[[1, 2], [3, 256]]") ==
        "got 256 at [1][1], expected an integer from 0 to 255");
  CHECK_THROWS_WITH_AS(value_of<mr::ragged<std::uint32_t>>("[7, 8]", {.max_length = 1}),
                       doctest::Contains("a ragged row is too long: got length 2"), mr::data_error);
}

TEST_CASE("several fields of one document, and of the next one, by the same worker") {
  mr::scratch memory;
  const std::string one = R"({"a": 1, "b": "x"})", other = R"({"a": 2, "b": "y"})", damaged = R"({"a": 2, )";
  for (const std::string* document : {&one, &other, &one}) {
    const mr::bytes field = mr::bytes::borrowed(*document);
    CHECK(mr::json_field<int>("a")(field, memory) == (document == &one ? 1 : 2));
    CHECK(mr::json_field("b")(field, memory) == (document == &one ? "x" : "y"));
    for (int i = 0; i < 2; ++i)
      CHECK_THROWS_AS(mr::json_field<int>("a")(mr::bytes::borrowed(damaged), memory), mr::data_error);
  }
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
