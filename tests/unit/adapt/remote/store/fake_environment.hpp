// A world that a test controls completely: variables, files, answers, the time.
//
//   fake_world world;
//   world.variables["AWS_REGION"] = "eu-west-1";
//   world.answers["GET http://169.254.170.2/role"] = {.status = 200, .body = "{}"};
//   mr::detail::s3_access access({}, world.around());
//
// A request without an answer fails with an io_error.
#pragma once

#include <millrace/adapt/remote/store/object_access.hpp>
#include <millrace/adapt/remote/store/key_environment.hpp>
#include <millrace/base/error.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

struct fake_world {
  std::map<std::string, std::string> variables{{"HOME", "/fake"}}, files{};
  std::map<std::string, millrace::detail::small_answer> answers{};
  std::vector<millrace::detail::small_request> sent{};
  std::vector<double> slept{};
  std::int64_t now = 1'700'000'000;

  millrace::detail::key_environment env() {
    return {.variable = [this](const char* name) {
              const auto variable = variables.find(name);
              return variable == variables.end() ? std::string() : variable->second;
            },
            .read_file = [this](const std::string& path) -> std::optional<std::string> {
              const auto file = files.find(path);
              return file == files.end() ? std::nullopt : std::optional(file->second);
            },
            .fetch = [this](const millrace::detail::small_request& request) {
              sent.push_back(request);
              const auto answer = answers.find(request.method + " " + request.url);
              if (answer == answers.end()) throw millrace::io_error("nobody answers", "Try again");
              return answer->second;
            },
            .now_seconds = [this] { return now; },
            .sleep = [this](double seconds) {
              slept.push_back(seconds);
              now += static_cast<std::int64_t>(seconds);
            }};
  }

  /// Addresses a request, and waits while keys are being requested.
  millrace::detail::addressed_request address(millrace::detail::object_access& access,
                                              const millrace::detail::object_url& name) {
    for (;;) {
      try {
        return access.address("GET", name, "");
      } catch (const millrace::detail::credentials_pending& e) {
        now += static_cast<std::int64_t>(e.pause_seconds);
      }
    }
  }
};
