// Signatures of requests (version 4), and key files of Google, which sign tokens.
#include "fake_environment.hpp"

#include <millrace/adapt/remote/store/gs_access.hpp>
#include <millrace/adapt/remote/store/signature_v4.hpp>
#include <millrace/adapt/remote/store/uri_encoding.hpp>
#include <millrace/adapt/remote/store/utc_time.hpp>
#include <millrace/base/json_writer.hpp>

#include <doctest/doctest.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <string>

namespace mr = millrace;
using mr::detail::header_list;
using mr::detail::google_key_file;

namespace {

const std::string empty_hash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

std::string authorization(const mr::detail::signature_v4& signature, const mr::detail::signable_request& request,
                          std::int64_t at) {
  return std::string(mr::detail::header_value(signature.headers(request, at), "authorization"));
}

/// The signature of a request of Amazon's "Signature Version 4 test suite" (aws-c-auth, tests/aws-signing-test-suite).
std::string sign_suite(const char* method, const std::string& target, const header_list& headers = {},
                     const char* token = "") {
  const mr::detail::signature_v4 signature{
      .credentials = {.access_key_id = "AKIDEXAMPLE",
                      .secret_access_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                      .session_token = token},
      .region = "us-east-1",
      .service = "service",
      .payload_hash = empty_hash,
      .sends_payload_hash = false};
  const std::string url = "https://example.amazonaws.com" + target;
  const std::string text = authorization(signature, {.method = method, .url = url, .headers = headers}, 1'440'938'160);
  CHECK(text.starts_with("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "));
  return text.substr(text.find("Signature=") + 10);
}

/// One of the examples of the Amazon S3 API Reference.
std::string sign_s3(const char* method, const std::string& target, const header_list& headers = {},
                  const std::string& hash = empty_hash) {
  const mr::detail::signature_v4 signature{
      .credentials = {.access_key_id = "AKIAIOSFODNN7EXAMPLE",
                      .secret_access_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"},
      .region = "us-east-1",
      .payload_hash = hash};
  const std::string url = "https://examplebucket.s3.amazonaws.com" + target;
  const std::string text = authorization(signature, {.method = method, .url = url, .headers = headers}, 1'369'353'600);
  return text.substr(text.find("SignedHeaders="));
}

}  // namespace

TEST_CASE("signatures are those of Amazon's test suite") {
  CHECK(sign_suite("GET", "/") == "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
  CHECK(sign_suite("GET", "") == sign_suite("GET", "/"));
  CHECK(sign_suite("GET", "/?Param2=value2&Param1=value1") ==
        "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");
  CHECK(sign_suite("GET", "/?Param1=value1") == "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb");
  CHECK(sign_suite("POST", "/?Param1=value1") == "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11");
  CHECK(sign_suite("GET", "/?Param-3=Value3&Param=Value2&%E1%88%B4=Value1") ==
        "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac");
  const std::string unreserved = "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  CHECK(sign_suite("GET", "/?" + unreserved + "=" + unreserved) ==
        "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197");
}

TEST_CASE("paths are encoded once and never normalized") {
  const auto path = [](const char* text) {
    return sign_suite("GET", mr::detail::uri_encoded(text, mr::detail::slash::unchanged));
  };
  CHECK(path("/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") ==
        "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f");
  CHECK(path("/\xe1\x88\xb4") == "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85");
  CHECK(path("/example space/") == "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741");
  CHECK(path("//") == "c88bcd3d312d75078c0cd961d6deae3f4c754924b01669efcfcb439fd5e5b76e");
  CHECK(path("//example//") == "87cca117541a147f6df867677d98a7d80dff226d2bfca9e4ffa899665623c7e5");
  CHECK(path("/example/..") == "eca7ead57bb5aa5c8e28007acd4ff04e1ff9a0ff3b237ec1554a184887ff9282");
}

TEST_CASE("headers are trimmed, joined and sorted") {
  CHECK(sign_suite("GET", "/", {{"My-Header1", "value2"}, {"My-Header1", "value2"}, {"My-Header1", "value1"}}) ==
        "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea");
  CHECK(sign_suite("GET", "/", {{"My-Header1", "value1\n  value2\n     value3"}}) ==
        "cfd34249e4b1c8d6b91ef74165d41a32e5fab3306300901bb65a51a73575eefd");
  CHECK(sign_suite("GET", "/", {{"My-Header1", " value1"}, {"My-Header2", " \"a   b   c\" "}}) ==
        "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736");
}

TEST_CASE("a session token is signed") {
  CHECK(sign_suite("GET", "/", {}, "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267") ==
        "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8");
  CHECK(sign_suite("POST", "/", {},
                 "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfp"
                 "SPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQ"
                 "DYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+s"
                 "cqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==") ==
        "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead");
}

TEST_CASE("signatures are those of the S3 API Reference") {
  CHECK(sign_s3("GET", "/test.txt", {{"Range", "bytes=0-9"}}) ==
        "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
        "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  CHECK(sign_s3("PUT", "/test%24file.text",
              {{"Date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
              mr::detail::signature_hex(mr::detail::sha256("Welcome to Amazon S3."))) ==
        "SignedHeaders=date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class, "
        "Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
  CHECK(sign_s3("GET", "/?lifecycle") ==
        "SignedHeaders=host;x-amz-content-sha256;x-amz-date, "
        "Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  CHECK(sign_s3("GET", "/?max-keys=2&prefix=J") ==
        "SignedHeaders=host;x-amz-content-sha256;x-amz-date, "
        "Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST_CASE("the headers say that the body is not signed") {
  const mr::detail::signature_v4 signature{.credentials = {.access_key_id = "id", .secret_access_key = "secret"},
                                           .region = "eu-west-1"};
  const header_list headers = signature.headers({.url = "http://127.0.0.1:9000/bucket/a"}, 0);
  CHECK(mr::detail::header_value(headers, "X-Amz-Content-SHA256") == "UNSIGNED-PAYLOAD");
  CHECK(mr::detail::header_value(headers, "x-amz-date") == "19700101T000000Z");
  CHECK(mr::detail::header_value(headers, "x-amz-security-token").empty());
  CHECK(headers.size() == 3);
}

TEST_CASE("the host is signed as it is sent: without the scheme's own port") {
  using parts = mr::detail::url_parts;
  CHECK(parts("https://a.example:443/x").host_header() == "a.example");
  CHECK(parts("http://a.example:80/x").host_header() == "a.example");
  CHECK(parts("http://a.example:443").host_header() == "a.example:443");
  CHECK(parts("http://[::1]:9000/b/k?x=/y#z").host_header() == "[::1]:9000");
  CHECK(parts("http://[::1]:9000/b/k?x=/y#z").path == "/b/k");
  CHECK(parts("http://[::1]:9000/b/k?x=/y#z").query == "x=/y");
}

TEST_CASE("SHA-256 and HMAC are those of FIPS 180-4 and RFC 4231") {
  CHECK(mr::detail::signature_hex(mr::detail::sha256("abc")) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(mr::detail::signature_hex(mr::detail::hmac_sha256("Jefe", "what do ya want for nothing?")) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(mr::detail::signature_hex(mr::detail::hmac_sha256({}, {})) ==
        "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST_CASE("percent encoding is reversible") {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  for (const auto what : {mr::detail::slash::unchanged, mr::detail::slash::encoded})
    CHECK(mr::detail::uri_decoded(mr::detail::uri_encoded(all, what)) == all);
  CHECK(mr::detail::uri_encoded("a b/c=1+~", mr::detail::slash::unchanged) == "a%20b/c%3D1%2B~");
  CHECK(mr::detail::uri_encoded("a/b", mr::detail::slash::encoded) == "a%2Fb");
  CHECK(mr::detail::uri_decoded("a+b%2b") == "a+b+");
  CHECK(mr::detail::uri_decoded("a+b%2b", mr::detail::plus::blank) == "a b+");
  for (const char* wrong : {"%", "%1", "%g0", "%0g", "a%2"}) CHECK(!mr::detail::uri_decoded(wrong));
}

TEST_CASE("times are read and written") {
  using mr::detail::http_date_seconds, mr::detail::utc_seconds, mr::detail::basic_utc;
  CHECK(basic_utc(1'440'938'160) == "20150830T123600Z");
  CHECK(utc_seconds("2015-08-30T12:36:00Z") == 1'440'938'160);
  CHECK(utc_seconds("2015-08-30T12:36:00.123456Z") == 1'440'938'160);
  CHECK(utc_seconds("2015-08-30T14:36:00+02:00") == 1'440'938'160);
  CHECK(utc_seconds("2015-08-30T07:06:00-05:30") == 1'440'938'160);
  CHECK(http_date_seconds("Sun, 30 Aug 2015 12:36:00 GMT") == 1'440'938'160);
  for (const char* wrong : {"", "2015", "2015-13-30T12:36:00Z", "2015-08-30T12:36:00", "2015-08-30 12:36:00Z",
                            "2015-08-30T12:36:00.Z", "2015-08-30T24:36:00Z", "2015-08-30T12:36:00Zx"})
    CHECK_MESSAGE(!utc_seconds(wrong), wrong);
  for (const char* wrong : {"", "Sun, 30 Aug 2015 12:36:00", "Sun, 30 Xxx 2015 12:36:00 GMT", "30 Aug 2015"})
    CHECK_MESSAGE(!http_date_seconds(wrong), wrong);
  // Leap days, and the ends of months and centuries.
  for (std::int64_t t = -5'000'000'000; t < 8'000'000'000; t += 86'399'123)
    CHECK(utc_seconds(basic_utc(t < 0 ? 0 : t)) == (t < 0 ? 0 : t));
  for (std::int64_t day = 0; day < 150'000; ++day) {
    const auto fields = mr::detail::utc_fields::of(day * 86'400 - 60'000 * std::int64_t{86'400});
    if (fields.seconds() != (day - 60'000) * 86'400 || !fields.in_range()) FAIL(day);
  }
  CHECK(basic_utc(951'782'400) == "20000229T000000Z");
}

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
