// Extracts a field from a JSON document. The document is a line, or is stored in a field of a record.
//
//   #include <millrace/adapt/json.hpp>                                  // link with -lsimdjson
//   auto flow = mr::lines("corpus-{0000..1023}.jsonl.gz") | mr::map(mr::json_field("text")) | mr::map(tokenize) | ...
//   auto same = mr::shards("corpus-{000..099}.tar") | mr::map(mr::json_field("text")) | ...   // reads the field "json"
//
//   example prepare(const mr::record& r, mr::scratch& s) {             // several fields: parses the document once
//     const mr::bytes meta = r["json"];
//     return {mr::json_field("caption")(meta, s),                                        // std::string
//             mr::json_field<std::int32_t>("/objects/0/class")(meta, s),                 // a JSON pointer (RFC 6901)
//             mr::json_field<mr::tensor<float, 2>>("camera", {.shape = {3, 4}})(meta, s),
//             mr::json_field<mr::ragged<std::uint32_t>>("ids", {.max_length = 512})(meta, s),
//             mr::json_field<mr::ragged<float, 2>>("boxes", {.row_shape = {4}, .rows = {.max_length = 50}})(meta, s)};
//   }
//
// Opt-in: needs simdjson (libsimdjson-dev).
// Strings are UTF-8, and escape sequences are decoded. For an integer type, the value is a JSON number without fraction
// or exponent, in the range of the type. For a floating-point type, the value is any number in the range of the type,
// and is rounded. The words NaN, Infinity and -Infinity are also accepted as floating-point numbers, because Python's
// json.dumps() writes them. A bool is true or false. Arrays must be rectangular. The nesting depth of an array must
// equal the number of dimensions of the tensor or ragged row.
// Errors: data_error if the text is not exactly one JSON document, if the field is missing, or if the value has a wrong
// type, range or shape. The error contains the actual and the expected value. The flow adds file and line.
// Threads: any number of threads at the same time. Each worker has its own parser.
#pragma once

#include <millrace/base/half.hpp>
#include <millrace/item/line.hpp>
#include <millrace/item/scratch.hpp>
#include <millrace/item/tensor/ragged.hpp>
#include <millrace/item/tensor/tensor.hpp>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#if !__has_include(<simdjson.h>)
#error "millrace: simdjson is not installed: apt-get install libsimdjson-dev"
#endif
#include <simdjson.h>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of json_field<tensor<T, N>>, and of json_field<std::vector<T>> with N = 1.
template <std::size_t N>
struct json_tensor_options {
  std::array<std::size_t, N> shape{};   ///< required shape; 0 allows any extent
};

/// Options of json_field<ragged<T, N>> for N >= 2. For N = 1, json_field uses ragged_options.
template <class T, std::size_t N>
struct json_ragged_options {
  /// Extents of the fixed dimensions, such as {4} for boxes [n, 4]. Set them if n can be 0, because an empty array does
  /// not define them.
  std::array<std::size_t, N - 1> row_shape{};
  ragged_options<T> rows{};   ///< options of the first dimension, whose extent varies
};

