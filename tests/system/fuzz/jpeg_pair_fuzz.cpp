// A libFuzzer target: two files decoded together. For any bytes, each must have libjpeg's planes and pixels or
// libjpeg's error, and nothing of its partner. With its entry points it has the same planes. With wrong ones it must
// not access foreign memory. fuzz.py builds and runs it.
//
//   jpeg_pair_fuzz --seeds=FOLDER FOLDER             # writes valid files to FOLDER first
//   jpeg_pair_fuzz --all crash-...                   # one input again, with every check
//
// Each file is in a heap block of exactly its size. At the end, the target prints its counters.
#include <millrace/image/jpeg/baseline/entry_walk.hpp>
#include <millrace/image/jpeg/baseline/jpeg_plane_decoder.hpp>
#include <millrace/image/jpeg/progressive/progressive_decoder.hpp>
#include <millrace/image/picture/picture.hpp>

#include "../../unit/image/planned_pictures.hpp"
#include "../../unit/image/slow_planes.hpp"
#include "fuzz_input.hpp"
#include "jpeg_mutator.hpp"
#include "jpeg_pair.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace mr = millrace;
using slow::fuzz_input;
using slow::counters, slow::exact_bytes;

namespace {

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "FOUND: %s\n", what.c_str());
  std::abort();
}

/// The checks of an input: they depend on all of its bytes, so that libFuzzer's preference for new code does not
/// influence them. With --all, all checks run, to minimize a failing input.
class check_choice {
 public:
  explicit check_choice(std::span<const std::uint8_t> data)
      : draw_({.seed = std::hash<std::string_view>()({reinterpret_cast<const char*>(data.data()), data.size()})}) {}

  bool one_in(std::uint64_t count) { return draw_.below(count) == 0 || all(); }
  std::uint64_t below(std::uint64_t count) { return draw_.below(count); }

  static bool& all() {
    static bool always = false;
    return always;
  }

 private:
  mr::rng draw_;
};

/// State that persists across inputs, like that of a worker.
struct workbench {
  mr::detail::jpeg_plane_decoder best{}, portable{mr::detail::jpeg_plane_decoder::code::portable};
  mr::detail::entry_walk walk{};
  mr::detail::progressive_decoder progressive{}, portable_progressive{mr::detail::progressive_decoder::code::portable};
  mr::scratch own{}, turbo{};
};

class pair_check {
 public:
  static constexpr std::uint64_t max_pixels = 65'536;
  static constexpr mr::picture_limits limits{.max_pixels = max_pixels, .max_scans = 10, .max_memory_bytes = 8 << 20};

  pair_check(const fuzz_input& in, check_choice choice, workbench& bench)
      : mode_(in.knob[fuzz_input::mode]), choice_(choice), bench_(bench) {
    for (std::size_t i = 0; i < 2; ++i) {
      const auto& file = in.file[i];
      memory_[i].reset(new std::byte[file.size()]);
      if (!file.empty()) std::memcpy(memory_[i].get(), file.data(), file.size());
      bytes_[i] = {memory_[i].get(), file.size()};
      request_[i] = in.crop(i);
      request_[i].bytes = bytes_[i];
      plan_[i] = in.plan(i);
      every_mcus_[i] = in.every_mcus(i);
    }
  }

  void run() {
    planes();
    if (choice_.one_in(8)) pictures();
    if (choice_.one_in(16))
      for (const auto& file : bytes_) full_image(file);
  }

 private:
  void planes() {
    for (std::size_t i = 0; i < 2; ++i) {
      const auto got = bench_.best.decode(request_[i]);
      refusal_[i] = got.refusal;
      ++counters().files;
      if (got.refusal == mr::jpeg_refusal::progressive) {
        progressive_planes(i);
        continue;
      }
      // The reference does not decode larger images. Without planes, libjpeg runs only for the statistics.
      const auto scale = static_cast<std::uint64_t>(8 / request_[i].eighths);
      has_reference_[i] = scale * scale * std::uint64_t(got.planes.image_width) *
                              std::uint64_t(got.planes.image_height) <= 4'000'000;
      if (!has_reference_[i] || (!got && !choice_.one_in(16))) continue;
      const auto bottom = got ? std::min(request_[i].bottom, static_cast<std::size_t>(got.planes.image_height))
                              : request_[i].bottom;
      raw_[i] = slow::raw_reader().read(bytes_[i], bottom, request_[i].eighths);
      counters().decoded += got ? 1 : 0;
      counters().refused_unwarned += !got && !raw_[i].error && raw_[i].warnings == 0 ? 1 : 0;
      if (got && raw_[i].error) fail("libjpeg reports an error, but the built-in decoder does not");
      // Skipped restart intervals are not checked.
      const bool left_out = got.entries != mr::detail::entry_origin::none;
      counters().by_markers += left_out;
      if (got && raw_[i].warnings != 0 && !left_out) fail("libjpeg warns, but the built-in decoder does not");
      expect_planes("alone", i, got);
    }
    for (std::size_t i = 0; i < 2; ++i)
      if (choice_.one_in(3)) by_entries(i);
    pair("both", bench_.best, choice_.one_in(2) ? 0 : 1);
    if (choice_.one_in(16)) {
      for (std::size_t i = 0; i < 2; ++i) expect_planes("portable, alone", i, bench_.portable.decode(request_[i]));
      pair("portable, both", bench_.portable, 0);
    }
    if (!choice_.one_in(16)) return;
    const mr::detail::jpeg_planes_request list[] = {request_[0], request_[1], request_[1], request_[0], request_[0]};
    bench_.best.decode_each(list, [&](std::size_t n, const mr::detail::jpeg_planes_result& got) {
      expect_planes("in a list", n == 1 || n == 2 ? 1 : 0, got);
    });
  }

