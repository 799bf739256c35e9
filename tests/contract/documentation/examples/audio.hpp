// ---- audio.hpp
#include <millrace/audio/wav.hpp>
#include <millrace/deliver/batch.hpp>
#include <millrace/item/record.hpp>
void plan(const mr::record& r, mr::rng& rng, const mr::audio_resampler& soxr) {
EXAMPLE 1
}
EXAMPLE 2
void show(mr::batch_of<&example::speech, &example::stereo>& b) {
EXAMPLE 3
}

// ---- sample_kernels.hpp
void example(const std::byte* bytes, std::span<float> floats, std::span<std::int16_t> row) {
EXAMPLE
}

// ---- wav.hpp
#include <millrace/io/file/read_file.hpp>
#include <millrace/item/record.hpp>
void example(const mr::record& r, mr::rng& rng) {
EXAMPLE
}
