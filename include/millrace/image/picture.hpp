// A JPEG as a plan: where to crop, what size to make, whether to flip. No pixel is touched before it is rendered.
//
//   mr::picture p = mr::jpeg(r["jpg"]).random_resized_crop(224, rng).random_flip(rng);
//   mr::picture q = mr::jpeg(r["jpg"]).resize_shorter(256).center_crop(224);
//   p.shape();                       // [224, 224, 3]
//   mr::image pixels = p.pixels();   // for whoever needs them now; a batch renders straight into its row
//
// Result: u8 RGB [height, width, 3]; gray and CMYK files become RGB. Each call narrows the plan and returns it; calls
// mean what they would mean on pixels, in their order. Rendering does it in one pass: only the rows and columns that
// the result needs are decoded, and one antialiased bilinear resize writes the result, flipped, where it belongs.
// `exact` is within one level of "decode, crop, resize, flip" with Pillow or torchvision (antialias); taps of a resize
// end at the crop before it and reach beyond the crop after it. `fast` decodes at 1/8, 2/8 or 4/8 of the size while
// that still covers the target, else it resizes chroma before colours are made of it (how exact that is:
// jpeg_options.hpp). A resize of a resize is one resize from the source. Damage below the crop is not seen, because
// decoding stops there. A batch renders several pictures at once, for they are decoded faster so; no bit depends on it,
// nor, in `exact`, on which decoder does it (picture_renderer.hpp).
//
// Errors: jpeg() throws data_error for what is no JPEG or exceeds max_pixels, render() for damage; both name shard and
// key. setup_error for impossible sizes. Threads: a picture is a value and keeps the block of its bytes.
#pragma once

#include <millrace/base/half.hpp>
#include <millrace/image/crop_draw.hpp>
#include <millrace/image/jpeg_header.hpp>
#include <millrace/image/jpeg_options.hpp>
#include <millrace/image/picture_renderer.hpp>
#include <millrace/item/record.hpp>
#include <millrace/item/scratch.hpp>
#include <millrace/item/tensor.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

/// mr::picture; a template only so that including it costs little.
template <class = void>
class basic_picture {
 public:
  using element = std::uint8_t;
  static constexpr const char* rendering = "decode";   ///< in reports

  /// Reads the header; see jpeg().
  explicit basic_picture(bytes data, const jpeg_options& options = {}) : data_(std::move(data)), options_(options) {
    try {
      header_ = read_jpeg_header(data_, options.accept_damaged);
      check_size();
    } catch (error& e) {
      e.locate(place_of(data_));
      throw;
    }
    columns_ = plan_axis(static_cast<std::int64_t>(header_.width));
    rows_ = plan_axis(static_cast<std::int64_t>(header_.height));
    if (options.apply_orientation) orient(header_.orientation);
  }

  /// Size of what would be rendered now.
  std::size_t width() const noexcept { return static_cast<std::size_t>(across().count); }
  std::size_t height() const noexcept { return static_cast<std::size_t>(down().count); }
  std::array<std::size_t, 3> shape() const noexcept { return {height(), width(), 3}; }
  /// What the file's header says, before any plan.
  const jpeg_header& header() const noexcept { return header_; }
  const bytes& data() const noexcept { return data_; }

  /// Keeps a box, in pixels of the picture so far. data_error if it does not lie inside.
  basic_picture crop(const crop_box& box) const& { return basic_picture(*this).crop(box); }
  basic_picture crop(const crop_box& box) && {
    const bool inside = box.width > 0 && box.height > 0 && box.left <= width() && box.width <= width() - box.left &&
                        box.top <= height() && box.height <= height() - box.top;
    if (!inside)
      throw data_error("a crop of " + size_text(box.width, box.height) + " at (" + std::to_string(box.left) + ", " +
                           std::to_string(box.top) + ") does not lie in a picture of " + size_text(width(), height()),
                       "Resize first, or crop by what width() and height() say", where());
    across().crop(static_cast<std::int64_t>(box.left), static_cast<std::int64_t>(box.width));
    down().crop(static_cast<std::int64_t>(box.top), static_cast<std::int64_t>(box.height));
    return std::move(*this);
  }

