// Definitions for object_stores.hpp.
#pragma once

#include <millrace/adapt/remote/store/object_stores.hpp>

#include <millrace/adapt/remote/store/key_environment.hpp>
#include <millrace/adapt/remote/store/uri_encoding.hpp>
#include <millrace/adapt/remote/store/xml_reader.hpp>

#include <algorithm>
#include <optional>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A request to a store.
struct store_request {
  std::string method = "GET";
  object_url object{};
  std::string query{};     ///< already encoded
  header_list headers{};   ///< headers to send in addition to the signed headers
  std::string name{};      ///< name for errors; empty: the name of the object
};

/// Sends a request whose response fits into memory. Returns a response with status 200 or 206, or the response for a
/// missing object. If the store refuses the request, throws a located io_error. Retries with increasing pauses while
/// the store is busy, and during a search for keys (object_access.hpp). Each attempt is signed again.
MILLRACE_INLINE small_answer request_from_store(object_access& access, const key_environment& env,
                                                const store_request& question) {
  constexpr int max_attempts = 8, max_recoveries = 16;
  double pause = 0.1;
  for (int attempt = 1, recoveries = 0;; ++attempt) {
    addressed_request sent;
    try {
      sent = access.address(question.method, question.object, question.query);
    } catch (const credentials_pending& e) {
      env.sleep(e.pause_seconds);
      --attempt;
      continue;
    }
    small_request request{.method = question.method, .url = sent.url, .headers = sent.headers, .seconds = 60};
    request.headers.insert(request.headers.end(), question.headers.begin(), question.headers.end());
    small_answer answer = env.fetch(request);
    store_answer error;
    if (answer.status != 200 && answer.status != 206) error = read_store_answer(answer);
    if (error.status == 0 || error.is_missing_object()) {
      access.accepted(sent);
      return answer;
    }
    remedy next = access.handle_refusal(question.object, sent, error);
    if (next.what == remedy::kind::at_once && ++recoveries > max_recoveries) next.what = remedy::kind::none;
    if (next.what != remedy::kind::none) {
      if (next.what == remedy::kind::later) env.sleep(next.pause_seconds);
      --attempt;
      continue;
    }
    error.attempted = next.attempted;
    if (attempt >= max_attempts || !error.is_transient())
      throw error.failure(question.name.empty() ? question.object.name_of(question.object.key) : question.name,
                          sent.origin, access.now_seconds());
    env.sleep(pause);
    pause *= 2;
  }
}

/// One page of a listing.
struct listing_page {
  std::vector<std::string> keys{};
  bool is_last = true;
  std::string next{};   ///< the continuation token of the next page
};

/// Returns the query of a page. `from` is the page's continuation token, or "" for the first page. Keys are requested
/// in URL encoding, because XML cannot represent all keys.
MILLRACE_INLINE std::string listing_query(std::string_view prefix, std::string_view from) {
  std::string query;
  if (!from.empty()) query = "continuation-token=" + uri_encoded(from, slash::encoded) + '&';
  query += "encoding-type=url&list-type=2";
  if (!prefix.empty()) query += "&prefix=" + uri_encoded(prefix, slash::encoded);
  return query;
}

/// Parses one page of a listing.
MILLRACE_INLINE listing_page read_listing(std::string_view xml) {
  const auto fail = [](const char* problem) {
    throw data_error(std::string("the listing of a bucket ") + problem, "Check that the server supports ListObjectsV2",
                     {.stage = "remote"});
  };
  listing_page page;
  bool is_listing = false, is_encoded = false;
  std::optional<bool> truncated;
  xml_reader(xml).for_each([&](std::string_view at, const std::string& content) {
    if (at == "ListBucketResult") is_listing = true;
    else if (at == "ListBucketResult/Contents/Key") page.keys.push_back(content);
    else if (at == "ListBucketResult/IsTruncated") truncated = trimmed_http(content) == "true";
    else if (at == "ListBucketResult/NextContinuationToken") page.next = content;
    else if (at == "ListBucketResult/EncodingType") is_encoded = trimmed_http(content) == "url";
  });
  if (!is_listing || !truncated) fail("is wrong: expected ListBucketResult with IsTruncated");
  page.is_last = !*truncated;
  if (!page.is_last && page.next.empty()) fail("is truncated, but has no continuation token");
  if (is_encoded)
    for (std::string& key : page.keys) {
      auto decoded = uri_decoded(key, plus::blank);
      if (!decoded) fail("has a key with an invalid percent escape");
      key = std::move(*decoded);
    }
  return page;
}

/// Works like read_listing(), but adds the location to errors.
MILLRACE_INLINE listing_page read_located_object(std::string_view xml, const std::string& name) {
  try {
    return read_listing(xml);
  } catch (data_error& e) {
    e.locate({.stage = "remote", .shard = name});
    throw;
  }
}

MILLRACE_INLINE std::vector<std::string> list_objects(object_access& access, const key_environment& env,
                                                      const object_url& prefix) {
  constexpr std::size_t max_names = 10'000'000, max_pages = 100'000;
  store_request question{.object = prefix, .name = prefix.name_of(prefix.key)};
  question.object.key.clear();
  std::vector<std::string> names;
  std::string from;
  for (std::size_t pages = 1;; ++pages) {
    question.query = listing_query(prefix.key, from);
    const small_answer answer = request_from_store(access, env, question);
    if (answer.status == 404) throw read_store_answer(answer).failure(question.name, "", access.now_seconds());
    listing_page page = read_located_object(answer.body, question.name);
    for (const std::string& key : page.keys) {
      // Omits other objects that a server returns if it ignores prefixes.
      if (key.starts_with(prefix.key) && !key.ends_with('/')) names.push_back(prefix.name_of(key));
    }
    if (page.is_last) break;
    if (page.next == from || names.size() > max_names || pages == max_pages)
      throw data_error(page.next == from
                           ? "the listing of a bucket does not end: the server returned the same continuation token "
                             "again"
                           : "the listing of a bucket is too long: expected at most 10,000,000 names on 100,000 pages",
                       "Use a longer prefix, or name the shards with a brace pattern, such as {0000..0099}",
                       {.stage = "remote", .shard = question.name});
    from = std::move(page.next);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}}}   // namespace millrace::detail
