// A libFuzzer target: whatever the bytes, the own decoder refuses them or has the planes that libjpeg gives unwarned.
//
//   clang++ -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -Iinclude \
//     tests/image/fuzz/planes_fuzz.cpp -ljpeg -o planes_fuzz && ./planes_fuzz -max_len=4096 FOLDER_WITH_SMALL_JPEGS
//
// The first four bytes choose the crop; the rest is the file, which is also decoded beside itself and by portable code.
#include <millrace/image/jpeg_plane_decoder.hpp>

#include "../slow_planes.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace mr = millrace;

namespace {

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  const std::unique_ptr<std::byte[]> exact(new std::byte[size - 4]);
  std::memcpy(exact.get(), data + 4, size - 4);
  const mr::jpeg_planes_request ask{.bytes = {exact.get(), size - 4}, .left = data[0], .top = data[1],
                                    .right = std::size_t{data[0]} + data[2] + 1,
                                    .bottom = std::size_t{data[1]} + data[3] + 1};
  static mr::jpeg_plane_decoder best, portable(mr::jpeg_plane_decoder::code::portable);
  const auto plain = portable.decode(ask);
  const auto both = best.decode(ask, ask);
  if (both[0].refusal != plain.refusal || both[1].refusal != plain.refusal) fail("the answers differ");
  if (!plain) return 0;
  const auto width = static_cast<std::size_t>(plain.planes.image_width);
  const auto height = static_cast<std::size_t>(plain.planes.image_height);
  if (width * height > 4'000'000) return 0;   // more than the reference decodes
  const auto expected = slow::raw_reader().read(ask.bytes, std::min(ask.bottom, height));
  if (expected.error) fail("libjpeg gives an error");
  if (expected.warnings != 0) fail("libjpeg warns");
  for (const auto* got : {&plain, &both[0], &both[1]})
    if (const auto difference = slow::difference_of(got->planes, expected); !difference.empty())
      fail(difference.c_str());
  return 0;
}
