// ---- dlpack.hpp
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

// ---- dlpack_structs.hpp
void example(mr::detail::dlpack_column column, std::shared_ptr<const void> shared) {
EXAMPLE
}

// ---- feeder_hosts.hpp
void connect(const std::string& address);
void example() {
EXAMPLE
}

// ---- feeder_options.hpp
void log(const std::string& address, double rows_per_second);
void example(const std::string& token, const std::shared_ptr<mr::feeder_storage>& storage) {
EXAMPLE
}

// ---- row_maker.hpp
template <class Flow>
void example(Flow flow, const mr::session_options& options, std::size_t workers, mr::detail::notice_outlet& notices,
             std::size_t worker, std::vector<std::byte>& body) {
EXAMPLE
}

// ---- row_protocol.hpp
void example(const mr::row_run& run, const std::string& answer, const mr::row_range& range,
             std::span<const std::byte> piece, mr::row_slots& slots) {
EXAMPLE 1
}
// block 2 is a table of requests

// ---- row_storage.hpp
#include <millrace/base/crc32c.hpp>

void check(const std::string& order, const std::string& columns);
std::size_t window();
std::size_t requested();
void send(const mr::row_range& range, mr::row_slots slots);

EXAMPLE

// ---- shared_batch.hpp
struct row {
  std::int32_t label;
};

void example(mr::batch_of<&row::label> b, mr::stream_view s) {
EXAMPLE
}

// ---- tbb.hpp
#include <millrace/millrace.hpp>
struct row { std::int32_t n; };
void example(std::vector<row> rows) {
  auto flow = mr::from(std::move(rows)) | mr::batch<&row::n>({.size = 256});
EXAMPLE
}
