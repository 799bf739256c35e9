// A world of which a test decides everything: variables, files, answers, the time.
//
//   fake_world world;
//   world.variables["AWS_REGION"] = "eu-west-1";
//   world.answers["GET http://169.254.170.2/role"] = {.status = 200, .body = "{}"};
//   mr::detail::s3_access access({}, world.around());
//
// A request that has no answer is one that nobody answers: an io_error.
#pragma once

#include <millrace/adapt/remote/store/object_access.hpp>
#include <millrace/adapt/remote/store/surroundings.hpp>
#include <millrace/base/error.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

struct fake_world {
  std::map<std::string, std::string> variables{{"HOME", "/made-up"}}, files{};
  std::map<std::string, millrace::detail::small_answer> answers{};
  std::vector<millrace::detail::small_request> sent{};
  std::vector<double> slept{};
  std::int64_t now = 1'700'000'000;

  millrace::detail::surroundings around() {
    return {.variable = [this](const char* name) {
              const auto found = variables.find(name);
              return found == variables.end() ? std::string() : found->second;
            },
            .read_file = [this](const std::string& path) -> std::optional<std::string> {
              const auto found = files.find(path);
              return found == files.end() ? std::nullopt : std::optional(found->second);
            },
            .fetch = [this](const millrace::detail::small_request& request) {
              sent.push_back(request);
              const auto found = answers.find(request.method + " " + request.url);
              if (found == answers.end()) throw millrace::io_error("nobody answers", "Try again");
              return found->second;
            },
            .now_seconds = [this] { return now; },
            .sleep = [this](double seconds) {
              slept.push_back(seconds);
              now += static_cast<std::int64_t>(seconds);
            }};
  }

  /// Addresses a request, and waits while keys are being looked for.
  millrace::detail::addressed_request address(millrace::detail::object_access& access,
                                              const millrace::detail::object_url& name) {
    for (;;) {
      try {
        return access.address("GET", name, "");
      } catch (const millrace::detail::keys_pending& e) {
        now += static_cast<std::int64_t>(e.pause_seconds);
      }
    }
  }
};