namespace detail {

struct no_json_options {};

/// Describes the conversion of a JSON value to a T. `rank` is the nesting depth of arrays in the value, 0 without
/// arrays.
template <class T>
struct simdjson_kind;
template <>
struct simdjson_kind<std::string> {
  using element = std::string;
  using options = no_json_options;
  static constexpr std::size_t rank = 0;
};
template <tensor_element T>
struct simdjson_kind<T> {
  using element = T;
  using options = no_json_options;
  static constexpr std::size_t rank = 0;
};
template <tensor_element T>
  requires(!std::same_as<T, bool>)
struct simdjson_kind<std::vector<T>> {
  using element = T;
  using options = json_tensor_options<1>;
  static constexpr std::size_t rank = 1;
  static std::array<std::size_t, 1> expected(const options& o) { return o.shape; }
  static std::vector<T> make(const std::array<std::size_t, 1>&, std::vector<T> all, const options&) { return all; }
};
template <class T, std::size_t N>
  requires(!std::same_as<T, bool>)
struct simdjson_kind<tensor<T, N>> {
  using element = T;
  using options = json_tensor_options<N>;
  static constexpr std::size_t rank = N;
  static std::array<std::size_t, N> expected(const options& o) { return o.shape; }
  static tensor<T, N> make(const std::array<std::size_t, N>& shape, std::vector<T> all, const options&) {
    return {shape, std::move(all)};
  }
};
template <class T, std::size_t N>
  requires(!std::same_as<T, bool>)
struct simdjson_kind<ragged<T, N>> {
  using element = T;
  using options = std::conditional_t<N == 1, ragged_options<T>, json_ragged_options<T, N>>;
  static constexpr std::size_t rank = N;
  static std::array<std::size_t, N> expected(const options& o) {
    std::array<std::size_t, N> shape{};
    if constexpr (N > 1) std::copy(o.row_shape.begin(), o.row_shape.end(), shape.begin() + 1);
    return shape;
  }
  static ragged<T, N> make(const std::array<std::size_t, N>& shape, std::vector<T> all, const options& o) {
    if constexpr (N == 1) return {std::move(all), o};
    else return {tensor<T, N>(shape, std::move(all)), o.rows};
  }
};
template <class T>
concept json_type = requires { simdjson_kind<T>::rank; };

/// Returns a description of the values that json_field<T> accepts, for messages.
template <class T>
std::string simdjson_expectation() {
  if constexpr (std::is_same_v<T, std::string>) return "a string";
  else if constexpr (std::is_same_v<T, bool>) return "true or false";
  else if constexpr (std::is_integral_v<T>)
    return "an integer from " + std::to_string(std::numeric_limits<T>::min()) + " to " +
           std::to_string(std::numeric_limits<T>::max());
  else return "a number in the range of " + std::string(dtype_name<T>());
}

/// A word that Python's json.dumps() writes for a number, such as NaN. The word is not JSON. If simdjson rejects a
/// document, each such word is replaced by a special string, and the document is parsed again.
struct simdjson_constant {
  std::string_view word;
  double value;
};
inline constexpr simdjson_constant json_constants[] = {{"NaN", std::numeric_limits<double>::quiet_NaN()},
                                                       {"-Infinity", -std::numeric_limits<double>::infinity()},
                                                       {"Infinity", std::numeric_limits<double>::infinity()}};

/// Returns the constant that a string represents, or null for an ordinary string.
inline const simdjson_constant* simdjson_constant_of(std::string_view text) noexcept {
  if (!text.starts_with('\0')) return nullptr;
  for (const simdjson_constant& c : json_constants)
    if (text.substr(1) == c.word) return &c;
  return nullptr;
}

/// Returns the document with its constants converted to strings, or "" if the document has no constants.
inline std::string with_json_constants_as_strings(std::string_view document) {
  std::string out;
  bool in_string = false, has_some = false;
  for (std::size_t at = 0; at < document.size(); ++at) {
    const char c = document[at];
    if (in_string) {
      out += c;
      if (c == '\\' && at + 1 < document.size()) out += document[++at];
      else if (c == '"') in_string = false;
      continue;
    }
    in_string = c == '"';
    const simdjson_constant* constant = nullptr;
    for (const simdjson_constant& one : json_constants)
      if (!constant && document.substr(at).starts_with(one.word)) constant = &one;
    if (constant) {   // a word before a colon is a member name without quotes, which is an error
      const std::size_t next = document.find_first_not_of(" \t\r\n", at + constant->word.size());
      if (next != std::string_view::npos && document[next] == ':') constant = nullptr;
    }
    if (!constant) {
      out += c;
      continue;
    }
    out.append("\"\\u0000").append(constant->word).append("\"");
    at += constant->word.size() - 1;
    has_some = true;
  }
  return has_some ? out : std::string();
}

/// Converts a value. Returns false if the value has another type or is out of range.
template <class T>
bool read_json(const simdjson::dom::element& from, T& to) {
  if constexpr (std::is_same_v<T, std::string>) {
    std::string_view text;
    if (from.get(text) || simdjson_constant_of(text)) return false;
    to = text;
  } else if constexpr (std::is_same_v<T, bool>) {
    return !from.get(to);
  } else if constexpr (std::is_integral_v<T>) {
    std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t> number = 0;
    if (from.get(number)) return false;
    to = static_cast<T>(number);
    return to == number;
  } else {
    double number = 0;
    std::string_view text;
    if (!from.get(text)) {
      const simdjson_constant* const constant = simdjson_constant_of(text);
      if (constant) to = half_element<T>(static_cast<float>(constant->value));
      return constant != nullptr;
    }
    if (from.get(number)) return false;
    if constexpr (std::is_same_v<T, double>) {
      to = number;
    } else {
      if (std::abs(number) > static_cast<double>(std::numeric_limits<float>::max())) return false;
      to = half_element<T>(static_cast<float>(number));
      return is_finite(to_float(to));
    }
  }
  return true;
}

/// The parser of a worker, and the last document. If several fields of a document are requested in succession, the
/// document is parsed once.
class json_document {
 public:
  /// Parses a document. Returns simdjson's error code instead of throwing it.
  simdjson::error_code parse(std::string_view document) {
    if (parsed_ && document == std::string_view(text_).substr(0, text_.size() - simdjson::SIMDJSON_PADDING))
      return simdjson::SUCCESS;
    text_.assign(document);
    text_.append(simdjson::SIMDJSON_PADDING, ' ');   // the parser reads beyond the end of the document
    auto problem = parser_.parse(text_.data(), document.size(), false).get(root_);
    if (problem != simdjson::SUCCESS)
      if (std::string other = with_json_constants_as_strings(document); !other.empty()) {
        const std::size_t bytes = other.size();
        other.append(simdjson::SIMDJSON_PADDING, ' ');
        problem = parser_.parse(other.data(), bytes, false).get(root_);
      }
    parsed_ = problem == simdjson::SUCCESS;
    return problem;
  }
  const simdjson::dom::element& root() const noexcept { return root_; }

 private:
  simdjson::dom::parser parser_;
  simdjson::dom::element root_{};
  std::string text_;
  bool parsed_ = false;
};

}   // namespace detail

