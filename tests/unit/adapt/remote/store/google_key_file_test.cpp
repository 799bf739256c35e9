#include <millrace/adapt/remote/store/google_key_file.hpp>
#include <millrace/adapt/remote/store/gs_access.hpp>
#include <millrace/base/json_writer.hpp>

#include "fake_environment.hpp"

#include <doctest/doctest.h>

#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <string>

namespace mr = millrace;
using mr::detail::google_key_file;

namespace {

const std::string token_url = "https://oauth2.googleapis.com/token";
const mr::detail::small_answer token{
    .status = 200, .body = R"({"access_token": "the-token", "expires_in": 3599, "token_type": "Bearer"})"};

std::string failure(fake_world& world) {
  const auto env = world.env();
  try {
    google_key_file(env).token();
  } catch (const mr::error& e) {
    for (const char* secret : {"SECRET", "PRIVATE KEY", "the-token"})
      CHECK(std::string(e.what()).find(secret) == std::string::npos);
    return e.what();
  }
  return "none";
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

std::string bytes_of_base64(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string bytes;
  unsigned bits = 0, count = 0;
  for (const char c : text) {
    bits = bits << 6 | static_cast<unsigned>(digits.find(c));
    count += 6;
    if (count >= 8) bytes += static_cast<char>(bits >> (count -= 8) & 255);
  }
  return bytes;
}

}  // namespace

TEST_CASE("a user's key file is exchanged for a token") {
  fake_world world;
  const auto env = world.env();
  CHECK(!google_key_file(env).token());
  const std::string usual = "/fake/.config/gcloud/application_default_credentials.json";
  world.files[usual] = R"({"account": "", "client_id": "id.apps", "client_secret": "SECRET&1", "quota": {"type": "x"},
                           "refresh_token": "1//SECRET", "type": "authorized_user"})";
  world.answers["POST " + token_url] = token;
  const auto token = google_key_file(env).token();
  REQUIRE(token);
  CHECK(token->keys.session_token == "the-token");
  CHECK(token->keys.expires_seconds == world.now + 3'599);
  CHECK(token->origin == "the key file " + usual);
  CHECK(world.sent.back().body == "grant_type=refresh_token&client_id=id.apps&client_secret=SECRET%261"
                                  "&refresh_token=1%2F%2FSECRET");
  mr::detail::gs_access access({}, env);
  CHECK(mr::detail::header_value(access.address("GET", mr::detail::parse_object_url("gs://abc/k"), "").headers,
                                 "Authorization") == "Bearer the-token");

  world.answers["POST " + token_url] = {.status = 400,
                                        .body = R"({"error": "invalid_grant", "error_description": "SECRET"})"};
  CHECK(has(failure(world), "Google's token server returned no token: got status 400 invalid_grant"));
  world.answers["POST " + token_url] = {.status = 502, .body = "<html>SECRET"};
  CHECK(has(failure(world), "of status 502, is not valid JSON"));
  for (const char* wrong : {R"({"access_token": "the-token"})", R"({"expires_in": 1})",
                            R"({"access_token": "the-token\n", "expires_in": 1})"}) {
    world.answers["POST " + token_url] = {.status = 200, .body = wrong};
    CHECK(has(failure(world), "Google's token server returned no token"));
  }
}

TEST_CASE("a service account signs for its token") {
  EVP_PKEY* const key = EVP_RSA_gen(2048);
  REQUIRE(key);
  BIO* const bio = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  char* pem = nullptr;
  const long size = BIO_get_mem_data(bio, &pem);
  std::string quoted;
  mr::detail::append_json_string(quoted, std::string(pem, static_cast<std::size_t>(size)));
  BIO_free(bio);

  fake_world world;
  world.variables["GOOGLE_APPLICATION_CREDENTIALS"] = "/etc/key.json";
  CHECK(has(failure(world), "the key file /etc/key.json cannot be read"));
  world.files["/etc/key.json"] = R"({"type": "service_account", "client_email": "me@x.iam", "private_key_id": "k1",
      "token_uri": "https://oauth2.googleapis.com/token", "private_key": )" + quoted + "}";
  world.answers["POST " + token_url] = token;
  const auto env = world.env();
  CHECK(google_key_file(env).token()->keys.session_token == "the-token");
  const std::string body = world.sent.back().body, mark = "&assertion=";
  CHECK(body.starts_with("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion="));
  const std::string assertion = body.substr(body.find(mark) + mark.size());
  const std::size_t first = assertion.find('.'), last = assertion.rfind('.');
  CHECK(bytes_of_base64(assertion.substr(0, first)) == R"({"alg":"RS256","typ":"JWT","kid":"k1"})");
  CHECK(bytes_of_base64(assertion.substr(first + 1, last - first - 1)) ==
        R"({"iss":"me@x.iam","scope":"https://www.googleapis.com/auth/devstorage.read_only",)"
        R"("aud":"https://oauth2.googleapis.com/token","iat":1700000000,"exp":1700003600})");
  const std::string signature = bytes_of_base64(assertion.substr(last + 1));
  EVP_MD_CTX* const context = EVP_MD_CTX_new();
  EVP_DigestVerifyInit(context, nullptr, EVP_sha256(), nullptr, key);
  CHECK(EVP_DigestVerify(context, reinterpret_cast<const unsigned char*>(signature.data()), signature.size(),
                         reinterpret_cast<const unsigned char*>(assertion.data()), last) == 1);
  EVP_MD_CTX_free(context);
  EVP_PKEY_free(key);

  world.files["/etc/key.json"] = R"({"type": "service_account", "private_key": "SECRET"})";
  CHECK(has(failure(world), "the private_key of /etc/key.json cannot be read"));
  world.files["/etc/key.json"] = R"({"type": "service_account", "token_uri": "http://evil.example/"})";
  CHECK(has(failure(world), "the token_uri of /etc/key.json is wrong"));
  world.files["/etc/key.json"] = R"({"type": "external_account"})";
  CHECK(has(failure(world), "got \"external_account\", expected authorized_user or service_account"));
  world.files["/etc/key.json"] = "SECRET";
  CHECK(has(failure(world), "the key file /etc/key.json is not valid JSON"));
}

TEST_CASE("base64 without padding is that of RFC 4648") {
  CHECK(mr::detail::base64_url("").empty());
  CHECK(mr::detail::base64_url("f") == "Zg");
  CHECK(mr::detail::base64_url("fo") == "Zm8");
  CHECK(mr::detail::base64_url("foo") == "Zm9v");
  CHECK(mr::detail::base64_url("foobar") == "Zm9vYmFy");
  CHECK(mr::detail::base64_url("\xfb\xff") == "-_8");
}