  /// Correct entries change nothing. Wrong ones may produce other samples, but must not affect later calls.
  void by_entries(std::size_t i) {
    const auto right = bench_.walk.run(bytes_[i], {.every_mcus = every_mcus_[i], .max_per_thousand = 1'000'000,
                                                   .fewest_entries = 1});
    if (right.empty()) return;
    auto& decoder = choice_.one_in(8) ? bench_.portable : bench_.best;
    auto request = request_[i];
    const exact_bytes packed(right);
    request.entries = packed.view();
    const auto got = decoder.decode(request);
    counters().by_entries += got.entries == mr::detail::entry_origin::packed;
    if (got.entries_refused) fail("a file's own entries are refused");
    expect_planes("by entries", i, got);
    const exact_bytes packed_wrong(wrong_entries(right));
    request.entries = packed_wrong.view();
    const auto other = decoder.decode(request);
    counters().by_wrong_entries += other.entries == mr::detail::entry_origin::packed;
    if (other.entries_refused) expect_planes("with entries that are refused", i, other);
    else if (other && !slow::covers(other.planes, request)) fail("wrong entries: incomplete planes");
    touch(other.planes);
    expect_planes("after wrong entries", i, decoder.decode(request_[i]));
    expect_planes("together with wrong entries", 1 - i, decoder.decode(request, request_[1 - i])[1]);
  }

  std::vector<std::byte> wrong_entries(std::vector<std::byte> entries) {
    constexpr std::size_t header = mr::detail::packed_entries_layout::header_bytes, least_values = 10;
    const std::size_t from = choice_.one_in(4) ? 0 : choice_.one_in(3) ? least_values : header;
    if (from == entries.size()) return entries;
    if (choice_.one_in(2))
      for (std::size_t k = from; k < entries.size(); ++k) entries[k] = static_cast<std::byte>(choice_.below(256));
    else
      for (std::uint64_t n = choice_.below(6) + 1; n > 0; --n)
        entries[from + choice_.below(entries.size() - from)] ^= static_cast<std::byte>(1U << choice_.below(8));
    if (choice_.one_in(16)) entries.resize(choice_.below(entries.size()));
    return entries;
  }

  /// Reads each sample, so that AddressSanitizer checks it.
  void touch(const mr::detail::jpeg_planes& planes) {
    for (const mr::detail::plane_view& p : std::span(planes.component).first(std::size_t(planes.components)))
      for (int y = 0; y < p.height; ++y) {
        const std::uint8_t* const row = p.data + static_cast<std::size_t>(y) * p.stride_bytes;
        samples_ = std::accumulate(row, row + p.width, samples_);
      }
    if (samples_ == 1) std::puts("");   // so that the sums are not optimized away
  }

  /// Any part depends on the complete file, as in libjpeg.
  void progressive_planes(std::size_t i) {
    const auto got = bench_.progressive.decode(request_[i]);
    const auto check = [&](const char* how, const mr::detail::jpeg_planes_result& planes) {
      if (planes.refusal != got.refusal)
        fail(std::string(how) + ": " + refusal_name(planes.refusal) + ", not " + refusal_name(got.refusal));
      if (!planes) return;
      if (!slow::covers(planes.planes, request_[i])) fail(std::string(how) + ": incomplete planes");
      if (const auto gap = slow::difference_of(planes.planes, raw_[i]); !gap.empty())
        fail(std::string(how) + ": " + gap);
    };
    if (got || choice_.one_in(16)) {
      raw_[i] = slow::raw_reader().read(bytes_[i], got ? std::size_t(got.planes.image_height) : 65'500,
                                        request_[i].eighths);
      counters().decoded += got ? 1 : 0;
      counters().progressive += got ? 1 : 0;
      counters().refused_unwarned += !got && !raw_[i].error && raw_[i].warnings == 0 ? 1 : 0;
      if (got && raw_[i].error) fail("libjpeg refuses a progressive file, but the built-in decoder does not");
      if (got && raw_[i].warnings != 0) fail("libjpeg warns of a progressive file, but the built-in decoder does not");
      check("progressive", got);
    }
    if (choice_.one_in(4)) check("progressive, portable", bench_.portable_progressive.decode(request_[i]));
  }

