// Documents of text and images in reading order, and rows of several such documents for vision-language models.
//
//   mr::interleaved prepare(const mr::record& r) {
//     mr::interleaved document({.patch = 14, .image_id = 151'655});
//     for (const mr::bytes& file : r.fields("*.jpg"))
//       document.add(mr::resize_to_patches(mr::jpeg(file), {.patch = 14, .max_patches = 1'024}));
//     return document.add(tokenize(r["txt"]));
//   }
//   mr::interleaved_row join(const std::vector<mr::interleaved>& documents) {   // after pack_best_fit()
//     return mr::join_documents(documents, {.length = 8'192});
//   }
//
// An image occupies one token for each square of merge x merge patches. A patch has patch x patch pixels. The images
// are decoded when batch() renders the row.
// Columns of a row:
// - ids [length], with image_id for the tokens of images
// - segments [length]: 1 for the tokens of the first document in the row, 2 for the second, ...; 0 for padding
// - positions [length], the offset of the token in its document; 0 for padding
// - places: for each image, the index of its first token in the row, and the number of its tokens
// - grids and patches of the images (patch_list.hpp)
//
// The patches of an image are in reading order, even if `merge` is above 1. Some models, such as Qwen2-VL, require that
// the patches of each token are consecutive. For these models, reorder the patches in the training step.
// Errors: data_error for an image whose sides are not multiples of patch * merge. data_error for documents that are too
// long for a row. setup_error if an option is out of range. Also the errors of patch_list. Threads: not synchronized.
#pragma once

#include <millrace/base/version.hpp>

#include <millrace/image/picture/patch_list.hpp>
#include <millrace/item/tensor/ragged.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// How the images of a document become tokens.
struct interleaved_options {
  std::size_t patch = 14;       ///< side of a patch in pixels
  std::size_t merge = 1;        ///< a token represents merge x merge patches
  std::uint32_t image_id = 0;   ///< id of the tokens of images

  friend bool operator==(const interleaved_options&, const interleaved_options&) = default;
  /// Returns "patch 14, merge 1, image_id 0", for messages.
  std::string describe() const {
    return "patch " + std::to_string(patch) + ", merge " + std::to_string(merge) + ", image_id " +
           std::to_string(image_id);
  }
};

/// A document of tokens and images.
class interleaved {
 public:
  /// Creates an empty document. Throws setup_error if patch or merge is not from 1 to 65535.
  explicit interleaved(const interleaved_options& options = {}) : options_(options) {
    constexpr std::size_t most = 65'535;
    if (options.patch < 1 || options.merge < 1 || options.patch > most || options.merge > most)
      throw setup_error("an option of an interleaved document is out of range: got " + options.describe() +
                            ", expected a patch and a merge from 1 to " + std::to_string(most),
                        "Set interleaved_options::patch and merge to the values of your model, such as 14 and 2");
  }

  /// Appends tokens of text.
  interleaved& add(std::span<const std::uint32_t> tokens) {
    ids_.insert(ids_.end(), tokens.begin(), tokens.end());
    return *this;
  }
  /// Appends an image. Throws data_error if a side is not a multiple of patch * merge.
  interleaved& add(picture image) {
    const std::size_t side = options_.patch * options_.merge;
    if (image.width() % side != 0 || image.height() % side != 0)
      throw data_error("an image has sides that are not multiples of patch * merge: got " +
                           std::to_string(image.width()) + " x " + std::to_string(image.height()) +
                           ", expected multiples of " + std::to_string(side),
                       "Call resize_to_patches() with .patch = patch * merge", detail::location_of(image.data()));
    const std::size_t tokens = (image.width() / side) * (image.height() / side);
    places_.push_back({static_cast<std::int32_t>(ids_.size()), static_cast<std::int32_t>(tokens)});
    ids_.resize(ids_.size() + tokens, options_.image_id);
    images_.push_back(std::move(image));
    return *this;
  }

