// Draws from the symmetric beta distribution, with integers only: the weights of MixUp and CutMix.
//
//   const std::uint64_t lambda = mr::detail::beta_draw(random, 0.2);   // 0 to 2^32, stands for 0 to 1
//
// The same random numbers give the same draw on every compiler. It stays in logarithms, because for a small alpha the
// numbers themselves vanish.
// Errors: setup_error if alpha is not in [1/1024, 1024]. Threads: pure; one rng is used by one at a time.
// Source: alpha <= 1: Joehnk, Metrika 8 (1964); above: von Neumann's rejection from the uniform distribution.
#pragma once

#include <millrace/base/random.hpp>

#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns a number of Beta(alpha, alpha) with 32 fraction bits. Takes one number from the stream if alpha is 1, else
/// two for each attempt. One to three attempts are usual; a large alpha takes about sqrt(alpha).
std::uint64_t beta_draw(rng& random, double alpha);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/image/beta_draw.ipp>
#endif
