// Feeders: other machines that compute rows of a run with the same program, and that a trainer asks for them by HTTP.
//
//   #include <millrace/adapt/feeders.hpp>                      // link with -lcurl
//   auto feeders = mr::feeders({.hosts = {"feeders.svc:8717", "node[01-04]:8717"}, .token = token});
//   mr::session run{std::move(flow), {.rows = feeders}};       // the same batches as without .rows
//   ...
//   std::puts(mr::to_text(feeders->statistics()).c_str());
//
// Opt-in: needs libcurl (libcurl4-openssl-dev).
// The workers of the session claim rows first (row_storage.hpp), and feeders compute the other rows. If a request
// fails, another feeder gets its rows. If a request is late, a second feeder gets them, too. Without feeders, the
// workers compute all rows. Names are resolved every 10 s. Each address is a feeder; one that returns is used again.
// Errors: setup_error for invalid options. Notices, once for each host, report feeders that refuse the run (another
// program, flow, data set, seed, layout of rows or token), and the loss of the last feeder.
// Answers are untrusted: a size is used after a comparison with the handshake. Feeders receive the token, positions and
// a hash of the run, but no keys of object stores. Without https://, the token is not encrypted.
// Threads: any. One thread transfers rows, and one resolves names; both start with the session. Lifetime: a storage
// serves one run. Cost: a copy and a checksum for each row.
#pragma once

#include <millrace/base/version.hpp>

#if !__has_include(<curl/curl.h>)
#error "millrace: libcurl is not installed: apt-get install libcurl4-openssl-dev"
#endif
#include <millrace/adapt/feeders/feeder_options.hpp>

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/feeders/feeder_client.hpp>
#endif