  void pair(const char* how, mr::detail::jpeg_plane_decoder& decoder, std::size_t first) {
    const auto both = decoder.decode(request_[first], request_[1 - first]);
    expect_planes(how, first, both[0]);
    expect_planes(how, 1 - first, both[1]);
  }

  void expect_planes(const char* how, std::size_t i, const mr::detail::jpeg_planes_result& got) {
    const std::string where = std::string(how) + ", file " + std::to_string(i) + ": ";
    if (got.refusal != refusal_[i])
      fail(where + refusal_name(got.refusal) + ", but alone: " + refusal_name(refusal_[i]));
    if (!got || !has_reference_[i]) return;
    if (!slow::covers(got.planes, request_[i])) fail(where + "incomplete planes");
    if (const auto gap = slow::difference_of(got.planes, raw_[i]); !gap.empty()) fail(where + gap);
  }

  void pictures() {
    const bool exact = (mode_ & 32) != 0;
    const mr::jpeg_options either{.quality = exact ? mr::picture_quality::exact : mr::picture_quality::fast,
                                  .apply_orientation = (mode_ & 64) != 0, .accept_damaged = (mode_ & 128) != 0,
                                  .limits = limits};
    how_ = (mode_ & 16) != 0 ? slow::planned : slow::planner_for(either);
    const bool same_bits = how_ == slow::planner_for(either);
    mr::jpeg_options turbo = either;
    turbo.decoder = mr::picture_decoder::libjpeg;
    std::array<slow::outcome, 2> alone;
    for (std::size_t i = 0; i < 2; ++i) {
      const mr::rng plan({.seed = plan_[i]});
      const auto expected = slow::outcome_of(bytes_[i], turbo, plan, bench_.turbo, how_);
      alone[i] = slow::outcome_of(bytes_[i], either, plan, bench_.own, how_);
      const std::string where = "image " + std::to_string(i) + ": ";
      // Restart intervals outside the crop are not checked.
      const bool warned = !expected.error.empty() || expected.warnings != 0;
      if (warned && alone[i].error.empty() && alone[i].warnings == 0 && has_restarts(bytes_[i])) {
        if (expected.error.empty() && same_bits && !slow::same(alone[i].pixels, expected.pixels))
          fail(where + "other pixels than by libjpeg, which warns");
        continue;
      }
      if (alone[i].error != expected.error)
        fail(where + "\"" + alone[i].error + "\", but by libjpeg: \"" + expected.error + "\"");
      // Only libjpeg reads from the last block to the end of the image, where it may warn of other bytes.
      if (alone[i].warnings > expected.warnings)
        fail(where + std::to_string(alone[i].warnings) + " warnings, but by libjpeg " +
             std::to_string(expected.warnings));
      if (alone[i].damaged != expected.damaged) fail(where + "damage is not counted alike");
      if (alone[i].pixels.shape() != expected.pixels.shape()) fail(where + "another shape");
      if (same_bits && !slow::same(alone[i].pixels, expected.pixels)) fail(where + "other pixels than by libjpeg");
      ++(expected.error.empty() ? counters().pictures : counters().errors);
      counters().accepted += expected.damaged;
    }
    together(either, alone);
  }

  static bool has_restarts(std::span<const std::byte> file) {
    mr::detail::scan_header header;
    return read_scan_header(file, header) == mr::jpeg_refusal::none && header.restart_interval > 0;
  }

