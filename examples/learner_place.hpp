// Where train_images' learner works: on the host, on a GPU, or on the host by the GPU's kernels.
//
//   const learner_place place = choose_place(args, args.text("--device", ""), {.host_only = recipe});
//   flow | mr::to_device({.device = place.device});
//   auto net = make_learner(place, options, max_rows);
//
// Kernels are there where the build has nvcc (MILLRACE_EXAMPLE_KERNELS). Errors: setup_error, with the program's usage,
// for a word that is not known, and for a place that this build or this machine does not have.
#pragma once

#include "command_line.hpp"

#include <millrace/device/best_device.hpp>
#include <millrace/device/host.hpp>

#include <string>

struct learner_place {
  millrace::device device = millrace::host_device();
  bool kernels = false;   ///< where the device is the host: the GPU's kernels, one after the other

  bool on_gpu() const { return device.backend()->memory() == millrace::memory_kind::device; }
};

struct place_options {
  bool host_only = false;   ///< the training does something that kernels do not
};

/// `asked`: host, gpu or kernels. If empty: a GPU where there is one and the build has kernels for it, else the host.
inline learner_place choose_place(const command_line& args, const std::string& asked, const place_options& options) {
#ifdef MILLRACE_EXAMPLE_KERNELS
  constexpr bool have_kernels = true;
#else
  constexpr bool have_kernels = false;
#endif
  learner_place place;
  if (asked == "kernels") place.kernels = true;
  else if (asked == "gpu" || (asked.empty() && have_kernels && !options.host_only))
    place.device = millrace::best_device();
  else if (asked != "host" && !asked.empty())
    args.refuse("--device is '" + millrace::printable(asked) + "', expected host, gpu or kernels");
  if ((asked == "gpu" || asked == "kernels") && !have_kernels)
    args.refuse("--device " + asked + ": this build found no nvcc, and has no kernels");
  if (asked == "gpu" && !place.on_gpu()) args.refuse("--device gpu: this machine has none");
  if (options.host_only && (place.kernels || place.on_gpu()))
    args.refuse("--rotate-labels and --recipe work on the host alone");
  return place;
}
