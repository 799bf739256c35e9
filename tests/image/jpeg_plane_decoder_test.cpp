#include <millrace/image/jpeg_plane_decoder.hpp>

#include "slow_planes.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <memory>

namespace mr = millrace;

namespace {

/// A request for bytes in a block of exactly their size, so that AddressSanitizer sees one read too many.
struct exact_request {
  std::unique_ptr<std::byte[]> memory;
  mr::jpeg_planes_request ask;

  exact_request(std::span<const std::byte> file, mr::jpeg_planes_request a)
      : memory(new std::byte[file.size()]), ask(a) {
    if (!file.empty()) std::memcpy(memory.get(), file.data(), file.size());
    ask.bytes = {memory.get(), file.size()};
  }
};

struct drawn_file {
  slow::file_recipe recipe;
  std::size_t height = 0, width = 0, channels = 3;
  std::vector<std::byte> bytes;
};

drawn_file draw_file(mr::draw& d, std::size_t largest) {
  drawn_file f;
  f.height = d.below(largest) + 1;
  f.width = d.below(largest) + 1;
  f.channels = d.chance(0.2) ? 1 : 3;
  f.recipe = {.quality = static_cast<int>(d.between(1, 100)), .horizontal = static_cast<int>(d.between(1, 2)),
              .vertical = static_cast<int>(d.between(1, 2)),
              .restart_interval = d.chance(0.5) ? 0U : static_cast<unsigned>(d.between(1, 40)),
              .optimise_tables = d.chance(0.5)};
  auto pixels = slow::photo(f.height, f.width, f.channels, d.bits());
  if (d.chance(0.2))   // noise without bounds: long codes, all coefficients
    for (auto& sample : pixels.span())
      sample = static_cast<std::uint8_t>(d.chance(0.5) ? d.below(256) : 255 * d.below(2));
  f.bytes = slow::make_file(pixels, f.recipe);
  return f;
}

mr::jpeg_planes_request draw_crop(mr::draw& d, const drawn_file& f) {
  mr::jpeg_planes_request ask;
  if (d.chance(0.3)) return ask;
  ask.left = d.below(f.width);
  ask.top = d.below(f.height);
  ask.right = ask.left + 1 + d.below(f.width - ask.left);
  ask.bottom = ask.top + 1 + d.below(f.height - ask.top);
  return ask;
}

/// How many pictures the long tests take; a nightly run asks for more.
std::size_t count_of(const char* variable, std::size_t usual) {
  const char* text = std::getenv(variable);
  return text ? static_cast<std::size_t>(std::strtoull(text, nullptr, 10)) : usual;
}
std::uint64_t seed_of_run() { return count_of("MILLRACE_TEST_SEED", 1); }

std::string describe(const drawn_file& f) {
  return std::to_string(f.width) + " x " + std::to_string(f.height) + " x " + std::to_string(f.channels) +
         ", quality " + std::to_string(f.recipe.quality) + ", luma " + std::to_string(f.recipe.horizontal) + "x" +
         std::to_string(f.recipe.vertical) + ", restart " + std::to_string(f.recipe.restart_interval) +
         (f.recipe.optimise_tables ? ", own tables" : "");
}

void compare(const drawn_file& f, const mr::jpeg_planes_request& ask, const mr::jpeg_planes_result& got,
             const slow::raw_planes& expected) {
  INFO(describe(f));
  CHECK(std::string(to_string(got.refusal)) == "none");
  if (!got) return;
  CHECK(slow::covers(got.planes, ask));
  CHECK(slow::difference_of(got.planes, expected) == "");
}

}  // namespace

TEST_CASE("planes are those of libjpeg, alone and in pairs, by every processor's code") {
  mr::draw d({.seed = seed_of_run(), .sample = 1});
  mr::jpeg_plane_decoder best, portable(mr::jpeg_plane_decoder::code::portable);
  const std::size_t pairs = count_of("MILLRACE_TEST_PICTURES", 1'500) / 2;
  for (std::size_t i = 0; i < pairs; ++i) {
    const drawn_file a = draw_file(d, 64), b = draw_file(d, d.chance(0.05) ? 400 : 64);
    const exact_request x(a.bytes, draw_crop(d, a)), y(b.bytes, draw_crop(d, b));
    const auto expected_a = slow::raw_reader().read(a.bytes, a.height);
    const auto expected_b = slow::raw_reader().read(b.bytes, b.height);
    for (auto* decoder : {&best, &portable}) {
      compare(a, x.ask, decoder->decode(x.ask), expected_a);
      const auto both = decoder->decode(x.ask, y.ask);
      compare(a, x.ask, both[0], expected_a);
      compare(b, y.ask, both[1], expected_b);
    }
  }
}
