// Writes crops of a set of photographs (photo_sets.hpp) for count_images.cpp:
//
//   write_crops M 64 M.crops [progressive]
//
// The crops are those of bench/decode.cpp.
#include "../crop_tasks.hpp"
#include "../progressive_file.hpp"
#include "crop_file.hpp"

#include <cstddef>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

static std::vector<std::byte> copy_of(std::span<const std::byte> file) { return {file.begin(), file.end()}; }

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  return bench::run_guarded([&] {
    const std::string name = argv[1];
    const bool progressive = argc > 4;
    for (const auto& recipe : bench::photo_sets) {
      if (name != recipe.name) continue;
      std::vector<bench::crop> crops;
      for (const auto& task : bench::make_tasks(bench::make_photo_set(recipe), std::strtoull(argv[2], nullptr, 10)))
        crops.push_back({task.box, progressive ? bench::progressive_file(task.file) : copy_of(task.file)});
      return bench::write_crops(argv[3], crops) ? 0 : 1;
    }
    return 2;
  });
}
