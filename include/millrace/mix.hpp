// Umbrella header for mixing several sources by weight in one flow.
//
//   #include <millrace/mix.hpp>
//   auto flow = mr::mix({.seed = 7}, mr::weighted{mr::shards("web-*.tar") | mr::shuffle({}), 0.7},
//                       mr::weighted{mr::shards("books-*.tar") | mr::shuffle({}), 0.3});
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/shards.hpp>
#include <millrace/sources/mix.hpp>
