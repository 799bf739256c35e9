// Contains the definitions for adapt/remote.hpp, adapt/feeders.hpp and the folder adapt/remote in compiled mode.
// stores.hpp contains most definitions for adapt/remote/store.
//
//   #include <millrace/compiled/remote.hpp>      // c++ -std=c++20 -O3 -DMILLRACE_COMPILED -c
//
// remote.cpp includes this header. remote.cpp and stores.cpp are the sources of the library millrace-compiled-remote,
// which needs libcurl.
#pragma once

#include <millrace/base/version.hpp>

#ifndef MILLRACE_COMPILED
#error "millrace/compiled/remote.hpp is for programs that are compiled with -DMILLRACE_COMPILED"
#endif

#include <millrace/adapt/feeders/impl/feeder_client.inl>
#include <millrace/adapt/remote/store/impl/curl_fetch.inl>
#include <millrace/adapt/remote/store/impl/curl_transfers.inl>
#include <millrace/adapt/remote/transfer/impl/fetch_attempt.inl>
#include <millrace/adapt/remote/transfer/impl/request_addresses.inl>
#include <millrace/adapt/remote/transfer/impl/transfer_engine.inl>
#include <millrace/adapt/remote/impl/remote_file.inl>
#include <millrace/adapt/impl/remote.inl>
