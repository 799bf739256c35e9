// The stages from a shard to a batch.
#include "../../copying_device.hpp"
#include "subject_run.hpp"

#include <millrace/audio.hpp>
#include <millrace/image/any_picture.hpp>
#include <millrace/image/picture/picture_list.hpp>
#include <millrace/join.hpp>
#include <millrace/millrace.hpp>
#include <millrace/mix.hpp>
#include <millrace/shards.hpp>
#include <millrace/sources/prepare/write_set_index.hpp>
#include <millrace/text.hpp>

#include <filesystem>

namespace mr = millrace;

namespace {

struct example {
  std::uint64_t digest;
  std::int32_t label;
};

example prepare(const mr::record& r) {
  return {mr::detail::digest_bytes(r["txt"]), r["cls"].as<std::int32_t>()};
}

struct pictured {
  mr::picture pixels;
  std::int32_t label;
};

pictured draw(const mr::record& r, mr::rng& random) {
  return {mr::jpeg(r["jpg"]).random_resized_crop(16, random).random_flip(random), r["cls"].as<std::int32_t>()};
}

struct recorded {
  mr::audio sound;
  mr::picture_list images;
};

recorded record_of(const mr::record& r, mr::rng& random) {
  std::vector<mr::picture> images;
  for (const mr::bytes& file : r.fields("*.image")) images.push_back(mr::any_picture(file).resize(8, 8));
  return {mr::wav(r["wav"]).mono().pad(0.02).random_crop(0.02, random),
          mr::picture_list(images, {.max_pictures = 3, .size = {.width = 8, .height = 8}})};
}

struct numbered {
  std::uint64_t number;
};

struct twice {
  using output = numbered;
  std::size_t max_outputs(const numbered&) const { return 2; }
  void push(numbered n, auto& emit) const {
    emit(numbered{2 * n.number});
    if (n.number % 3) emit(numbered{2 * n.number + 1});
  }
};

/// Has a state, so it runs on its own thread.
struct sums {
  using output = numbered;
  std::uint64_t sum = 0;
  std::size_t max_outputs(const numbered&) const { return 1; }
  void push(numbered n, auto& emit) { emit(numbered{sum += n.number}); }
};

std::vector<std::uint64_t> numbers() {
  std::vector<std::uint64_t> all(200);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  return all;
}

numbered as_item(std::uint64_t n) { return {n * n}; }

auto rows(std::size_t size = 4) {
  return mr::batch<&example::digest, &example::label>({.size = size, .drop_last = false});
}

void reader(const places& at, delivered& to) {
  deliver(mr::shards(at.data + "/tar/*.tar", {.seed = 5, .index = mr::index::off}) | mr::shuffle({.window = 16}) |
              mr::map(prepare) | rows(),
          quietly(2), to);
}

void index_build(const places& at, delivered& to) {
  deliver(mr::shards(at.data + "/tar/*.tar",
                             {.seed = 5, .index_folder = at.out + "/indexes", .notice = mr::quiet}) |
              mr::shuffle({.window = 16}) | mr::map(prepare) | rows(),
          quietly(), to);
}

/// Shards with indexes, linked into this run's own folder, because a reader may replace an index.
std::string link_indexed_shards(const places& at) {
  const spared here;
  const std::filesystem::path own = at.out + "/known";
  std::filesystem::create_directories(own);
  for (const auto& entry : std::filesystem::directory_iterator(at.data + "/known")) {
    const auto to = own / entry.path().filename();
    if (std::filesystem::exists(to)) continue;
    if (to.extension() == ".tar") std::filesystem::create_symlink(entry.path(), to);
    else std::filesystem::copy_file(entry.path(), to);
  }
  return own.string();
}

void index_read(const places& at, delivered& to) {
  deliver(mr::shards(link_indexed_shards(at) + "/*.tar", {.seed = 5, .notice = mr::quiet}) |
              mr::shuffle({.window = 16}) | mr::map(prepare) | rows(),
          quietly(2), to);
}

void decompression(const places& at, delivered& to) {
  deliver(mr::shards(at.data + "/gz/*.tar.gz", {.index = mr::index::off}) | mr::map(prepare) | rows(), quietly(), to);
}

void map(const places&, delivered& to) {
  deliver(mr::from(numbers()) | mr::map(as_item, {.blocking = true, .threads = 2}) |
              mr::batch<&numbered::number>({.size = 8}),
          quietly(2), to);
}

void expand(const places&, delivered& to) {
  deliver(mr::from(numbers()) | mr::map(as_item) | mr::expand(twice{}) | mr::expand(sums{}) |
              mr::shuffle({.window = 32}) | mr::batch<&numbered::number>({.size = 8, .drop_last = false}),
          quietly(2), to);
}

void render(const places& at, delivered& to) {
  deliver(mr::shards(at.data + "/jpg/*.tar", {.seed = 5, .index = mr::index::off}) | mr::map(draw) |
              mr::batch<&pictured::pixels, &pictured::label>({.size = 4}),
          quietly(2), to);
}

/// A sound and a varying number of images per row.
void media(const places& at, delivered& to) {
  deliver(mr::shards(at.data + "/media/*.tar", {.seed = 5, .index = mr::index::off}) | mr::map(record_of) |
              mr::batch<recorded>({.size = 4}),
          quietly(2), to);
}

/// Reads epoch by epoch, with keys, stall detection and a moved batch.
void delivery(const places& at, delivered& to) {
  auto options = quietly(3);
  options.stalls = {.after = std::chrono::minutes(1)};
  mr::session run{mr::shards(at.data + "/tar/*.tar", {.seed = 5, .index = mr::index::off}) | mr::map(prepare) |
                      mr::batch<&example::digest, &example::label>({.size = 8, .keys = true}) |
                      mr::prefetch({.batches = 3}),
                  options};
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch)
    for (auto& b : run.epoch(epoch)) {
      const auto moved = std::move(b);
      add_columns(to, moved);
      const spared here;
      for (const auto key : moved.keys()) to.add(key);
    }
}

