// A program that runs one stage of the library while calls fail, as faults.py and shim.cpp specify.
//
//   subject data FOLDER                     # creates the input of the stages
//   subject list                            # lists the stages and the scenarios
//   subject run STAGE FOLDER OUT            # with faults, then again without faults in the same process
//
// It prints a line `row DIGEST` for each batch or record, `end ok` or `end KIND TEXT`, the result of the second run,
// and the numbers of remaining descriptors and threads of the library.
#include "subject.hpp"

#include <millrace/base/error.hpp>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <new>
#include <system_error>
#include <thread>

namespace mr = millrace;

namespace {

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

/// Threads of the library that still run after some time.
int threads_left() {
  int left = 0;
  for (int i = 0; i < 12'000 && (left = faults_threads ? faults_threads() : 0) > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return left;
}

struct result {
  std::string end{};
  delivered to{};
};

/// Returns the kind of the current exception.
std::string described() {
  try {
    throw;
  } catch (const mr::setup_error& e) {
    return std::string("setup_error ") + e.what();
  } catch (const mr::data_error& e) {
    return std::string("data_error ") + e.what();
  } catch (const mr::io_error& e) {
    return std::string("io_error ") + e.what();
  } catch (const mr::stage_error& e) {
    return std::string("stage_error ") + e.what();
  } catch (const mr::conservation_error& e) {
    return std::string("conservation_error ") + e.what();
  } catch (const std::bad_alloc& e) {
    return std::string("bad_alloc ") + e.what();
  } catch (const std::system_error& e) {
    return std::string("system_error ") + e.what();
  } catch (const std::exception& e) {
    return std::string("exception ") + e.what();
  } catch (...) {
    return "unknown ?";
  }
}

void run(const stage& what, const places& at, result& r, bool faulty) {
  if (faulty && faults_arm) faults_arm();
  try {
    what.run(at, r.to);
    if (faults_disarm) faults_disarm();
    r.end = "ok";
  } catch (...) {
    if (faults_disarm) faults_disarm();
    r.end = described();
  }
}

int run_twice(const std::string& name, const places& at) {
  for (const auto all : {flow_stages(), text_stages(), file_stages(), scenarios()})
    for (const stage& s : all) {
      if (name != s.name) continue;
      std::filesystem::create_directories(at.out + "/armed");
      std::filesystem::create_directories(at.out + "/again");
      result armed, again;
      const std::size_t before = open_descriptors();
      run(s, {at.data, at.out + "/armed"}, armed, true);
      const int threads = threads_left();
      const std::size_t left_open = open_descriptors() - before;
      run(s, {at.data, at.out + "/again"}, again, false);
      for (const std::uint64_t row : armed.to.rows())
        std::printf("row %016llx\n", static_cast<unsigned long long>(row));
      std::printf("end %s\n", armed.end.c_str());
      if (armed.to.told_lost > 0) std::printf("lost %llu\n", static_cast<unsigned long long>(armed.to.told_lost));
      if (left_open > 0) std::printf("descriptors %zu\n", left_open);
      if (threads > 0) std::printf("threads %d\n", threads);
      std::uint64_t digest = 0;
      for (const std::uint64_t row : again.to.rows()) digest = mr::detail::combine_keys(digest, row);
      std::printf("again %zu %016llx %s\n", again.to.rows().size(), static_cast<unsigned long long>(digest),
                  again.end.c_str());
      return 0;
    }
  std::fprintf(stderr, "subject: there is no stage %s\n", name.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "data" && argc == 3) {
    make_data(argv[2]);
    return 0;
  }
  if (what == "run" && argc == 5) return run_twice(argv[2], {argv[3], argv[4]});
  if (what != "list") return 2;
  for (const auto all : {flow_stages(), text_stages(), file_stages()})
    for (const stage& s : all) std::printf("stage %s\n", s.name);
  for (const stage& s : scenarios()) std::printf("scenario %s\n", s.name);
}
