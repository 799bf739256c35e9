// Many shards as one list of samples: by blocks or one by one the same records and the same errors.
#include <millrace/io/index/set/shard_data.hpp>
#include <millrace/io/tar/write/shard_writer.hpp>

#include "../../tar_bytes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

namespace mr = millrace;
using namespace tar_test;

namespace {

constexpr std::size_t shards = 3, samples_per_shard = 500;

std::vector<std::string> write_shards(const temporary_folder& f) {
  mr::shard_writer writer({.pattern = f / "s-%d.tar", .max_samples = samples_per_shard});
  for (std::size_t i = 0; i < shards * samples_per_shard; ++i)
    writer.write("k" + std::to_string(i), {{"txt", std::string(i % 900, static_cast<char>('a' + i % 26))},
                                           {"cls", std::to_string(i)}});
  writer.close();
  std::vector<std::string> names;
  for (std::size_t s = 0; s < shards; ++s) names.push_back(f / ("s-" + std::to_string(s) + ".tar"));
  return names;
}

/// All samples, each near its position, in lists of 100.
std::vector<std::vector<mr::detail::located_sample>> shuffled() {
  std::vector<mr::detail::located_sample> all;
  for (std::size_t i = 0; i < shards * samples_per_shard; ++i)
    all.push_back({i / samples_per_shard, i % samples_per_shard});
  mr::rng random({.seed = 3});
  for (std::size_t i = all.size(); i-- > 1;) std::swap(all[i], all[i - std::min<std::size_t>(i, random.below(300))]);
  std::vector<std::vector<mr::detail::located_sample>> lists;
  for (std::size_t at = 0; at < all.size(); at += 100) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(at);
    lists.emplace_back(first, first + 100);
  }
  return lists;
}

std::size_t expect_a_shuffle(mr::detail::shard_data& data) {
  return data.expect({.window = 300, .lanes = 1, .max_held_bytes = std::size_t{32} << 20});
}

/// Reads everything; the message of the first error, or nothing.
std::string read_all(mr::detail::shard_data& data) {
  for (const auto& positions : shuffled()) {
    std::vector<mr::record> records(positions.size());
    std::exception_ptr failure;
    const std::size_t good = data.read(positions, records, failure);
    for (std::size_t i = 0; i < good; ++i) {
      const std::size_t number = positions[i].shard * samples_per_shard + positions[i].index;
      CHECK(records[i].key() == "k" + std::to_string(number));
      CHECK(records[i]["cls"].text() == std::to_string(number));
      CHECK(records[i]["txt"].size() == number % 900);
    }
    if (good == positions.size()) continue;
    try {
      std::rethrow_exception(failure);
    } catch (const mr::error& e) {
      return "sample " + std::to_string(good) + " of the list: " + e.what();
    }
  }
  return {};
}

/// Limits the size of files, like a full disk.
class limited_files {
 public:
  explicit limited_files(rlim_t max_bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{max_bytes, before_.rlim_max};
    old_ = std::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~limited_files() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, old_);
  }

 private:
  rlimit before_{};
  void (*old_)(int) = SIG_DFL;
};

void change_byte(const std::string& path, std::streamoff at) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(at);
  const char old = static_cast<char>(file.get());
  file.seekp(at);
  file.put(static_cast<char>(old ^ 4));
}

/// Changes a byte and keeps the time, like a bad disk.
void damage(const std::string& path, std::streamoff at) {
  const auto time = std::filesystem::last_write_time(path);
  change_byte(path, at);
  std::filesystem::last_write_time(path, time);
}

}  // namespace

TEST_CASE("by blocks or one by one, the records are the same, epoch after epoch") {
  const temporary_folder f;
  const auto names = write_shards(f);
  mr::detail::shard_data one_by_one(names), by_blocks(names);
  CHECK(expect_a_shuffle(by_blocks) > 0);
  for (int epoch = 0; epoch < 2; ++epoch) {
    CHECK(read_all(one_by_one) == "");
    CHECK(read_all(by_blocks) == "");
  }
}

