#include <millrace/base/crc32c.hpp>
#include <millrace/base/error.hpp>
#include <millrace/base/file_kind.hpp>
#include <millrace/base/notice.hpp>
#include <millrace/base/text.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <new>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace mr = millrace;
using millrace::detail::utf8_prefix_bytes;
using millrace::detail::file_kind;
using namespace std::string_literals;

namespace {

/// Table 3-7 of the Unicode Standard, byte by byte.
std::size_t slow_prefix(std::string_view text) {
  const auto byte = [&](std::size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U; };
  const auto in = [&](std::size_t at, unsigned from, unsigned to) { return byte(at) >= from && byte(at) <= to; };
  const auto follows = [&](std::size_t at) { return in(at, 0x80, 0xbf); };
  for (std::size_t at = 0;;) {
    if (at >= text.size()) return text.size();
    if (byte(at) < 0x80) at += 1;
    else if (in(at, 0xc2, 0xdf) && follows(at + 1)) at += 2;
    else if (byte(at) == 0xe0 && in(at + 1, 0xa0, 0xbf) && follows(at + 2)) at += 3;
    else if ((in(at, 0xe1, 0xec) || in(at, 0xee, 0xef)) && follows(at + 1) && follows(at + 2)) at += 3;
    else if (byte(at) == 0xed && in(at + 1, 0x80, 0x9f) && follows(at + 2)) at += 3;
    else if (byte(at) == 0xf0 && in(at + 1, 0x90, 0xbf) && follows(at + 2) && follows(at + 3)) at += 4;
    else if (in(at, 0xf1, 0xf3) && follows(at + 1) && follows(at + 2) && follows(at + 3)) at += 4;
    else if (byte(at) == 0xf4 && in(at + 1, 0x80, 0x8f) && follows(at + 2) && follows(at + 3)) at += 4;
    else return at;
  }
}

}  // namespace

TEST_CASE("all pairs of bytes, with any next byte, at every distance from the end") {
  std::size_t differ = 0;
  for (unsigned first = 0; first < 256; ++first)
    for (unsigned second = 0; second < 256; ++second)
      for (const unsigned third : {0x00U, 0x41U, 0x7fU, 0x80U, 0xbfU, 0xc0U, 0xffU})
        for (const unsigned fourth : {0x41U, 0x80U, 0xbfU, 0xc2U})
          for (const std::size_t length : {1U, 2U, 3U, 4U}) {
            const char bytes[4] = {static_cast<char>(first), static_cast<char>(second), static_cast<char>(third),
                                   static_cast<char>(fourth)};
            const std::string_view text(bytes, length);
            differ += utf8_prefix_bytes(text) != slow_prefix(text);
          }
  CHECK(differ == 0);
}

TEST_CASE("one bad byte anywhere in texts of many lengths, ASCII or not") {
  std::mt19937 random(7);
  const std::vector<std::string> characters{"a", "b", "\n", "\xc3\xa9", "\xe4\xb8\xad", "\xf0\x9f\x98\x80",
                                            "\xed\x9f\xbf"};
  for (std::size_t length = 0; length < 120; ++length)
    for (const std::size_t kinds : {std::size_t{1}, std::size_t{3}, characters.size()}) {
      std::string text;
      while (text.size() < length) text += characters[random() % kinds];
      CHECK(utf8_prefix_bytes(text) == text.size());
      for (int i = 0; i < 20 && !text.empty(); ++i) {
        std::string damaged = text;
        damaged[random() % text.size()] = static_cast<char>(random());
        CHECK(utf8_prefix_bytes(damaged) == slow_prefix(damaged));
        damaged.resize(random() % damaged.size());
        CHECK(utf8_prefix_bytes(damaged) == slow_prefix(damaged));
      }
    }
}

