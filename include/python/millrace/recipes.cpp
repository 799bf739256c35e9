// The flows of recipes.py. Copy one of them to another file if its options are not sufficient.
#include <millrace/adapt/python.hpp>
#include <millrace/millrace.hpp>
#include <millrace/mix_rows.hpp>
#include <millrace/pictures.hpp>
#include <millrace/text.hpp>

namespace mr = millrace;

namespace {

struct image_options {
  std::string shards;
  std::size_t size = 224, batch = 256;
  std::string augment{};   // "imagenet" or "rand_augment"; empty: the center crop of each image, once
  double mixup = 0, cutmix = 0;
  std::uint64_t seed = 0;
  std::string image = "jpg;jpeg;png;ppm", label = "cls", mask = "png";
};

template <class Pixels>
struct labeled {
  Pixels pixels;
  std::int64_t label;
};
struct masked {
  mr::picture pixels;
  mr::label_map<> mask;
};
using normalized = mr::normalized_picture<mr::f16>;

mr::picture crop_of(const mr::record& r, const image_options& o, mr::rng& rng) {
  const mr::picture p = mr::any_picture(r[o.image]);
  if (o.augment.empty()) return p.resize_shorter(o.size * 8 / 7).center_crop(o.size);
  const mr::picture crop = p.random_resized_crop(o.size, rng).random_flip(rng);
  if (o.augment != "rand_augment") return crop;
  return crop.apply(mr::photometric_plan().rand_augment({.width = o.size, .height = o.size}, rng));
}

template <class Pixels>
Pixels pixels_of(mr::picture p) {
  static constexpr mr::pixel_normalization imagenet{.mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225}};
  if constexpr (std::is_same_v<Pixels, normalized>) return {std::move(p), imagenet};
  else return p;
}

auto source(const image_options& o) {
  return mr::shards(o.shards, {.seed = o.seed}) | mr::shuffle({.window = o.augment.empty() ? 1U : 8192U});
}

template <class Pixels>
auto images(const image_options& o) {
  using example = labeled<Pixels>;
  const bool once = o.augment.empty();   // validation: all images, with a mask of the padding
  return source(o) | mr::map([o](const mr::record& r, mr::rng& rng) -> example {
           return {pixels_of<Pixels>(crop_of(r, o, rng)), r[o.label].as<std::int64_t>()};
         }) |
         mr::batch<&example::pixels, &example::label>({.size = o.batch, .pad_last = once});
}

template <class Pixels>
auto mixed_images(const image_options& o) {
  using example = labeled<Pixels>;
  return images<Pixels>(o) |
         mr::mix_rows<&example::pixels, &example::label>({.mixup_alpha = o.mixup, .cutmix_alpha = o.cutmix});
}

auto images_with_masks(const image_options& o) {
  return source(o) | mr::map([o](const mr::record& r, mr::rng& rng) -> masked {
           const mr::picture p = crop_of(r, o, rng);
           return {p, mr::labels(r[o.mask]).apply(p.geometry())};
         }) |
         mr::batch<&masked::pixels, &masked::mask>({.size = o.batch, .pad_last = o.augment.empty()});
}

struct token_options {
  std::string files;
  std::size_t length = 1025, batch = 32;
  std::optional<std::size_t> stride{};
  bool shuffle = true;
  std::uint64_t seed = 0;
};

auto tokens(const token_options& o) {
  return mr::token_files(o.files, {.length = o.length, .stride = o.stride, .seed = o.seed}) |
         mr::shuffle({.window = o.shuffle ? 65'536U : 1U}) | mr::batch<&mr::packed::ids>({.size = o.batch});
}

template <class Flow>
auto image_loader(const char* name, Flow flow) {
  using o = image_options;
  return mr::python::loader<&o::shards, &o::size, &o::batch, &o::augment, &o::mixup, &o::cutmix, &o::seed, &o::image,
                            &o::label, &o::mask>(name, flow);
}

}   // namespace

PyMODINIT_FUNC PyInit_recipes() {
  using o = token_options;
  return mr::python::module(
      "recipes", image_loader("images_u8", images<mr::picture>), image_loader("images_f16", images<normalized>),
      image_loader("mixed_u8", mixed_images<mr::picture>), image_loader("mixed_f16", mixed_images<normalized>),
      image_loader("images_with_masks", images_with_masks),
      mr::python::loader<&o::files, &o::length, &o::batch, &o::stride, &o::shuffle, &o::seed>("tokens", tokens));
}
