// The layout of an input of jpeg_pair_fuzz.cpp: knobs, then two files one after the other.
//
//   slow::fuzz_input in({data, size});
//   in.file[0], in.crop(1), in.knob[slow::fuzz_input::mode]
//   size = in.write({data, max_size});           // truncates the files if necessary
#pragma once

#include <millrace/image/jpeg/baseline/jpeg_planes.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace slow {

namespace mr = millrace;

struct fuzz_input {
  enum knob_name : std::size_t {
    mode, crops, plans = crops + 8, entries = plans + 4, first_size = entries + 2, knobs = first_size + 2
  };

  std::array<std::uint8_t, knobs> knob{};
  std::array<std::vector<std::byte>, 2> file{};

  explicit fuzz_input(std::span<const std::uint8_t> data) {
    const auto head = data.first(std::min(data.size(), std::size_t{knobs}));
    std::copy(head.begin(), head.end(), knob.begin());
    const auto rest = std::as_bytes(data.subspan(head.size()));
    const std::size_t first = std::min<std::size_t>(std::size_t{knob[first_size]} << 8 | knob[first_size + 1],
                                                    rest.size());
    file[0].assign(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(first));
    file[1].assign(rest.begin() + static_cast<std::ptrdiff_t>(first), rest.end());
  }

  std::size_t write(std::span<std::uint8_t> to) {
    if (to.size() < knobs) return 0;
    const std::size_t capacity = to.size() - knobs;
    const std::size_t first = std::min({file[0].size(), capacity, std::size_t{0xffff}});
    const std::size_t second = std::min(file[1].size(), capacity - first);
    knob[first_size] = static_cast<std::uint8_t>(first >> 8);
    knob[first_size + 1] = static_cast<std::uint8_t>(first);
    auto* at = std::copy(knob.begin(), knob.end(), to.data());
    const auto put = [&](const std::vector<std::byte>& f, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) *at++ = std::to_integer<std::uint8_t>(f[i]);
    };
    put(file[0], first);
    put(file[1], second);
    return knobs + first + second;
  }

  /// For planes. Half of the crops are inside an image of 16 x 16, the others anywhere.
  mr::detail::jpeg_planes_request crop(std::size_t i) const {
    const std::uint8_t* k = knob.data() + crops + 4 * i;
    const auto place = [](std::uint8_t v) { return std::size_t{v < 128 ? v % 16U : v - 128U}; };
    return {.left = place(k[0]), .top = place(k[1]), .right = place(k[0]) + place(k[2]) + 1,
            .bottom = place(k[1]) + place(k[3]) + 1, .eighths = eighths(i)};
  }

  /// Most files are decoded at full size.
  int eighths(std::size_t i) const { return 1 << std::min(knob[plans + 2 * i] >> 5, 3); }

  /// MCUs between entry points.
  std::size_t every_mcus(std::size_t i) const { return 1 + knob[entries + i] % 12U; }

  std::uint64_t plan(std::size_t i) const { return std::uint64_t{knob[plans + 2 * i]} << 8 | knob[plans + 2 * i + 1]; }
};

/// A copy in a heap block of exactly its size.
struct exact_bytes {
  std::unique_ptr<std::byte[]> memory;
  std::size_t size;

  explicit exact_bytes(const std::vector<std::byte>& from) : memory(new std::byte[from.size()]), size(from.size()) {
    std::copy(from.begin(), from.end(), memory.get());
  }
  std::span<const std::byte> view() const { return {memory.get(), size}; }
};

}  // namespace slow
