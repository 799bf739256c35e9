#include <millrace/item/tensor/array.hpp>
#include <millrace/item/tensor/tensor.hpp>
#include <millrace/item/tensor/tensor_view.hpp>

#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>
#include <ranges>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace mr = millrace;

namespace {

std::string npy(std::string header, std::string_view payload, int version = 1) {
  header += std::string((64 - (header.size() + (version == 1 ? 11 : 13)) % 64) % 64, ' ') + "\n";
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) file += static_cast<char>(header.size() >> (8 * i) & 255);
  return file + header + std::string(payload);
}

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

const std::vector<float> six{0, 1, 2, 3, 4, 5};
const std::string plain_header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";

template <class T = float>
std::string message_of(const std::string& file, const char* name = "npy") {
  try {
    (void)mr::array<T>(mr::bytes::borrowed(file, name));
  } catch (const mr::data_error& e) {
    return e.message();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a .npy file contains its shape and its elements, versions 1.0 and 2.0") {
  for (const int version : {1, 2}) {
    const std::string file = npy(plain_header, raw(six), version);
    const auto a = mr::array<float>(mr::bytes::borrowed(file));
    CHECK(a.shape == std::vector<std::size_t>{2, 3});
    CHECK(a.data == six);
    CHECK(reinterpret_cast<std::uintptr_t>(a.data.data()) % 16 == 0);
    const auto t = mr::array<float, 2>(mr::bytes::borrowed(file));
    CHECK(t.shape() == std::array<std::size_t, 2>{2, 3});
    CHECK(t(1, 0) == 3);
    CHECK(reinterpret_cast<std::uintptr_t>(t.data()) % 16 == 0);
  }
}

TEST_CASE("every element type has the name that NumPy uses") {
  const auto check = [](auto value, const std::string& type) {
    using T = decltype(value);
    const std::string file = npy("{'descr': '" + type + "', 'fortran_order': False, 'shape': (1,)}",
                                 std::string(sizeof(T), '\x01'));
    CHECK(mr::array<T>(mr::bytes::borrowed(file)).shape == std::vector<std::size_t>{1});
  };
  check(std::int8_t{}, "|i1");
  check(std::uint8_t{}, "|u1");
  check(std::int16_t{}, "<i2");
  check(std::uint16_t{}, "<u2");
  check(std::int32_t{}, "<i4");
  check(std::uint32_t{}, "<u4");
  check(std::int64_t{}, "<i8");
  check(std::uint64_t{}, "<u8");
  check(float{}, "<f4");
  check(double{}, "<f8");
  check(mr::f16{}, "<f2");
}

TEST_CASE("scalars, empty arrays and other ways to write the header are read") {
  const auto shape_of = [](const std::string& header, std::size_t elements) {
    return mr::array<float>(mr::bytes::borrowed(npy(header, std::string(elements * 4, '\0')))).shape;
  };
  CHECK(shape_of("{'descr': '<f4', 'fortran_order': False, 'shape': ()}", 1).empty());
  CHECK(shape_of("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 99999999999999999)}", 0).size() == 2);
  CHECK(shape_of("{'descr': '<f4', 'fortran_order': False, 'shape': (999999999999, 999999999999, 0)}", 0).size() == 3);
  CHECK(shape_of("{ \"shape\" : (3 , ) , \"fortran_order\":False,\"descr\":\"<f4\" }", 3) ==
        std::vector<std::size_t>{3});
}

TEST_CASE("bytes without NumPy's mark are raw elements") {
  const std::string file = raw(std::vector<std::int16_t>{1, -2, 3});
  const auto a = mr::array<std::int16_t>(mr::bytes::borrowed(file, "pcm"));
  CHECK(a.shape == std::vector<std::size_t>{3});
  CHECK(a.data == std::vector<std::int16_t>{1, -2, 3});
  CHECK(mr::array<std::int16_t, 1>(mr::bytes::borrowed(file, "pcm"))(1) == -2);
  CHECK(mr::array<float>(mr::bytes::borrowed("", "pcm")).data.empty());
  CHECK(message_of(file, "pcm") == "the field 'pcm' has 6 bytes, which is not a multiple of the 4 bytes of one f32");
  CHECK_THROWS_AS((void)(mr::array<std::int16_t, 2>(mr::bytes::borrowed(file))), mr::data_error);
  // A damaged .npy file is not read as raw numbers.
  CHECK(message_of(std::string(8, 'x')) ==
        "the field 'npy' is not a .npy file: it does not begin with NumPy's magic bytes");
}

TEST_CASE("another type, order or version is an error that names both") {
  const auto with = [](const std::string& type, const std::string& order) {
    return npy("{'descr': '" + type + "', 'fortran_order': " + order + ", 'shape': (2, 3), }", raw(six));
  };
  CHECK(message_of(with("<f8", "False")) ==
        "the field 'npy' has the wrong element type: got '<f8', expected '<f4' (f32)");
  CHECK(message_of(with(">f4", "False")).find("'>f4'") != std::string::npos);
  CHECK(message_of(with("|O", "False")).find("'|O'") != std::string::npos);
  CHECK(message_of(with("<f4", "True")).find("Fortran order") != std::string::npos);
  CHECK(message_of(npy(plain_header, raw(six), 3)).find("version: got 3.0") != std::string::npos);
  CHECK_THROWS_AS((void)(mr::array<float, 3>(mr::bytes::borrowed(with("<f4", "False")))), mr::data_error);
}

TEST_CASE("sizes are checked against the payload before memory is allocated") {
  const auto with_shape = [](const std::string& shape) {
    return message_of(npy("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + "}", raw(six)));
  };
  CHECK(with_shape("(2, 4)") ==
        "the field 'npy' has the wrong size: got 24 bytes of elements, expected 32 according to its shape");
  CHECK(with_shape("(5,)") ==
        "the field 'npy' has the wrong size: got 24 bytes of elements, expected 20 according to its shape");
  CHECK(with_shape("(4611686018427387905, 4)").find("64 bits") != std::string::npos);   // 4 * 4 wraps to 16
  CHECK(with_shape("(1000000000000,)").find("according to its shape") != std::string::npos);
  CHECK(with_shape("(99999999999999999999999,)").find("unsupported header") != std::string::npos);
  CHECK(with_shape("(-1,)").find("unsupported header") != std::string::npos);
}

TEST_CASE("a file cut at any byte, or with any header byte changed, is an error or the same array") {
  const std::string file = npy(plain_header, raw(six));
  for (std::size_t length = 0; length < file.size(); ++length) {
    CAPTURE(length);
    CHECK_THROWS_AS((void)mr::array<float>(mr::bytes::borrowed(std::string_view(file).substr(0, length), "npy")),
                    mr::data_error);
  }
  for (std::size_t at = 0; at + 24 < file.size(); ++at) {
    for (int value = 0; value < 256; value += 5) {
      std::string changed = file;
      changed[at] = static_cast<char>(value);
      try {
        const auto a = mr::array<float>(mr::bytes::borrowed(changed, "npy"));
        if (a.data != six) FAIL("byte " << at << " set to " << value << " returns other elements");
      } catch (const mr::data_error&) {
      }
    }
  }
}

TEST_CASE("headers that are not a plain dictionary are refused") {
  for (const std::string header :
       {"", "{", "{}", "{'descr': '<f4'}", "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (6,)}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (6,)}", "{'descr': '<f4', 'fortran_order': False, 'shape': 6}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (6,)} x", "{'descr': '<f4', 'descr': '<f4', 'shape': (6,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), 'more': 1}", "{'descr: '<f4'}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (6"}) {
    CAPTURE(header);
    CHECK(message_of(npy(header, raw(six))).find("unsupported header") != std::string::npos);
  }
}

TEST_CASE("files of numpy.save() are read") {
  if (std::system("python3 -c 'import numpy' >/dev/null 2>&1") != 0) {
    MESSAGE("skipped: no numpy");
    return;
  }
  char path[] = "/tmp/millrace-array-XXXXXX";
  const int file = ::mkstemp(path);
  REQUIRE(file != -1);
  ::close(file);
  const std::string program = "import numpy as n; n.save(open('" + std::string(path) +
                              "','wb'), n.arange(24, dtype='i4').reshape(2, 3, 4))";
  REQUIRE(std::system(("python3 -c \"" + program + "\"").c_str()) == 0);
  std::ostringstream all;
  all << std::ifstream(path, std::ios::binary).rdbuf();
  ::unlink(path);
  const std::string saved = all.str();
  const auto t = mr::array<std::int32_t, 3>(mr::bytes::borrowed(saved));
  CHECK(t.shape() == std::array<std::size_t, 3>{2, 3, 4});
  for (int i = 0; i < 24; ++i) CHECK(t.data()[i] == i);
}

TEST_CASE("raw elements are not read from a file of another kind") {
  using namespace std::string_literals;
  const std::string gzip = "\x1f\x8b\x08\0\0\0\0\0\2\3\5\xc1\x83\x61\3\0\0\0\xb0\xd4\1\1"s;
  const std::string zip = "PK\3\4\x2d\0\0\0\0\0\0\0\x21\0\0\xf6\xc8\x6a\x23\xff\xff\xff\xff\xff\xff\xff\x09\0\x14\0"s;
  const std::string wav = "RIFF\x24\x08\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0"s;
  CHECK(message_of(gzip, "emb") ==
        "the field 'emb' does not contain raw numbers: got a gzip stream, expected a .npy file or raw numbers");
  CHECK(message_of(zip, "npz").find("a ZIP archive") != std::string::npos);
  CHECK(message_of<std::int16_t>(wav, "pcm").find("a WAV file") != std::string::npos);
  CHECK(message_of("0.5 0.25 0.125 1.5 2.5 3.5 4.5 5", "txt").find("a text") != std::string::npos);
  CHECK(message_of<std::int32_t>("[15, 16, 17, 18, 19, 20, 21, 22]", "json").find("a JSON text") != std::string::npos);
  // Bytes are bytes, whatever they contain.
  CHECK(message_of<std::uint8_t>(gzip, "bin") == "no error");
  // A count and sorted offsets may be raw numbers.
  std::vector<std::uint32_t> offsets{20};
  for (std::uint32_t i = 0; i <= 20; ++i) offsets.push_back(88);
  CHECK(message_of<std::uint32_t>(raw(offsets), "bin") == "no error");
}

TEST_CASE("bools are bytes, and two raw bytes are a bf16, as ml_dtypes writes it") {
  const auto of = [](const char* type, std::string_view payload) {
    return npy("{'descr': '" + std::string(type) + "', 'fortran_order': False, 'shape': (2,), }", payload);
  };
  const std::string bools = of("|b1", {"\1\0", 2});
  CHECK(mr::array<std::uint8_t>(mr::bytes::borrowed(bools)).data == std::vector<std::uint8_t>{1, 0});
  CHECK(mr::array<std::uint8_t, 1>(mr::bytes::borrowed(bools))(0) == 1);
  CHECK(message_of<std::int8_t>(bools) ==
        "the field 'npy' has the wrong element type: got '|b1', expected '|i1' (i8)");
  CHECK_THROWS_WITH_AS((void)mr::array<std::int8_t>(mr::bytes::borrowed(bools)),
                       doctest::Contains("Read bools as std::uint8_t"), mr::data_error);
  for (const char* type : {"<V2", "|V2"}) {
    const std::string halves = of(type, {"\x80\x3f\x00\xc0", 4});
    const auto read = mr::array<mr::bf16>(mr::bytes::borrowed(halves));
    REQUIRE(read.data.size() == 2);
    CHECK(mr::detail::to_float(read.data[0]) == 1.0F);
    CHECK(mr::detail::to_float(read.data[1]) == -2.0F);
    CHECK(message_of<mr::f16>(halves).find("got '" + std::string(type) + "', expected '<f2'") != std::string::npos);
  }
  CHECK(message_of<mr::bf16>(of("<f2", "abcd")).find("expected '<V2' (bf16)") != std::string::npos);
}

namespace {

std::int32_t sum_of(mr::tensor_view<const std::int32_t, 2> numbers) {
  std::int32_t sum = 0;
  for (const std::int32_t n : numbers.host()) sum += n;
  return sum;
}

}  // namespace

TEST_CASE("a writable view converts to a read-only one, and not the other way") {
  std::vector<std::int32_t> numbers{1, 2, 3, 4, 5, 6};
  const mr::tensor_view<std::int32_t, 2> view{.data = numbers.data(), .shape = {2, 3}, .name = "example::label"};
  CHECK(sum_of(view) == 21);
  const mr::tensor_view<const std::int32_t, 2> reading = view;
  CHECK(reading.data == numbers.data());
  CHECK(reading.shape == view.shape);
  CHECK(reading.name == view.name);
  const mr::tensor_view<const std::int32_t, 2> on_device =
      mr::tensor_view<std::int32_t, 2>{.data = numbers.data(), .shape = {2, 3}, .memory = mr::memory_kind::device};
  CHECK_THROWS_AS(on_device.host(), mr::setup_error);
  CHECK_FALSE(std::is_convertible_v<mr::tensor_view<const std::int32_t, 2>, mr::tensor_view<std::int32_t, 2>>);
}

TEST_CASE("elements of views and of tensors are read and written by [] and (), and loops go through them") {
  mr::tensor<std::int32_t, 3> numbers({2, 3, 4});
  static_assert(std::is_same_v<decltype(numbers.view()[0][0][0]), std::int32_t&>);
  static_assert(std::is_same_v<decltype(std::as_const(numbers)[0][0][0]), const std::int32_t&>);
  static_assert(std::is_same_v<decltype(numbers[0]), mr::tensor_view<std::int32_t, 2>>);
  static_assert(std::is_same_v<decltype(std::as_const(numbers)[0]), mr::tensor_view<const std::int32_t, 2>>);
  std::iota(numbers.span().begin(), numbers.span().end(), 0);
  numbers[1][2][3] += 100;
  numbers.view()(0, 1, 2) = -1;
  CHECK(numbers(1, 2, 3) == 123);
  CHECK(numbers.span()[6] == -1);
  CHECK(std::as_const(numbers)[1](0, 2) == 14);
  std::int32_t rows = 0, sum = 0;
  for (const auto picture : std::as_const(numbers))
    for (const auto row : picture) {
      CHECK(row.data == &numbers(static_cast<std::size_t>(rows / 3), static_cast<std::size_t>(rows % 3), 0));
      ++rows;
      for (const std::int32_t n : row) sum += n;
    }
  CHECK(rows == 6);
  CHECK(sum == 23 * 12 + 100 - 7);

  mr::tensor<std::int32_t, 1> labels({3});
  labels[2] = 5;
  for (std::int32_t& label : labels) ++label;
  CHECK(labels(2) == 6);
  CHECK(std::as_const(labels)[0] == 1);
  const mr::tensor_view<std::int32_t, 1> view = labels.view();
  view[1] = 7;
  CHECK(std::ranges::max(view) == 7);
  CHECK(*std::max_element(view.begin(), view.end()) == 7);
}

TEST_CASE("views are ranges: of elements, which form a span, and of rows, also in a batch without elements") {
  using one = mr::tensor_view<std::int32_t, 1>;
  using three = mr::tensor_view<std::int32_t, 3>;
  static_assert(std::ranges::contiguous_range<one> && std::ranges::sized_range<one> && std::ranges::view<one>);
  static_assert(std::ranges::forward_range<three> && std::ranges::view<three> && std::ranges::borrowed_range<three>);
  static_assert(!std::ranges::sized_range<three> && !std::ranges::sized_range<mr::tensor<float, 2>>);
  static_assert(std::is_aggregate_v<one> && std::is_trivially_copyable_v<one>);
  static_assert(std::is_constructible_v<std::span<const std::int32_t>, one>);
  static_assert(!std::is_constructible_v<std::span<std::int32_t>, three>);   // not for rows: use span()
  mr::tensor<std::int32_t, 2> numbers({2, 3});
  const std::span<const std::int32_t> row = numbers.view()[1];
  CHECK(row.data() == numbers.data() + 3);
  CHECK(numbers.view().span().size() == 6);
  const mr::tensor<float, 2> nothing({4, 0});
  CHECK(std::ranges::distance(nothing.begin(), nothing.end()) == 4);
}

TEST_CASE("a row of a padded column can be read without its padding") {
  std::vector<std::int32_t> values{1, 2, 3, 4, 0, 0}, lengths{3, 1};
  mr::padded_view<std::int32_t, 2> words{.values = {.data = values.data(), .shape = {2, 3}, .name = "pair::words"},
                                         .lengths = {.data = lengths.data(), .shape = {2}, .name = "pair::words"}};
  CHECK(std::ranges::equal(words[0], std::vector{1, 2, 3}));
  CHECK(std::ranges::equal(words[1], std::vector{4}));
  words.values.memory = words.lengths.memory = mr::memory_kind::device;
  CHECK_THROWS_WITH_AS(words[0], doctest::Contains("the column pair::words is in GPU memory"),
                       mr::detail::bad_element_access);
}

#ifndef NDEBUG
TEST_CASE("in debug builds an access out of range is an error that names the column") {
  std::vector<float> numbers(6);
  mr::tensor_view<float, 2> view{.data = numbers.data(), .shape = {2, 3}, .name = "example::box"};
  const char* const third = "an index of the column example::box is out of range: got 3, expected less than 3";
  const char* const second = "an index of the column example::box is out of range: got 2, expected less than 2";
  CHECK_THROWS_WITH_AS(view(1, 3), doctest::Contains(third), mr::detail::bad_element_access);
  CHECK_THROWS_WITH_AS(view[1][3], doctest::Contains(third), mr::detail::bad_element_access);
  CHECK_THROWS_WITH_AS(view(2, 0), doctest::Contains(second), mr::detail::bad_element_access);
  CHECK_THROWS_WITH_AS(view[2], doctest::Contains(second), mr::detail::bad_element_access);
  CHECK_THROWS_WITH_AS(view(-1, 0), doctest::Contains("got 18446744073709551615, expected"),
                       mr::detail::bad_element_access);
  mr::tensor<float, 1> alone({3});
  CHECK_THROWS_WITH_AS(alone[3], doctest::Contains("an index of the tensor is out of range: got 3"),
                       mr::detail::bad_element_access);

  view.memory = mr::memory_kind::device;
  const char* const elsewhere = "the column example::box is in GPU memory";
  CHECK_THROWS_WITH_AS(view(0, 0), doctest::Contains(elsewhere), mr::detail::bad_element_access);
  CHECK_THROWS_WITH_AS(view[1][0], doctest::Contains(elsewhere), mr::detail::bad_element_access);
  CHECK_THROWS_WITH_AS(view[1].begin(), doctest::Contains(elsewhere), mr::detail::bad_element_access);
  CHECK(view[1].data == numbers.data() + 3);   // its rows are ordinary views
  CHECK((*++view.begin()).memory == mr::memory_kind::device);
}
#endif
