#include <millrace/item/bytes.hpp>
#include <millrace/item/record_builder.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

namespace mr = millrace;
using namespace std::string_view_literals;

namespace {

template <class T>
std::optional<T> integer_of(std::string_view text) {
  try {
    return mr::bytes::borrowed(text).as<T>();
  } catch (const mr::data_error&) {
    return std::nullopt;
  }
}
std::optional<double> real_of(std::string_view text) {
  try {
    return mr::bytes::borrowed(text).as<double>();
  } catch (const mr::data_error&) {
    return std::nullopt;
  }
}

// The results of Python's int() and float(): a value as %.17g prints it, or "-" for an error.
struct row {
  std::string_view text, as_int, as_float;
};
const std::vector<row> table{
    {"5"sv, "5", "5"},
    {"5\n"sv, "5", "5"},
    {" 7 "sv, "7", "7"},
    {"\x0b""5\x0c"sv, "5", "5"},
    {"\t1.5\r\n"sv, "-", "1.5"},
    {"+3"sv, "3", "3"},
    {"-1"sv, "-1", "-1"},
    {"-0"sv, "0", "-0"},
    {"007"sv, "7", "7"},
    {"1_000"sv, "1000", "1000"},
    {"0_7"sv, "7", "7"},
    {"9223372036854775807"sv, "9223372036854775807", "9.2233720368547758e+18"},
    {"-9223372036854775808"sv, "-9223372036854775808", "-9.2233720368547758e+18"},
    {"0x10"sv, "-", "-"},
    {""sv, "-", "-"},
    {" "sv, "-", "-"},
    {"+"sv, "-", "-"},
    {"1.0"sv, "-", "1"},
    {"\xef\xbb\xbf""5"sv, "-", "-"},
    {"5\0"sv, "-", "-"},
    {"\0"sv, "-", "-"},
    {"1.5\0"sv, "-", "-"},
    {"\x1c""5"sv, "-", "-"},
    {"5\x1f"sv, "-", "-"},
    {"\x85""5"sv, "-", "-"},
    {"\xd9\xa3"sv, "-", "-"},
    {"_1"sv, "-", "-"},
    {"1_"sv, "-", "-"},
    {"1__0"sv, "-", "-"},
    {"-_1"sv, "-", "-"},
    {"+ 3"sv, "-", "-"},
    {"- 1"sv, "-", "-"},
    {"--3"sv, "-", "-"},
    {"+-3"sv, "-", "-"},
    {"1 2"sv, "-", "-"},
    {"1,5"sv, "-", "-"},
    {"1e5"sv, "-", "100000"},
    {"1E-5"sv, "-", "1.0000000000000001e-05"},
    {"1e+5"sv, "-", "100000"},
    {"1e00005"sv, "-", "100000"},
    {"1e"sv, "-", "-"},
    {"1e+"sv, "-", "-"},
    {"e5"sv, "-", "-"},
    {"1e5.0"sv, "-", "-"},
    {".5"sv, "-", "0.5"},
    {"5."sv, "-", "5"},
    {"00.5"sv, "-", "0.5"},
    {"."sv, "-", "-"},
    {"+.5e-1"sv, "-", "0.050000000000000003"},
    {"-.e1"sv, "-", "-"},
    {"1_0.5"sv, "-", "10.5"},
    {"1e1_0"sv, "-", "10000000000"},
    {"1_e5"sv, "-", "-"},
    {"1e_5"sv, "-", "-"},
    {"1._5"sv, "-", "-"},
    {"1_.5"sv, "-", "-"},
    {"1.5_"sv, "-", "-"},
    {"_.5"sv, "-", "-"},
    {"._5"sv, "-", "-"},
    {"5._"sv, "-", "-"},
    {"inf"sv, "-", "inf"},
    {"-INF"sv, "-", "-inf"},
    {"+Infinity"sv, "-", "inf"},
    {"infi"sv, "-", "-"},
    {"infinity_"sv, "-", "-"},
    {"in_f"sv, "-", "-"},
    {"nan"sv, "-", "nan"},
    {"-NaN"sv, "-", "nan"},
    {"nan(1)"sv, "-", "-"},
    {"0x1p3"sv, "-", "-"},
    {"1.5f"sv, "-", "-"},
    {"0.1"sv, "-", "0.10000000000000001"},
    {"1e-400"sv, "-", "0"},
    {"-1e-400"sv, "-", "-0"},
    {"4.9e-324"sv, "-", "4.9406564584124654e-324"},
    {"1.7976931348623157e308"sv, "-", "1.7976931348623157e+308"},
    {"0e999999999999999999999"sv, "-", "0"},
    {"0.000000000000000000000000000000000000000000000000000000000001e60"sv, "-", "1"},
};

std::string printed(double value) {
  if (std::isnan(value)) return "nan";
  char text[64];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

}  // namespace

TEST_CASE("integers and reals are accepted and refused as Python does") {
  for (const auto& entry : table) {
    const std::string text(entry.text);
    CAPTURE(text);
    const auto i = integer_of<std::int64_t>(text);
    CHECK((i ? std::to_string(*i) : "-") == entry.as_int);
    const auto r = real_of(text);
    CHECK((r ? printed(*r) : "-") == entry.as_float);
  }
}

TEST_CASE("Python itself agrees with the table above") {
  if (std::system("python3 -c 0 >/dev/null 2>&1") != 0) {
    MESSAGE("skipped: no python3");
    return;
  }
  std::string program = "for f, x, want in [";
  const auto literal = [](std::string_view text) {
    std::string hex = "bytes.fromhex('";
    for (const char c : text) {
      char pair[3];
      std::snprintf(pair, sizeof pair, "%02x", static_cast<unsigned char>(c));
      hex += pair;
    }
    return hex + "')";
  };
  for (const auto& [text, as_int, as_float] : table) {
    program += "(int," + literal(text) + ",'" + std::string(as_int) + "'),";
    program += "(lambda v: float(v)," + literal(text) + ",'" + std::string(as_float) + "'),";
  }
  program += "]:\n  try: got = f(x)\n  except ValueError: got = '-'\n"
             "  assert (got if got == '-' else '%d' % got if f is int else '%.17g' % got) == want, (x, got, want)\n";
  char path[] = "/tmp/millrace-scalar-XXXXXX";
  const int file = ::mkstemp(path);
  REQUIRE(file != -1);
  CHECK(::write(file, program.data(), program.size()) == static_cast<ssize_t>(program.size()));
  ::close(file);
  CHECK(std::system(("python3 " + std::string(path)).c_str()) == 0);
  ::unlink(path);
}

TEST_CASE("an integer that does not fit into the type is an error") {
  CHECK(integer_of<std::int8_t>("127") == std::int8_t{127});
  CHECK(integer_of<std::int8_t>("-128") == std::int8_t{-128});
  CHECK_FALSE(integer_of<std::int8_t>("128"));
  CHECK_FALSE(integer_of<std::int8_t>("-129"));
  CHECK(integer_of<std::uint8_t>("255") == std::uint8_t{255});
  CHECK_FALSE(integer_of<std::uint8_t>("256"));
  CHECK_FALSE(integer_of<std::uint8_t>("-1"));
  CHECK(integer_of<std::uint8_t>("-0") == std::uint8_t{0});
  CHECK(integer_of<std::uint64_t>("18446744073709551615") == ~std::uint64_t{0});
  CHECK_FALSE(integer_of<std::uint64_t>("18446744073709551616"));
  CHECK_FALSE(integer_of<std::int64_t>("9223372036854775808"));
  CHECK_FALSE(integer_of<std::int64_t>("-9223372036854775809"));
  CHECK_FALSE(integer_of<std::int64_t>("99999999999999999999999999"));
  CHECK(integer_of<std::int64_t>(std::string(5000, '0') + "5") == 5);
}

TEST_CASE("a real too large for the type is an error, one too small is the nearest number") {
  CHECK_FALSE(real_of("1e400"));
  CHECK_FALSE(real_of("-1e309"));
  CHECK_FALSE(real_of("1e99999999999999999999"));
  CHECK_FALSE(real_of(std::string(400, '9')));
  CHECK(real_of("1e-99999999999999999999") == 0.0);
  CHECK(real_of("0." + std::string(400, '0') + "1") == 0.0);
  const auto single = [](std::string_view text) { return mr::bytes::borrowed(text).as<float>(); };
  CHECK(single("3.4028235e38") == std::numeric_limits<float>::max());
  CHECK_THROWS_AS((void)single("3.5e38"), mr::data_error);
  CHECK(single("1e-46") == 0.0F);
  CHECK(single("1e-45") == std::numeric_limits<float>::denorm_min());
  CHECK(single("0.1") == 0.1F);
  CHECK(std::signbit(single("-1e-50")));
}

TEST_CASE("text is UTF-8 or an error") {
  const auto good = [](std::string_view text) {
    try {
      return mr::text(mr::bytes::borrowed(text)) == text;
    } catch (const mr::data_error&) {
      return false;
    }
  };
  CHECK(good(""));
  CHECK(good("a caption\n"));
  CHECK(good("a\0b"sv));
  CHECK(good("\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf \xee\x80\x80 \xed\x9f\xbf"));
  for (const char* bad : {"\x80", "\xc3", "\xc3(", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x9f\xbf",
                          "\xed\xa0\x80",
                          "\xe2\x82", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
                          "\xff", "abc\xe4", "\xf0\x9f\x98"}) {
    CAPTURE(bad);
    CHECK_FALSE(good(bad));
  }
}

TEST_CASE("the error names field, shard and key, with a short and printable excerpt") {
  mr::block_pool pool;
  mr::record_builder build(pool);
  build.begin("train-3.tar", "n01/7", 512);
  const std::string value = "\x01" "cat" + std::string(100, 'x');
  std::memcpy(build.add_field("cls", value.size()).data(), value.data(), value.size());
  const mr::record r = build.finish();
  try {
    (void)r["cls"].as<int>();
    FAIL("no error");
  } catch (const mr::data_error& e) {
    CHECK(e.message() ==
          "the field 'cls' is not a valid integer: \"\\x01cat" + std::string(33, 'x') + "\"... (104 bytes)");
    CHECK(e.where().shard == "train-3.tar");
    CHECK(e.where().key == "n01/7");
    CHECK(e.where().offset_bytes == 512);
  }
}

TEST_CASE("a text that is not a field is not named in the error of its bytes") {
  try {
    (void)mr::bytes::borrowed("0x").as<double>();
    FAIL("no error");
  } catch (const mr::data_error& e) {
    CHECK(e.message() == "the text is not a valid real number: \"0x\" (2 bytes)");
    CHECK(e.where().shard.empty());
  }
}

TEST_CASE("text names field, shard and key of bytes that are not UTF-8") {
  mr::block_pool pool;
  mr::record_builder build(pool);
  build.begin("train-3.tar", "n01/7", 0);
  build.add_field("txt", 1)[0] = std::byte{0xff};
  const mr::record r = build.finish();
  try {
    (void)mr::text(r["txt"]);
    FAIL("no error");
  } catch (const mr::data_error& e) {
    CHECK(e.message() == "the field 'txt' is not valid UTF-8: \"\\xff\" (1 bytes)");
    CHECK(e.where().shard == "train-3.tar");
    CHECK(e.where().key == "n01/7");
  }
}

TEST_CASE("integers and reals of any text: of keys, std::strings and literals") {
  const std::string text = " 42\n";
  CHECK(mr::integer<int>(text) == 42);
  CHECK(mr::integer<std::uint8_t>(std::string_view("7")) == 7);
  CHECK(mr::integer<int>("-3") == -3);
  CHECK(mr::real<float>(std::string("0.5")) == 0.5F);
  CHECK(mr::real<double>(std::string_view("1e-3")) == 1e-3);
  mr::block_pool pool;
  mr::record_builder build(pool);
  build.begin("train-3.tar", "17", 0);
  const mr::record r = build.finish();
  CHECK(mr::integer<int>(r.key()) == 17);
  try {
    (void)mr::integer<int>(std::string_view("a"));
    FAIL("no error");
  } catch (const mr::data_error& e) {
    CHECK(e.message() == "the text is not a valid integer: \"a\" (1 bytes)");
  }
}
