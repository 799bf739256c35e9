// Prints epoch, step, digest and a CRC of the bytes of each batch of flows.hpp: loop SHARDS BATCH EPOCHS THREADS WIDE
#include "flows.hpp"

#include <millrace/base/crc32c.hpp>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <span>

int main(int count, char** words) {
  if (count != 6) return 2;
  const auto number = [&](int i) { return std::strtoul(words[i], nullptr, 10); };
  mr::session run{numbers({.shards = words[1], .batch = number(2), .seed = 7, .wide = number(5)}),
                  {.epochs = number(3), .threads = static_cast<unsigned>(number(4)), .notice = mr::quiet}};
  for (auto& b : run) {
    std::uint32_t crc = 0;
    const auto add = [&](const auto& view) {
      crc = mr::detail::crc32(std::as_bytes(std::span(view.data, view.size())), crc);
    };
    const auto& [values, list, id, wide_id, odd, label] = b;
    add(values), add(list.values), add(list.lengths), add(id), add(wide_id), add(odd), add(label);
    std::printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %08" PRIx32 "\n", b.epoch(), b.step(), b.position().digest, crc);
  }
}