  /// At most one error. Without an error, each image has the same pixels as alone.
  void together(const mr::jpeg_options& options, const std::array<slow::outcome, 2>& alone) {
    std::vector<mr::picture> planned;
    std::vector<std::size_t> index;
    for (std::size_t i = 0; i < 2; ++i) {
      try {
        planned.push_back(how_(mr::jpeg(mr::bytes::borrowed(bytes_[i]), options), mr::rng({.seed = plan_[i]})));
        index.push_back(i);
      } catch (const mr::data_error&) {
      }
    }
    std::vector<mr::image> images;
    for (const auto& p : planned) images.emplace_back(p.shape());
    std::vector<const mr::picture*> items;
    std::vector<std::span<std::uint8_t>> rows;
    for (std::size_t k = 0; k < planned.size(); ++k) {
      items.push_back(&planned[k]);
      rows.push_back(images[k].span());
    }
    std::string expected, error;
    for (const std::size_t i : index)
      if (expected.empty()) expected = alone[i].error;
    try {
      mr::picture::render_together(items, rows, bench_.own);
    } catch (const mr::data_error& e) {
      error = e.what();
    }
    if (error != expected) fail("together: \"" + error + "\", but alone: \"" + expected + "\"");
    for (std::size_t k = 0; k < planned.size(); ++k) {
      if (!alone[index[k]].error.empty()) continue;
      if (!error.empty()) images[k] = planned[k].pixels(bench_.own);   // after the partner's error
      if (!slow::same(images[k], alone[index[k]].pixels))
        fail("together: the pixels of file " + std::to_string(index[k]) + " are not those that it has alone");
    }
  }

  /// Without a plan, the pixels are exactly libjpeg's.
  void full_image(std::span<const std::byte> file) {
    const slow::plain_libjpeg plain(file, max_pixels);
    if (plain.too_large || plain.components == 4) return;
    const bool accepts = (mode_ & 128) != 0;
    mr::image pixels;
    std::string error;
    try {
      pixels = mr::jpeg(mr::bytes::borrowed(file), {.accept_damaged = accepts, .limits = limits}).pixels(bench_.own);
    } catch (const mr::data_error& e) {
      error = e.message();
    }
    if (error.empty()) {
      if (plain.error) fail("pixels although libjpeg reports an error");
      if (!slow::same(pixels, plain.pixels)) fail("the full image has other pixels than libjpeg's");
    } else if (!plain.error && plain.warnings == 0 && error.starts_with("the JPEG cannot be decoded")) {
      fail("libjpeg decodes it without a warning, but: " + error);
    }
  }

  unsigned mode_;
  slow::planner how_ = slow::planned;
  check_choice choice_;
  workbench& bench_;
  std::array<std::unique_ptr<std::byte[]>, 2> memory_;
  std::array<std::span<const std::byte>, 2> bytes_;
  std::array<mr::detail::jpeg_planes_request, 2> request_;
  std::array<std::uint64_t, 2> plan_{};
  std::array<std::size_t, 2> every_mcus_{};
  std::uint64_t samples_ = 0;
  std::array<mr::jpeg_refusal, 2> refusal_{};
  std::array<bool, 2> has_reference_{};
  std::array<slow::raw_planes, 2> raw_;
};

void write_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  mr::rng d({.seed = 1});
  slow::jpeg_mutator mutator(d, LLVMFuzzerMutate);
  for (int i = 0; i < 500; ++i) {
    std::vector<std::uint8_t> bytes(1 << 16);
    for (auto& knob : std::span(bytes).first(fuzz_input::first_size)) knob = static_cast<std::uint8_t>(d.below(256));
    fuzz_input in(std::span(bytes).first(fuzz_input::knobs));
    for (auto& file : in.file) file = mutator.new_file();
    bytes.resize(in.write(bytes));
    std::ofstream(folder / std::to_string(i), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  const std::string_view option = "--seeds=";
  for (int i = 1; i < *count; ++i) {
    const std::string_view a = (*arguments)[i];
    if (a.starts_with(option)) write_seeds(a.substr(option.size()));
    if (a == "--all") check_choice::all() = true;
  }
  std::atexit([] { counters().print(); });
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  fuzz_input in({data, size});
  mr::rng d({.seed = seed});
  slow::jpeg_mutator(d, LLVMFuzzerMutate).change(in);
  return in.write({data, max_size});
}

/// Combines one file of each.
extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* a, std::size_t a_size, const std::uint8_t* b,
                                                 std::size_t b_size, std::uint8_t* to, std::size_t max_size,
                                                 unsigned seed) {
  fuzz_input in({a, a_size});
  const fuzz_input other({b, b_size});
  mr::rng d({.seed = seed});
  in.file[d.below(2)] = other.file[d.below(2)];
  return in.write({to, max_size});
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz_input in({data, size});
  static workbench shared_bench;
  // Memory that was allocated only for this file ends with it, so that AddressSanitizer detects reads past its end.
  check_choice choice({data, size});
  const auto fresh = choice.one_in(64) ? std::make_unique<workbench>() : nullptr;
  pair_check(in, choice, fresh ? *fresh : shared_bench).run();
  return 0;
}