  /// Returns the number of tokens, including the tokens of images.
  std::size_t size() const noexcept { return ids_.size(); }
  /// Returns the ids of all tokens.
  const std::vector<std::uint32_t>& ids() const noexcept { return ids_; }
  /// Returns the images in reading order.
  const std::vector<picture>& images() const noexcept { return images_; }
  /// Returns, for each image, the index of its first token in the document and the number of its tokens.
  const std::vector<std::array<std::int32_t, 2>>& places() const noexcept { return places_; }
  /// Returns the options.
  const interleaved_options& options() const noexcept { return options_; }
  /// Returns the memory use of the document and its image files, in bytes.
  std::size_t held_bytes() const noexcept {
    std::size_t bytes = sizeof(interleaved) + ids_.size() * sizeof(std::uint32_t);
    for (const picture& p : images_) bytes += sizeof(picture) + sizeof(places_[0]) + p.data().size();
    return bytes;
  }

 private:
  interleaved_options options_;
  std::vector<std::uint32_t> ids_{};
  std::vector<picture> images_{};
  std::vector<std::array<std::int32_t, 2>> places_{};
};

/// A row of documents. batch<interleaved_row>() creates a column for each member.
struct interleaved_row {
  std::vector<std::uint32_t> ids, segments, positions;   ///< [length] each
  ragged<std::int32_t, 2> places;                        ///< [images, 2]: first token, number of tokens
  ragged<std::int32_t, 2> grids;                         ///< [images, 2]: rows and columns of patches
  patch_list patches;                                    ///< the patches of all images
};

/// Options of join_documents().
struct join_documents_options {
  std::size_t length = 0;      ///< tokens in a row; required
  std::uint32_t padding = 0;   ///< id of the tokens after the last document
};

/// Returns a row with these documents, one after the other. Throws data_error if the documents have more than `length`
/// tokens in total, or if their options differ. Throws setup_error if `documents` is empty or `length` is 0.
inline interleaved_row join_documents(const std::vector<interleaved>& documents,
                                      const join_documents_options& options) {
  if (documents.empty() || options.length == 0)
    throw setup_error("join_documents() has no documents or no length: got " + std::to_string(documents.size()) +
                          " documents and length " + std::to_string(options.length) + " , expected at least 1 for both",
                      "Set join_documents_options::length, and pass the documents of a row");
  const interleaved_options first = documents.front().options();
  std::vector<std::uint32_t> ids, segments, positions;
  std::vector<std::int32_t> places;
  std::vector<picture> images;
  for (const interleaved& d : documents) {
    if (!(d.options() == first))
      throw data_error("the documents of a row have different interleaved_options: got " + d.options().describe() +
                           ", expected " + first.describe() + " as in the first document",
                       "Use the same options for all documents");
    for (const auto& [token, count] : d.places()) {
      places.push_back(token + static_cast<std::int32_t>(ids.size()));
      places.push_back(count);
    }
    images.insert(images.end(), d.images().begin(), d.images().end());
    ids.insert(ids.end(), d.ids().begin(), d.ids().end());
    segments.resize(ids.size(), segments.empty() ? 1 : segments.back() + 1);
    for (std::size_t i = 0; i < d.size(); ++i) positions.push_back(static_cast<std::uint32_t>(i));
  }
  if (ids.size() > options.length)
    throw data_error("the documents of a row are too long: got " + std::to_string(ids.size()) +
                         " tokens, expected at most " + std::to_string(options.length),
                     "Before join_documents(), call pack_best_fit() with join_documents_options::length as max_cost");
  ids.resize(options.length, options.padding);
  segments.resize(options.length, 0);
  positions.resize(options.length, 0);
  patch_list patches(std::move(images),
                     {.patch = first.patch, .max_patches = options.length * first.merge * first.merge});
  const std::size_t count = places.size() / 2;
  const ragged_options<std::int32_t> bound{.max_length = options.length};
  ragged grids(patches.grids(), bound);
  return {std::move(ids),       std::move(segments),
          std::move(positions), ragged(tensor<std::int32_t, 2>({count, 2}, std::move(places)), bound),
          std::move(grids),     std::move(patches)};
}

}}   // namespace millrace
