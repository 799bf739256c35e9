// Loose files as a source: names, records, classes, order, resume, ranks, damage and storages.
#include "../run/cellar.hpp"

#include <millrace/files.hpp>

#include <doctest/doctest.h>


#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <system_error>

namespace mr = millrace;
namespace fs = std::filesystem;

namespace {

void save(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

/// 61 files in three folders, whose texts are their numbers.
std::string write_files(const temporary_folder& folder) {
  for (int i = 0; i < 61; ++i)
    save(fs::path(folder / ("t/" + std::string(i < 7 ? "zebra" : i < 30 ? "ant" : "cat-2") + "/" + std::to_string(i) +
                            (i % 2 ? ".JPG" : ".jpg"))),
         std::to_string(i));
  save(folder / "t/.hidden/1.jpg", "x");
  save(folder / "t/ant/.2.jpg", "x");
  save(folder / "t/ant/notes.txt", "x");
  return folder.path() + "/t";
}

struct row {
  std::int32_t label;
  double draw;
};
row prepare(const mr::record& r, mr::rng& random) {
  return {r["jpg"].as<std::int32_t>(), random.uniform()};
}

struct file_run {
  mr::files_options source{.seed = 7};
  mr::world world{};
  int threads = 2;
  std::string resume{};
  std::size_t window = 5, global_batch = 12;
  bool drop_last = true;
  std::uint64_t epochs = 2;
  mr::damage_options on_damage{};
};
struct delivered_rows {
  std::vector<std::vector<std::pair<std::int32_t, double>>> batches{};
  std::vector<std::string> positions{}, keys{};
  std::uint64_t digest = 0, masked = 0;
};

template <class Names>
delivered_rows run_files(const Names& names, const file_run& o) {
  mr::session run{mr::files(names, o.source) | mr::shuffle({.window = o.window}) | mr::map(prepare) |
                      mr::batch<&row::label, &row::draw>({.size = o.global_batch / o.world.size,
                                                           .drop_last = o.drop_last, .keys = true}),
                  {.epochs = o.epochs, .threads = o.threads, .notice = mr::quiet, .world = o.world, .resume = o.resume,
                   .on_damage = o.on_damage}};
  delivered_rows all;
  for (auto& b : run) {
    auto& rows = all.batches.emplace_back();
    for (std::size_t i = 0; i < b.size(); ++i) {
      rows.emplace_back(b.template get<&row::label>()[i], b.template get<&row::draw>()[i]);
      all.keys.emplace_back(b.keys()[i]);
    }
    all.positions.push_back(mr::to_text(b.position()));
  }
  all.digest = run.stats().digest;
  all.masked = run.stats().masked;
  return all;
}

std::vector<std::string> keys_of(const auto& names, const mr::files_options& o = {}) {
  mr::session run{mr::files(names, o) | mr::map([](const mr::record& r) {
                    return row{static_cast<std::int32_t>(r.field_count()), 0};
                  }) | mr::batch<&row::label>({.size = 1, .keys = true}),
                  {.threads = 0, .notice = mr::quiet}};
  std::vector<std::string> keys;
  for (auto& b : run) keys.emplace_back(b.keys()[0]);
  return keys;
}

using names = std::vector<std::string>;
using cellars::message_of;

}  // namespace

TEST_CASE("files: keys are the paths after the fixed part, sorted by their bytes") {
  const temporary_folder f;
  for (const char* name : {"p/b/2.jpg", "p/a/1.jpg", "p/a/deep/er/3.jpg", "p/0.jpg", "p/a/4.png", "p/.x/5.jpg",
                           "p/a/.6.jpg", "q/7.jpg"})
    save(f / name, "x");
  const std::string p = f.path() + "/p";
  CHECK(keys_of(p + "/**/*.jpg") == names{"0.jpg", "a/1.jpg", "a/deep/er/3.jpg", "b/2.jpg"});
  CHECK(keys_of(p + "/*/*.{jpg,png}") == names{"a/1.jpg", "b/2.jpg", "a/4.png"});
  CHECK(keys_of(p + "/a/**") == names{"1.jpg", "4.png", "deep/er/3.jpg"});
  CHECK(keys_of(p) == names{"0.jpg", "a/1.jpg", "a/4.png", "a/deep/er/3.jpg", "b/2.jpg"});
  CHECK(keys_of(p + "/") == keys_of(p));
  CHECK(keys_of("file:" + p) == keys_of(p));
  CHECK(keys_of(p + "/*") == names{"0.jpg"});   // a glob matches files only
  CHECK(keys_of(p + "/a/1.jpg") == names{"1.jpg"});
  CHECK(keys_of(p + "/{a,b}/*.jpg") == names{"a/1.jpg", "b/2.jpg"});
  CHECK(keys_of(p + "/b::" + f.path() + "/q") == names{"p/b/2.jpg", "q/7.jpg"});
  CHECK(keys_of(p + "/a/*.jpg", {.root = f.path()}) == names{"p/a/1.jpg"});
  const names list{p + "/b/2.jpg", p + "/0.jpg"};
  CHECK(keys_of(list) == list);
  CHECK(keys_of(list, {.root = p}) == names{"b/2.jpg", "0.jpg"});
  CHECK(keys_of(std::vector<fs::path>{p + "/0.jpg"}, {.root = p + "/"}) == names{"0.jpg"});
  CHECK(keys_of(p, {.where = [](std::string_view key) { return key.ends_with("2.jpg"); }}) == names{"b/2.jpg"});
  CHECK(message_of([&] { (void)mr::files(p + "/**/*.gif"); }).find("no file matches '" + p + "/**/*.gif'") !=
        std::string::npos);
  CHECK(message_of([&] { (void)mr::files(names{}); }).find("the list of files is empty") != std::string::npos);
  CHECK(message_of([&] { (void)mr::files(list, {.root = "/elsewhere"}); }).find("outside files_options::root") !=
        std::string::npos);
  CHECK(message_of([&] { (void)mr::files(p, {.where = [](std::string_view) { return false; }}); })
            .find("rejects all 5") != std::string::npos);
  CHECK(message_of([&] { (void)mr::files(names{p + "/a.jpg", p + "/0.jpg", p + "/a"}); })
            .find("2 of 3 files cannot be read: '" + p + "/a.jpg' (No such file or directory), '" + p +
                  "/a' (not a regular file)") != std::string::npos);
}

TEST_CASE("files: a record has the bytes by the ending in lower case, the path as its shard, and the class") {
  const temporary_folder f;
  save(f / "a/1.JPeG", "one");
  save(f / "b/x.tar.gz", "two");
  save(f / "b/none", "three");
  save(f / "b/y.cls", "5");
  std::map<std::string, std::string> texts;
  mr::session run{mr::files(f.path(), {.folders_are_classes = true}) | mr::map([&](const mr::record& r) {
                    std::string& text = texts[std::string(r.key())];
                    text = std::string(r.shard()) + (r.checksums() != 0 ? "" : " no checksum");
                    for (const mr::bytes& field : r.fields())
                      text += " " + std::string(field.name()) + "=" + std::string(field.text());
                    return row{};
                  }) | mr::batch<&row::label>({.size = 4}),
                  {.threads = 0, .notice = mr::quiet}};
  for (auto& b : run) CHECK(b.size() == 4);
  CHECK(texts["a/1.JPeG"] == f.path() + "/a/1.JPeG jpeg=one cls=0");
  CHECK(texts["b/x.tar.gz"] == f.path() + "/b/x.tar.gz gz=two cls=1");
  CHECK(texts["b/none"] == f.path() + "/b/none file=three cls=1");
  CHECK(texts["b/y.cls"] == f.path() + "/b/y.cls cls=5");   // a file's own field stays
}

TEST_CASE("files: classes are the sorted first folders, or the names in the options") {
  const temporary_folder f;
  const std::string t = write_files(f);
  const auto labels = [](const std::string& pattern, const mr::files_options& o) {
    std::map<std::string, std::set<int>> of;
    mr::session run{mr::files(pattern, o) | mr::map([](const mr::record& r) {
                      return row{r["cls"].as<std::int32_t>(), 0};
                    }) | mr::batch<&row::label>({.size = 1, .keys = true}),
                    {.threads = 0, .notice = mr::quiet}};
    for (auto& b : run) {
      const std::string key(b.keys()[0]);
      of[key.substr(0, key.find('/'))].insert(b.template get<&row::label>()[0]);
    }
    return of;
  };
  const std::string jpg = t + "/**/*.{jpg,JPG}";
  using numbers = std::map<std::string, std::set<int>>;
  CHECK(labels(jpg, {.folders_are_classes = true}) == numbers{{"ant", {0}}, {"cat-2", {1}}, {"zebra", {2}}});
  CHECK(mr::folder_classes(jpg) == names{"ant", "cat-2", "zebra"});
  CHECK(labels(jpg, {.classes = {"zebra", "dog", "ant", "cat-2"}}) ==
        numbers{{"ant", {2}}, {"cat-2", {3}}, {"zebra", {0}}});
  CHECK(labels(jpg, {.folders_are_classes = true, .classes = {"zebra", "ant", "cat-2"}}) ==
        numbers{{"ant", {1}}, {"cat-2", {2}}, {"zebra", {0}}});
  CHECK(mr::folder_classes(jpg, {.classes = {"zebra", "ant"}}) == names{"zebra", "ant"});
  // A part of the set has the numbers of the complete one.
  CHECK(labels(jpg, {.folders_are_classes = true, .where = [](std::string_view key) { return key[0] == 'z'; }}) ==
        numbers{{"zebra", {2}}});
  CHECK(message_of([&] { (void)mr::files(jpg, {.classes = {"ant", "zebra"}}); })
            .find("has no class: got the folder 'cat-2'") != std::string::npos);
  CHECK(message_of([&] { (void)mr::files(t + "/ant", {.folders_are_classes = true}); })
            .find("the files have no classes") != std::string::npos);
  CHECK(message_of([&] { (void)mr::files(jpg, {.classes = {"ant", "ant"}}); }).find("twice") != std::string::npos);
}

TEST_CASE("files: the order is a permutation at any window, equal for workers and ranks, and resumes at any batch") {
  const temporary_folder f;
  const std::string jpg = write_files(f) + "/**/*.{jpg,JPG}";
  const delivered_rows one = run_files(jpg, {.threads = 0});
  REQUIRE(one.batches.size() == 10);   // 5 batches of 12 in each of 2 epochs
  std::vector<int> sequence;
  for (const auto& batch : one.batches)
    for (const auto& [label, draw] : batch) sequence.push_back(label);
  for (const std::size_t epoch : {0U, 1U}) {
    const auto begin = sequence.begin() + std::ptrdiff_t(epoch) * 60;
    const std::set<int> numbers(begin, begin + 60);
    CHECK(numbers.size() == 60);   // one of 61 is dropped
  }
  // The first batch has files of all folders although the window is 5, and the two epochs differ.
  CHECK(std::any_of(sequence.begin(), sequence.begin() + 12, [](int i) { return i < 30; }));
  CHECK(std::any_of(sequence.begin(), sequence.begin() + 12, [](int i) { return i >= 30; }));
  std::size_t same = 0;
  for (std::size_t i = 0; i < 60; ++i) same += sequence[i] == sequence[60 + i];
  CHECK(same < 10);
  for (const int threads : {1, 4}) {
    const delivered_rows d = run_files(jpg, {.threads = threads});
    CHECK(d.batches == one.batches);
    CHECK(d.positions == one.positions);
    CHECK(d.digest == one.digest);
  }
  for (std::size_t cut = 0; cut + 1 < one.batches.size(); ++cut) {
    const delivered_rows rest = run_files(jpg, {.resume = one.positions[cut]});
    CHECK(rest.batches == std::vector(one.batches.begin() + std::ptrdiff_t(cut) + 1, one.batches.end()));
    CHECK(rest.positions.back() == one.positions.back());
  }
  for (const std::size_t ranks : {2U, 3U, 4U, 6U}) {
    std::uint64_t digest = 0;
    std::vector<delivered_rows> all;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      all.push_back(run_files(jpg, {.world = {.rank = rank, .size = ranks}}));
      digest += all.back().digest;
    }
    CHECK(digest == one.digest);
    for (std::size_t b = 0; b < one.batches.size(); ++b)
      for (std::size_t i = 0; i < 12; ++i) CHECK(all[i % ranks].batches[b][i / ranks] == one.batches[b][i]);
  }
}

