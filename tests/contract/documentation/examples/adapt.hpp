// ---- adapt/dlpack.hpp
struct row {
  mr::tensor<std::uint8_t, 3> pixels;
  std::int32_t label;
};
using DLManagedTensor = mr::dlpack_managed;
namespace at {
struct Tensor {};
Tensor fromDLPack(DLManagedTensor* tensor);
DLManagedTensor* toDLPack(const Tensor& tensor);
}  // namespace at

void example(mr::batch_of<&row::pixels, &row::label> b, mr::stream_view s) {
EXAMPLE
}

// ---- adapt/dlpack_structs.hpp
void example(mr::detail::dlpack_column column, std::shared_ptr<const void> shared) {
EXAMPLE
}

// ---- adapt/feeder_hosts.hpp
void connect(const std::string& address);
void example() {
EXAMPLE
}

// ---- adapt/feeder_options.hpp
void log(const std::string& address, double rows_per_second);
void example(const std::string& token, const std::shared_ptr<mr::feeder_storage>& storage) {
EXAMPLE
}

// ---- adapt/row_maker.hpp
template <class Flow>
void example(Flow flow, const mr::session_options& options, std::size_t workers, mr::detail::notice_outlet& notices,
             std::size_t worker, std::vector<std::byte>& body) {
EXAMPLE
}

// ---- adapt/row_protocol.hpp
void example(const mr::row_run& run, const std::string& answer, const mr::row_range& range,
             std::span<const std::byte> piece, mr::row_slots& slots) {
EXAMPLE 1
}
// block 2 is a table of requests

// ---- adapt/row_storage.hpp
#include <millrace/base/crc32c.hpp>

void check(const std::string& order, const std::string& columns);
std::size_t window();
std::size_t requested();
void send(const mr::row_range& range, mr::row_slots slots);

EXAMPLE

// ---- adapt/shared_batch.hpp
struct row {
  std::int32_t label;
};

void example(mr::batch_of<&row::label> b, mr::stream_view s) {
EXAMPLE
}

// ---- adapt/tbb.hpp
#include <millrace/millrace.hpp>
struct row { std::int32_t n; };
void example(std::vector<row> rows) {
  auto flow = mr::from(std::move(rows)) | mr::batch<&row::n>({.size = 256});
EXAMPLE
}

// ---- audio/audio.hpp
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
void read_samples(const mr::detail::audio_format::part& p, std::span<float> samples, mr::scratch& s);
mr::audio open(mr::bytes data, const mr::audio_header& header, const mr::detail::audio_file& options) {
EXAMPLE 4
}

// ---- audio/sample_kernels.hpp
void example(const std::byte* bytes, std::span<float> floats, std::span<std::int16_t> row) {
EXAMPLE
}

// ---- audio/wav.hpp
#include <millrace/io/file/read_file.hpp>
#include <millrace/item/record.hpp>
void example(const mr::record& r, mr::rng& rng) {
EXAMPLE
}

// ---- umbrellas/audio.hpp
struct example {
  mr::audio sound;
  std::int32_t word;
};
example prepare(const mr::record& r);
template <class A, class B>
void train_step(A& sound, B& word);

void show() {
EXAMPLE
}

// ---- umbrellas/mix_rows.hpp
#include <millrace/millrace.hpp>

struct example {
  mr::picture pixels;
  std::int32_t label;
};
example prepare(const mr::record&);

void show() {
  auto batches = mr::shards("train.tar") | mr::map(prepare)
               | mr::batch<&example::pixels, &example::label>({.size = 256});
EXAMPLE
}

// ---- umbrellas/pictures.hpp
#include <millrace/item/record.hpp>
void example(const mr::record& record, mr::rng& rng) {
EXAMPLE
}

// ---- umbrellas/report.hpp
#include <millrace/millrace.hpp>

struct row {
  std::int32_t label;
};

void example(const mr::session<&row::label>& run) {
EXAMPLE
}

// ---- umbrellas/text.hpp
std::vector<std::uint32_t> tokenize(std::string_view text);
template <class Batch>
void train_step(Batch& batch);

void example() {
EXAMPLE
}

// ---- umbrellas/tuning.hpp
struct row {
  std::int32_t label;
};

void example(decltype(mr::from(std::vector<row>()) | mr::batch<&row::label>({.size = 16})) flow) {
EXAMPLE
}
