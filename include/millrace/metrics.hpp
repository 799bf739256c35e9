// Umbrella header for metrics that never stall the training step, for the log and its sinks (outputs), and for image
// grids of the network's input.
//
//   #include <millrace/metrics.hpp>
//   mr::log out(mr::status_line{}, mr::json_lines("run.jsonl"), mr::tensorboard("runs/first"));
//   mr::metrics m({.every = 50});
//   auto loss = m.mean("loss");
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/train/json_lines.hpp>
#include <millrace/train/log.hpp>
#include <millrace/train/metrics.hpp>
#include <millrace/train/picture_grid.hpp>
#include <millrace/train/status_line.hpp>
#include <millrace/train/tensorboard.hpp>
