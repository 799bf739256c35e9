// Feeders are other machines with the same program. Feeders compute rows of a run. The session requests these rows by
// HTTP.
//
//   #include <millrace/adapt/feeders.hpp>                      // link with -lcurl
//   auto feeders = mr::feeders({.hosts = {"feeders.svc:8717", "node[01-04]:8717"}, .token = token});
//   mr::session run{std::move(flow), {.rows = feeders}};       // the same batches as without .rows
//   ...
//   std::puts(mr::to_text(feeders->statistics()).c_str());
//
// Opt-in: needs libcurl (libcurl4-openssl-dev).
// The session assigns rows to its own workers first (row_storage.hpp). Feeders compute the other rows. If a request
// fails, its rows are requested from another feeder. If an answer is late, its rows are also requested from a second
// feeder. If no feeder is available, the workers compute all rows. Host names are resolved every 10 s. Each address of
// a host is a feeder. A feeder that failed is used again when it can be reached.
// Errors: setup_error for invalid options. A feeder refuses a run whose program (identified by the linker's build id),
// flow, data set, seed, layout of rows or token differs from the feeder's. Each host that refuses is reported by one
// notice. If no feeder is left, another notice reports this. Responses are untrusted: each size is checked before it is
// used. Feeders receive the token, positions and a hash of the run, but not the credentials for object stores. Without
// https://, the token is not encrypted.
// Threads: any thread. One thread transfers rows, and one resolves names. Both start with the session. Lifetime: only
// one run can use the object that feeders() returns. Cost: a copy and a checksum for each row.
#pragma once

#include <millrace/base/version.hpp>

#if !__has_include(<curl/curl.h>)
#error "millrace: libcurl is not installed: apt-get install libcurl4-openssl-dev"
#endif
#include <millrace/adapt/feeders/feeder_options.hpp>

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/feeders/feeder_client.hpp>
#endif
