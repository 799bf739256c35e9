// Reads cases from a file and compares this machine's output with the recorded output:
//
//   check_cases FILE
#include "picture_case.hpp"

#include <cinttypes>
#include <cstdio>

int main(int argc, char** argv) {
  std::FILE* const from = argc > 1 ? std::fopen(argv[1], "rb") : nullptr;
  if (!from) return 2;
  foreign::case_runner run;
  foreign::picture_case c;
  int passed = 0, failed = 0, refused = 0;
  while (foreign::read_case(from, c)) {
    const auto got = run.all_of(c);
    refused += got.refusal != 0;
    if (got == c.expected) {
      ++passed;
      continue;
    }
    ++failed;
    std::printf("FAILED image %d: refusal %" PRIu64 " and %" PRIu64 "; planes %s, exact %s, fast %s, numbers %s\n",
                passed + failed, c.expected.refusal, got.refusal, got.planes == c.expected.planes ? "same" : "differ",
                got.exact == c.expected.exact ? "same" : "differ", got.fast == c.expected.fast ? "same" : "differ",
                got.numbers == c.expected.numbers ? "same" : "differ");
  }
  std::printf("%d of them are refused\n%d passed, %d failed, 0 skipped\n", refused, passed, failed);
  return failed == 0 && passed > refused ? 0 : 1;
}
