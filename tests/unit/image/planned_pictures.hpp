// Random plans of pictures, and their results: pixels or an error.
#pragma once

#include <millrace/image/picture/picture.hpp>
#include <millrace/image/render/picture_renderer.hpp>

#include "slow_pictures.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace slow {

inline bool same(const mr::image& a, const mr::image& b) {
  return a.shape() == b.shape() && std::equal(a.span().begin(), a.span().end(), b.span().begin());
}

/// A plan that depends on the draw alone, so that several images can have the same.
inline mr::picture planned(mr::picture p, mr::rng d) {
  const auto crop_somewhere = [&] {
    const std::size_t width = d.below(p.width()) + 1, height = d.below(p.height()) + 1;
    // At the edges the decoders read different parts.
    const bool at_edge = d.chance(0.4);
    p = p.crop({.left = at_edge ? p.width() - width : d.below(p.width() - width + 1),
                .top = at_edge ? p.height() - height : d.below(p.height() - height + 1),
                .width = width, .height = height});
  };
  if (d.chance(0.8)) crop_somewhere();
  if (d.chance(0.7)) p = p.resize(d.below(70) + 1, d.chance(0.3) ? 32 * (d.below(3) + 1) : d.below(70) + 1);
  if (d.chance(0.2)) crop_somewhere();
  if (d.chance(0.5)) p = p.flip();
  return p;
}

/// A plan that `fast` decodes smaller: at most half of the size of its crop.
inline mr::picture shrunk(mr::picture p, mr::rng d) {
  if (p.width() < 2 || p.height() < 2) throw mr::data_error("too small to be shrunk", "Draw another one");
  if (d.chance(0.7)) {
    const std::size_t width = d.below(p.width() - 1) + 2, height = d.below(p.height() - 1) + 2;
    p = p.crop({.left = d.below(p.width() - width + 1), .top = d.below(p.height() - height + 1), .width = width,
                .height = height});
  }
  // Often by about 4 or 8, too.
  const std::size_t least = std::size_t{2} << d.below(3);
  const auto side = [&](std::size_t length) { return d.below(length / std::min(least, length)) + 1; };
  p = p.resize(side(p.height()), side(p.width()));
  if (d.chance(0.2)) p = p.crop({.left = d.below(p.width()), .top = d.below(p.height()), .width = 1, .height = 1});
  return d.chance(0.5) ? p.flip() : p;
}

/// Pixels or the error, and libjpeg's counters.
struct outcome {
  mr::image pixels{};
  std::string error{};
  std::uint64_t warnings = 0, damaged = 0;

  friend bool operator==(const outcome& a, const outcome& b) {
    return same(a.pixels, b.pixels) && a.error == b.error && a.warnings == b.warnings && a.damaged == b.damaged;
  }
};

using planner = mr::picture (*)(mr::picture, mr::rng);

/// Plans for which both decoders compute the same bits.
inline planner planner_for(const mr::jpeg_options& options) {
  return options.quality == mr::picture_quality::exact ? planned : shrunk;
}

inline outcome outcome_of(std::span<const std::byte> file, const mr::jpeg_options& options, const mr::rng& plan,
                          mr::scratch& s, planner how) {
  // A copy of exact size on the heap, so that AddressSanitizer sees one byte read too many.
  const std::vector<std::byte> exact(file.begin(), file.end());
  outcome result;
  const auto before = mr::detail::jpeg_counts_of(s);
  try {
    result.pixels = how(mr::jpeg(slow::view(exact), options), plan).pixels(s);
  } catch (const mr::data_error& e) {
    result.error = e.what();
  }
  result.warnings = mr::detail::jpeg_counts_of(s).warnings - before.warnings;
  result.damaged = mr::detail::jpeg_counts_of(s).damaged - before.damaged;
  return result;
}

inline outcome outcome_of(std::span<const std::byte> file, const mr::jpeg_options& options, const mr::rng& plan,
                          mr::scratch& s) {
  return outcome_of(file, options, plan, s, planner_for(options));
}

/// The images, rendered in one call.
inline std::vector<mr::image> rendered_together(const std::vector<mr::picture>& all, mr::scratch& s) {
  std::vector<const mr::picture*> items;
  std::vector<mr::image> images;
  std::vector<std::span<std::uint8_t>> rows;
  for (const auto& p : all) {
    items.push_back(&p);
    images.emplace_back(p.shape());
  }
  for (auto& m : images) rows.push_back(m.span());
  mr::picture::render_together(items, rows, s);
  return images;
}

/// The number of each event.
inline std::map<std::string, std::uint64_t> all_counts(const mr::event_counts& t) {
  std::map<std::string, std::uint64_t> all;
  for (const auto& c : t.counts()) all[c.what] = c.times;
  return all;
}

}  // namespace slow
