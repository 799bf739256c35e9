// Which source of a mix decides whether the mix has an index: the first one without an index or with an error, for any
// number and any speed of the sources.
#include "../io/tar_bytes.hpp"
#include "mixed_sets.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace mr = millrace;

namespace {

/// Local files; the first source waits until the last one has been opened, if it may wait.
struct mix_of_slow_sources {
  std::shared_ptr<std::atomic<bool>> opened = std::make_shared<std::atomic<bool>>(false);
  bool waits = false, is_last = false;

  struct file {
    mr::file_source source;
    mr::file_identity identity() const { return {.size_bytes = source.size_bytes()}; }
    std::size_t read_at(std::uint64_t at, std::span<std::byte> to) { return source.read_at(at, to); }
  };
  std::unique_ptr<file> open(const std::string& name) const {
    if (!std::filesystem::exists(name)) return nullptr;
    if (waits) opened->wait(false);
    if (is_last) {
      *opened = true;
      opened->notify_all();
    }
    return std::unique_ptr<file>(new file{mr::file_source(name)});
  }
};

/// "indexed", "streamed", or the error of the mix.
std::string result_of_mix(const std::vector<std::string>& names) {
  const bool waits = names.size() > 8;   // then the sources are opened concurrently
  mix_of_slow_sources storage{};
  const auto one = [&](std::size_t i) {
    storage.waits = waits && i == 0;
    storage.is_last = i + 1 == names.size();
    return mr::weighted{mr::shards(std::vector{names[i]}, {.storage = storage}) | mr::shuffle({.window = 4}), 1.0};
  };
  std::vector<decltype(one(0))> all;
  for (std::size_t i = 0; i < names.size(); ++i) all.push_back(one(i));
  const auto flow = mr::mix({.seed = 7}, std::move(all));
  mr::detail::notice_outlet notices(mr::quiet);
  try {
    return flow.source.uses_index({.one_row_per_sample = true, .tolerates_damage = false, .notices = notices})
               ? "indexed"
               : "streamed";
  } catch (const mr::error& e) {
    return e.message();
  }
}

}  // namespace

TEST_CASE("the first source of a mix without an index or with an error decides, for few and for many sources") {
  const temporary_folder folder;
  const auto shard = [&](const std::string& name) {
    mr::shard_writer writer({.pattern = folder / (name + "%d.tar")});
    for (int i = 0; i < 5; ++i) writer.write("k" + std::to_string(i), {{"cls", std::string(2'000, 'x')}});
    writer.close();
    return folder / (name + "0.tar");
  };
  const std::string good = shard("good"), broken = shard("broken"), compressed = folder / "compressed.tar.gz";
  std::ifstream in(good, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  tar_test::save(compressed, tar_test::through("gzip -c", bytes));
  std::filesystem::resize_file(broken, std::filesystem::file_size(broken) / 2 + 100);
  for (const std::size_t count : {2U, 3U, 12U}) {
    CAPTURE(count);
    const auto mixed = [&](const std::string& first, const std::string& last) {
      std::vector<std::string> names(count, good);
      names.front() = first;
      names.back() = last;
      return result_of_mix(names);
    };
    CHECK(mixed(good, good) == "indexed");
    CHECK(mixed(compressed, broken) == "streamed");
    CHECK(mixed(good, compressed) == "streamed");
    CHECK(mixed(broken, compressed).find("truncated") != std::string::npos);
    CHECK(mixed(good, broken).find("truncated") != std::string::npos);
  }
}