  /// The box of this size in the middle (an odd rest is split as torchvision does). data_error if it is larger.
  basic_picture center_crop(std::size_t height, std::size_t width) const& {
    return basic_picture(*this).center_crop(height, width);
  }
  basic_picture center_crop(std::size_t height, std::size_t width) && {
    const auto now = shape();
    return std::move(*this).crop({.left = middle(now[1], width), .top = middle(now[0], height),
                                  .width = width, .height = height});
  }
  basic_picture center_crop(std::size_t side) const& { return basic_picture(*this).center_crop(side, side); }
  basic_picture center_crop(std::size_t side) && { return std::move(*this).center_crop(side, side); }

  /// Makes it this size, antialiased, whatever that does to the aspect ratio.
  basic_picture resize(std::size_t height, std::size_t width) const& {
    return basic_picture(*this).resize(height, width);
  }
  basic_picture resize(std::size_t height, std::size_t width) && {
    constexpr auto most = static_cast<std::size_t>(plan_axis::max_length);
    if (height < 1 || width < 1 || height > most || width > most)
      throw setup_error("a picture cannot be resized to " + size_text(width, height),
                        "Each side has to be between 1 and " + std::to_string(most), where());
    across().resize(static_cast<std::int64_t>(width));
    down().resize(static_cast<std::int64_t>(height));
    return std::move(*this);
  }

  /// Makes the shorter side `side` and keeps the aspect ratio; the longer side is rounded down, as in torchvision.
  basic_picture resize_shorter(std::size_t side) const& { return basic_picture(*this).resize_shorter(side); }
  basic_picture resize_shorter(std::size_t side) && {
    const std::size_t h = height(), w = width();
    const std::size_t limited = side < 1'000'000 ? side : 1'000'000;   // resize() refuses it; the product stays small
    return w <= h ? std::move(*this).resize(limited * h / w, limited)
                  : std::move(*this).resize(limited, limited * w / h);
  }

  /// A random box of torchvision's rule, resized.
  basic_picture random_resized_crop(std::size_t side, rng& random, const random_crop_options& options = {}) const& {
    return basic_picture(*this).random_resized_crop(side, random, options);
  }
  basic_picture random_resized_crop(std::size_t side, rng& random, const random_crop_options& options = {}) && {
    return std::move(*this).random_resized_crop({.width = side, .height = side}, random, options);
  }
  basic_picture random_resized_crop(picture_size size, rng& random, const random_crop_options& options = {}) const& {
    return basic_picture(*this).random_resized_crop(size, random, options);
  }
  basic_picture random_resized_crop(picture_size size, rng& random, const random_crop_options& options = {}) && {
    const crop_box box = draw_crop({.width = width(), .height = height()}, random, options);
    return std::move(*this).crop(box).resize(size.height, size.width);
  }

  /// Mirrors left and right.
  basic_picture flip() const& { return basic_picture(*this).flip(); }
  basic_picture flip() && {
    across().flip();
    return std::move(*this);
  }
  basic_picture random_flip(rng& random, double probability = 0.5) const& {
    return basic_picture(*this).random_flip(random, probability);
  }
  basic_picture random_flip(rng& random, double probability = 0.5) && {
    return random.chance(probability) ? std::move(*this).flip() : std::move(*this);
  }

  /// Decodes into `row`, which has height * width * 3 bytes. The bits depend on the file and the plan alone.
  void render(std::span<std::uint8_t> row, scratch& s) const { render_alone(job_for(target_of(row, true)), s); }

  /// How many pictures a batch renders at once: of eight, 2 % of the coded symbols are decoded without a partner.
  static constexpr std::size_t together = 8;
  static void render_together(std::span<const basic_picture* const> pictures,
                              std::span<const std::span<std::uint8_t>> rows, scratch& s) {
    std::array<detail::picture_job, together> jobs;
    for (std::size_t i = 0; i < pictures.size(); ++i)
      jobs[i] = pictures[i]->job_for(pictures[i]->target_of(rows[i], true));
    s.get<detail::picture_renderer>().render(std::span(jobs).first(pictures.size()), s);
  }

