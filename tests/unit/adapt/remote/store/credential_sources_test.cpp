#include <millrace/adapt/remote/store/credential_sources.hpp>

#include "fake_environment.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>

namespace mr = millrace;
using mr::detail::credential_sources;
using mr::detail::provided_keys;
using mr::detail::signing_keys;

namespace {

std::optional<provided_keys> find(fake_world& world, const std::string& profile = "", const std::string& region = "") {
  const auto env = world.env();
  return credential_sources(env, {.profile = profile, .region = region}).find();
}

/// The error of the search for keys, which must contain no secret.
std::string failure(fake_world& world, const std::string& profile = "") {
  try {
    find(world, profile);
  } catch (const mr::error& e) {
    const std::string text = e.what();
    for (const char* secret : {"SECRET", "TOKEN-", "AKID"}) CHECK_MESSAGE(text.find(secret) == std::string::npos, text);
    return text;
  }
  return "none";
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

const std::string agent = "http://169.254.170.2", metadata = "http://169.254.169.254/latest/";
const std::string keys_json = R"({"Code": "Success", "AccessKeyId": "AKID-J", "SecretAccessKey": "SECRET-J",
  "Token": "TOKEN-J", "Expiration": "2023-11-14T23:13:20Z", "Type": "AWS-HMAC"})";
const signing_keys json_keys{.access_key_id = "AKID-J", .secret_access_key = "SECRET-J", .session_token = "TOKEN-J",
                             .expires_seconds = 1'700'003'600};

void give_instance(fake_world& world) {
  world.answers["PUT " + metadata + "api/token"] = {.status = 200, .body = "TOKEN-M"};
  world.answers["GET " + metadata + "meta-data/iam/security-credentials/"] = {.status = 200, .body = "my-role\n"};
  world.answers["GET " + metadata + "meta-data/iam/security-credentials/my-role"] = {.status = 200, .body = keys_json};
}

}  // namespace

TEST_CASE("keys of the environment") {
  fake_world world;
  world.variables["AWS_ACCESS_KEY_ID"] = "AKID-E";
  CHECK(has(failure(world), "the environment has a key id without its secret access key"));
  world.variables["AWS_SECRET_ACCESS_KEY"] = "SECRET-E";
  auto keys = find(world);
  REQUIRE(keys);
  CHECK(keys->keys == signing_keys{.access_key_id = "AKID-E", .secret_access_key = "SECRET-E"});
  CHECK(keys->origin == "the environment");
  world.variables["AWS_SESSION_TOKEN"] = "TOKEN-E";
  CHECK(find(world)->keys.session_token == "TOKEN-E");
  world.variables.erase("AWS_ACCESS_KEY_ID");
  CHECK(has(failure(world), "the environment has a secret access key without its id"));
  CHECK(world.sent.empty());
}