TEST_CASE("nothing is cached without a shuffle, of large samples, or beyond the limit") {
  const temporary_folder f;
  mr::detail::shard_data data(write_shards(f));
  CHECK(data.expect({.window = 0, .lanes = 48, .max_held_bytes = std::size_t{1} << 30}) == 0);
  CHECK(data.expect({.window = 300, .lanes = 48, .max_held_bytes = 1'000'000}) == 0);
  CHECK(data.expect({.window = ~std::uint64_t{0}, .lanes = 1, .max_held_bytes = std::size_t{1} << 20}) == 0);
  mr::shard_writer writer({.pattern = f / "large-%d.tar"});
  for (int i = 0; i < 4; ++i) writer.write("k" + std::to_string(i), {{"bin", std::string(40'000, 'x')}});
  writer.close();
  mr::detail::shard_data large({f / "large-0.tar"});
  CHECK(large.expect({.window = 300, .lanes = 1, .max_held_bytes = std::size_t{1} << 30}) == 0);
}

TEST_CASE("a payload that has changed is the error of its sample alone, with the same message either way") {
  const temporary_folder f;
  const auto names = write_shards(f);
  std::uint64_t at = 0;
  {
    mr::detail::shard_data learns(names);
    CHECK(read_all(learns) == "");
    at = learns.location_of({1, 250}).offset_bytes + 512;   // after the header of its first field
  }
  damage(names[1], static_cast<std::streamoff>(at));
  mr::detail::shard_data one_by_one(names), by_blocks(names);
  expect_a_shuffle(by_blocks);
  const std::string text = read_all(one_by_one);
  CHECK(text.find("CRC-32C") != std::string::npos);
  CHECK(text.find("k750") != std::string::npos);
  CHECK(read_all(by_blocks) == text);
}

TEST_CASE("at the start only heads are read, and columns that are damaged are rebuilt later") {
  const temporary_folder f;
  const auto names = write_shards(f);
  { mr::detail::shard_data makes(names); }
  for (const auto& name : names) change_byte(mr::detail::index_path(name), 2'000);
  mr::detail::shard_data data(names);
  CHECK(mr::detail::summarize_index(mr::detail::index_path(names[0]), mr::detail::identify_shard(names[0])).state ==
        mr::detail::index_file_state::good);
  CHECK(mr::detail::load_index(mr::detail::index_path(names[0]), mr::detail::identify_shard(names[0])).state ==
        mr::detail::index_file_state::damaged);
  CHECK(read_all(data) == "");
  CHECK(mr::detail::load_index(mr::detail::index_path(names[0]), mr::detail::identify_shard(names[0])).state ==
        mr::detail::index_file_state::good);
}

TEST_CASE("a shard that is replaced after the start is refused on its turn") {
  const temporary_folder f;
  const auto names = write_shards(f);
  { mr::detail::shard_data makes(names); }
  mr::detail::shard_data data(names);
  mr::shard_writer writer({.pattern = f / "other-%d.tar"});
  writer.write("other", {{"cls", "1"}});
  writer.close();
  std::filesystem::rename(f / "other-0.tar", names[2]);
  const std::string text = read_all(data);
  CHECK(text.find("changed since this program started") != std::string::npos);
  CHECK(text.find("s-2.tar") != std::string::npos);
}

TEST_CASE("indexes or checksums that cannot be written are one notice, and the run continues") {
  const temporary_folder f;
  const auto names = write_shards(f);
  const auto lines_of = [&](const std::string& folder, rlim_t max_bytes) {
    std::vector<mr::notice> notices;
    auto data = std::make_unique<mr::detail::shard_data>(
        names, mr::detail::shard_data_options{.files = {.cache_folder = folder},
                                              .notice = [&](const mr::notice& n) { notices.push_back(n); }});
    expect_a_shuffle(*data);
    CHECK(read_all(*data).empty());
    {
      const limited_files full(max_bytes);
      data.reset();
    }
    if (notices.empty()) return std::string();
    CHECK(notices.size() == 1);
    CHECK(notices[0].kind == mr::notice_kind::index);
    CHECK(notices[0].severity == mr::notice_severity::warning);
    CHECK(notices[0].text.find('\n') == std::string::npos);
    return notices[0].text;
  };
  const std::string nowhere = lines_of(f / "none/indexes", RLIM_INFINITY);
  CHECK_MESSAGE(nowhere.starts_with("3 of 3 indexes cannot be stored and will be built again at the next start: "
                                    "cannot write the index: No such file or directory (shard "), nowhere);
  CHECK_MESSAGE(nowhere.find(". Check the file and its permissions, or name another") != std::string::npos, nowhere);
  const std::string full = lines_of(f / "indexes", 4'096);
  CHECK_MESSAGE(full.starts_with("checksums cannot be stored in the index; later runs compute them again: "
                                 "cannot write the file: File too large (shard "), full);
  CHECK(lines_of(f / "indexes", RLIM_INFINITY).empty());
  CHECK(lines_of(f / "indexes", RLIM_INFINITY).empty());
}

TEST_CASE("temporary files of a killed process are removed when checksums are written") {
  const temporary_folder f;
  const auto names = write_shards(f);
  mr::detail::build_indexes(names);
  const std::string left = f / (".s-9.tar.millrace-index." + mr::detail::kernel_id() + "-7-0.partial");
  save(left, "half");
  {
    mr::detail::shard_data data(names, {});
    expect_a_shuffle(data);
    CHECK(read_all(data).empty());
    CHECK(std::filesystem::exists(left));
  }
  CHECK_FALSE(std::filesystem::exists(left));
}

TEST_CASE("shards without an end marker are counted and one is reported, or are errors with strict") {
  const temporary_folder f;
  const small_shard shard;
  const std::string members = shard.bytes().substr(0, shard.bytes().size() - 1'024);
  const std::vector<std::string> names{f / "a.tar", f / "b.tar", f / "c.tar"};
  save(names[0], shard.bytes());
  save(names[1], members);
  save(names[2], members + std::string(512, '\0'));
  for (int round = 0; round < 2; ++round) {   // indexes built, and heads read
    mr::detail::shard_data data(names);
    CHECK(data.counts() == std::vector<std::uint64_t>{3, 3, 3});
    mr::event_counts counts;
    data.report(counts);
    REQUIRE(counts.counts().size() == 1);
    CHECK(std::string(counts.counts()[0].what) == "shards that ended without a marker");
    CHECK(counts.counts()[0].times == 2);
    const std::vector<mr::notice> news = counts.take_posted();
    REQUIRE(news.size() == 1);
    CHECK(news[0].kind == mr::notice_kind::missing_end_marker);
    CHECK(news[0].where.shard == names[1]);
    CHECK(news[0].text.find(names[1] + " ended without an end marker") != std::string::npos);
    CHECK(counts.take_posted().empty());
    try {
      mr::detail::shard_data strict(names, {.strict = true});
      FAIL("no error");
    } catch (const mr::data_error& e) {
      CHECK(e.message() == "the shard ends without an end marker: expected two blocks of 512 zeros, after the last "
                           "good key 'b'");
      CHECK(e.where().shard == names[1]);
      CHECK(e.where().offset_bytes == members.size());
    }
  }
  CHECK(mr::detail::shard_data({names[0]}, {.strict = true}).counts().front() == 3);
}

TEST_CASE("files that are used in turn stay open, although they are more than the limit") {
  struct counted final : mr::detail::idle_file {
    using idle_file::idle_file;
  };
  mr::detail::idle_files files(50);
  const auto reused_in_a_round = [&](std::size_t first, std::size_t end) {
    std::size_t reused = 0;
    for (std::size_t shard = first; shard < end; ++shard) {
      auto file = files.reuse(&files, shard);
      reused += file ? 1 : 0;
      if (!file) file = mr::detail::make_owner<counted>(shard);
      static_cast<void>(files.keep(&files, std::move(file)));
      CHECK(files.size() <= 50);
    }
    return reused;
  };
  for (int round = 0; round < 3; ++round) static_cast<void>(reused_in_a_round(0, 100));
  CHECK(reused_in_a_round(0, 100) == 50);
  // Other files then replace them.
  for (int round = 0; round < 10; ++round) static_cast<void>(reused_in_a_round(200, 240));
  CHECK(reused_in_a_round(200, 240) == 40);
  files.remove_all(&files);
}