TEST_CASE("invalid UTF-8 becomes U+FFFD byte by byte, and the rest stays") {
  const std::string bad = "\xef\xbf\xbd";
  const auto clean = [](std::string text) {
    millrace::detail::clean_utf8(text);
    return text;
  };
  CHECK(clean("").empty());
  CHECK(clean("plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80") == "plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  CHECK(clean("\xff") == bad);
  CHECK(clean("a\xc3") == "a" + bad);
  CHECK(clean("\xe2\x82" "b\xff\xc3\xa9") == bad + bad + "b" + bad + "\xc3\xa9");
  CHECK(clean(std::string("nul\0\x80", 5)) == std::string("nul\0", 4) + bad);
}

TEST_CASE("sort_texts() sorts like std::sort, from an index on") {
  std::mt19937 random(7);
  for (std::size_t count : {0U, 1U, 2U, 7U, 300U}) {
    std::vector<std::string> names(count);
    for (std::string& name : names)
      for (auto size = random() % 20; size > 0; --size) name.push_back(static_cast<char>("ab\x80\xff"[random() % 4]));
    for (std::size_t first : {std::size_t{0}, count / 2, count}) {
      auto expected = names, sorted = names;
      std::sort(expected.begin() + static_cast<std::ptrdiff_t>(first), expected.end());
      millrace::detail::sort_texts(sorted, first);
      CHECK(sorted == expected);
    }
  }
}

TEST_CASE("an error contains the problem, the place and the remedy") {
  const mr::data_error e("the header is damaged", "Fetch the shard again",
                         {.stage = "tar", .shard = "a.tar", .key = "k\n1", .offset_bytes = 512, .position = 7});
  CHECK(std::string(e.what()) ==
        "millrace: the header is damaged (shard a.tar, offset 512, key k\\x0a1, stage tar, position 7). "
        "Fetch the shard again");
}

TEST_CASE("a located exception keeps its type and its own fields") {
  std::exception_ptr located;
  try {
    throw mr::data_error("bad label", "", {.key = "inner"});
  } catch (...) {
    located = mr::located_exception({.stage = "map 1", .shard = "s.tar", .key = "outer", .position = 3});
  }
  try {
    std::rethrow_exception(located);
  } catch (const mr::data_error& e) {
    CHECK(e.where().key == "inner");
    CHECK(e.where().shard == "s.tar");
    CHECK(e.where().position == 3);
  }
}

TEST_CASE("a foreign exception becomes a stage_error that contains it") {
  std::exception_ptr located;
  try {
    throw std::out_of_range("index 9");
  } catch (...) {
    located = mr::located_exception({.stage = "map 1"});
  }
  try {
    std::rethrow_exception(located);
  } catch (const mr::stage_error& e) {
    CHECK(e.message() == "index 9");
    CHECK_THROWS_AS(std::rethrow_exception(e.cause()), std::out_of_range);
  }
}

TEST_CASE("exhausted memory is a failure of the machine, with its location") {
  std::exception_ptr located;
  try {
    throw std::bad_alloc();
  } catch (...) {
    located = mr::located_exception({.stage = "map 1", .shard = "s.tar"});
  }
  try {
    std::rethrow_exception(located);
  } catch (const mr::io_error& e) {
    CHECK(e.message() == "memory is exhausted: the system refused an allocation");
    CHECK(e.where().shard == "s.tar");
  }
}

TEST_CASE("a notice function calls its callable, and its copies do, too") {
  std::string texts;
  mr::notice_function first = [&](const mr::notice& n) { texts += n.text; };
  const mr::notice_function second = first;
  first({.text = "a"});
  second({.text = "b"});
  CHECK(texts == "ab");
  CHECK(first);
  CHECK(second.informs());
}

TEST_CASE("an empty function is not a notice function") {
  CHECK_FALSE(mr::notice_function());
  CHECK_FALSE(mr::notice_function(nullptr));
  CHECK_FALSE(mr::notice_function(std::function<void(const mr::notice&)>()));
  CHECK(mr::notice_function().informs());   // then all notices are printed
  CHECK(mr::notice_function([](const mr::notice&) {}));
}

TEST_CASE("quiet uses no information, and neither do its copies") {
  const mr::notice_function first = mr::quiet;
  const mr::notice_function second = first;
  CHECK(second);
  CHECK_FALSE(second.informs());
}

namespace {

file_kind kind_of(std::string_view front, std::uint64_t bytes = 0) {
  return millrace::detail::kind_of_file({.front = {reinterpret_cast<const std::byte*>(front.data()), front.size()},
                                         .file_bytes = bytes > 0 ? bytes : front.size()});
}
template <class T>
file_kind kind_of(const std::vector<T>& numbers) {
  return kind_of({reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)});
}

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

struct written {
  file_kind kind;
  std::uint64_t bytes;
  const char* front;
};

// The size and the first 40 bytes of files that other programs wrote: Python 3.11, NumPy 2, pyarrow, zstandard, lz4.
const written files[] = {
    {file_kind::gzip, 102, "1f8b080000000000020305c1836103000000b0d4b6ed6eb5cdffaf6a121014121611151397909492"},
    {file_kind::gzip, 108, "1f8b080800f1536502ff612e7531360005c1836103000000b0d4b6ed6eb5cdffaf6a121014121611"},
    {file_kind::bzip2, 122, "425a68393141592653591ec1bc690000207c007fffffffffffffffc000200054450099304c130013"},
    {file_kind::xz, 168, "fd377a585a000004e6d6b4460200210116000000742fe5a3e0007f00665d00007ffe74c762df8143"},
    {file_kind::zstd, 86, "28b52ffd20806d02000248120710f0bb013097027f7d7b79777573716f6d6b69676563615f5d5b59"},
    {file_kind::zstd, 93, "28b52ffd0010a502000248120710f0bb013097027f7d7b79777573716f6d6b69676563615f5d5b59"},
    {file_kind::zstd, 90, "28b52ffd24806d02000248120710f0bb013097027f7d7b79777573716f6d6b69676563615f5d5b59"},
    {file_kind::lz4, 151, "04224d18684080000000000000007d800000800100020003000400050006000700080009000a000b"},
    {file_kind::zip, 392, "504b03042d000000000000002100f6c86a23ffffffffffffffff090014006172725f302e6e707901"},
    {file_kind::zip, 309, "504b03042d000000080000002100f6c86a23ffffffffffffffff090014006172725f302e6e707901"},
    {file_kind::npy, 256, "934e554d5059010076007b276465736372273a20273c7532272c2027666f727472616e5f6f726465"},
    {file_kind::pickle, 88, "80025d7100284b004b014b024b034b044b054b064b074b084b094b0a4b0b4b0c4b0d4b0e4b0f4b10"},
    {file_kind::pickle, 335, "8002636e756d70792e5f636f72652e6d756c746961727261790a5f7265636f6e7374727563740a71"},
    {file_kind::pickle, 24, "80037d710058010000006171015d7102284b014b0265732e"},
    {file_kind::pickle, 96, "80049555000000000000005d94284b004b014b024b034b044b054b064b074b084b094b0a4b0b4b0c"},
    {file_kind::pickle, 255, "800595f4000000000000008c136e756d70792e5f636f72652e6e756d65726963948c0b5f66726f6d"},
    {file_kind::parquet, 922, "50415231150415a00615aa034c15641500120000900300000d0100010d0800020d0800030d080004"},
    {file_kind::parquet, 1802, "504152311500158e13158e132c15ac021500150615061c1808310000000000000018080000000000"},
    {file_kind::parquet, 788, "50415231150615fe121598035c15ac0215001506150015061518111c180831000000000000001808"},
    {file_kind::arrow, 1600, "ffffffffb00000001000000000000a000c000600050008000a000000000104000c00000008000800"},
    {file_kind::arrow, 1834, "4152524f57310000ffffffffb00000001000000000000a000c000600050008000a00000000010400"},
    {file_kind::arrow, 8832, "ffffffff702200001000000000000a000e000600050008000a000000000104001000000000000a00"},
    {file_kind::safetensors, 200, "40000000000000007b2274223a7b226474797065223a22553136222c227368617065223a5b36345d"},
    // The stream of pzstd begins with a skippable frame.
    {file_kind::zstd, 98, "502a4d18040000005600000028b52ffd20806d02000248120710f0bb013097027f7d7b79777573"},
    {file_kind::lz4, 200, "02214c18b0000000f01e48656c6c6f2c20776f726c642c20776f726c642c20776f726c642c206865"},
};

}  // namespace