  /// The pixels, owned: [height, width, 3].
  image pixels(scratch& s) const {
    image made(shape());
    render_alone(job_for(target_of(made.span(), false)), s);
    return made;
  }
  image pixels() const {
    scratch own;
    return pixels(own);
  }

 private:
  template <detail::training_element T>
  friend class normalized_picture;

  static std::string size_text(std::size_t width, std::size_t height) {
    return std::to_string(width) + " x " + std::to_string(height) + " pixels";
  }

  /// torchvision rounds half of the rest to even.
  static std::size_t middle(std::size_t whole, std::size_t part) noexcept {
    if (part > whole) return 0;
    const std::size_t rest = whole - part;
    return rest / 2 + (rest % 2 == 1 && rest / 2 % 2 == 1 ? 1 : 0);
  }

  error_location where() const {
    error_location at{.stage = "jpeg"};
    at.complete(place_of(data_));
    return at;
  }

  void check_size() const {
    const std::uint64_t pixels = std::uint64_t{header_.width} * header_.height;
    if (pixels > options_.max_pixels)
      throw data_error("the JPEG's header says " + size_text(header_.width, header_.height) +
                           ", more than max_pixels = " + std::to_string(options_.max_pixels),
                       "Raise max_pixels if such pictures are meant to be there", {.stage = "jpeg"});
  }

  /// Columns and rows of what is seen, as opposed to what is stored.
  plan_axis& across() noexcept { return transposed_ ? rows_ : columns_; }
  plan_axis& down() noexcept { return transposed_ ? columns_ : rows_; }
  const plan_axis& across() const noexcept { return transposed_ ? rows_ : columns_; }
  const plan_axis& down() const noexcept { return transposed_ ? columns_ : rows_; }

  /// CIPA DC-008, 4.6.4: where row 0 and column 0 of what is stored are seen.
  void orient(int orientation) noexcept {
    transposed_ = orientation >= 5;
    if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8) columns_.flip();
    if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7) rows_.flip();
  }

  /// The least size that still covers both targets.
  unsigned eighths() const noexcept {
    if (options_.quality == picture_quality::exact) return 8;
    for (const unsigned part : {1U, 2U, 4U}) {
      const auto covers = [part](const plan_axis& a) { return a.length * part >= a.target * a.denominator * 8; };
      if (covers(columns_) && covers(rows_)) return part;
    }
    return 8;
  }

  /// setup_error if the row is of another size.
  template <class T>
  detail::pixel_target target_of(std::span<T> row, bool cold) const {
    if (row.size() != height() * width() * 3)
      throw setup_error("a picture of shape " + to_string(shape()) + " cannot be rendered into " +
                            std::to_string(row.size()) + " elements", "Give it height * width * 3 of them", where());
    return {.data = row.data(), .cold = cold};
  }

  detail::picture_job job_for(const detail::pixel_target& target) const {
    detail::picture_job job{.data = &data_, .options = &options_, .header = &header_, .eighths = eighths(),
                            .target = target};
    job.plan = detail::resize_plan{.rows = rows_, .columns = columns_, .transposed = transposed_};
    if (job.eighths != 8) job.plan.rows = rows_.scaled(job.eighths), job.plan.columns = columns_.scaled(job.eighths);
    return job;
  }

  static void render_alone(const detail::picture_job& job, scratch& s) {
    s.get<detail::picture_renderer>().render({&job, 1}, s);
  }

  bytes data_;
  jpeg_options options_;
  jpeg_header header_;
  plan_axis columns_, rows_;   // of what is stored
  bool transposed_ = false;    // stored rows are seen as columns
};
using picture = basic_picture<>;

/// A plan of the whole picture in `data`: reads the header only (well under 1.5 us).
template <class = void>
picture jpeg(bytes data, const jpeg_options& options = {}) { return picture(std::move(data), options); }

/// What the pictures rendered with this scratch have shown so far.
template <class = void>
jpeg_counts jpeg_counts_of(scratch& s) { return s.get<detail::picture_renderer>().counts(); }

}}  // namespace millrace
