// A program for object_stores.py: lists and reads objects of a store, which the environment describes.
//
//   store_subject list s3://bucket/prefix        # a name in each line, percent-encoded
//   store_subject get s3://bucket/key            # its bytes
//   store_subject get s3://bucket/key 10-19      # ten of them
//
// Prints errors to stderr: the exit status is 1, and 2 for an object that is not there.
#include <millrace/adapt/remote/curl_fetch.hpp>
#include <millrace/adapt/remote/gs_access.hpp>
#include <millrace/adapt/remote/object_listing.hpp>
#include <millrace/adapt/remote/s3_access.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>

namespace mr = millrace;

int main(int count, char** arguments) {
  if (count < 3) return 1;
  const std::string what = arguments[1];
  try {
    const auto around = mr::detail::process_surroundings(mr::detail::curl_fetch({}));
    const auto name = mr::detail::parse_object_url(arguments[2]);
    std::unique_ptr<mr::detail::object_access> access;
    if (name.kind == mr::detail::object_store_kind::s3)
      access = std::make_unique<mr::detail::s3_access>(mr::s3_options{}, around);
    else
      access = std::make_unique<mr::detail::gs_access>(mr::gs_options{.endpoint = around.variable("GS_ENDPOINT")},
                                                       around);
    if (what == "list") {
      for (const std::string& one : mr::detail::list_objects(*access, around, name))
        std::puts(mr::detail::uri_encoded(one, mr::detail::slash::kept).c_str());
      return 0;
    }
    mr::detail::store_question question{.object = name};
    if (count > 3) question.headers.emplace_back("Range", std::string("bytes=") + arguments[3]);
    const auto answer = mr::detail::ask_store(*access, around, question);
    if (answer.status == 404) {
      std::fprintf(stderr, "there is no %s\n", arguments[2]);
      return 2;
    }
    std::fwrite(answer.body.data(), 1, answer.body.size(), stdout);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