TEST_CASE("files of other programs are recognized by their first bytes") {
  for (const written& f : files) {
    CAPTURE(f.front);
    CHECK(kind_of(from_hex(f.front), f.bytes) == f.kind);
    CHECK(kind_of(from_hex(f.front).substr(0, 3), f.bytes) == file_kind::unknown);
  }
  CHECK(kind_of("MMIDIDX\0\0\1\0\0\0\0\0\0\0\x08"s) == file_kind::megatron_index);
  CHECK(kind_of("\x89HDF\r\n\x1a\n\0\0\0\0"s) == file_kind::hdf5);
  CHECK(kind_of("SQLite format 3\0\x10\0\1\1"s) == file_kind::sqlite);
  CHECK(kind_of("7z\xbc\xaf\x27\x1c\0\4"s) == file_kind::seven_zip);
  CHECK(kind_of("Obj\1\4\x16" "avro.schema"s) == file_kind::avro);
  CHECK(kind_of("\x89PNG\r\n\x1a\n"s) == file_kind::png);
  CHECK(kind_of("\xff\xd8\xff\xe0\0\x10JFIF\0"s) == file_kind::jpeg);
  CHECK(kind_of("RIFF\x24\x08\0\0WAVEfmt "s) == file_kind::wav);
  std::string tar(1024, '\0');
  tar.replace(257, 6, "ustar\0"s);
  CHECK(kind_of(tar) == file_kind::tar);
  for (const std::uint32_t magic : {20240520U, 20240801U, 20240522U}) {
    std::vector<std::uint32_t> header(300);
    header[0] = magic;
    header[1] = magic == 20240801 ? 7 : 1;
    header[2] = 88;
    CHECK(kind_of(header) == file_kind::llm_c);
    header[200] = 1;
    CHECK(kind_of(header) == file_kind::unknown);
  }
  CHECK(kind_of(std::vector<std::int32_t>{20240520, 1, 20240521, 3}) == file_kind::unknown);   // dates
  std::string record("\x20\0\0\0\0\0\0\0"s);
  const std::uint32_t crc = millrace::crc32c(std::as_bytes(std::span(record)));
  const std::uint32_t masked = (crc >> 15 | crc << 17) + 0xa282ead8;
  record.append(reinterpret_cast<const char*>(&masked), sizeof masked).append(40, '\0');
  CHECK(kind_of(record) == file_kind::tfrecord);
  std::vector<std::uint32_t> table{100};
  for (std::uint32_t i = 0; i <= 100; ++i) table.push_back(4 * 102 + 30 + 7 * i);
  CHECK(kind_of({reinterpret_cast<const char*>(table.data()), 4 * table.size()}, table.back()) ==
        file_kind::offset_table);
  CHECK(kind_of({reinterpret_cast<const char*>(table.data()), 256}, table.back()) == file_kind::offset_table);
  std::swap(table[20], table[30]);
  CHECK(kind_of({reinterpret_cast<const char*>(table.data()), 256}, table.back()) == file_kind::unknown);
}