TEST_CASE("files: a resume point requires the same keys, sizes and classes, in any folder") {
  const temporary_folder f, other;
  const std::string t = write_files(f);
  const std::string text = run_files(t, {.source = {.where = [](std::string_view k) { return k.ends_with(".jpg"); }}})
                               .positions[0];
  const auto resumed = [&](const std::string& names, mr::files_options source) {
    source.where = [](std::string_view k) { return k.ends_with(".jpg"); };
    return message_of([&] { (void)run_files(names, {.source = source, .resume = text}); });
  };
  CHECK(resumed(t, {}) == "no error");
  fs::copy(t, other / "copy", fs::copy_options::recursive);
  CHECK(resumed(other / "copy", {}) == "no error");
  CHECK(resumed(t, {.folders_are_classes = true}) != "no error");
  save(t + "/ant/8.jpg", "longer than before");
  CHECK(resumed(t, {}) != "no error");
  fs::rename(other / "copy/ant/8.jpg", other / "copy/ant/8-renamed.jpg");   // the size and the place stay
  CHECK(resumed(other / "copy", {}) != "no error");
  fs::rename(other / "copy/ant/8-renamed.jpg", other / "copy/ant/8.jpg");
  CHECK(resumed(other / "copy", {}) == "no error");
  fs::remove(other / "copy/ant/8.jpg");
  CHECK(resumed(other / "copy", {}) != "no error");
}

