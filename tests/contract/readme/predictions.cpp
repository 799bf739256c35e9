// The README's predictions, by key: pictures that are dark or bright, which is their class.
#include "snippet.hpp"

#include <sstream>

struct model {
  std::vector<int> predict(const mr::tensor_view<std::uint8_t, 4>& pixels) const {
    std::vector<int> classes;
    for (std::size_t i = 0; i < pixels.shape[0]; ++i) {
      if (pixels(i, 0, 31, 2) != 7) std::abort();
      classes.push_back(pixels[i][16](16, 0) == 255 ? 1 : 0);
    }
    return classes;
  }
};

int main() {
  mr::shard_writer shards({.pattern = "test-%03d.tar", .max_samples = 10});
  std::string expected;
  for (int i = 0; i < 100; ++i) {
    mr::image gray({32, 32, 3});
    for (auto row : gray)
      for (auto pixel : row)
        for (std::uint8_t& p : pixel) p = i < 64 ? 60 : 200;
    const std::string key = "n" + std::to_string(i % 7) + "/" + std::to_string(i), label = i < 64 ? "0" : "1";
    shards.write(key, {{"jpg", mr::encode_jpeg(gray)}, {"cls", label}});
    expected += key + " " + label + " " + label + "\n";
  }
  shards.close();
  std::ostringstream out;
  model m;
  predict(m, out);
  return out.str() == expected ? 0 : 1;
}
