// A libFuzzer target: fields of JSON documents. json_field, which uses simdjson, must return the values of a slow
// reader of RFC 8259, and refuse the same documents. fuzz.py builds and runs it if simdjson is installed.
//
// The first byte of the input chooses the field and its type. simdjson refuses a document with an integer beyond 64
// bits or a number beyond the range of a double, which the RFC allows; such documents are not compared.
#include <millrace/adapt/json.hpp>

#include "fuzz_target.hpp"
#include "slow_json.hpp"
#include "text_mutator.hpp"

#include <cmath>
#include <optional>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

namespace mr = millrace;
using slow::json_value;
using kind = json_value::kind;

bool is_number(const json_value& v) {
  return v.what == kind::word && v.text != "true" && v.text != "false" && v.text != "null";
}
bool is_integer(const json_value& v) { return is_number(v) && v.text.find_first_of(".eE") == std::string::npos; }

/// The value of an integer that fits into 64 bits, signed or not.
std::optional<__int128> integer(const json_value& v) {
  __int128 value = 0;
  for (const char c : v.text) {
    if (c == '-') continue;
    value = 10 * value + (c - '0');
    if (value > ~std::uint64_t{0}) return std::nullopt;
  }
  if (v.text[0] == '-') value = -value;
  if (value < std::numeric_limits<std::int64_t>::min()) return std::nullopt;
  return value;
}

bool has_number_out_of_range(const json_value& v) {
  if (is_number(v) && (is_integer(v) ? !integer(v) : std::isinf(std::strtod(v.text.c_str(), nullptr)))) return true;
  for (const auto& member : v.members)
    if (has_number_out_of_range(member)) return true;
  return false;
}

const json_value* member(const json_value& v, const std::string& key) {
  if (v.what == kind::object)
    for (std::size_t i = 0; i < v.keys.size(); ++i)
      if (v.keys[i] == key) return &v.members[i];
  return nullptr;
}

template <class T>
std::optional<T> value_of(const json_value* v) {
  if (!v) return std::nullopt;
  if constexpr (std::is_same_v<T, std::string>) {
    return v->what == kind::string ? std::optional(v->text) : std::nullopt;
  } else if constexpr (std::is_same_v<T, bool>) {
    if (v->what != kind::word || (v->text != "true" && v->text != "false")) return std::nullopt;
    return v->text == "true";
  } else if constexpr (std::is_integral_v<T>) {
    const auto number = is_integer(*v) ? integer(*v) : std::nullopt;
    if (!number || *number < std::numeric_limits<T>::min() || *number > std::numeric_limits<T>::max())
      return std::nullopt;
    return static_cast<T>(*number);
  } else if constexpr (std::is_same_v<T, double>) {
    return is_number(*v) ? std::optional(std::strtod(v->text.c_str(), nullptr)) : std::nullopt;
  } else {   // a matrix of doubles
    if (v->what != kind::array) return std::nullopt;
    std::vector<double> all;
    std::size_t columns = 0;
    for (std::size_t row = 0; row < v->members.size(); ++row) {
      const json_value& values = v->members[row];
      if (values.what != kind::array || (row > 0 && values.members.size() != columns)) return std::nullopt;
      columns = values.members.size();
      for (const auto& one : values.members) {
        const auto number = value_of<double>(&one);
        if (!number) return std::nullopt;
        all.push_back(*number);
      }
    }
    return T({v->members.size(), columns}, std::move(all));
  }
}

template <class T>
void compare(std::string_view text, const char* name, const std::optional<json_value>& document,
             const json_value* expected_at) {
  static mr::scratch memory;
  std::optional<T> ours;
  std::string refusal;
  try {
    ours = mr::json_field<T>(name)(mr::bytes::borrowed(text), memory);
  } catch (const mr::data_error& e) {
    refusal = e.message();
  }
  slow::counters().count(ours.has_value());
  const bool no_json = refusal.starts_with("the text is not valid JSON: ");
  if (no_json == document.has_value()) slow::fail(no_json ? "refused, but JSON: " + refusal : "accepted, but not JSON");
  const auto expected = value_of<T>(expected_at);
  if (ours.has_value() != expected.has_value()) slow::fail(ours ? "a value that does not exist" : refusal);
  if constexpr (std::is_same_v<T, mr::tensor<double, 2>>) {
    const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    if (ours && (ours->shape() != expected->shape() || !std::equal(ours->span().begin(), ours->span().end(),
                                                                   expected->span().begin(), same)))
      slow::fail("another matrix");
  } else {
    if (ours != expected) slow::fail("another value");
  }
}

}  // namespace

void slow::write_seeds(const seed_folder& seeds) {
  for (const char* text :
       {R"({"a": "text \u00e9 \ud83d\ude00 \n", "b": [1, 2]})", R"({"a": -12})", R"({"a": true, "a": false})",
        R"({"a": 1.5e3})", R"({"a": [[1, 2.5], [3, 4]]})", R"({"a": [[], []]})", R"({"a": []})", R"({"a": null})",
        R"({"a": {"b": [0, {"a": 7}]}})", R"([{"a": 2147483648}])", R"({"a": 9223372036854775808, "c": 1e-320})",
        R"({"\u0061": "\ud800"})", "\"a\"", " 1 ", "{}", "", "{\"a\": \"\xc3\xbc\"}", "{\"a\": \"\xff\"}", "nul", "01"})
    for (const char knob : {'\0', '\1', '\2', '\3', '\4'}) seeds.add(std::string(1, knob) + text);
}

void slow::check(std::span<const std::byte> input, draw) {
  const unsigned knob = take_knob(input);
  const std::string_view text = text_of(input);
  auto document = json_reader(text, {.join_surrogates = true, .deepest = 1000}).document();
  if (document && has_number_out_of_range(*document)) return;
  if (!mr::detail::is_utf8(text)) document.reset();
  const json_value* a = document ? member(*document, "a") : nullptr;
  switch (knob % 5) {
    case 0: return compare<std::string>(text, "a", document, a);
    case 1: return compare<std::int32_t>(text, "a", document, a);
    case 2: return compare<bool>(text, "a", document, a);
    case 3: return compare<mr::tensor<double, 2>>(text, "a", document, a);
    default: break;
  }
  const json_value* at = a ? member(*a, "b") : nullptr;   // "/a/b/1"
  if (at && at->what == kind::array) at = at->members.size() > 1 ? &at->members[1] : nullptr;
  else if (at) at = member(*at, "1");
  compare<double>(text, "/a/b/1", document, at);
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  mr::rng d({.seed = seed});
  if (d.chance(0.1)) {
    static constexpr std::string_view examples[] = {"\1{\"a\": 1, \"b\": [2, 3]}", "\3{\"a\": [[1, 2], [3.5, 4]]}",
                                                 "\4{\"a\": {\"b\": [0, 1.25, 2]}}", "\2{\"a\": true}"};
    size = slow::text_mutator::restart_with(examples[d.below(4)], data, max_size);
  }
  return slow::text_mutator(d, LLVMFuzzerMutate,
                            {"{", "}", "[", "]", "\"", ",", ":", "\"a\"", "\"b\"", "\\u00ff", "\\ud83d\\ude00", "null",
                             "true", "1e5", "-", "0.5", "[[1]]", "\"a\":1", "\\", "\xc3\xbc", " "})
      .change(data, size, max_size, 1);
}