TEST_CASE("files: a file that vanishes, changes or is empty is one damaged sample, named by its key") {
  const std::map<std::string, std::string> messages{
      {"vanishes", "cannot open the file: No such file or directory"},
      {"becomes a folder", "cls"},
      {"changes", "the file changed after files() recorded its size: got 6 bytes, expected 2"},
      {"is empty", "is not a valid integer"},
  };
  for (const auto& entry : messages) {
    const auto& what = entry.first;
    const auto& message = entry.second;
    CAPTURE(what);
    const temporary_folder f;
    const std::string jpg = write_files(f) + "/**/*.{jpg,JPG}", path = f / "t/cat-2/44.jpg";
    const delivered_rows clean = run_files(jpg, {.drop_last = false, .epochs = 1});
    if (what == "is empty") save(path, "");
    const auto flow = mr::files(jpg, {.seed = 7}) | mr::shuffle({.window = 5}) | mr::map(prepare) |
                      mr::batch<&row::label, &row::draw>({.size = 12, .drop_last = false, .keys = true});
    // The flow knows the sizes before anything has been read.
    if (what == "vanishes" || what == "becomes a folder") fs::remove(path);
    if (what == "becomes a folder") fs::create_directory(path);
    if (what == "changes") save(path, "123456");
    const auto run = [&](mr::damage policy, const auto& each) {
      mr::session session{std::remove_cv_t<decltype(flow)>(flow), {.threads = 2, .notice = mr::quiet,
                                       .on_damage = {.policy = policy, .at_most_share = 1}}};
      for (auto& b : session)
        for (std::size_t i = 0; i < b.size(); ++i) each(b, i);
    };
    names masked;
    std::size_t at = 0, equal = 0;
    std::vector<std::pair<std::int32_t, double>> expected;
    for (const auto& batch : clean.batches) expected.insert(expected.end(), batch.begin(), batch.end());
    run(mr::damage::mask, [&](auto& b, std::size_t i) {
      equal += expected[at++] ==
               std::pair(b.template get<&row::label>()[i], b.template get<&row::draw>()[i]);
      if (!b.valid()[i]) masked.emplace_back(b.keys()[i]);
    });
    CHECK(masked == names{"cat-2/44.jpg"});
    CHECK(equal == 60);   // all but that one
    const std::string error = message_of([&] { run(mr::damage::fail, [](auto&, std::size_t) {}); });
    if (what != "becomes a folder") CHECK(error.find(message) != std::string::npos);
    CAPTURE(error);
    CHECK(error.find("shard " + path + ", key cat-2/44.jpg") != std::string::npos);
  }
}