/// A function for map() that returns one field of each line, or of the field "json" of each record.
/// T is std::string (the default), a number, bool, or a std::vector, tensor or ragged row of numbers.
template <class T = std::string>
class json_field {
  static_assert(detail::json_type<T>,
                "millrace: json_field<T> supports std::string, a number, bool, or a std::vector, tensor or ragged of "
                "numbers");
  using kind = detail::simdjson_kind<T>;
  using element = typename kind::element;

 public:
  using options = typename kind::options;

  /// `name` is the name of a field of the outermost object, or a JSON pointer, which begins with '/'.
  explicit json_field(std::string name, const options& o = {}) : name_(std::move(name)), options_(o) {}

  /// Returns the field of a document. Throws data_error if the document is invalid, the field is missing, or its value
  /// does not have the expected type.
  T operator()(const line& one, scratch& memory) const { return find(one.text(), memory, one.field()); }
  T operator()(const record& one, scratch& memory) const { return (*this)(one["json"], memory); }
  T operator()(const bytes& field, scratch& memory) const { return find(field.text(), memory, field); }

 private:
  T find(std::string_view document, scratch& memory, const bytes& from) const {
    auto& parsed = memory.get<detail::json_document>();
    if (const auto problem = parsed.parse(document))
      fail("is not valid JSON: " + std::string(simdjson::error_message(problem)),
           from.name() != "line" ? "Store one complete document in the field"
           : problem == simdjson::EMPTY
               ? "Write one complete document per line (JSON Lines). lines_options::skip_empty omits empty lines"
               : "Write one complete document per line (JSON Lines)",
           from);
    simdjson::dom::element node;
    const auto& root = parsed.root();
    const auto looked_up = name_.starts_with('/') ? root.at_pointer(name_) : root.at_key(name_);
    if (looked_up.get(node))
      fail("has no field '" + printable(name_) + "'", "Name a field that every document has", from);
    if constexpr (kind::rank == 0) {
      T value{};
      if (!detail::read_json(node, value)) fail_value(node, "", detail::simdjson_expectation<T>(), from);
      return value;
    } else {
      array_builder array{.shape = kind::expected(options_)};
      for (std::size_t d = 0; d < kind::rank; ++d) array.is_fixed[d] = array.shape[d] > 0;
      read_array(node, 0, array, from);
      return kind::make(array.shape, std::move(array.elements), options_);
    }
  }

  struct array_builder {
    std::array<std::size_t, kind::rank> shape{}, at{};
    std::array<bool, kind::rank> is_fixed{};
    std::vector<element> elements{};

    /// Returns the first `dimensions` indices of the current element, such as "[2][0]".
    std::string where(std::size_t dimensions) const {
      std::string text;
      for (std::size_t d = 0; d < dimensions; ++d) text += "[" + std::to_string(at[d]) + "]";
      return text;
    }
  };

  void read_array(const simdjson::dom::element& from, std::size_t dimension, array_builder& to,
                  const bytes& field) const {
    simdjson::dom::array values;
    if (from.get(values))
      fail_value(from, to.where(dimension), dimension + 1 < kind::rank ? "an array of arrays" : "an array of numbers",
                 field);
    std::size_t count = 0;
    for (const simdjson::dom::element value : values) {
      to.at[dimension] = count++;
      if (dimension + 1 < kind::rank) {
        read_array(value, dimension + 1, to, field);
        continue;
      }
      element read{};
      if (!detail::read_json(value, read))
        fail_value(value, to.where(kind::rank), detail::simdjson_expectation<element>(), field);
      to.elements.push_back(std::move(read));
    }
    if (to.is_fixed[dimension] && to.shape[dimension] != count)
      fail_value(std::to_string(count) + (count == 1 ? " element" : " elements"), to.where(dimension),
                 std::to_string(to.shape[dimension]), field);
    to.is_fixed[dimension] = true;
    to.shape[dimension] = count;
  }

  [[noreturn]] void fail_value(const simdjson::dom::element& got, const std::string& at, const std::string& expected,
                               const bytes& from) const {
    std::string text = simdjson::minify(got);
    if (std::string_view word; !got.get(word))
      if (const auto* const constant = detail::simdjson_constant_of(word)) text = constant->word;
    if (text.size() > 40) text = text.substr(0, 37) + "...";
    fail_value(printable(text), at, expected, from);
  }
  [[noreturn]] void fail_value(const std::string& got, const std::string& at, const std::string& expected,
                               const bytes& from) const {
    fail("has an invalid field '" + printable(name_) + "': got " + got + (at.empty() ? "" : " at " + at) +
             ", expected " + expected,
         "Correct the document, or set T in json_field<T> to the type of the value", from);
  }

  [[noreturn]] static void fail(const std::string& what, std::string hint, const bytes& from) {
    const std::string name = from.name().empty() ? "the text" : "the field '" + printable(from.name()) + "'";
    throw data_error(name + " " + what + "; it begins \"" + printable(from.text().substr(0, 40)) + "\"",
                     std::move(hint), detail::location_of(from));
  }

  std::string name_;
  options options_;
};

}}   // namespace millrace
