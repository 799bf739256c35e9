// Bytes that own their memory, and the error of decoding borrowed ones that were freed or changed.
#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/image/labels/label_map.hpp>
#include <millrace/image/picture/padded_picture.hpp>
#include <millrace/image/picture/picture.hpp>
#include <millrace/io/file/read_file.hpp>
#include <millrace/item/bytes.hpp>

#include "../../../temporary_folder.hpp"

#include <doctest/doctest.h>

#include <sys/mman.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#if !defined(__SANITIZE_ADDRESS__) && defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifndef __SANITIZE_ADDRESS__
namespace {
const void* poisoned = nullptr;
}
// Replaces AddressSanitizer: one address is poisoned.
extern "C" void* __asan_region_is_poisoned(void* begin, std::size_t bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(begin), at = reinterpret_cast<std::uintptr_t>(poisoned);
  return first <= at && at - first < bytes ? const_cast<void*>(poisoned) : nullptr;
}
#endif

namespace mr = millrace;

namespace {

std::string jpeg_text() {
  mr::image pixels({30, 40, 3});
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels.data()[i] = static_cast<std::uint8_t>(i * 7);
  const auto file = mr::encode_jpeg(pixels);
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

template <class Act>
std::string message_of(const Act& act) {
  try {
    act();
  } catch (const mr::setup_error& e) {
    return e.message();
  }
  return "no setup_error";
}
const std::string changed =
    "the bytes of an image changed before it was decoded: bytes::borrowed() does not keep memory alive, and images are "
    "decoded after the callable in map() has returned";
const std::string freed =
    "the bytes of an image were freed before it was decoded: bytes::borrowed() does not keep memory alive, and images "
    "are decoded after the callable in map() has returned";

}  // namespace

TEST_CASE("owned bytes keep their memory, and so does an image of them") {
  const std::string text = jpeg_text();
  const mr::image expected = mr::jpeg(mr::bytes::borrowed(text)).pixels();
  auto local = std::make_unique<std::string>(text);
  mr::bytes copy = mr::bytes::owned(*local, std::string("jpg"));
  const mr::picture p = mr::jpeg(copy);
  const mr::picture of_vector = mr::jpeg(mr::bytes::owned(std::vector<std::uint8_t>(text.begin(), text.end())));
  const mr::picture of_bytes =
      mr::jpeg(mr::bytes::owned(std::vector<std::byte>(copy.data(), copy.data() + copy.size())));
  local->assign(text.size(), 'x');
  local.reset();
  CHECK(copy.name() == "jpg");
  CHECK(copy.text() == text);
  copy = {};
  for (const mr::picture* each : {&p, &of_vector, &of_bytes})
    CHECK(std::memcmp(each->pixels().data(), expected.data(), expected.size()) == 0);
  CHECK(mr::bytes::owned("").empty());
  CHECK(mr::bytes::owned("abc").size() == 3);   // a literal without its zero
}

TEST_CASE("read_file returns the bytes of a file, which name it in errors") {
  const temporary_folder folder;
  std::ofstream(folder / "a.JPG", std::ios::binary) << jpeg_text();
  std::ofstream(folder / "empty") << "";
  CHECK(mr::read_file(folder / "a.JPG").text() == jpeg_text());
  CHECK(mr::read_file(folder / "a.JPG").name() == "jpg");
  CHECK(mr::read_file(folder / "empty").empty());
  CHECK(mr::read_file(folder / "empty").name() == "file");
  CHECK(mr::jpeg(mr::read_file(folder / "a.JPG")).width() == 40);
  for (const std::string& name : {folder / "none.jpg", folder.path()}) {
    std::string what;
    try {
      (void)mr::read_file(name);
    } catch (const mr::io_error& e) {
      what = e.what();
    }
    CHECK(what.find(name) != std::string::npos);
  }
  std::string what;
  try {
    (void)mr::jpeg(mr::read_file(folder / "empty"));
  } catch (const mr::data_error& e) {
    what = e.what();
  }
  CHECK(what.find(folder / "empty") != std::string::npos);
}

TEST_CASE("decoding reports borrowed bytes that changed after the plan was built, at any offset") {
  std::string text = jpeg_text();
  const mr::picture p = mr::jpeg(mr::bytes::borrowed(text));
  CHECK(message_of([&] { (void)p.pixels(); }) == "no setup_error");
  for (const std::size_t at : {std::size_t{0}, text.size() / 2, text.size() - 1}) {
    text[at] = static_cast<char>(text[at] ^ 1);
    CHECK(message_of([&] { (void)p.pixels(); }) == changed);
    const mr::padded_picture padded(p, {.to = {.width = 64, .height = 64}});
    mr::scratch s;
    std::vector<std::uint8_t> row(64 * 64 * 3);
    CHECK(message_of([&] { padded.render(row, s); }) == changed);
    text[at] = static_cast<char>(text[at] ^ 1);
  }
  CHECK(message_of([&] { (void)p.pixels(); }) == "no setup_error");
  std::string map = "P5\n4 2\n255\n01234567";
  const mr::label_map<> labels = mr::labels(mr::bytes::borrowed(map, "pgm"));
  map.back() = 'x';
  CHECK(message_of([&] { (void)labels.values(); }).find("the bytes of a label map changed") == 0);
}

TEST_CASE("decoding reports borrowed bytes whose memory is gone") {
  const std::string text = jpeg_text();
  constexpr std::size_t mapped = 1 << 16;
  void* const memory = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  std::memcpy(memory, text.data(), text.size());
  const mr::picture p = mr::jpeg(mr::bytes::borrowed({static_cast<const char*>(memory), text.size()}));
  ::munmap(memory, mapped);
  CHECK(message_of([&] { (void)p.pixels(); }) == freed);
}

TEST_CASE("decoding reports borrowed bytes that AddressSanitizer knows to be freed") {
  auto local = std::make_unique<std::string>(jpeg_text());
  const mr::picture p = mr::jpeg(mr::bytes::borrowed(*local));
#ifdef __SANITIZE_ADDRESS__
  local.reset();
#else
  poisoned = local->data() + local->size() / 3;   // where no checksum looks
#endif
  CHECK(message_of([&] { (void)p.pixels(); }) == freed);
#ifndef __SANITIZE_ADDRESS__
  poisoned = nullptr;
#endif
}
