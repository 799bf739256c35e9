#include <millrace/sources/token_files.hpp>

#include "../io/tar_bytes.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <numeric>

namespace mr = millrace;
using namespace std::string_literals;

namespace {

using windows = std::vector<std::vector<std::uint32_t>>;

windows read_all(const std::string& path, const mr::token_files_options& options) {
  mr::detail::token_reader reader(path, options);
  windows all;
  while (auto one = reader.next()) all.push_back(one->ids);
  return all;
}

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string npy(std::string header, const std::string& payload, int version = 1) {
  header += std::string((64 - (header.size() + (version == 1 ? 11 : 13)) % 64) % 64, ' ') + "\n";
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) file += static_cast<char>(header.size() >> (8 * i) & 255);
  return file + header + payload;
}
std::string npy_of(const std::string& type, const std::string& shape, const std::string& payload) {
  return npy("{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }", payload);
}

template <class Error = mr::data_error>
std::string error_of(const std::string& path, const mr::token_files_options& options = {.length = 4}) {
  try {
    read_all(path, options);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a file of another container format is an error with its kind and a remedy") {
  const temporary_folder folder;
  struct container {
    std::string bytes, kind, remedy;
  };
  const std::string gzip = "\x1f\x8b\x08\0\0\0\0\0\2\3\5\xc1\x83\x61\3\0\0\0\xb0\xd4"s;
  std::vector<std::uint32_t> eval(300);
  eval[0] = 20240522, eval[1] = 1;
  const container containers[] = {
      {gzip + "\0"s, "gzip", "Decompress"},
      {"\x28\xb5\x2f\xfd\x20\x80\x6d\2\0\2\x48\x12"s, "Zstandard", "Decompress"},
      {"\xfd" "7zXZ\0\0\4"s + std::string(30, '\1'), "xz", "Decompress"},
      {"BZh91AY&SY"s + std::string(30, '\1'), "bzip2", "Decompress"},
      {"\x04\x22\x4d\x18\x68\x40\x80\0"s, "LZ4", "Decompress"},
      {"PK\3\4\x2d\0\0\0\0\0\0\0\x21\0\0\xf6\xc8\x6a\x23\xff\xff\xff\xff\xff\xff\xff\x09\0\x14\0"s, "ZIP",
       "numpy.save()"},
      {"MMIDIDX\0\0\1\0\0\0\0\0\0\0\x08"s, "Megatron", ".bin"},
      {"PAR1\x15\4\x15\xa0\6\x15\xaa\3"s, "Parquet", "numpy.save()"},
      {"\x89HDF\r\n\x1a\n\0\0"s, "HDF5", "numpy.save()"},
      {"\x80\4\x95\x0a\0\0\0\0\0\0\0\x5d\x94\x28\x4b\0\x4b\1\x4b\2\x4b\3\x2e"s, "pickle", "numpy.save()"},
      {"version https://git-lfs.github.com/spec/v1\noid", "Git LFS", "git lfs pull"},
      {"<!DOCTYPE html><html><head><title>404 Not Found</title>", "HTML", "download"},
      {"15496 995 11 314 716 50256\n198 2\n", "text", "Tokenize"},
      {"{\"ids\": [15496, 995, 11, 314, 716]}", "JSON", "Tokenize"},
      {raw(eval), "llm.c", "numpy.save()"},
  };
  for (const container& c : containers) {
    CAPTURE(c.kind);
    for (const char* name : {"a.u16", "b.u32", "c.bin"}) {
      const std::string path = folder / name;
      tar_test::save(path, c.bytes + std::string((4 - c.bytes.size() % 4) % 4, ' '));   // the size is that of an array
      const std::string error = error_of(path);
      for (const std::string& part : {c.kind, c.remedy, "header_bytes = 0"s, path}) {
        CAPTURE(error);
        CHECK(error.find(part) != std::string::npos);
      }
      // On explicit request, the bytes are tokens.
      CHECK(!read_all(path, {.length = 2, .header_bytes = 0}).empty());
    }
  }
  // Bytes of a text are tokens of one byte; other containers are not.
  tar_test::save(folder / "d.u8", "15496 995 11 314 716 50256\n");
  CHECK(read_all(folder / "d.u8", {.length = 3})[0] == std::vector<std::uint32_t>{'1', '5', '4'});
  tar_test::save(folder / "e.u8", gzip);
  CHECK(error_of(folder / "e.u8").find("gzip") != std::string::npos);
}

TEST_CASE("tokens of .npy files and of llm.c are read by their headers") {
  const temporary_folder folder;
  const std::string path = folder / "any.u16";   // headers take precedence over names
  const windows expected{{1, 2, 3}, {4, 5, 6}};
  const auto check = [&](auto one, const std::string& type) {
    using T = decltype(one);
    const std::string payload = raw(std::vector<T>{1, 2, 3, 4, 5, 6});
    tar_test::save(path, npy_of(type, "(6,)", payload));
    CAPTURE(type);
    CHECK(read_all(path, {.length = 3}) == expected);
    tar_test::save(path, npy_of(type, "(2, 3)", payload));
    CHECK(read_all(path, {.length = 3, .token_bytes = sizeof(T)}) == expected);
  };
  check(std::uint8_t{}, "|u1");
  check(std::int8_t{}, "|i1");
  check(std::uint16_t{}, "<u2");
  check(std::int16_t{}, "<i2");
  check(std::uint32_t{}, "<u4");
  check(std::int32_t{}, "<i4");
  check(std::uint64_t{}, "<u8");
  check(std::int64_t{}, "<i8");
  const std::string six = raw(std::vector<std::uint16_t>{1, 2, 3, 4, 5, 6});
  tar_test::save(path, npy("{'descr': '<u2', 'fortran_order': True, 'shape': (6,), }", six, 2));
  CHECK(read_all(path, {.length = 3}) == expected);

  std::vector<std::uint32_t> header(256);
  header[0] = 20240520, header[1] = 1, header[2] = 6;
  tar_test::save(path, raw(header) + six);
  CHECK(read_all(path, {.length = 3}) == expected);
  CHECK(read_all(path, {.length = 3, .header_bytes = 1024}) == expected);
  CHECK(read_all(path, {.length = 3, .header_bytes = 1026})[0] == std::vector<std::uint32_t>{2, 3, 4});
  header[0] = 20240801, header[1] = 7;
  tar_test::save(path, raw(header) + raw(std::vector<std::uint32_t>{1, 2, 3, 4, 5, 6}));
  CHECK(read_all(path, {.length = 3}) == expected);

  const auto problem = [&](const std::string& file, const mr::token_files_options& options = {.length = 3}) {
    tar_test::save(path, file);
    return error_of(path, options);
  };
  CHECK(problem(raw(header) + six).find("got 12 bytes after the header, expected 6 tokens of 4") != std::string::npos);
  CHECK(problem(npy_of("<u2", "(7,)", six)).find("got 12 bytes after the header") != std::string::npos);
  CHECK(problem(npy_of("<f4", "(3,)", six)).find("elements of type '<f4'") != std::string::npos);
  CHECK(problem(npy_of(">u2", "(6,)", six)).find("elements of type '>u2'") != std::string::npos);
  CHECK(problem(npy_of("<u2", "()", six)).find("0 dimensions") != std::string::npos);
  CHECK(problem(npy_of("<u2", "(1, 2, 3)", six)).find("3 dimensions") != std::string::npos);
  CHECK(problem(npy_of("<u2", "(4294967296, 4294967297)", six)).find("64 bits") != std::string::npos);
  CHECK(problem(npy("{'descr': '<u2', 'fortran_order': True, 'shape': (2, 3), }", six)).find("Fortran") !=
        std::string::npos);
  CHECK(problem(npy_of("<u2", "(6,)", six), {.length = 3, .token_bytes = 4}).find("2 bytes according to its header") !=
        std::string::npos);
  CHECK(problem(npy_of("<u2", "(6,)", six).substr(0, 40)).find("an unknown header") != std::string::npos);
  CHECK(problem("12", {.length = 3, .header_bytes = 3}).find("shorter than its header") != std::string::npos);
  CHECK(problem("12345", {.length = 3, .header_bytes = 2}).find("got 3 bytes") != std::string::npos);
}

TEST_CASE("an id that is negative or not in the vocabulary is an error with file and offset") {
  const temporary_folder folder;
  const auto error_in = [&](const std::string& name, const std::string& file, const mr::token_files_options& options) {
    tar_test::save(folder / name, file);
    return error_of(folder / name, options);
  };
  const std::vector<std::uint16_t> narrow{0, 1, 50'256, 7, 50'257, 9};
  std::string error = error_in("a.u16", raw(narrow), {.length = 2, .vocabulary = 50'257});
  CHECK(error.find("got id 50257, expected 0 to 50256") != std::string::npos);
  CHECK(error.find("a.u16, offset 8") != std::string::npos);
  CHECK(error_in("a.u16", raw(narrow), {.length = 2, .vocabulary = 50'258}) == "no error");
  CHECK(error_in("a.u16", raw(narrow), {.length = 2}) == "no error");
  error = error_in("b.i32", raw(std::vector<std::int32_t>{1, 2, -100, 3}), {.length = 4});
  CHECK(error.find("got id -100, expected 0 to") != std::string::npos);
  CHECK(error.find("offset 8") != std::string::npos);
  error = error_in("c.i64", raw(std::vector<std::int64_t>{1, 2, 3, std::int64_t{1} << 32}), {.length = 4});
  CHECK(error.find("got id 4294967296") != std::string::npos);
  CHECK(error_in("c.i64", raw(std::vector<std::int64_t>{1, 2, 3, -1}), {.length = 4}).find("got id -1") !=
        std::string::npos);
  CHECK(error_in("d.u64", raw(std::vector<std::uint64_t>{1, 2, 3, ~std::uint64_t{0}}), {.length = 4})
            .find("got id 18446744073709551615") != std::string::npos);
  CHECK(error_in("e.u8", raw(std::vector<std::uint8_t>{1, 200, 3, 4}), {.length = 4, .vocabulary = 200})
            .find("got id 200") != std::string::npos);
  CHECK(error_in("f.u32", raw(std::vector<std::uint32_t>{1, ~0U, 3, 4}), {.length = 4}) == "no error");
  CHECK(error_in("g.npy", npy_of("<i4", "(4,)", raw(std::vector<std::int32_t>{1, 2, 3, -1})), {.length = 4})
            .find("got id -1") != std::string::npos);
}

TEST_CASE("names contain the width of tokens") {
  using mr::detail::token_type_by_name;
  CHECK(token_type_by_name("a.u8").bytes == 1);
  CHECK(token_type_by_name("a.b/train.bin").bytes == 2);
  CHECK(token_type_by_name("noextension").bytes == 2);
  CHECK(token_type_by_name("a.u32").bytes == 4);
  CHECK(!token_type_by_name("a.u32").is_signed);
  CHECK(token_type_by_name("a.i32").is_signed);
  CHECK(token_type_by_name("a.i64").bytes == 8);
  CHECK(token_type_by_name("a.x64").bytes == 2);
}

TEST_CASE("tokens that are wider than in their name are an error, not halves") {
  const temporary_folder folder;
  std::vector<std::uint16_t> narrow;
  std::vector<std::int32_t> wide;
  std::vector<std::int64_t> widest;
  for (int i = 0; i < 300; ++i) {
    narrow.push_back(static_cast<std::uint16_t>(i * 7'919 % 50'257));
    wide.push_back(i * 7'919 % 128'256);
    widest.push_back(i * 7'919 % 128'256);
  }
  const auto error_in = [&](const std::string& name, const std::string& file, std::size_t token_bytes) {
    tar_test::save(folder / name, file);
    mr::token_files_options o{.length = 4};
    if (token_bytes > 0) o.token_bytes = token_bytes;
    return error_of(folder / name, o);
  };
  for (const char* name : {"a.bin", "a.u16"}) {
    CHECK(error_in(name, raw(narrow), 0) == "no error");
    CHECK(error_in(name, raw(wide), 0).find("got numbers of 4 bytes, expected 2 bytes") != std::string::npos);
    CHECK(error_in(name, raw(widest), 0).find("token_bytes = 8. If the tokens have 2 bytes") != std::string::npos);
    CHECK(error_in(name, raw(wide), 4) == "no error");
    CHECK(error_in(name, raw(wide), 2) == "no error");
    CHECK(error_in(name, std::string(2'000, '\0'), 0) == "no error");
  }
  CHECK(error_in("b.u32", raw(wide), 0) == "no error");
  CHECK(error_in("b.u32", raw(widest), 0).find("got numbers of 8 bytes, expected 4 bytes") != std::string::npos);
  // Zeros at every other place of few values are not a proof.
  std::vector<std::uint16_t> few;
  for (int i = 0; i < 300; ++i) few.push_back(static_cast<std::uint16_t>(i % 2 == 0 ? i % 6 : 0));
  CHECK(error_in("c.bin", raw(few), 0) == "no error");
}

TEST_CASE("any number of tokens of any type is decoded, and the first wrong one is found") {
  const auto check = [](auto one, bool is_signed) {
    using T = decltype(one);
    const mr::detail::token_type type{.bytes = sizeof(T), .is_signed = is_signed};
    for (std::size_t count = 0; count < 70; ++count) {
      std::vector<T> stored(count);
      std::vector<std::uint32_t> ids(count), expected(count);
      for (std::size_t i = 0; i < count; ++i) {
        stored[i] = static_cast<T>(i + 1);
        expected[i] = static_cast<std::uint32_t>(i + 1);
      }
      const auto decode = [&](std::uint32_t max_id) {
        // At an odd address: a window may begin at any byte.
        std::string bytes = "x" + raw(stored);
        return mr::detail::decode_tokens(reinterpret_cast<const std::byte*>(bytes.data() + 1), type, max_id, ids);
      };
      CHECK(decode(~0U) == count);
      CHECK(ids == expected);
      CHECK(decode(static_cast<std::uint32_t>(count)) == count);
      if (count == 0) continue;
      CHECK(decode(static_cast<std::uint32_t>(count - 1)) == count - 1);
      if (!is_signed) continue;
      stored[count / 2] = static_cast<T>(-1);
      CHECK(decode(~0U) == count / 2);
    }
  };
  check(std::uint8_t{}, false);
  check(std::int8_t{}, true);
  check(std::uint16_t{}, false);
  check(std::int16_t{}, true);
  check(std::uint32_t{}, false);
  check(std::int32_t{}, true);
  check(std::uint64_t{}, false);
  check(std::int64_t{}, true);
}
