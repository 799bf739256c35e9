// Umbrella header for the lines of text files, plain or compressed. text.hpp includes everything about text.
//
//   #include <millrace/lines.hpp>
//   auto flow = mr::lines("corpus-{0000..1023}.jsonl.gz", {.seed = 7}) | mr::shuffle({.window = 65'536});
#pragma once

#include <millrace/item/line.hpp>
#include <millrace/sources/lines.hpp>
#include <millrace/stages/shuffle.hpp>
