// Lists the objects of a bucket whose keys have a common prefix, page by page.
//
//   for (const std::string& name : mr::detail::list_objects(access, env, prefix)) use(name);
//
// Keys that end in a slash are omitted, because they represent folders.
// Errors: io_error with its location if the store refuses a request. data_error if a response is invalid, if the
// sequence of pages does not end, or if the number of names exceeds 10,000,000. Threads: any thread.
// Source: "ListObjectsV2" of the Amazon S3 API Reference.
#pragma once

#include <millrace/adapt/remote/store/object_access.hpp>

#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns the sorted names of the objects whose keys begin with the key of `prefix`.
std::vector<std::string> list_objects(object_access& access, const key_environment& env, const object_url& prefix);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/store/impl/object_listing.inl>
#endif
