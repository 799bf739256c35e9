// A JPEG as a plan: where to crop, what size to make, whether to flip. No pixel is touched before it is rendered.
//
//   mr::picture p = mr::jpeg(r["jpg"]).random_resized_crop(224, random).random_flip(random);
//   mr::picture q = mr::jpeg(r["jpg"]).resize_shorter(256).center_crop(224);
//   p.shape();                       // [224, 224, 3]
//   mr::image pixels = p.pixels();   // for whoever needs them now; a batch renders straight into its row
//
// Result: u8 RGB [height, width, 3]; gray and CMYK files become RGB. Each call narrows the plan and returns it; calls
// mean what they would mean on pixels, in their order. Rendering does it in one pass: only the rows and columns that
// the result needs are decoded, and one antialiased bilinear resize writes the result, flipped, where it belongs.
// `exact` is within one level of "decode, crop, resize, flip" with Pillow or torchvision (antialias); taps of a resize
// end at the crop before it and reach beyond the crop after it. `fast` may decode at 1/8, 2/8 or 4/8 of the size while
// that still covers the target (mean error well under one level, single pixels at sharp edges more). A resize of a
// resize is one resize from the source. Damage below the crop is not seen, because decoding stops there.
//
// Errors: jpeg() throws data_error for what is no JPEG or exceeds max_pixels, render() for damage; both name shard and
// key. setup_error for impossible sizes. Threads: a picture is a value and keeps the block of its bytes.
#pragma once

#include <millrace/item/record.hpp>
#include <millrace/item/scratch.hpp>
#include <millrace/item/tensor.hpp>
#include <millrace/image/crop_draw.hpp>
#include <millrace/image/jpeg_decoder.hpp>
#include <millrace/image/jpeg_header.hpp>
#include <millrace/image/resize.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace millrace::inline MILLRACE_ABI {

enum class picture_quality : std::uint8_t { exact, fast };

struct jpeg_options {
  picture_quality quality = picture_quality::exact;
  bool apply_orientation = false;                         ///< turn the picture as its EXIF tag says
  bool accept_damaged = false;                            ///< take what there is of a cut or corrupt file, and count it
  int max_scans = 100;                                    ///< of a progressive JPEG
  std::uint64_t max_pixels = 178'956'970;                 ///< width * height, as in Pillow
  std::size_t max_memory_bytes = std::size_t{512} << 20;  ///< that libjpeg may take for one picture
};

namespace detail {

/// What a worker keeps from picture to picture.
struct picture_tools {
  jpeg_decoder decoder;
  resizer resize;
};

}  // namespace detail

class picture {
 public:
  using element = std::uint8_t;
  static constexpr const char* rendering = "decode";   ///< in reports

