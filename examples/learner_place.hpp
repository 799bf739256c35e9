// The place of train_images' learner: the host, a GPU, or the host with the kernels of the GPU.
//
//   const learner_place place = choose_place(args, args.text("--device", ""), {.host_only = recipe});
//   flow | mr::to_device({.device = place.device});
//   auto net = make_learner(place, options, max_rows);
//
// Builds with nvcc have kernels (MILLRACE_EXAMPLE_KERNELS).
// Errors: setup_error, with the usage of the program, for an unknown word, and for a place that this build or this
// machine does not have.
#pragma once

#include "command_line.hpp"

#include <millrace/device/best_device.hpp>
#include <millrace/device/host.hpp>

#include <string>

struct learner_place {
  millrace::device device = millrace::host_device();
  bool kernels = false;   ///< on the host: runs the kernels of the GPU, one after the other

  bool on_gpu() const { return device.backend()->memory() == millrace::memory_kind::device; }
};

struct place_options {
  bool host_only = false;   ///< the training needs operations that kernels do not have
};

/// `name`: host, gpu or kernels. Empty: a GPU if there is one and the build has kernels, otherwise the host.
inline learner_place choose_place(const command_line& args, const std::string& name, const place_options& options) {
#ifdef MILLRACE_EXAMPLE_KERNELS
  constexpr bool have_kernels = true;
#else
  constexpr bool have_kernels = false;
#endif
  learner_place place;
  if (name == "kernels") place.kernels = true;
  else if (name == "gpu" || (name.empty() && have_kernels && !options.host_only))
    place.device = millrace::best_device();
  else if (name != "host" && !name.empty())
    args.refuse("--device is '" + millrace::printable(name) + "', expected host, gpu or kernels");
  if ((name == "gpu" || name == "kernels") && !have_kernels)
    args.refuse("--device " + name + ": this build found no nvcc, and has no kernels");
  if (name == "gpu" && !place.on_gpu()) args.refuse("--device gpu: this machine has none");
  if (options.host_only && (place.kernels || place.on_gpu()))
    args.refuse("--rotate-labels and --recipe work on the host only");
  return place;
}