TEST_CASE("keys of profile files") {
  fake_world world;
  world.variables["AWS_EC2_METADATA_DISABLED"] = "true";
  CHECK(!find(world));
  world.files["/fake/.aws/credentials"] =
      "[default]\naws_access_key_id = AKID-D\naws_secret_access_key = SECRET-D\n"
      "[train]\naws_access_key_id = AKID-T\naws_secret_access_key = SECRET-T\naws_session_token = TOKEN-T\n"
      "[half]\naws_access_key_id = AKID-H\n";
  world.files["/fake/.aws/config"] =
      "[default]\nregion = eu-west-1\n[profile train]\nregion = eu-west-2\n"
      "[profile inside]\naws_access_key_id = AKID-I\naws_secret_access_key = SECRET-I\n"
      "[profile sso]\nsso_session = mine\n[profile elsewhere]\nregion = eu-west-3\n";
  CHECK(find(world)->keys.access_key_id == "AKID-D");
  CHECK(find(world)->origin == "the profile \"default\"");
  CHECK(find(world, "train")->keys.session_token == "TOKEN-T");
  CHECK(find(world, "inside")->keys.secret_access_key == "SECRET-I");
  CHECK(has(failure(world, "half"), "a key id without its secret access key"));
  CHECK(has(failure(world, "none"), "the profile \"none\" is unknown"));
  CHECK(has(failure(world, "none"), "/fake/.aws/credentials or /fake/.aws/config"));
  CHECK(has(failure(world, "sso"), "the profile \"sso\" contains no access keys, but sso_session"));
  CHECK(has(failure(world, "sso"), "aws configure export-credentials"));
  CHECK(!find(world, "elsewhere"));
  const auto env = world.env();
  CHECK(credential_sources(env, {.profile = "train"}).profile_value("region") == "eu-west-2");
  CHECK(credential_sources(env, {}).profile_value("region") == "eu-west-1");

  SUBCASE("the environment precedes its profile, but follows a profile that the program names") {
    world.variables["AWS_PROFILE"] = "train";
    CHECK(find(world)->keys.access_key_id == "AKID-T");
    world.variables["AWS_ACCESS_KEY_ID"] = "AKID-E";
    world.variables["AWS_SECRET_ACCESS_KEY"] = "SECRET-E";
    CHECK(find(world)->keys.access_key_id == "AKID-E");
    CHECK(find(world, "inside")->keys.access_key_id == "AKID-I");
  }
  SUBCASE("the files may be in other places") {
    world.variables["AWS_SHARED_CREDENTIALS_FILE"] = "/etc/keys";
    world.variables["AWS_CONFIG_FILE"] = "/etc/config";
    CHECK(!find(world));
    world.files["/etc/keys"] = "[default]\naws_access_key_id = AKID-X\naws_secret_access_key = SECRET-X\n";
    CHECK(find(world)->keys.access_key_id == "AKID-X");
    world.files["/etc/config"] = "nonsense SECRET\n";
    CHECK(has(failure(world), "line 1 of /etc/config is neither [SECTION] nor NAME = VALUE"));
  }
  SUBCASE("a default profile without keys does not prevent the search of later sources") {
    world.files["/fake/.aws/credentials"] = "";
    world.files["/fake/.aws/config"] = "[default]\nsso_session = mine\n";
    world.variables["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] = "/role";
    world.answers["GET " + agent + "/role"] = {.status = 200, .body = keys_json};
    CHECK(find(world)->keys == json_keys);
  }
  CHECK(world.sent.size() <= 1);
}

TEST_CASE("keys of a web identity") {
  fake_world world;
  world.variables["AWS_EC2_METADATA_DISABLED"] = "true";
  world.variables["AWS_WEB_IDENTITY_TOKEN_FILE"] = "/var/token";
  CHECK(!find(world));
  world.variables["AWS_ROLE_ARN"] = "arn:aws:iam::123456789012:role/train";
  CHECK(has(failure(world), "the token file /var/token cannot be read, or it is empty"));
  world.files["/var/token"] = "TOKEN-W==\n";
  const std::string good =
      "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">"
      "<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>AKID-W</AccessKeyId>"
      "<SecretAccessKey>SECRET-W/&amp;</SecretAccessKey><SessionToken>TOKEN-S</SessionToken>"
      "<Expiration>2023-11-14T23:13:20Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult>"
      "</AssumeRoleWithWebIdentityResponse>";
  auto& answer = world.answers["POST https://sts.amazonaws.com/"];
  answer = {.status = 200, .body = good};
  const auto keys = find(world);
  REQUIRE(keys);
  CHECK(keys->keys == signing_keys{.access_key_id = "AKID-W", .secret_access_key = "SECRET-W/&",
                                    .session_token = "TOKEN-S", .expires_seconds = 1'700'003'600});
  CHECK(world.sent.back().body ==
        "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Ftrain"
        "&RoleSessionName=millrace-1700000000&WebIdentityToken=TOKEN-W%3D%3D");
  CHECK(mr::detail::header_value(world.sent.back().headers, "content-type") == "application/x-www-form-urlencoded");

  SUBCASE("STS is called in the region") {
    world.answers["POST https://sts.cn-north-1.amazonaws.com.cn/"] = {.status = 200, .body = good};
    CHECK(find(world, "", "cn-north-1"));
    world.answers["POST https://sts.eu-west-1.amazonaws.com/"] = {.status = 200, .body = good};
    CHECK(find(world, "", "eu-west-1"));
    world.variables["AWS_ENDPOINT_URL_STS"] = "http://127.0.0.1:5000";
    world.answers["POST http://127.0.0.1:5000/"] = {.status = 200, .body = good};
    world.variables["AWS_ROLE_SESSION_NAME"] = "mine";
    CHECK(find(world, "", "eu-west-1"));
    CHECK(has(world.sent.back().body, "&RoleSessionName=mine&"));
  }
  SUBCASE("an error of STS is reported with its code, without its message") {
    answer = {.status = 400, .body = "<ErrorResponse><Error><Code>ExpiredTokenException</Code>"
                                     "<Message>TOKEN-W== is expired</Message></Error></ErrorResponse>"};
    CHECK(has(failure(world),
              "the web identity returned no access keys: STS answered status 400, ExpiredTokenException"));
    answer = {.status = 502, .body = "SECRET <html>"};
    CHECK(has(failure(world), "STS answered status 502, text that is not XML"));
    answer = {.status = 200, .body = "<a><Credentials><AccessKeyId>AKID-W</AccessKeyId></Credentials></a>"};
    CHECK(has(failure(world), "its answer lacks a key id or its secret"));
    world.answers.clear();
    CHECK(has(failure(world), "nobody answers"));
  }
  SUBCASE("a profile may refer to them") {
    world.variables.erase("AWS_ROLE_ARN");
    world.files["/fake/.aws/config"] =
        "[profile web]\nrole_arn = arn:role\nweb_identity_token_file = /var/token\nrole_session_name = me\n";
    CHECK(find(world, "web")->keys.access_key_id == "AKID-W");
    CHECK(find(world, "web")->origin == "the profile \"web\"");
    CHECK(has(world.sent.back().body, "&RoleArn=arn%3Arole&RoleSessionName=me&"));
  }
}

TEST_CASE("keys of a role that a profile assumes") {
  fake_world world;
  world.variables["AWS_EC2_METADATA_DISABLED"] = "true";
  world.files["/fake/.aws/credentials"] =
      "[base]\naws_access_key_id = AKID-B\naws_secret_access_key = SECRET-B\naws_session_token = TOKEN-B\n"
      "[self]\naws_access_key_id = AKID-S\naws_secret_access_key = SECRET-S\n";
  world.files["/fake/.aws/config"] =
      "[profile train]\nrole_arn = arn:aws:iam::1:role/a\nsource_profile = base\nexternal_id = x y\n"
      "[profile self]\nrole_arn = arn:s\nsource_profile = self\nrole_session_name = me\n"
      "[profile chain]\nrole_arn = arn:c\nsource_profile = train\n"
      "[profile circle]\nrole_arn = arn:c\nsource_profile = circle2\n"
      "[profile circle2]\nrole_arn = arn:c\nsource_profile = circle\n"
      "[profile machine]\nrole_arn = arn:m\ncredential_source = EcsContainer\n"
      "[profile wrong]\nrole_arn = arn:m\ncredential_source = Sun\n"
      "[profile device]\nrole_arn = arn:m\nsource_profile = base\nmfa_serial = 1\n"
      "[profile lost]\nrole_arn = arn:m\nsource_profile = nobody\n"
      "[profile indirect]\nrole_arn = arn:m\nsource_profile = sso\n[profile sso]\nsso_session = mine\n";
  int calls = 0;
  auto env = world.env();
  env.fetch = [&, send = env.fetch](const mr::detail::small_request& request) {
    ++calls;
    world.answers["POST https://sts.eu-west-1.amazonaws.com/"] = {
        .status = 200,
        .body = "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>AKID-R" + std::to_string(calls) +
                "</AccessKeyId><SecretAccessKey>SECRET-R</SecretAccessKey><SessionToken>TOKEN-R</SessionToken>"
                "<Expiration>2023-11-14T23:13:20Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"};
    return send(request);
  };
  const auto of = [&](const char* profile) {
    return credential_sources(env, {.profile = profile, .region = "eu-west-1"}).find();
  };
  const auto header = [&](const char* name) {
    return std::string(mr::detail::header_value(world.sent.back().headers, name));
  };
  CHECK(of("train")->keys == signing_keys{.access_key_id = "AKID-R1", .secret_access_key = "SECRET-R",
                                          .session_token = "TOKEN-R", .expires_seconds = 1'700'003'600});
  CHECK(world.sent.back().body == "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fa"
                                  "&RoleSessionName=millrace-1700000000&ExternalId=x%20y");
  CHECK(header("authorization").starts_with(
      "AWS4-HMAC-SHA256 Credential=AKID-B/20231114/eu-west-1/sts/aws4_request, "
      "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, Signature="));
  CHECK(header("x-amz-security-token") == "TOKEN-B");
  CHECK(of("train")->origin == "the profile \"train\"");

  of("self");
  CHECK(has(header("authorization"), "Credential=AKID-S/"));
  CHECK(has(world.sent.back().body, "&RoleArn=arn%3As&RoleSessionName=me"));
  calls = 0;
  CHECK(of("chain")->keys.access_key_id == "AKID-R2");
  CHECK(has(header("authorization"), "Credential=AKID-R1/"));
  world.variables["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] = "/role";
  world.answers["GET " + agent + "/role"] = {.status = 200, .body = keys_json};
  of("machine");
  CHECK(has(header("authorization"), "Credential=AKID-J/"));
  CHECK(has(failure(world, "circle"), "the profiles form a cycle"));
  CHECK(has(failure(world, "wrong"), "the credential_source of the profile \"wrong\" is wrong: got Sun"));
  CHECK(has(failure(world, "device"), "mfa_serial"));
  CHECK(has(failure(world, "lost"),
            "needs access keys to assume its role: got none, expected them from the profile \"nobody\""));
  CHECK(has(failure(world, "indirect"), "the profile \"sso\" contains no access keys, but sso_session"));
  world.answers["POST https://sts.amazonaws.com/"] = {
      .status = 403,
      .body = "<ErrorResponse><Error><Code>AccessDenied</Code><Message>TOKEN-</Message></Error></ErrorResponse>"};
  CHECK(has(failure(world, "train"),
            "the profile \"train\" returned no access keys: STS answered status 403, AccessDenied"));
}

TEST_CASE("keys of a container") {
  fake_world world;
  world.variables["AWS_EC2_METADATA_DISABLED"] = "true";
  world.variables["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] = "/role?a=b";
  auto& answer = world.answers["GET " + agent + "/role?a=b"];
  answer = {.status = 200, .body = keys_json};
  CHECK(find(world)->keys == json_keys);
  CHECK(find(world)->origin == "the container's agent");
  CHECK(world.sent.back().headers.empty());

  world.variables["AWS_CONTAINER_AUTHORIZATION_TOKEN"] = "TOKEN-A";
  find(world);
  CHECK(mr::detail::header_value(world.sent.back().headers, "Authorization") == "TOKEN-A");
  world.variables["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = "/var/agent";
  CHECK(has(failure(world), "the token file /var/agent cannot be read"));
  world.files["/var/agent"] = "TOKEN-F\n";
  find(world);
  CHECK(mr::detail::header_value(world.sent.back().headers, "Authorization") == "TOKEN-F");
  world.files["/var/agent"] = "TOKEN-F\r\nX: y";
  CHECK(has(failure(world), "it has several lines"));
  world.files["/var/agent"] = "TOKEN-F";

  answer = {.status = 403, .body = "SECRET"};
  CHECK(has(failure(world), "the container's agent returned no access keys: got status 403, expected 200"));
  answer = {.status = 200, .body = "SECRET"};
  CHECK(has(failure(world), "its answer is not valid JSON"));
  answer = {.status = 200, .body = R"({"AccessKeyId": "AKID", "SecretAccessKey": "SECRET", "Expiration": "SECRET"})"};
  CHECK(has(failure(world), "its answer lacks a valid expiration time"));
  answer = {.status = 200, .body = R"({"AccessKeyId": "AKID-S", "SecretAccessKey": "SECRET-S"})"};
  CHECK(find(world)->keys.expires_seconds == signing_keys::never);
}

TEST_CASE("a container's agent is this machine, or speaks TLS") {
  fake_world world;
  world.variables["AWS_EC2_METADATA_DISABLED"] = "true";
  for (const char* good : {"https://agent.example/x", "http://127.0.0.1:8080/x", "http://localhost/x", "http://[::1]/x",
                           "http://169.254.170.23/v1/credentials", "http://[fd00:ec2::23]/v1/credentials"}) {
    CAPTURE(good);
    world.variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = good;
    world.answers["GET " + std::string(good)] = {.status = 200, .body = keys_json};
    CHECK(find(world)->keys == json_keys);
  }
  const std::size_t before = world.sent.size();
  for (const char* wrong : {"http://agent.example/x", "http://127.0.0.1.agent.example/x", "http://127.agent.example/x",
                            "http://127.0.0.1@agent.example/x", "ftp://127.0.0.1/x", "127.0.0.1/x",
                            "http://localhost.agent.example/x", "http://10.0.0.1/x"}) {
    CAPTURE(wrong);
    world.variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = wrong;
    CHECK(has(failure(world), "AWS_CONTAINER_CREDENTIALS_FULL_URI is wrong"));
  }
  CHECK(world.sent.size() == before);
}

TEST_CASE("keys of an instance") {
  fake_world world;
  CHECK(!find(world));
  REQUIRE(world.sent.size() == 1);   // one attempt of 1 s
  CHECK(world.sent[0].seconds == 1);
  CHECK(world.sent[0].attempts == 1);
  give_instance(world);
  CHECK(find(world)->keys == json_keys);
  CHECK(find(world)->origin == "the instance's metadata");
  CHECK(mr::detail::header_value(world.sent.back().headers, "x-aws-ec2-metadata-token") == "TOKEN-M");
  CHECK(mr::detail::header_value(world.sent[1].headers, "x-aws-ec2-metadata-token-ttl-seconds") == "21600");

  SUBCASE("an instance without a role has no keys") {
    world.answers["GET " + metadata + "meta-data/iam/security-credentials/"] = {.status = 404};
    CHECK(!find(world));
  }
  SUBCASE("a server that is not Amazon's has no keys") {
    world.answers["PUT " + metadata + "api/token"] = {.status = 404};
    CHECK(!find(world));
    world.answers["PUT " + metadata + "api/token"] = {.status = 200, .body = "<html>\n<body>"};
    CHECK(!find(world));
  }
  SUBCASE("metadata that fail after the token are an error") {
    world.answers["GET " + metadata + "meta-data/iam/security-credentials/"] = {.status = 500};
    CHECK(has(failure(world), "the instance's metadata returned no access keys: got status 500"));
    give_instance(world);
    world.answers["GET " + metadata + "meta-data/iam/security-credentials/my-role"] = {.status = 500};
    CHECK(has(failure(world), "the instance's metadata returned no access keys: got status 500"));
  }
  SUBCASE("no instance is asked if that is disabled") {
    const std::size_t before = world.sent.size();
    world.variables["AWS_EC2_METADATA_DISABLED"] = "TRUE";
    CHECK(!find(world));
    CHECK(world.sent.size() == before);
  }
  SUBCASE("the service may have another address") {
    world.variables["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = "http://[fd00:ec2::254]/";
    CHECK(!find(world));
    CHECK(world.sent.back().url == "http://[fd00:ec2::254]/latest/api/token");
  }
}

using mr::detail::profile_file;

TEST_CASE("a profile file has sections, values, comments and indented values") {
  const auto file = profile_file::parse(
      "# my keys\r\n"
      "[default]\r\n"
      "aws_access_key_id = AKID\r\n"
      "aws_secret_access_key=a/b+c=d==\r\n"
      "  \r\n"
      "; other\n"
      "[profile  \"two words\"]\n"
      "Region = eu-west-1 # near\n"
      "color = a#b;c\n"
      "s3 =\n"
      "  max_concurrent_requests = 20\n"
      "  continued\n"
      "output = json\n"
      "[services mine]\n"
      "s3 =\n"
      "\tendpoint_url = http://127.0.0.1:9000\n"
      "[default]\n"
      "region = us-west-2",
      "config");
  CHECK(file.value("default", "aws_access_key_id") == "AKID");
  CHECK(file.value("default", "aws_secret_access_key") == "a/b+c=d==");
  CHECK(file.value("default", "region") == "us-west-2");
  CHECK(file.value("profile two words", "region") == "eu-west-1");
  CHECK(file.value("profile two words", "color") == "a#b;c");
  CHECK(file.value("profile two words", "s3.max_concurrent_requests") == "20");
  CHECK(file.value("profile two words", "output") == "json");
  CHECK(file.value("services mine", "s3.endpoint_url") == "http://127.0.0.1:9000");
  CHECK(file.value("services mine", "endpoint_url").empty());
  CHECK(file.value("none", "region").empty());
  CHECK(file.has("services mine"));
  CHECK(!file.has("none"));
  CHECK(!profile_file::parse("", "config").has("default"));
}

TEST_CASE("a wrong line is named by its number, and not quoted") {
  for (const char* wrong : {"[default\n", "[a]\nSECRET\n", "x = SECRET\n", "[a]\n= SECRET\n", "[a]\n\n  SECRET\n"}) {
    CAPTURE(wrong);
    const std::string text = wrong, all = "# first\n" + text;
    const std::size_t line = all.find("SECRET") == std::string::npos ? 2 : static_cast<std::size_t>(
        1 + std::count(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.find("SECRET")), '\n'));
    try {
      profile_file::parse(all, "/fake/.aws/credentials");
      FAIL("accepted");
    } catch (const mr::setup_error& e) {
      CHECK(e.message().find("line " + std::to_string(line) + " of /fake/.aws/credentials") != std::string::npos);
      CHECK(std::string(e.what()).find("SECRET") == std::string::npos);
    }
  }
}
