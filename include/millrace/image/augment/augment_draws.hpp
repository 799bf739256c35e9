// Draws the operations of automatic augmentations: RandAugment, TrivialAugmentWide, AutoAugment and AugMix.
//
//   std::vector<mr::detail::photometric_op> ops;
//   mr::detail::draw_rand_augment({.width = 224, .height = 224}, random, {}, ops);   // appends up to 2
//
// The parameters of the operations are bit-identical to those of torchvision and timm.
// Errors: setup_error if an option is outside its range. Threads: any thread; do not share an rng between threads.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/random.hpp>
#include <millrace/image/augment/photometric_options.hpp>
#include <millrace/image/color/photometric_op.hpp>
#include <millrace/image/plan/random_crop.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns true with this probability. Draws no random number if the result is certain.
inline bool happens(rng& random, double probability) noexcept { return probability >= 1 || random.chance(probability); }

/// Throws setup_error unless the number is in the range. `subject` is, for example, "the factor of brightness()".
inline void check_range(const char* subject, double got, double least, double highest) {
  if (!(got >= least && got <= highest))
    throw setup_error(std::string(subject) + " is out of range: got " + std::to_string(got) + ", expected " +
                          std::to_string(least) + " to " + std::to_string(highest),
                      "Pass a number in that range");
}

using photometric_ops = std::vector<photometric_op>;

void draw_rand_augment(picture_size size, rng& random, const rand_augment_options& options, photometric_ops& ops);
void draw_trivial_augment(picture_size size, rng& random, const trivial_augment_options& options, photometric_ops& ops);
void draw_auto_augment(picture_size size, rng& random, const auto_augment_options& options, photometric_ops& ops);
void draw_aug_mix(picture_size size, rng& random, const aug_mix_options& options, photometric_ops& ops);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/image/augment/impl/augment_draws.inl>
#endif
