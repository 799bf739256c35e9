// A user's program that reads lines over the network, without a server in this test.
#include <millrace/adapt/remote.hpp>
#include <millrace/lines.hpp>

#include <cstdio>
#include <string>

int main() {
  try {
    (void)millrace::lines("http://127.0.0.1:1/words.txt", {.storage = millrace::remote({.retry = {.attempts = 1}})});
  } catch (const millrace::io_error& nobody) {
    return std::string(nobody.what()).find("cannot read the object") == std::string::npos;
  }
  return 1;
}
