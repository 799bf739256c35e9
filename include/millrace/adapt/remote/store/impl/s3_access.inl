// Definitions for s3_access.hpp.
#pragma once

#include <millrace/adapt/remote/store/s3_access.hpp>

#include <millrace/adapt/remote/store/credential_sources.hpp>
#include <millrace/adapt/remote/store/uri_encoding.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::string checked_endpoint(std::string endpoint, const char* option) {
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const url_parts parts(endpoint);
  if ((parts.scheme != "http" && parts.scheme != "https") || parts.host.empty() || !parts.query.empty() ||
      parts.host.find_first_of(" @\\") != std::string_view::npos)
    throw setup_error(
        "the endpoint is wrong: got " +
            (parts.host.find('@') != std::string_view::npos ? "a URL with a password" : printable(endpoint)) +
            ", expected http:// or https://, followed by a host and an optional port",
        std::string("Correct ") + option, {.stage = "remote"});
  return endpoint;
}

MILLRACE_INLINE provided_keys keys_of_user(const s3_credentials& credentials, const char* option) {
  if (credentials.access_key_id.empty() || credentials.secret_access_key.empty())
    throw setup_error(std::string(option) + " returned an incomplete access key: the key id or its secret is empty",
                      "Return a key id and its secret", {.stage = "remote"});
  provided_keys provided{.keys = {.access_key_id = credentials.access_key_id,
                                  .secret_access_key = credentials.secret_access_key,
                                  .session_token = credentials.session_token},
                         .origin = option};
  if (credentials.expires)
    provided.keys.expires_seconds =
        std::chrono::duration_cast<std::chrono::seconds>(credentials.expires->time_since_epoch()).count();
  return provided;
}

MILLRACE_INLINE addressed_request s3_access::address(std::string_view method, const object_url& object,
                                                     std::string_view query) {
  std::optional<provided_keys> provided;
  const settings s = settled_with(provided);
  addressed_request request{.region = region_of(object.bucket, s)};
  request.url = base_of(object.bucket, request.region, s) + uri_encoded(object.key, slash::unchanged);
  if (!query.empty()) request.url.append("?").append(query);
  header_list own;
  if (options_.requester_pays) own.emplace_back("x-amz-request-payer", "requester");
  if (provided) {
    request.keys = std::move(provided->keys);
    request.origin = std::move(provided->origin);
    request.headers = signature_v4{.credentials = request.keys, .region = request.region}.headers(
        {.method = method, .url = request.url, .headers = own}, env_.now_seconds());
  }
  request.headers.insert(request.headers.end(), own.begin(), own.end());
  return request;
}

MILLRACE_INLINE remedy s3_access::handle_refusal(const object_url& object, const addressed_request& sent,
                                                 const store_answer& answer) {
  // The region must be valid, because it becomes a part of the host of the next request.
  if (is_region(answer.region) && answer.region != sent.region) {
    const std::lock_guard lock(mutex_);
    regions_[object.bucket] = answer.region;
    return {.what = remedy::kind::at_once};
  }
  if (sent.origin.empty() || !answer.concerns_keys()) return {};
  return keys_.refused(sent.keys);
}

MILLRACE_INLINE s3_access::settings s3_access::settled_with(std::optional<provided_keys>& provided) {
  try {
    settings s = settled();
    if (s.anonymous) return s;
    provided = keys_.get();
    const std::lock_guard lock(mutex_);
    had_keys_ = true;
    return settings_.ready ? settings_ : s;
  } catch (const profile_error&) {
    keys_.search_failed();
  } catch (const std::exception&) {
    const std::lock_guard lock(mutex_);
    if (!had_keys_) settings_.ready = false;   // the incomplete file may also lack the region
    throw;
  }
}

MILLRACE_INLINE s3_access::settings s3_access::settled() {
  const std::lock_guard lock(mutex_);
  if (settings_.ready) return settings_;
  settings s;
  credential_sources sources(env_, {.profile = options_.profile});
  s.anonymous = options_.anonymous || (!options_.credentials && env_.is_on("AWS_NO_SIGN_REQUEST"));
  s.region = first_of(options_.region, env_.variable("AWS_REGION"), env_.variable("AWS_DEFAULT_REGION"));
  if (s.region.empty()) s.region = sources.profile_value("region");
  if (s.region.empty()) s.region = "us-east-1";
  if (!is_region(s.region))
    throw setup_error(
        "the region is wrong: got " + printable('"' + s.region + '"') + ", expected a name such as us-east-1",
        "Correct AWS_REGION, or s3_options::region", {.stage = "remote"});
  s.endpoint = options_.endpoint;
  if (s.endpoint.empty() && !env_.is_on("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"))
    s.endpoint = first_of(env_.variable("AWS_ENDPOINT_URL_S3"), env_.variable("AWS_ENDPOINT_URL"),
                          first_of(sources.service_endpoint(), sources.profile_value("endpoint_url"), {}));
  if (!s.endpoint.empty())
    s.endpoint = checked_endpoint(s.endpoint, "s3_options::endpoint, AWS_ENDPOINT_URL or the profile's endpoint_url");
  s.ready = true;
  return settings_ = s;
}

MILLRACE_INLINE std::string s3_access::region_of(const std::string& bucket, const settings& s) {
  const std::lock_guard lock(mutex_);
  const auto region_entry = regions_.find(bucket);
  return region_entry == regions_.end() ? s.region : region_entry->second;
}

MILLRACE_INLINE std::string s3_access::base_of(const std::string& bucket, const std::string& region,
                                               const settings& s) const {
  const bool own = s.endpoint.empty();
  const char* const amazon = region.starts_with("cn-") ? ".amazonaws.com.cn" : ".amazonaws.com";
  const std::string endpoint = own ? "https://s3." + region + amazon : s.endpoint;
  // A certificate for *.s3.REGION.amazonaws.com covers only one label (without dots), and host names have no capitals.
  const bool is_label = bucket.find_first_not_of(label_characters) == std::string::npos && bucket.size() <= 63;
  if (options_.path_style.value_or(!own || !is_label)) return endpoint + '/' + bucket + '/';
  const std::size_t host = endpoint.find("://") + 3;
  return endpoint.substr(0, host) + bucket + '.' + endpoint.substr(host) + '/';
}

MILLRACE_INLINE provided_keys s3_access::find_keys() {
  if (options_.credentials) return keys_of_user(options_.credentials(), "s3_options::credentials");
  // Searches in each call, because files with profiles and tokens may be rewritten during a run.
  credential_sources sources(env_, {.profile = options_.profile, .region = settled().region});
  if (auto provided = sources.find()) return *provided;
  if (const std::string blank = sources.empty_file(); !blank.empty())
    throw setup_error("the profile file " + printable(blank) + " is empty", "Write the access keys into the file",
                      {.stage = "remote"});
  const bool has_unsupported_source = !sources.unsupported_source().empty();
  throw no_credentials_error(
      "access keys for s3:// names are missing: found none in the environment (AWS_ACCESS_KEY_ID), the profile" +
          (has_unsupported_source ? " (Millrace does not support its " + sources.unsupported_source() + ")"
                                  : std::string()) +
          ", a web identity, a container or an EC2 instance",
      has_unsupported_source
          ? credential_sources::export_hint
          : "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or s3_options::anonymous for a public bucket",
      {.stage = "remote"});
}

}}}   // namespace millrace::detail
