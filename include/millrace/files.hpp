// Umbrella header for loose files, such as a folder of images, as the source of a flow.
//
//   #include <millrace/files.hpp>
//   auto flow = mr::files("train/**/*.jpg", {.seed = 7, .folders_are_classes = true}) | mr::shuffle({.window = 1024});
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/item/tensor/array.hpp>
#include <millrace/sources/files.hpp>
#include <millrace/stages/shuffle.hpp>
