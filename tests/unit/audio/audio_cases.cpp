// Writes FILE.f32 and FILE.i16, the samples of each audio file, and prints its rate, frames and channels; for
// audio_oracles.py.
//
//   audio_cases FILE...
//   audio_cases --rate 16000 FILE...         # resampled; needs libsoxr
#include <millrace/audio/wav.hpp>
#include <millrace/io/file/read_file.hpp>

#ifdef MILLRACE_TEST_SOXR
#include <millrace/adapt/soxr.hpp>
#endif
#ifdef MILLRACE_TEST_SNDFILE
#include <millrace/adapt/sndfile.hpp>
#endif

#include <cstdio>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

namespace mr = millrace;

namespace {

template <class T>
void save(const std::string& name, const std::vector<T>& samples) {
  std::ofstream(name, std::ios::binary)
      .write(reinterpret_cast<const char*>(samples.data()), static_cast<std::streamsize>(samples.size() * sizeof(T)));
}

mr::audio plan_of(const std::string& name) {
  mr::bytes file = mr::read_file(name);
#ifdef MILLRACE_TEST_SNDFILE
  if (!name.ends_with(".wav")) return mr::sndfile(std::move(file));
#endif
  return mr::wav(std::move(file));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::vector<std::string> names(argv + 1, argv + argc);
    [[maybe_unused]] unsigned rate = 0;
    if (names.size() > 1 && names[0] == "--rate") {
      rate = static_cast<unsigned>(std::stoul(names[1]));
      names.erase(names.begin(), names.begin() + 2);
    }
    mr::scratch s;
    for (const std::string& name : names) {
      mr::audio a = plan_of(name);
#ifdef MILLRACE_TEST_SOXR
      if (rate != 0) a = a.resample(rate, mr::soxr());
#endif
      std::vector<float> floats(a.frames() * a.channels());
      std::vector<std::int16_t> integers(floats.size());
      a.render(floats, s);
      a.render(integers, s);
      save(name + ".f32", floats);
      save(name + ".i16", integers);
      std::printf("%u %zu %zu\n", a.rate(), a.frames(), a.channels());
    }
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
