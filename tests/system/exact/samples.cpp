// Samples as text, and shards of all kinds, for tests/system/exact/reader.py.
//
//   samples read stream|index FILE...   # by shards() as a stream, or by an index
//   samples join skip|partial FILE... with FILE...   # two sets, the fields of the second one with the prefix "b."
//   samples write FOLDER SEED           # shards of shard_writer, and handwritten ones
//
// Each sample is a line: the key, then name and payload of each field in the shard's order, in hexadecimal, separated
// by spaces.
#include "../../../examples/command_line.hpp"
#include "../../unit/io/tar_bytes.hpp"

#include <millrace/base/random.hpp>
#include <millrace/io/tar/write/shard_writer.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/join.hpp>
#include <millrace/sources/shards.hpp>
#include <millrace/stages/batch.hpp>
#include <millrace/stages/map.hpp>

#include <algorithm>

namespace mr = millrace;

namespace {

struct example {
  std::uint64_t bytes;
};

void append_hexadecimal(std::string& text, std::string_view bytes) {
  for (const char c : bytes) {
    const auto b = static_cast<unsigned char>(c);
    text += {"0123456789abcdef"[b >> 4], "0123456789abcdef"[b & 15]};
  }
}

/// One worker, so samples arrive in order.
template <class Source>
void print_samples(Source source) {
  auto flow = std::move(source) | mr::map([](const mr::record& r) {
                std::string line;
                append_hexadecimal(line, r.key());
                for (const mr::bytes& field : r.fields()) {
                  append_hexadecimal(line += ' ', field.name());
                  append_hexadecimal(line += ' ', field.text());
                }
                std::puts(line.c_str());
                return example{line.size()};
              }) |
              mr::batch<&example::bytes>({.size = 7, .drop_last = false});
  for (auto& b : mr::session{std::move(flow), {.threads = 0, .notice = mr::quiet}}) b.release();
}

void read(const std::string& how, const std::vector<std::string>& shards) {
  if (how == "stream") print_samples(mr::shards(shards, {.index = mr::index::off}));
  else print_samples(mr::shards(shards, {.index = mr::index::required}));
}

void join(const std::string& missing, const std::vector<std::string>& shards) {
  const auto separator = std::find(shards.begin(), shards.end(), "with");
  print_samples(mr::join(mr::shards(std::vector(shards.begin(), separator)),
                         mr::shards(std::vector(separator + 1, shards.end())),
                         {.missing = missing == "skip" ? mr::missing::skip : mr::missing::partial,
                          .prefixes = {"", "b."}}));
}

std::string random_text(mr::rng& random, std::size_t most, std::string_view letters) {
  std::string text;
  for (std::size_t left = 1 + random.below(most); left > 0; --left) text += letters[random.below(letters.size())];
  return text;
}

/// Input of shard_writer: short and long keys, folders, non-ASCII letters, empty and large payloads.
void write_own(const std::string& folder, std::uint64_t seed) {
  mr::rng random({.seed = seed});
  mr::shard_writer shards({.pattern = folder + "/own-%d.tar", .max_samples = 40, .max_bytes = 1 << 20});
  for (int i = 0; i < 200; ++i) {
    std::string key = std::to_string(i);
    if (random.chance(0.3)) key = random_text(random, random.chance(0.3) ? 150 : 20, "abcXYZ _-+#[]{}") + "/" + key;
    if (random.chance(0.2)) key = "\xc3\xa9t\xc3\xa9/\xe6\xb5\x81" + key;
    if (random.chance(0.1)) key += random_text(random, 200, "0123456789");
    if (random.chance(0.1)) key = "v1.0/" + key;
    std::vector<std::pair<std::string, std::string>> fields;
    for (const char* name : {"jpg", "cls", "seg.png", "json", "\xc3\xbc"})
      if (fields.empty() || random.chance(0.4)) {
        const std::size_t sizes[] = {0, 1, 511, 512, 513, 1 + random.below(5'000), random.below(60'000)};
        std::string data(sizes[random.below(std::size(sizes))], '\0');
        for (char& c : data) c = static_cast<char>(random.below(256));
        fields.emplace_back(name, std::move(data));
      }
    std::vector<mr::named_bytes> views;
    for (const auto& [name, data] : fields) views.emplace_back(name, std::string_view(data));
    shards.write(key, views);
  }
  shards.close();
}

/// The shards that the tests of io/ use.
void write_by_hand(const std::string& folder) {
  using namespace tar_test;
  const std::string long_name = std::string(70, 'd') + "/" + std::string(90, 'n') + ".txt";
  save(folder + "/hand-ustar.tar", small_shard().bytes());
  save(folder + "/hand-pax.tar", small_shard([](const std::string& n, std::string_view d) { return pax_file(n, d); })
                                     .bytes());
  save(folder + "/hand-gnu.tar",
       small_shard([](const std::string& n, std::string_view d) { return gnu_long_name(n, d); }).bytes());
  save(folder + "/hand-mixed.tar",
       file("a.jpg", "1") + gnu_long_name(long_name, "2") + pax(pax_record("path", "p/" + long_name)) +
           file("short.txt", "3") + block({.name = "b.txt", .size_bytes = 1, .prefix = "pre/fix"}) + padded("4") +
           block({.name = "old.txt", .size_bytes = 1, .type = '\0'}) + padded("5") +
           block({.name = "seven.txt", .size_bytes = 1, .type = '7'}) + padded("6") + end_marker());
}

void work(command_line& args) {
  std::vector<std::string> words = args.rest();
  if (words.size() < 2) args.refuse("expected a command and its argument");
  const std::string what = words[0], first = words[1];
  if (what == "read") return read(first, {words.begin() + 2, words.end()});
  if (what == "join") return join(first, {words.begin() + 2, words.end()});
  write_own(first, std::stoull(words.at(2)));
  write_by_hand(first);
}

}  // namespace

int main(int argc, char** argv) {
  return run_program({argc, argv, "usage: samples read stream|index FILE... | samples join skip|partial FILE... with "
                                  "FILE... | samples write FOLDER SEED"},
                     work);
}
