// Requests to S3 and to Google Cloud Storage: addresses, headers and remedies.
#include "fake_environment.hpp"

#include <millrace/adapt/remote/store/gs_access.hpp>
#include <millrace/adapt/remote/store/s3_access.hpp>

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

namespace mr = millrace;
using mr::detail::parse_object_url;
using mr::detail::remedy;
using mr::detail::s3_access;
using mr::detail::gs_access;

namespace {

std::string url(fake_world& world, const mr::s3_options& options, const std::string& name, const char* query = "") {
  mr::s3_options anonymous = options;
  anonymous.anonymous = true;
  s3_access access(anonymous, world.env());
  return access.address("GET", parse_object_url(name), query).url;
}

std::string authorization(const mr::detail::addressed_request& sent) {
  return std::string(mr::detail::header_value(sent.headers, "Authorization"));
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

mr::s3_credentials user_keys() { return {.access_key_id = "AKID-U", .secret_access_key = "SECRET-U"}; }

}  // namespace

TEST_CASE("a bucket is a host if its name allows it, else a path") {
  fake_world world;
  CHECK(url(world, {}, "s3://photos/a/b c.tar") == "https://photos.s3.us-east-1.amazonaws.com/a/b%20c.tar");
  CHECK(url(world, {.region = "eu-west-1"}, "s3://my.photos/a") == "https://s3.eu-west-1.amazonaws.com/my.photos/a");
  CHECK(url(world, {}, "s3://Photos_1/a") == "https://s3.us-east-1.amazonaws.com/Photos_1/a");
  CHECK(url(world, {.region = "cn-north-1"}, "s3://photos/a") == "https://photos.s3.cn-north-1.amazonaws.com.cn/a");
  CHECK(url(world, {.path_style = true}, "s3://photos/a") == "https://s3.us-east-1.amazonaws.com/photos/a");
  CHECK(url(world, {.endpoint = "http://127.0.0.1:9000/"}, "s3://photos/a=+%\xc3\xbc?#.tar") ==
        "http://127.0.0.1:9000/photos/a%3D%2B%25%C3%BC%3F%23.tar");
  CHECK(url(world, {.endpoint = "https://s3.example", .path_style = false}, "s3://photos/a") ==
        "https://photos.s3.example/a");
  CHECK(url(world, {}, "s3://photos//a//../b") == "https://photos.s3.us-east-1.amazonaws.com//a//../b");
  CHECK(url(world, {}, "s3://photos", "list-type=2") == "https://photos.s3.us-east-1.amazonaws.com/?list-type=2");
}

TEST_CASE("the region is read from the options, the environment, the profile, in this order") {
  fake_world world;
  world.files["/fake/.aws/config"] = "[default]\nregion = eu-west-4\n[profile train]\nregion = eu-west-5\n";
  const auto region = [&](const mr::s3_options& options) {
    const std::string text = url(world, options, "s3://photos/a");
    return text.substr(18, 9);
  };
  CHECK(region({}) == "eu-west-4");
  CHECK(region({.profile = "train"}) == "eu-west-5");
  world.variables["AWS_PROFILE"] = "train";
  CHECK(region({}) == "eu-west-5");
  world.variables["AWS_DEFAULT_REGION"] = "eu-west-3";
  CHECK(region({}) == "eu-west-3");
  world.variables["AWS_REGION"] = "eu-west-2";
  CHECK(region({}) == "eu-west-2");
  CHECK(region({.region = "eu-west-1"}) == "eu-west-1");
  for (const char* wrong : {"eu-west-1.evil.example/", "EU", "a b"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(region({.region = wrong}), mr::setup_error);
  }
}

TEST_CASE("the endpoint is read from the options, the environment, the profile, in this order") {
  fake_world world;
  const auto endpoint = [&](const mr::s3_options& options) {
    const std::string text = url(world, options, "s3://photos/a");
    return text.substr(0, text.find("/photos"));
  };
  world.files["/fake/.aws/config"] =
      "[default]\nendpoint_url = http://five\n[profile train]\nservices = mine\nendpoint_url = http://five\n"
      "[services mine]\ns3 =\n  endpoint_url = http://four\n";
  CHECK(endpoint({}) == "http://five");
  CHECK(endpoint({.profile = "train"}) == "http://four");
  world.variables["AWS_ENDPOINT_URL"] = "http://three";
  CHECK(endpoint({}) == "http://three");
  world.variables["AWS_ENDPOINT_URL_S3"] = "http://two:9000";
  CHECK(endpoint({}) == "http://two:9000");
  CHECK(endpoint({.endpoint = "https://one"}) == "https://one");
  world.variables["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"] = "true";
  CHECK(url(world, {}, "s3://photos/a") == "https://photos.s3.us-east-1.amazonaws.com/a");
  for (const char* wrong : {"127.0.0.1:9000", "ftp://a", "http://", "http://a b", "http://a?b=c"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(endpoint({.endpoint = wrong}), mr::setup_error);
  }
  try {
    endpoint({.endpoint = "http://user:SECRET@host"});
    FAIL("accepted");
  } catch (const mr::setup_error& e) {
    CHECK(!has(e.what(), "SECRET"));
    CHECK(has(e.what(), "a URL with a password"));
  }
}

TEST_CASE("requests are signed with the keys that exist, or not at all") {
  fake_world world;
  const auto name = parse_object_url("s3://photos/a");
  {
    s3_access access({.credentials = user_keys}, world.env());
    const auto sent = access.address("GET", name, "");
    CHECK(authorization(sent).starts_with(
        "AWS4-HMAC-SHA256 Credential=AKID-U/20231114/us-east-1/s3/aws4_request, "
        "SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature="));
    CHECK(sent.origin == "s3_options::credentials");
    CHECK(authorization(access.address("HEAD", name, "")) != authorization(sent));
    world.now += 1;
    CHECK(authorization(access.address("GET", name, "")) != authorization(sent));
  }
  {
    s3_access access({.anonymous = true, .requester_pays = true, .credentials = user_keys}, world.env());
    const auto sent = access.address("GET", name, "");
    CHECK(sent.origin.empty());
    CHECK(sent.headers == mr::detail::header_list{{"x-amz-request-payer", "requester"}});
  }
  {
    s3_access access({.requester_pays = true, .credentials = user_keys}, world.env());
    CHECK(has(authorization(access.address("GET", name, "")), ";x-amz-request-payer,"));
  }
  world.variables["AWS_NO_SIGN_REQUEST"] = "true";
  CHECK(s3_access({}, world.env()).address("GET", name, "").headers.empty());
  CHECK(world.sent.empty());
}

TEST_CASE("without keys the error lists the searched places") {
  fake_world world;
  const auto failure = [&](const mr::s3_options& options = {}) {
    try {
      s3_access access(options, world.env());
      world.address(access, parse_object_url("s3://photos/a"));
    } catch (const mr::setup_error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(has(failure(), "keys for s3:// names are missing: found none in the environment (AWS_ACCESS_KEY_ID), "
                       "the profile, a web identity, a container or an EC2 instance"));
  CHECK(has(failure(), "s3_options::anonymous"));
  world.files["/fake/.aws/config"] = "[default]\nsso_session = mine\n";
  CHECK(has(failure(), "the profile (Millrace does not support its sso_session), a web identity"));
  CHECK(has(failure(), "aws configure export-credentials"));
  CHECK(has(failure({.credentials = [] { return mr::s3_credentials{}; }}),
            "s3_options::credentials returned an incomplete access key"));
}

TEST_CASE("a bucket of another region is requested there from then on") {
  fake_world world;
  s3_access access({.credentials = user_keys}, world.env());
  const auto name = parse_object_url("s3://photos/a"), other = parse_object_url("s3://texts/a");
  auto sent = access.address("GET", name, "");
  mr::detail::store_answer redirect{.status = 301, .region = "eu-west-1"};
  CHECK(access.handle_refusal(name, sent, redirect).what == remedy::kind::at_once);
  sent = access.address("GET", name, "");
  CHECK(sent.url == "https://photos.s3.eu-west-1.amazonaws.com/a");
  CHECK(has(authorization(sent), "/eu-west-1/s3/aws4_request"));
  CHECK(has(access.address("GET", other, "").url, "us-east-1"));
  CHECK(access.handle_refusal(name, sent, redirect).what == remedy::kind::none);
  // The region is used as a part of a host name.
  for (const char* wrong : {"evil.example/", "a@b", "", "eu/../x"}) {
    redirect.region = wrong;
    CHECK(access.handle_refusal(name, sent, redirect).what == remedy::kind::none);
  }
  CHECK(access.address("GET", name, "").url == sent.url);
}

TEST_CASE("with an endpoint another region changes only the signature") {
  fake_world world;
  s3_access access({.endpoint = "http://127.0.0.1:9000", .credentials = user_keys}, world.env());
  const auto name = parse_object_url("s3://photos/a");
  const auto sent = access.address("GET", name, "");
  CHECK(access.handle_refusal(name, sent, {.status = 400, .code = "AuthorizationHeaderMalformed", .region = "garage"})
            .what == remedy::kind::at_once);
  const auto next = access.address("GET", name, "");
  CHECK(next.url == sent.url);
  CHECK(has(authorization(next), "/garage/s3/aws4_request"));
}

TEST_CASE("refused keys lead to other keys, refused permissions do not") {
  fake_world world;
  int calls = 0;
  s3_access access({.credentials = [&] {
                     return mr::s3_credentials{.access_key_id = "AKID-" + std::to_string(++calls),
                                               .secret_access_key = "SECRET"};
                   }},
                   world.env());
  const auto name = parse_object_url("s3://photos/a");
  const auto sent = access.address("GET", name, "");
  CHECK(access.handle_refusal(name, sent, {.status = 403, .code = "AccessDenied"}).what == remedy::kind::none);
  CHECK(access.handle_refusal(name, sent, {.status = 500, .code = "InternalError"}).what == remedy::kind::none);
  CHECK(calls == 1);
  CHECK(access.handle_refusal(name, sent, {.status = 403, .code = "ExpiredToken"}).what == remedy::kind::at_once);
  const auto next = access.address("GET", name, "");
  CHECK(next.keys.access_key_id == "AKID-2");
  CHECK(access.handle_refusal(name, next, {.status = 403, .code = "SignatureDoesNotMatch"}).what ==
        remedy::kind::later);
  CHECK(calls == 2);
  world.now += 1;
  CHECK(access.handle_refusal(name, next, {.status = 403, .code = "InvalidAccessKeyId"}).what == remedy::kind::at_once);
  CHECK(calls == 3);
  s3_access nobody({.anonymous = true}, world.env());
  CHECK(nobody.handle_refusal(name, nobody.address("GET", name, ""), {.status = 403}).what == remedy::kind::none);
}

TEST_CASE("a profile that is half-written at the start is read again") {
  const std::string complete = "[default]\naws_access_key_id = AKID-P\naws_secret_access_key = SECRET-P\n";
  const auto name = parse_object_url("s3://photos/a");
  for (const std::size_t bytes : {0, 4, 20, 35, 60}) {
    CAPTURE(bytes);
    fake_world world;
    std::string& file = world.files["/fake/.aws/credentials"];
    file = complete.substr(0, bytes);
    s3_access access({}, world.env());
    CHECK_THROWS_AS(access.address("GET", name, ""), mr::detail::credentials_pending);
    file = "[default]\nregion = eu-west-7\n" + complete.substr(10);
    world.now += 1;
    const auto sent = access.address("GET", name, "");
    CHECK(sent.keys.access_key_id == "AKID-P");
    CHECK(sent.region == "eu-west-7");
  }
}

TEST_CASE("a profile that is replaced during a run leads to its keys, and its region stays") {
  const auto text = [](const std::string& key) {
    return "[default]\nregion = eu-west-7\naws_access_key_id = " + key + "\naws_secret_access_key = SECRET-" + key +
           "\n";
  };
  const auto name = parse_object_url("s3://photos/a");
  const mr::detail::store_answer refusal{.status = 403, .code = "SignatureDoesNotMatch"};
  for (std::size_t bytes = 0; bytes < text("NEW").size(); ++bytes) {
    CAPTURE(bytes);
    fake_world world;
    std::string& file = world.files["/fake/.aws/credentials"];
    file = text("OLD");
    s3_access access({}, world.env());
    const auto old = access.address("GET", name, "");
    access.accepted(old);
    file = text("NEW").substr(0, bytes);
    auto next = access.handle_refusal(name, old, refusal);
    if (next.what == remedy::kind::at_once)
      next = access.handle_refusal(name, access.address("GET", name, ""), refusal);
    CHECK(next.what == remedy::kind::later);
    file = text("NEW");
    world.now += 2;
    const auto sent = access.address("GET", name, "");
    CHECK(sent.keys.secret_access_key == "SECRET-NEW");
    CHECK(sent.region == "eu-west-7");
  }
}

namespace {

const auto name = parse_object_url("gs://photos/a b.tar");
const std::string metadata = "GET http://169.254.169.254/computeMetadata/v1/instance/service-accounts/default/token";

std::string authorization(gs_access& access) {
  return std::string(mr::detail::header_value(access.address("GET", name, "").headers, "Authorization"));
}

std::string failure(fake_world& world, const mr::gs_options& options = {}) {
  try {
    gs_access access(options, world.env());
    world.address(access, name);
  } catch (const mr::error& e) {
    CHECK(std::string(e.what()).find("hush") == std::string::npos);
    return e.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("Google's storage accepts a bearer token of the user") {
  fake_world world;
  int requests = 0;
  gs_access access({.bearer_token = [&] { return "token-" + std::to_string(++requests); }}, world.env());
  const auto sent = access.address("GET", name, "list-type=2");
  CHECK(sent.url == "https://storage.googleapis.com/photos/a%20b.tar?list-type=2");
  CHECK(sent.headers == mr::detail::header_list{{"Authorization", "Bearer token-1"}});
  CHECK(authorization(access) == "Bearer token-1");
  world.now += 60;
  CHECK(authorization(access) == "Bearer token-2");
  CHECK(access.handle_refusal(name, access.address("GET", name, ""), {.status = 401}).what ==
        mr::detail::remedy::kind::at_once);
  CHECK(authorization(access) == "Bearer token-3");
  CHECK(access.handle_refusal(name, access.address("GET", name, ""), {.status = 403, .code = "AccessDenied"}).what ==
        mr::detail::remedy::kind::none);
  CHECK(has(failure(world, {.bearer_token = [] { return std::string("hush\r\nX: y"); }}), "an invalid bearer token"));
  CHECK(has(failure(world, {.bearer_token = [] { return std::string(); }}), "an invalid bearer token"));
}

TEST_CASE("Google's storage accepts Amazon's signatures with an HMAC key") {
  fake_world world;
  gs_access access({.hmac_key = [] {
                     return mr::s3_credentials{.access_key_id = "GOOG1E", .secret_access_key = "hush"};
                   }},
                   world.env());
  CHECK(authorization(access).starts_with("AWS4-HMAC-SHA256 Credential=GOOG1E/20231114/auto/s3/aws4_request, "));
  world.variables["GS_ACCESS_KEY_ID"] = "GOOG2E";
  world.variables["GS_SECRET_ACCESS_KEY"] = "hush";
  gs_access other({}, world.env());
  CHECK(has(authorization(other), "Credential=GOOG2E/"));
  world.variables["GOOGLE_OAUTH_ACCESS_TOKEN"] = "token";
  gs_access third({}, world.env());
  CHECK(authorization(third) == "Bearer token");
  CHECK(world.sent.empty());
}

TEST_CASE("a Google instance issues a token, and a new one before it expires") {
  fake_world world;
  CHECK(has(failure(world), "credentials for gs:// names are missing"));
  REQUIRE(world.sent.size() == 1);
  CHECK(world.sent[0].seconds == 1);
  CHECK(world.sent[0].attempts == 1);
  CHECK(mr::detail::header_value(world.sent[0].headers, "Metadata-Flavor") == "Google");
  auto& answer = world.answers[metadata];
  answer = {.status = 200, .headers = {{"metadata-flavor", "Google"}},
            .body = R"({"access_token": "one", "expires_in": 3600, "token_type": "Bearer"})"};
  gs_access access({}, world.env());
  CHECK(authorization(access) == "Bearer one");
  answer.body = R"({"access_token": "two", "expires_in": 3600, "token_type": "Bearer"})";
  world.now += 3'299;
  CHECK(authorization(access) == "Bearer one");
  world.now += 1;
  CHECK(authorization(access) == "Bearer two");

  for (const char* wrong : {"hush", "{}", R"({"access_token": "hush"})", R"({"access_token": "", "expires_in": 1})"}) {
    CAPTURE(wrong);
    answer.body = wrong;
    CHECK(has(failure(world), "the instance's metadata returned an answer without a valid access token"));
  }
  answer.headers.clear();   // of another cloud
  CHECK(has(failure(world), "credentials for gs:// names are missing"));
}

TEST_CASE("an emulator and public buckets get no keys") {
  fake_world world;
  world.variables["STORAGE_EMULATOR_HOST"] = "localhost:9023";
  gs_access emulated({}, world.env());
  CHECK(emulated.address("GET", name, "").url == "http://localhost:9023/photos/a%20b.tar");
  CHECK(emulated.address("GET", name, "").headers.empty());
  gs_access anonymous({.endpoint = "http://127.0.0.1:1/", .anonymous = true}, world.env());
  CHECK(anonymous.address("GET", name, "").url == "http://127.0.0.1:1/photos/a%20b.tar");
  CHECK(anonymous.address("GET", name, "").headers.empty());
  CHECK(world.sent.empty());
}

TEST_CASE("Google tokens that expire during a run, and half-written key files, are requested again") {
  fake_world world;
  std::string token = "one";
  gs_access access({.bearer_token = [&] {
                     if (token.empty()) throw std::runtime_error("the token is being renewed");
                     return token;
                   }},
                   world.env());
  const auto first = access.address("GET", name, "");
  access.accepted(first);
  token = "";
  using kind = mr::detail::remedy::kind;
  CHECK(access.handle_refusal(name, first, {.status = 401}).what == kind::later);
  world.now += 70;   // longer than a user's token counts as valid
  CHECK_THROWS_AS(access.address("GET", name, ""), mr::detail::credentials_pending);
  token = "two";
  world.now += 16;
  CHECK(authorization(access) == "Bearer two");

  world.variables["GOOGLE_APPLICATION_CREDENTIALS"] = "/keys.json";
  const std::string complete = R"({"type": "authorized_user", "client_id": "i", "client_secret": "s", )"
                               R"("refresh_token": "r"})";
  world.answers["POST https://oauth2.googleapis.com/token"] = {
      .status = 200, .body = R"({"access_token": "three", "expires_in": 3600})"};
  for (std::size_t bytes = 0; bytes < complete.size(); ++bytes) {
    CAPTURE(bytes);
    world.files["/keys.json"] = complete.substr(0, bytes);
    gs_access by_file({}, world.env());
    CHECK_THROWS_AS(by_file.address("GET", name, ""), mr::detail::credentials_pending);
    world.files["/keys.json"] = complete;
    world.now += 1;
    CHECK(authorization(by_file) == "Bearer three");
  }
}
