#include "../../../examples/repack_codes.hpp"
#include "../../../examples/repack_picture.hpp"
#include "../../../examples/repack_progress.hpp"

#include "../../unit/image/jpeg_recipes.hpp"
#include "../../temporary_folder.hpp"

#include <millrace/io/tar/write/shard_writer.hpp>

#include <doctest/doctest.h>

namespace mr = millrace;

namespace {

repack_detail::picture_sides sides(std::size_t width, std::size_t height, const repack_options& options) {
  return repack_detail::sides_for({.width = width, .height = height}, options);
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("sides are those of the tighter limit, and never grow") {
  using repack_detail::picture_sides;
  CHECK(sides(500, 375, {}) == picture_sides{500, 375});
  CHECK(sides(500, 375, {.short_side = 256}) == picture_sides{341, 256});   // rounds like torchvision
  CHECK(sides(375, 500, {.short_side = 256}) == picture_sides{256, 341});
  CHECK(sides(500, 375, {.short_side = 375}) == picture_sides{500, 375});
  CHECK(sides(500, 375, {.short_side = 376}) == picture_sides{500, 375});
  CHECK(sides(500, 375, {.max_side = 250}) == picture_sides{250, 187});
  CHECK(sides(500, 375, {.max_side = 300, .short_side = 256}) == picture_sides{300, 225});
  CHECK(sides(500, 375, {.max_side = 499, .short_side = 256}) == picture_sides{341, 256});
  CHECK(sides(2000, 10, {.max_side = 100, .short_side = 256}) == picture_sides{100, 1});
  CHECK(sides(1, 65'500, {.max_side = 10}) == picture_sides{1, 10});
}

TEST_CASE("a shrunk image has the pixels of the library's resize, and its markers") {
  const std::vector<slow::marker> markers{{JPEG_APP0 + 1, std::string("Exif\0\0MM", 8)}, {JPEG_APP0 + 2, "ICC_PROFILE"},
                                          {JPEG_COM, "a comment"}};
  for (const auto stored : {JCS_GRAYSCALE, JCS_YCbCr, JCS_RGB, JCS_CMYK, JCS_YCCK}) {
    mr::image large({120, 160, slow::channels_of(stored)});   // smooth: 4:2:0 changes little
    for (std::size_t i = 0; i < large.size(); ++i)
      large.data()[i] = static_cast<std::uint8_t>(40 + i / large.shape()[2] % 160 + 20 * (i % large.shape()[2]) / 3);
    const auto file = slow::make_jpeg(large, {.stored = stored, .progressive = true, .markers = markers});
    const auto repacked = repack_picture(slow::view(file), {.short_side = 60, .quality = 98});
    CHECK(repacked.shrunk);
    CHECK(repacked.before.progressive);
    const auto header = mr::read_jpeg_header(repacked.file);
    CHECK(header.width == 80);
    CHECK(header.height == 60);
    CHECK(header.components == (stored == JCS_GRAYSCALE ? 1 : 3));
    CHECK_FALSE(header.progressive);
    const auto expected = mr::jpeg(slow::view(file)).resize(60, 80).pixels();
    CHECK(slow::compare(mr::jpeg(slow::view(repacked.file)).pixels(), slow::real(expected)).mean < 1);
    const std::string markers = slow::leading_markers(repacked.file);
    const bool cmyk = slow::channels_of(stored) == 4;
    CHECK(markers.size() == 20 + 12 + (cmyk ? 0 : 15) + 13);
    CHECK(has(markers, "JFIF"));
    CHECK(has(markers, "Exif"));
    CHECK(has(markers, "ICC_PROFILE") != cmyk);
    CHECK(has(markers, "a comment"));
    CHECK_FALSE(has(markers, "Adobe"));
  }
}

TEST_CASE("an image that is small enough keeps its coefficients") {
  const auto file = slow::make_jpeg(slow::photo(60, 80, 3, 2), {.progressive = true});
  const auto repacked = repack_picture(slow::view(file), {.max_side = 80, .short_side = 60, .quality = 1});
  CHECK_FALSE(repacked.shrunk);
  CHECK(slow::coefficients(repacked.file) == slow::coefficients(file));
  const auto with = repack_picture(slow::view(file), {.short_side = 30, .restarts = {.per_row = 100}});
  CHECK(slow::restart_markers(with.file) + 1 == 3 * 2);   // 40 x 30 pixels in MCUs of 16 x 16
}

TEST_CASE("restarts by size and shared codes keep coefficients, and report their gain") {
  const auto file = slow::make_jpeg(slow::photo(200, 300, 3, 5), {.sampling = {{{2, 2}, {1, 1}, {1, 1}, {1, 1}}},
                                                                  .progressive = true});
  transcode::jpeg_symbol_counts counts;
  const repack_options by_size{.restarts = {.by_size = true}};
  count_repacked_symbols(slow::view(file), by_size, counts);
  const transcode::jpeg_codes codes(counts);
  repack_options both = by_size;
  both.codes = &codes;
  const auto plain = repack_picture(slow::view(file), {});
  CHECK(plain.restarts.mcus == 0);
  for (const auto& options : {by_size, both}) {
    const auto repacked = repack_picture(slow::view(file), options);
    CHECK(slow::coefficients(repacked.file) == slow::coefficients(file));
    const auto& gain = repacked.restarts;
    CHECK(gain.mcus == 19 * 13);
    CHECK(gain.intervals == slow::restart_markers(repacked.file) + 1);
    CHECK(gain.intervals > 3);
    CHECK(gain.walk.all == 16 * gain.mcus);
    CHECK(gain.walk.with_restarts < gain.walk.without_restarts);
    CHECK(gain.bytes > 0);
    CHECK(gain.bytes < 0.02 * static_cast<double>(repacked.file.size()));
  }
}

TEST_CASE("symbols of a shrunk image are those of the smaller one") {
  const auto file = slow::make_jpeg(slow::photo(120, 160, 3, 6), {});
  const repack_options options{.short_side = 60, .quality = 90};
  transcode::jpeg_symbol_counts of_task, of_made;
  count_repacked_symbols(slow::view(file), options, of_task);
  count_repacked_symbols(slow::view(repack_picture(slow::view(file), options).file), {}, of_made);
  CHECK(of_task == of_made);
}

namespace {

/// Shards of four samples, each with two images and a text.
struct picture_shards {
  temporary_folder folder{};
  std::vector<std::vector<std::byte>> pictures{};
  std::vector<std::string> names{};

  explicit picture_shards(int shards) {
    mr::shard_writer to({.pattern = folder / "%d.tar", .max_samples = 4});
    for (int i = 0; i < 4 * shards; ++i) {
      add();
      add();
      to.write("k" + std::to_string(i), {{"left.jpg", std::span<const std::byte>(pictures.end()[-2])},
                                         {"right.jpeg", std::span<const std::byte>(pictures.back())},
                                         {"txt", std::string_view("no image")}});
    }
    to.close();
    for (int i = 0; i < shards; ++i) names.push_back(folder / (std::to_string(i) + ".tar"));
  }
  void add() {
    const auto seed = pictures.size();
    const int quality = 40 + static_cast<int>(seed);
    pictures.push_back(slow::make_jpeg(slow::photo(30 + seed % 7, 40, 3, seed), {.quality = quality}));
  }
  transcode::jpeg_codes codes_of_first(std::size_t count) const {
    transcode::jpeg_symbol_counts counts;
    for (std::size_t i = 0; i < count; ++i) count_repacked_symbols(slow::view(pictures[i]), {}, counts);
    return transcode::jpeg_codes(counts);
  }
};

}  // namespace

TEST_CASE("codes use the first images, in complete samples, for any number of threads") {
  const picture_shards data(3);
  for (const unsigned threads : {1U, 2U, 5U})
    for (const auto& [requested, used] : {std::pair{1U, 2U}, {2U, 2U}, {3U, 4U}, {9U, 10U}, {24U, 24U}, {10'000U, 24U}})
      CHECK(make_repack_codes({.shards = data.names, .pictures = requested, .threads = threads}) ==
            data.codes_of_first(used));
  CHECK(data.codes_of_first(2) != data.codes_of_first(24));
}

TEST_CASE("a damaged image is reported before any code uses it, or skipped") {
  temporary_folder folder;
  const auto good = slow::make_jpeg(slow::photo(40, 40, 3, 1), {});
  {
    mr::shard_writer to({.pattern = folder / "%d.tar"});
    to.write("good", {{"jpg", std::span<const std::byte>(good)}});
    to.write("bad", {{"jpg", std::span<const std::byte>(good).first(good.size() / 2)}});
    to.close();
  }
  const std::vector<std::string> shards{folder / "0.tar"};
  try {
    (void)make_repack_codes({.shards = shards});
    FAIL("no error");
  } catch (const mr::data_error& e) {
    CHECK(has(e.what(), "0.tar"));
    CHECK(has(e.what(), "bad"));
  }
  transcode::jpeg_symbol_counts counts;
  count_repacked_symbols(slow::view(good), {}, counts);
  CHECK(make_repack_codes({.shards = shards, .skip_damaged = true}) == transcode::jpeg_codes(counts));
}

TEST_CASE("damage is an error with any options") {
  const auto file = slow::make_jpeg(slow::photo(60, 80, 3, 3), {});
  const auto cut = mr::bytes::borrowed(std::span<const std::byte>(file).first(file.size() * 2 / 3));
  CHECK_THROWS_AS((void)repack_picture(cut, {}), mr::data_error);
  CHECK_THROWS_AS((void)repack_picture(cut, {.short_side = 30}), mr::data_error);
  CHECK_THROWS_AS((void)repack_picture(mr::bytes::borrowed("\x89PNG"), {}), mr::data_error);
}

TEST_CASE("markers are found among fill bytes, up to the end of the image or of a truncated file") {
  const auto metadata_of = [](std::string_view text) {
    const auto metadata = mr::jpeg_metadata(std::as_bytes(std::span(text)));
    return std::string(reinterpret_cast<const char*>(metadata.data()), metadata.size());
  };
  using namespace std::string_literals;
  const std::string comment = "\xff\xfe\0\4hi"s, soi = "\xff\xd8"s;
  const std::string other = "\xff\xe5\0\3x"s, end = "\xff\xd9"s;
  CHECK(metadata_of(soi + "\xff\xe0\0\2"s + "\xff\xff\xff"s + comment + "\xff\xee\0\2"s + other + "\xff\xda\0\2code"s +
             "\xff\0\xff\xd0\xff\xff"s + comment + "code"s + end + comment + comment) == comment + other + comment);
  CHECK(metadata_of(soi + comment + "\xff\xe1\0\x09short"s) == comment);
  CHECK(metadata_of(soi + "\xff\xd0"s + comment) == comment);
  CHECK(metadata_of(soi).empty());
  CHECK(metadata_of("").empty());
}

namespace {

std::string slow_read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A folder with inputs 0.tar, 1.tar, ... and its repack_progress.
struct repacking {
  temporary_folder folder{};
  repack_task task{.list = folder / "out/%d.tar.repack", .options = "quality 90"};

  explicit repacking(int inputs) {
    for (int i = 0; i < inputs; ++i) add_input();
  }
  void add_input() {
    const std::string name = std::to_string(task.inputs.size()) + ".tar";
    task.inputs.push_back(folder / name);
    task.outputs.push_back(folder / ("out/" + name));
    std::ofstream(task.inputs.back()) << "input";
  }
  void make_output(std::size_t i) { std::ofstream(task.outputs[i]) << "output"; }
  std::string problem() const {
    try {
      repack_progress{task};
      return "";
    } catch (const mr::setup_error& e) {
      return e.what();
    }
  }
};

}  // namespace

TEST_CASE("the output file and the list identify a finished shard") {
  repacking r(3);
  CHECK(repack_progress(r.task).count() == 0);
  r.make_output(0);
  r.make_output(2);
  const repack_progress now(r.task);
  CHECK(now.finished(0));
  CHECK_FALSE(now.finished(1));
  CHECK(now.finished(2));
  CHECK(now.count() == 2);
  r.add_input();
  CHECK(repack_progress(r.task).count() == 2);
  r.make_output(3);
  CHECK(repack_progress(r.task).count() == 3);
}

TEST_CASE("other options, other inputs and foreign files are refused by name") {
  {
    repacking r(2);
    CHECK(r.problem() == "");
    r.task.options = "quality 80";
    CHECK(has(r.problem(), "it contains 'repack 1: quality 90', expected 'repack 1: quality 80'"));
  }
  {
    repacking r(2);
    CHECK(r.problem() == "");
    std::ofstream(r.task.inputs[1]) << "longer than it was";
    CHECK(has(r.problem(), "contains '1.tar: 5 bytes"));
  }
  {
    repacking r(2);
    CHECK(r.problem() == "");
    std::filesystem::last_write_time(r.task.inputs[0], std::filesystem::file_time_type::clock::now() +
                                                           std::chrono::seconds(5));
    CHECK(has(r.problem(), "contains '0.tar: 5 bytes"));
  }
  {
    repacking r(2);
    CHECK(r.problem() == "");
    r.task.inputs.pop_back();
    r.task.outputs.pop_back();
    CHECK(has(r.problem(), "expected ''"));
  }
  {
    repacking r(2);
    std::filesystem::create_directories(r.folder / "out");
    r.make_output(1);
    CHECK(has(r.problem(), "1.tar' exists already"));
    CHECK_FALSE(std::filesystem::exists(r.task.list));
  }
}

TEST_CASE("a truncated list keeps its complete entries") {
  repacking r(3);
  CHECK(r.problem() == "");
  const auto list_bytes = std::filesystem::file_size(r.task.list);
  for (std::uintmax_t size = 0; size < list_bytes; size += 7) {
    std::filesystem::resize_file(r.task.list, size);
    CHECK(r.problem() == "");
    CHECK(std::filesystem::file_size(r.task.list) == list_bytes);
  }
  r.make_output(2);
  std::filesystem::resize_file(r.task.list, list_bytes - 1);
  CHECK(has(r.problem(), "2.tar' exists already"));
}

TEST_CASE("a line is computed once and stored in the list, and computed again only if it is missing") {
  repacking r(3);
  int calls = 0;
  r.task.make_common_line = [&] { return "codes: " + std::to_string(++calls); };
  CHECK(repack_progress(r.task).common_line() == "codes: 1");
  r.make_output(1);
  for (int i = 0; i < 2; ++i) {
    const repack_progress again(r.task);
    CHECK(again.common_line() == "codes: 1");
    CHECK(again.finished(1));
    CHECK(again.count() == 1);
    r.add_input();
  }
  CHECK(calls == 1);
  CHECK(has(slow_read(r.task.list), "repack 1: quality 90\ncodes: 1\n0.tar: 5 bytes"));

  // A refused run computes nothing.
  repacking other(2);
  other.task.make_common_line = [&] { return "codes: " + std::to_string(++calls); };
  std::filesystem::create_directories(other.folder / "out");
  other.make_output(0);
  CHECK(has(other.problem(), "0.tar' exists already"));
  CHECK(calls == 1);
  r.task.options = "quality 80";
  CHECK(has(r.problem(), "created with other options"));
  r.task.options = "quality 90";
  r.task.make_common_line = nullptr;
  CHECK(has(r.problem(), "contains 'codes: 1'"));
  CHECK(calls == 1);
}

TEST_CASE("after truncation of the list, the same line is computed again") {
  repacking r(2);
  int calls = 0;
  r.task.make_common_line = [&] {
    ++calls;
    return std::string("codes: the same");
  };
  CHECK(r.problem() == "");
  const std::string list_text = slow_read(r.task.list);
  for (std::uintmax_t size = 0; size < list_text.size(); size += 3) {
    std::filesystem::resize_file(r.task.list, size);
    CHECK(r.problem() == "");
    CHECK(slow_read(r.task.list) == list_text);
  }
  const int before = calls;
  CHECK(r.problem() == "");
  CHECK(calls == before);
  std::filesystem::resize_file(r.task.list, list_text.find("same"));
  r.task.make_common_line = [] { return std::string("codes: others"); };
  CHECK(has(r.problem(), "contains 'codes: the '"));
}

TEST_CASE("partial files of an interrupted run are removed, and nothing else") {
  repacking r(2);
  CHECK(r.problem() == "");
  for (const char* name : {".0.tar.4711-0.partial", ".1.tar.1-12.partial", ".2.tar.4711-0.partial", ".0.tar", "0.tar.x",
                           ".x0.tar.1-0.partial", "0.tar.1-0.partial", ".partial", ".%d.tar.repack.1-0.partial"})
    std::ofstream(r.folder / (std::string("out/") + name)) << "x";
  CHECK(r.problem() == "");
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(r.folder / "out"))
    left.push_back(entry.path().filename().string());
  std::sort(left.begin(), left.end());
  CHECK(left == std::vector<std::string>{"%d.tar.repack", ".0.tar", ".2.tar.4711-0.partial", ".partial",
                                         ".x0.tar.1-0.partial", "0.tar.1-0.partial", "0.tar.x"});
}