  /// Reads the header; see jpeg().
  explicit picture(bytes data, const jpeg_options& options = {}) : data_(std::move(data)), options_(options) {
    try {
      header_ = read_jpeg_header(data_);
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
  picture crop(const crop_box& box) const& { return picture(*this).crop(box); }
  picture crop(const crop_box& box) && {
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
  picture center_crop(std::size_t height, std::size_t width) const& {
    return picture(*this).center_crop(height, width);
  }
  picture center_crop(std::size_t height, std::size_t width) && {
    return std::move(*this).crop({.left = middle(this->width(), width), .top = middle(this->height(), height),
                                  .width = width, .height = height});
  }
  picture center_crop(std::size_t side) const& { return picture(*this).center_crop(side, side); }
  picture center_crop(std::size_t side) && { return std::move(*this).center_crop(side, side); }

  /// Makes it this size, antialiased, whatever that does to the aspect ratio.
  picture resize(std::size_t height, std::size_t width) const& { return picture(*this).resize(height, width); }
  picture resize(std::size_t height, std::size_t width) && {
    constexpr auto most = static_cast<std::size_t>(plan_axis::max_length);
    if (height < 1 || width < 1 || height > most || width > most)
      throw setup_error("a picture cannot be resized to " + size_text(width, height),
                        "Each side has to be between 1 and " + std::to_string(most), where());
    across().resize(static_cast<std::int64_t>(width));
    down().resize(static_cast<std::int64_t>(height));
    return std::move(*this);
  }

  /// Makes the shorter side `side` and keeps the aspect ratio; the longer side is rounded down, as in torchvision.
  picture resize_shorter(std::size_t side) const& { return picture(*this).resize_shorter(side); }
  picture resize_shorter(std::size_t side) && {
    const std::size_t h = height(), w = width();
    const std::size_t limited = side < 1'000'000 ? side : 1'000'000;   // resize() refuses it; the product stays small
    return w <= h ? std::move(*this).resize(limited * h / w, limited)
                  : std::move(*this).resize(limited, limited * w / h);
  }

  /// A random box of torchvision's rule, resized.
  picture random_resized_crop(std::size_t side, draw& random, const random_crop_options& options = {}) const& {
    return picture(*this).random_resized_crop(side, random, options);
  }
  picture random_resized_crop(std::size_t side, draw& random, const random_crop_options& options = {}) && {
    return std::move(*this).random_resized_crop({.width = side, .height = side}, random, options);
  }
  picture random_resized_crop(picture_size size, draw& random, const random_crop_options& options = {}) const& {
    return picture(*this).random_resized_crop(size, random, options);
  }
  picture random_resized_crop(picture_size size, draw& random, const random_crop_options& options = {}) && {
    const crop_box box = draw_crop({.width = width(), .height = height()}, random, options);
    return std::move(*this).crop(box).resize(size.height, size.width);
  }

  /// Mirrors left and right.
  picture flip() const& { return picture(*this).flip(); }
  picture flip() && {
    across().flip();
    return std::move(*this);
  }
  picture random_flip(draw& random, double probability = 0.5) const& {
    return picture(*this).random_flip(random, probability);
  }
  picture random_flip(draw& random, double probability = 0.5) && {
    return random.chance(probability) ? std::move(*this).flip() : std::move(*this);
  }

  /// Decodes into `row`, which has height * width * 3 bytes. The bits depend on the file and the plan alone.
  void render(std::span<std::uint8_t> row, scratch& s) const {
    if (row.size() != height() * width() * 3)
      throw setup_error("a picture of shape " + to_string(shape()) + " cannot be rendered into " +
                            std::to_string(row.size()) + " bytes", "Give it height * width * 3 bytes", where());
    auto& tools = s.get<detail::picture_tools>();
    const jpeg_counts before = tools.decoder.counts();
    try {
      decode(row, tools);
      const jpeg_counts& now = tools.decoder.counts();
      if (now.progressive != before.progressive) s.count("progressive JPEGs");
      if (now.damaged != before.damaged) s.count("damaged JPEGs accepted");
    } catch (error& e) {
      e.locate(place_of(data_));
      throw;
    }
  }

  /// The pixels, owned: [height, width, 3].
  image pixels(scratch& s) const {
    image made(shape());
    render(made.span(), s);
    return made;
  }
  image pixels() const {
    scratch own;
    return pixels(own);
  }

 private:
  static std::string size_text(std::size_t width, std::size_t height) {
    return std::to_string(width) + " x " + std::to_string(height) + " pixels";
  }

  /// torchvision rounds half of the rest to even.
  static std::size_t middle(std::size_t whole, std::size_t part) noexcept {
    if (part > whole) return 0;
    const std::size_t rest = whole - part;
    return rest / 2 + (rest % 2 == 1 && rest / 2 % 2 == 1 ? 1 : 0);
  }

  place where() const {
    place at{.stage = "jpeg"};
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

  void decode(std::span<std::uint8_t> row, detail::picture_tools& tools) const {
    const unsigned part = eighths();
    auto& resize = tools.resize;
    if (part == 8) resize.start({.rows = rows_, .columns = columns_, .transposed = transposed_}, row);
    else resize.start({.rows = rows_.scaled(part), .columns = columns_.scaled(part), .transposed = transposed_}, row);
    tools.decoder.open(data_, {.max_scans = options_.max_scans, .max_memory_bytes = options_.max_memory_bytes,
                               .accept_damaged = options_.accept_damaged}, part);
    if (tools.decoder.stored_width() != header_.width || tools.decoder.stored_height() != header_.height ||
        tools.decoder.components() != header_.components) {
      tools.decoder.abandon();
      throw data_error("the JPEG has two frame headers that differ", "Fetch the file again, or leave the sample out",
                       {.stage = "jpeg"});
    }
    tools.decoder.decode({.left = resize.columns().source_begin(), .top = resize.rows().source_begin(),
                          .right = resize.columns().source_end(), .bottom = resize.rows().source_end()}, resize);
  }

  bytes data_;
  jpeg_options options_;
  jpeg_header header_;
  plan_axis columns_, rows_;   // of what is stored
  bool transposed_ = false;    // stored rows are seen as columns
};

/// A plan of the whole picture in `data`: reads the header only (well under 1.5 us).
inline picture jpeg(bytes data, const jpeg_options& options = {}) { return picture(std::move(data), options); }

/// What the pictures rendered with this scratch have shown so far.
inline const jpeg_counts& jpeg_counts_of(scratch& s) { return s.get<detail::picture_tools>().decoder.counts(); }

}  // namespace millrace::inline MILLRACE_ABI