TEST_CASE("files: unreadable ones at the start are an error, or damaged samples if the options allow them") {
  const temporary_folder f;
  write_files(f);
  names list;
  for (int i = 0; i < 7; ++i) list.push_back(f / ("t/zebra/" + std::to_string(i) + (i % 2 ? ".JPG" : ".jpg")));
  list.push_back(f / "t/zebra/gone.jpg");
  const std::string error = message_of([&] { (void)mr::files(list); });
  CHECK(error.find("1 of 8 files cannot be read: '" + list.back() + "' (No such file or directory)") !=
        std::string::npos);
  CHECK(run_files(list, {.source = {.seed = 7, .unreadable_at_most = 1}, .global_batch = 4, .epochs = 1,
                         .on_damage = {.policy = mr::damage::mask, .at_most_share = 1}})
            .masked == 1);
  CHECK(message_of([&] {
          (void)run_files(f / "t/zebra", {.source = {.seed = 7, .max_file_bytes = 0}, .global_batch = 4, .epochs = 1});
        }).find("the file is too large: got 1 bytes, expected at most 0") != std::string::npos);
}

TEST_CASE("files of a storage have the batches and resume points of local files") {
  const temporary_folder f;
  const std::string t = write_files(f);
  const auto files = std::make_shared<cellars::cellar>(temporary_folder().path());
  for (const auto& entry : fs::recursive_directory_iterator(t))
    if (entry.is_regular_file())
      files->files["cellar://box/" + fs::relative(entry.path(), t).string()].text = cellars::text_of(entry.path());
  const mr::storage at = cellars::listing_storage{{files}};
  const std::string remote = "cellar://box/**/*.{jpg,JPG}";
  CHECK(keys_of(std::string("cellar://box/"), {.storage = at}) == keys_of(t));
  CHECK(keys_of(remote, {.storage = at}) == keys_of(t + "/**/*.{jpg,JPG}"));
  const delivered_rows here = run_files(t + "/**/*.{jpg,JPG}", {});
  const delivered_rows there = run_files(remote, {.source = {.seed = 7, .storage = at}});
  CHECK(there.batches == here.batches);
  CHECK(there.positions == here.positions);
  CHECK(there.digest == here.digest);
  CHECK(message_of([&] { (void)mr::files(names{"cellar://box/none.jpg"}, {.storage = at}); })
            .find("1 of 1 files cannot be read: 'cellar://box/none.jpg' (it does not exist)") != std::string::npos);
}