TEST_CASE("every other kind is recognized by its mark, and by no shorter one") {
  const auto number = [](std::uint64_t value, std::size_t bytes) {
    return std::string(reinterpret_cast<const char*>(&value), bytes);
  };
  // LMDB: a page of the number 0 with the flag of meta pages, then the magic number and the version.
  const std::string lmdb =
      number(0, 8) + number(0, 2) + number(8, 2) + number(0, 4) + number(0xbeefc0de, 4) + number(1, 4);
  // FFCV: version 2, three fields, pages of 8 MiB, 1,000 samples, and the offset of the table of allocations.
  const std::string ffcv = number(2, 2) + number(3, 2) + number(1 << 23, 4) + number(1'000, 8) + number(64, 8);
  const std::pair<file_kind, std::string> kinds[] = {
      {file_kind::megatron_index, "TNTIDX\0\0"s},
      {file_kind::lzip, "LZIP\1\x0c"s},
      {file_kind::snappy, "\xff\x06\0\0sNaPpY"s},
      {file_kind::rar, "Rar!\x1a\x07\0"s},
      {file_kind::rar, "Rar!\x1a\x07\1\0"s},
      {file_kind::lmdb, lmdb},
      {file_kind::ffcv, ffcv},
      {file_kind::gguf, "GGUF\2\0\0\0"s},
      {file_kind::gguf, "GGUF\3\0\0\0"s},
      {file_kind::gif, "GIF87a"s},
      {file_kind::gif, "GIF89a"s},
      {file_kind::webp, "RIFF\x24\x08\0\0WEBPVP8 "s},
      {file_kind::tiff, "II*\0\x08\0\0\0"s},
      {file_kind::tiff, "MM\0*\0\0\0\x08"s},
      {file_kind::flac, "fLaC\0\0\0\x22"s},
      {file_kind::flac, "fLaC\x80\0\0\x22"s},
      {file_kind::ogg, "OggS\0\2"s},
      {file_kind::iso_media, "\0\0\0\x18" "ftypmp42"s},
      {file_kind::pdf, "%PDF-1.7\n"s},
      {file_kind::zip, "PK\5\6" + std::string(18, '\0')},   // without members
      {file_kind::pickle, "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19" "."s},
  };
  for (const auto& entry : kinds) {
    const file_kind kind = entry.first;
    const std::string& front = entry.second;
    CAPTURE(static_cast<int>(kind));
    CHECK(kind_of(front + std::string(64, '\0')) == kind);
    CHECK(kind_of(front.substr(0, 4) + std::string(64, '\x05')) == file_kind::unknown);
  }
}

TEST_CASE("texts are recognized, whatever their language, if they are long enough") {
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
  CHECK(kind_of(pointer) == file_kind::git_lfs_pointer);
  CHECK(kind_of("\n <!DOCTYPE html><html><head><title>404</title>") == file_kind::html);
  CHECK(kind_of("<html>Log in</html>") == file_kind::html);   // a mark is sufficient
  CHECK(kind_of("<HTML>") == file_kind::html);
  CHECK(kind_of("<?xml?><Error/>") == file_kind::xml);
  CHECK(kind_of(std::string("<html\0\1", 7)) != file_kind::html);
  CHECK(kind_of("<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code>") == file_kind::xml);
  CHECK(kind_of("{\"tokens\": [1, 2, 3], \"text\": \"a\"}") == file_kind::json);
  CHECK(kind_of("[10, 20, 30, 40, 50]") == file_kind::json);
  CHECK(kind_of("15496 995 11 314 716 50256\n") == file_kind::text);
  CHECK(kind_of("1\n0\n1\n1\n0\n1\n0\n1\n1\n0\n1\n0\n") == file_kind::text);
  CHECK(kind_of("hello world, this is text..\nand more of it\n") == file_kind::text);
  CHECK(kind_of("\xef\xbb\xbf\xd0\x9f\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82, \xd0\xbc\xd0\xb8\xd1\x80! "
                "\xd0\x9f\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82\n") == file_kind::text);
  // A character may be cut at the end of the prefix, but not at the end of the file.
  const std::string cut = "a text with an accent at its end: caf\xc3";
  CHECK(kind_of(cut, 100) == file_kind::text);
  CHECK(kind_of(cut) == file_kind::unknown);
  CHECK(kind_of("too short") == file_kind::unknown);
  CHECK(kind_of("") == file_kind::unknown);
}

TEST_CASE("raw numbers are not mistaken for another kind of file") {
  std::mt19937_64 random(7);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  std::size_t recognized = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::uint16_t> tokens(256), frequent(256), depth(256);
    std::vector<std::uint32_t> wide(128);
    std::vector<std::int32_t> small(4 + below(40)), sorted(64);
    std::vector<float> reals(64);
    for (auto& t : tokens) t = static_cast<std::uint16_t>(below(65'536));
    for (auto& t : frequent) t = static_cast<std::uint16_t>(below(1 + below(50'257)));
    const std::uint64_t middle = below(30'000);   // neighbors are nearly equal: a wall in a depth map
    for (auto& t : depth) t = static_cast<std::uint16_t>(middle + below(40));
    for (auto& t : wide) t = static_cast<std::uint32_t>(below(128'256));
    for (auto& t : small) t = static_cast<std::int32_t>(below(40)) - 1;
    for (auto& t : sorted) t = static_cast<std::int32_t>(below(1'000));
    std::sort(sorted.begin(), sorted.end());
    for (auto& t : reals) t = static_cast<float>(below(2'000)) / 1'000 - 1;
    for (const file_kind k : {kind_of(tokens), kind_of(frequent), kind_of(depth), kind_of(wide), kind_of(small),
                              kind_of(sorted), kind_of(reals)})
      recognized += k != file_kind::unknown;
  }
  CHECK(recognized == 0);
}

TEST_CASE("tokens that begin with a short mark are not mistaken for a file of that kind") {
  std::mt19937_64 random(8);
  const std::uint32_t marks[] = {0x00088b1f, 0xfd2fb528, 0x184d2204, 0x184c2102, 0x04034b50, 0x184d2a50,
                                 0x31524150, 0xffffffff, 0x5d710280, 0x00950480, 0x39685a42, 0xe0ffd8ff};
  for (const std::uint32_t mark : marks) {
    std::size_t recognized = 0;
    for (int i = 0; i < 5'000; ++i) {
      std::vector<std::uint16_t> tokens(256);
      for (auto& t : tokens) t = static_cast<std::uint16_t>(random() % 50'257);
      std::memcpy(tokens.data(), &mark, sizeof mark);
      recognized += kind_of(tokens) != file_kind::unknown;
    }
    CAPTURE(mark);
    CHECK(recognized <= 250);   // four bytes of a mark, with a plausible header at random
  }
}
