// Umbrella header for mixup and cutmix in a flow.
//
//   #include <millrace/mix_rows.hpp>
//   auto mixed = std::move(batches) | mr::mix_rows<&example::pixels, &example::label>({.mixup_alpha = 0.8});
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/deliver/mixed_batch.hpp>
#include <millrace/device/mix_rows.hpp>
#include <millrace/stages/mix_rows.hpp>
#include <millrace/work/batch/row_mixer.hpp>
