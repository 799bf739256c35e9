// A user-defined storage: shards are stored encrypted, and decrypted while they are read.
//
//   own_storage --work vault     # prints: 300 samples in 10 batches; their labels sum to 44850
//
// A source reads everything from its storage (millrace/io/file/storage.hpp): shards, indexes, lists of keys. The cipher
// is a toy. A program with AES-CTR has the same structure, because any block can be decrypted independently.
#include "command_line.hpp"

#include <millrace/millrace.hpp>
#include <millrace/shards.hpp>

#include <filesystem>
#include <fstream>

namespace mr = millrace;

namespace {

/// Adds the key stream: encrypts the bytes, and decrypts encrypted ones.
void add_key_stream(std::uint64_t key, std::uint64_t offset_bytes, std::span<std::byte> data) {
  for (std::byte& b : data) b ^= static_cast<std::byte>(((key ^ (offset_bytes++ / 8)) * 0x9e3779b97f4a7c15) >> 56);
}

struct vault {
  std::string folder;
  std::uint64_t key = 0;

  struct file {
    mr::file_source source;
    std::uint64_t key;

    mr::file_identity identity() const { return {.size_bytes = source.size_bytes()}; }   // never replaced
    std::size_t read_at(std::uint64_t offset_bytes, std::span<std::byte> buffer) {
      const std::size_t got = source.read_at(offset_bytes, buffer);
      add_key_stream(key, offset_bytes, buffer.first(got));
      return got;
    }
  };
  std::unique_ptr<file> open(const std::string& name) const {
    const std::string path = folder + "/" + name.substr(name.rfind(':') + 1);
    if (!std::filesystem::exists(path)) return nullptr;
    return std::unique_ptr<file>(new file{mr::file_source(path), key});
  }
};

void write_encrypted(const vault& to) {
  std::filesystem::create_directories(to.folder);
  mr::shard_writer shards({.pattern = to.folder + "/secret-%d.tar", .max_samples = 100});
  for (int i = 0; i < 300; ++i) shards.write(std::to_string(i), {{"cls", std::to_string(i)}});
  shards.close();
  for (const auto& shard : std::filesystem::directory_iterator(to.folder)) {
    std::vector<std::byte> bytes(std::filesystem::file_size(shard));
    std::fstream file(shard.path(), std::ios::binary | std::ios::in | std::ios::out);
    file.read(reinterpret_cast<char*>(bytes.data()), std::ssize(bytes));
    add_key_stream(to.key, 0, bytes);
    file.seekp(0).write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
  }
}

struct example {
  std::int32_t label;
};

void run(command_line& args) {
  const vault secret{.folder = args.text("--work", "vault"), .key = 0x5eed};
  write_encrypted(secret);
  const auto prepare = [](const mr::record& r) { return example{r["cls"].as<std::int32_t>()}; };
  auto flow = mr::shards("vault:secret-{0..2}.tar", {.seed = 7, .storage = secret}) | mr::shuffle({.window = 100}) |
              mr::map(prepare) | mr::batch<&example::label>({.size = 30});
  std::size_t samples = 0, sum = 0, batches = 0;
  for (auto& b : mr::session{std::move(flow), {.notice = mr::quiet}}) {
    for (const std::int32_t label : b.get<&example::label>().host()) sum += static_cast<std::size_t>(label);
    samples += b.size();
    ++batches;
  }
  std::printf("%zu samples in %zu batches; their labels sum to %zu\n", samples, batches, sum);
}

}   // namespace

int main(int argc, char** argv) { return run_program({argc, argv, "usage: own_storage [--work FOLDER]"}, run); }
