#include <millrace/adapt/remote/store/gs_access.hpp>

#include "fake_environment.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

namespace mr = millrace;
using mr::detail::gs_access;
using mr::detail::parse_object_url;

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

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

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
  CHECK(has(failure(world), "keys for gs:// names are missing"));
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
    CHECK(has(failure(world), "the instance's metadata returned no token"));
  }
  answer.headers.clear();   // of another cloud
  CHECK(has(failure(world), "keys for gs:// names are missing"));
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
  CHECK_THROWS_AS(access.address("GET", name, ""), mr::detail::keys_pending);
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
    CHECK_THROWS_AS(by_file.address("GET", name, ""), mr::detail::keys_pending);
    world.files["/keys.json"] = complete;
    world.now += 1;
    CHECK(authorization(by_file) == "Bearer three");
  }
}