TEST_CASE("files that end before their size are damaged samples, and errors of read_file") {
  const auto files = std::make_shared<cellars::cellar>(temporary_folder().path());
  for (int i = 0; i < 8; ++i) files->files["cellar://box/" + std::to_string(i) + ".jpg"].text = i == 5 ? "123456" : "7";
  files->cut_at = 2;
  const mr::storage at = cellars::listing_storage{{files}};
  file_run run{.source = {.storage = at}, .global_batch = 4, .epochs = 1};
  CHECK(message_of([&] { (void)run_files(std::string("cellar://box/"), run); })
            .find("ends too early: expected the 6 bytes that its identity() states (shard cellar://box/5.jpg") !=
        std::string::npos);
  run.on_damage = {.policy = mr::damage::mask, .at_most_share = 1};
  CHECK(run_files(std::string("cellar://box/"), run).masked == 1);
  CHECK(message_of([&] { (void)mr::read_file("cellar://box/5.jpg", at); }).find("the file ends too early") !=
        std::string::npos);
  // The kernel's own files: stat() returns the size of a page, and a read returns a few bytes.
  const std::string short_file = "/sys/devices/system/cpu/online";
  std::error_code none;
  if (fs::file_size(short_file, none) != 4'096 || none) return;
  const auto expected = "the file ends too early: expected the 4096 bytes";
  CHECK(message_of([&] { (void)mr::read_file(short_file); }).find(expected) != std::string::npos);
  CHECK(message_of([&] { (void)keys_of(names{short_file}); }).find(expected) != std::string::npos);
}