void copy(const places& at, delivered& to) {
  const mr::device device = [] {
    const spared here;   // the device belongs to the test
    return copying_device({.latency_ns = 50'000});
  }();
  deliver(mr::shards(at.data + "/tar/*.tar", {.seed = 5, .index = mr::index::off}) | mr::map(prepare) | rows() |
              mr::to_device({.device = device, .slots = 2}),
          quietly(2), to);
}

void mix(const places& at, delivered& to) {
  const mr::shards_options plain{.seed = 5, .notice = mr::quiet};
  const std::string folder = link_indexed_shards(at);
  deliver(mr::mix({.seed = 5}, mr::weighted{mr::shards(folder + "/s-{0..1}.tar", plain), 0.6},
                  mr::weighted{mr::shards(folder + "/s-{2..3}.tar", plain), 0.4}) |
              mr::map(prepare) | rows(),
          quietly(), to);
}

void join(const places& at, delivered& to) {
  const std::string shards = link_indexed_shards(at) + "/*.tar";
  deliver(mr::join(mr::shards(shards, {.seed = 5, .fields = {"cls"}, .notice = mr::quiet}),
                   mr::shards(shards, {.fields = {"txt"}, .notice = mr::quiet})) |
              mr::map(prepare) | rows(),
          quietly(), to);
}

/// Writes a set index next to the shards, and reads them by it.
void set_index(const places& at, delivered& to) {
  const std::string folder = link_indexed_shards(at);
  mr::write_set_index(folder + "/*.tar", folder + "/set.millrace-index", {.notice = mr::quiet});
  deliver(mr::shards(folder + "/*.tar", {.seed = 5, .notice = mr::quiet}) | mr::shuffle({.window = 16}) |
              mr::map(prepare) | rows(),
          quietly(), to);
}

/// Reads two halves; the resume point is converted to text and back.
void resume(const places& at, delivered& to) {
  const std::string folder = link_indexed_shards(at);
  const auto flow = [&] {
    return mr::shards(folder + "/*.tar", {.seed = 5, .notice = mr::quiet}) |
           mr::shuffle({.window = 16}) | mr::map(prepare) | rows();
  };
  auto options = quietly(2);
  {
    mr::session run{flow(), options};
    for (auto& b : run) {
      add_columns(to, b);
      if (b.step() == 6) {
        options.resume = mr::to_text(b.position());
        break;
      }
    }
  }
  deliver(flow(), options, to);
}

/// Without an index, a resumed run reads the samples again.
void replay(const places& at, delivered& to) {
  auto options = quietly(2);
  const auto flow = [&] {
    return mr::shards(at.data + "/tar/*.tar", {.seed = 5, .index = mr::index::off}) | mr::shuffle({.window = 8}) |
           mr::map(prepare) | rows();
  };
  {
    mr::session run{flow(), options};
    for (auto& b : run) {
      add_columns(to, b);
      if (b.step() == 13) {
        options.resume = mr::to_text(b.position());
        break;
      }
    }
  }
  deliver(flow(), options, to);
}

}  // namespace

std::span<const stage> flow_stages() {
  static constexpr stage all[] = {{"reader", reader},
                                  {"index_build", index_build},
                                  {"index_read", index_read},
                                  {"decompression", decompression},
                                  {"map", map},
                                  {"expand", expand},
                                  {"render", render},
                                  {"delivery", delivery},
                                  {"copy", copy},
                                  {"mix", mix},
                                  {"join", join},
                                  {"resume", resume},
                                  {"replay", replay},
                                  {"media", media},
                                  {"set_index", set_index}};
  return all;
}

// The stages from a text file to a batch.
namespace {

std::vector<std::uint32_t> tokenize(std::string_view text) { return {text.begin(), text.end()}; }

struct counted {
  std::uint64_t digest;
};

counted count(const mr::line& l) {
  const std::string_view text = l;
  return {mr::detail::digest_bytes(std::as_bytes(std::span(text.data(), text.size())))};
}

void lines(const places& at, delivered& to) {
  deliver(mr::lines(at.data + "/text/*", {.seed = 5}) | mr::shuffle({.window = 16}) | mr::map(count) |
              mr::batch<&counted::digest>({.size = 8, .drop_last = false}),
          quietly(2), to);
}

void tokens(const places& at, delivered& to) {
  deliver(mr::token_files(at.data + "/tokens/*.u16", {.length = 64, .seed = 5}) | mr::shuffle({.window = 16}) |
              mr::batch<&mr::packed::ids>({.size = 8}),
          quietly(2), to);
}

void pack(const places& at, delivered& to) {
  deliver(mr::lines(at.data + "/text/*", {.seed = 5}) | mr::map(tokenize) |
              mr::pack({.length = 65, .separator = 1, .segments = true}) |
              mr::batch<&mr::packed::ids, &mr::packed::segments>({.size = 4, .drop_last = false}),
          quietly(2), to);
}

void best_fit(const places& at, delivered& to) {
  deliver(mr::lines(at.data + "/text/*", {.seed = 5}) | mr::map(tokenize) |
              mr::pack_best_fit({.length = 90, .separator = 1, .open_rows = 8}) |
              mr::batch<&mr::packed::ids>({.size = 4, .drop_last = false}),
          quietly(), to);
}

/// The documents of Megatron's files.
void documents(const places& at, delivered& to) {
  deliver(mr::token_files(at.data + "/megatron/*.bin", {.seed = 5, .documents = true}) | mr::shuffle({.window = 8}) |
              mr::pack({.length = 65, .separator = 1}) | mr::batch<&mr::packed::ids>({.size = 4, .drop_last = false}),
          quietly(2), to);
}

}  // namespace

std::span<const stage> text_stages() {
  static constexpr stage all[] = {{"lines", lines},
                                  {"tokens", tokens},
                                  {"pack", pack},
                                  {"best_fit", best_fit},
                                  {"documents", documents}};
  return all;
}
