// Batches as DLPack tensors: no copy, and the slot is leased until the last tensor is released and its stream is done.
#include "contract.hpp"

#include <millrace/adapt/dlpack.hpp>
#include <millrace/deliver/device_batch_output.hpp>
#include <millrace/device/best_device.hpp>
#include <millrace/item/tensor/ragged.hpp>
#include <millrace/mix_rows.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/stages/map.hpp>

#include <dlpack/dlpack.h>

#include <cstddef>
#include <optional>

namespace mr = millrace;
using contract::ok;

namespace {

// The structs that Millrace carries have the layout of dlpack.h.
static_assert(sizeof(mr::dlpack_managed) == sizeof(DLManagedTensor));
static_assert(sizeof(mr::dlpack_view) == sizeof(DLTensor));
static_assert(offsetof(mr::dlpack_managed, deleter) == offsetof(DLManagedTensor, deleter));
static_assert(offsetof(mr::dlpack_view, dtype) == offsetof(DLTensor, dtype));
static_assert(offsetof(mr::dlpack_view, byte_offset) == offsetof(DLTensor, byte_offset));
static_assert(mr::detail::dlpack_cpu == kDLCPU && mr::detail::dlpack_cuda == kDLCUDA &&
              mr::detail::dlpack_cuda_host == kDLCUDAHost && mr::detail::dlpack_cuda_managed == kDLCUDAManaged);

struct item {
  std::array<float, 3> numbers;
  mr::ragged<std::uint32_t> words;
  std::int64_t label;
};
using layout = mr::detail::columns<&item::numbers, &item::words, &item::label>;
using batch = mr::batch_of<&item::numbers, &item::words, &item::label>;
constexpr std::size_t rows = 4;

/// Creates batches like a session, one at a time and on this thread.
class batch_source {
 public:
  batch_source(std::shared_ptr<mr::detail::batch_output> delivery, mr::stream_view stream)
      : output_(std::move(delivery)), stream_(stream) {
    columns_.fix_shapes(item_of(0), rows);
    output_->allocate({.host_slots = 2, .rows = rows, .batch_bytes = columns_.batch_bytes()});
  }
  batch next() {
    output_->host_slots().open_free();
    mr::scratch memory;
    for (std::size_t i = 0; i < rows; ++i) {
      const item one = item_of(number_ * rows + i);
      const std::array<const item*, 1> items = {&one};
      columns_.render(items, output_->host_slots().data(number_), i, memory);
    }
    auto& slots = output_->host_slots();
    REQUIRE(slots.rows_done(number_, rows));
    slots.set_ready(number_, columns_.close(slots.data(number_), slots.rows_of(number_)));
    output_->advance();   // starts the copy if there is one
    const auto got = output_->take(number_, false);
    REQUIRE(got.what == mr::detail::batch_ring::outcome::ready);
    return mr::detail::batch_maker::batch<batch>(
        columns_, mr::detail::batch_maker::lease(output_, got.batch, stream_,
                                                 {.first_step = 0, .global_rows = rows, .next = {}}));
  }
  /// Completes the copy, which frees the host slot.
  void finish() {
    output_->advance();
    ++number_;
  }
  std::size_t leased() const { return output_->leased(); }

 private:
  /// An item with `number` % 4 words, each of which is the number.
  static item item_of(std::uint64_t number) {
    const auto n = static_cast<float>(number);
    return {.numbers = {n, n + 0.25F, n + 0.5F},
            .words = mr::ragged(std::vector<std::uint32_t>(number % 4, static_cast<std::uint32_t>(number)),
                                {.max_length = 9, .padding = 77}),
            .label = static_cast<std::int64_t>(number)};
  }

  std::shared_ptr<mr::detail::batch_output> output_;
  const mr::stream_view stream_;
  layout columns_;
  std::uint64_t number_ = 0;
};

batch_source on_host() {
  return {std::make_shared<mr::detail::host_batch_output>(mr::host_device().backend(), false), mr::stream_view()};
}
batch_source on_gpu(mr::stream_view stream) {
  return {std::make_shared<mr::detail::device_batch_output>(
              mr::cuda_device(0).backend(),
              mr::detail::device_batch_output::options{.device_slots = 1, .stream = stream, .threaded = false}),
          stream};
}

/// A tensor of another library.
struct foreign {
  std::array<std::int64_t, 2> shape = {2, 3}, strides = {3, 1};
  std::array<float, 8> memory = {-1, 0, 1, 2, 3, 4, 5, 6};
  int deleted = 0;
  DLManagedTensor tensor{
      .dl_tensor = {.data = memory.data(), .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLFloat, 32, 1},
                    .shape = shape.data(), .strides = strides.data(), .byte_offset = sizeof(float)},
      .manager_ctx = this,
      .deleter = [](DLManagedTensor* t) { ++static_cast<foreign*>(t->manager_ctx)->deleted; }};

  bool is_refused() {
    const int before = deleted;
    CHECK_THROWS_AS((mr::from_dlpack<float, 2>(mr::dlpack_tensor(&tensor))), mr::setup_error);
    return deleted == before + 1;
  }
};

}  // namespace

TEST_CASE("dlpack: a batch becomes tensors without a copy, and the last of them releases it") {
  batch_source m = on_host();
  batch b = m.next();
  const auto numbers = b.get<&item::numbers>();
  const auto [words, lengths] = b.get<&item::words>();
  const auto labels = b.get<&item::label>();
  auto tensors = mr::to_dlpack(std::move(b));
  static_assert(tensors.size() == 4);
  CHECK_FALSE(b);
  CHECK_THROWS_AS(mr::to_dlpack(std::move(b)), mr::setup_error);
  const mr::dlpack_view& x = tensors[0]->dl_tensor;
  CHECK(x.data == numbers.data);
  CHECK(x.byte_offset == 0);
  CHECK(reinterpret_cast<std::uintptr_t>(x.data) % 256 == 0);
  CHECK(x.device.device_type == kDLCPU);
  REQUIRE(x.ndim == 2);
  CHECK(std::vector(x.shape, x.shape + 2) == std::vector<std::int64_t>{4, 3});
  CHECK(std::vector(x.strides, x.strides + 2) == std::vector<std::int64_t>{3, 1});
  // A ragged column: the values, padded to the longest row of the batch, then the lengths.
  const mr::dlpack_view& padded = tensors[1]->dl_tensor;
  CHECK(padded.data == words.data);
  CHECK(std::vector(padded.shape, padded.shape + padded.ndim) == std::vector<std::int64_t>{4, 3});
  CHECK(std::vector(words.data + 3, words.data + 9) == std::vector<std::uint32_t>{1, 77, 77, 2, 2, 77});
  const mr::dlpack_view& counts = tensors[2]->dl_tensor;
  CHECK(counts.data == lengths.data);
  CHECK(counts.ndim == 1);
  CHECK(counts.dtype.code == kDLInt);
  CHECK(counts.dtype.bits == 32);
  CHECK(std::vector(lengths.data, lengths.data + 4) == std::vector<std::int32_t>{0, 1, 2, 3});
  const mr::dlpack_view& y = tensors[3]->dl_tensor;
  CHECK(y.data == labels.data);
  CHECK(y.ndim == 1);
  CHECK(y.dtype.code == kDLInt);
  CHECK(y.dtype.bits == 64);

  CHECK(m.leased() == 1);
  for (const int i : {0, 1, 3}) tensors[i].reset();
  CHECK(m.leased() == 1);
  DLManagedTensor* handed_over = tensors[2].release();
  CHECK(m.leased() == 1);
  mr::dlpack_tensor(handed_over).reset();
  CHECK(m.leased() == 0);
}

TEST_CASE("dlpack: the other labels and lambda of mixed rows are tensors, too") {
  struct sound {
    std::array<float, 3> samples;
    std::int64_t label;
  };
  mr::session run{mr::from(std::vector<int>(8, 1)) |
                      mr::map([](int n) { return sound{{}, n}; }) |
                      mr::batch<&sound::samples, &sound::label>({.size = 4}) |
                      mr::mixup<&sound::samples, &sound::label>() | mr::to_device({.device = mr::host_device()}),
                  {.threads = 0, .notice = mr::quiet}};
  auto b = run.next();
  const auto [samples, label_a, label_b, lambda] = b.columns();
  const auto tensors = mr::to_dlpack(std::move(b));
  static_assert(tensors.size() == 4);
  CHECK(tensors[0]->dl_tensor.data == samples.data);
  CHECK(tensors[1]->dl_tensor.data == label_a.data);
  CHECK(tensors[2]->dl_tensor.data == label_b.data);
  CHECK(tensors[3]->dl_tensor.data == lambda.data);
  CHECK(tensors[3]->dl_tensor.dtype.code == kDLFloat);
  CHECK(std::vector(tensors[3]->dl_tensor.shape, tensors[3]->dl_tensor.shape + 1) == std::vector<std::int64_t>{4});
}

TEST_CASE("dlpack: a tensor outlives the session that created it") {
  std::optional<batch_source> m(on_host());
  auto tensors = mr::to_dlpack(m->next());
  m.reset();
  for (const int i : {1, 2, 3}) tensors[i].reset();
  const auto* numbers = static_cast<const float*>(tensors[0]->dl_tensor.data);
  for (std::size_t i = 0; i < rows; ++i) CHECK(numbers[3 * i + 1] == static_cast<float>(i) + 0.25F);
}

TEST_CASE("dlpack: every type of element has its code") {
  const auto code = []<class T>(T) {
    const auto t = mr::detail::dlpack_type<T>();
    return t.code * 1000 + t.bits + (t.lanes - 1);
  };
  CHECK(code(std::int8_t{}) == kDLInt * 1000 + 8);
  CHECK(code(std::int16_t{}) == kDLInt * 1000 + 16);
  CHECK(code(std::int32_t{}) == kDLInt * 1000 + 32);
  CHECK(code(std::uint8_t{}) == kDLUInt * 1000 + 8);
  CHECK(code(true) == 6 * 1000 + 8);   // kDLBool, which older copies of dlpack.h lack
  CHECK(code(std::uint64_t{}) == kDLUInt * 1000 + 64);
  CHECK(code(float{}) == kDLFloat * 1000 + 32);
  CHECK(code(double{}) == kDLFloat * 1000 + 64);
  CHECK(code(mr::f16{}) == kDLFloat * 1000 + 16);
  CHECK(code(mr::bf16{}) == kDLBfloat * 1000 + 16);
}

TEST_CASE("dlpack: a foreign tensor is read in place, and released") {
  foreign f;
  {
    const auto array = mr::from_dlpack<float, 2>(mr::dlpack_tensor(&f.tensor));
    CHECK(array.shape() == std::array<std::size_t, 2>{2, 3});
    CHECK(array.view().data == f.memory.data() + 1);
    CHECK(array.span()[5] == 5);
    CHECK(array.view().memory == mr::memory_kind::host);
    CHECK(f.deleted == 0);
  }
  CHECK(f.deleted == 1);
  f.tensor.dl_tensor.strides = nullptr;
  static_cast<void>(mr::from_dlpack<float, 2>(mr::dlpack_tensor(&f.tensor)));
  f.tensor.dl_tensor.device.device_type = kDLCUDA;
  CHECK_THROWS_AS((mr::from_dlpack<float, 2>(mr::dlpack_tensor(&f.tensor)).span()), mr::setup_error);
  CHECK(f.deleted == 3);
  f.tensor.deleter = nullptr;   // memory that is never freed
  static_cast<void>(mr::from_dlpack<float, 2>(mr::dlpack_tensor(&f.tensor)));
}

TEST_CASE("dlpack: a tensor of another kind is refused, with both kinds in the error, and released") {
  CHECK(foreign{}.deleted == 0);
  foreign of_type, of_rank, of_strides, of_device;
  of_type.tensor.dl_tensor.dtype.bits = 64;
  CHECK(of_type.is_refused());
  of_rank.tensor.dl_tensor.ndim = 1;
  CHECK(of_rank.is_refused());
  of_strides.strides = {1, 2};
  CHECK(of_strides.is_refused());
  of_device.tensor.dl_tensor.device.device_type = kDLMetal;
  CHECK(of_device.is_refused());
  CHECK_THROWS_WITH_AS((mr::from_dlpack<std::int32_t, 2>(mr::dlpack_tensor(&of_strides.tensor))),
                       doctest::Contains("type code 2, 32 bits x 1, shape [2, 3], strides [1, 2], expected 2 "
                                         "dimensions of i32 (type code 0"),
                       mr::setup_error);
  foreign of_one_row;   // whose stride has no meaning
  of_one_row.shape = {1, 3};
  of_one_row.strides = {77, 1};
  CHECK(mr::from_dlpack<float, 2>(mr::dlpack_tensor(&of_one_row.tensor)).span().size() == 3);
}

TEST_CASE("dlpack: on a GPU, the slot is only reused after the consumer's stream completes") {
  contract::start();
  const contract::stream step, consumer, watching;
  const contract::event arrived;
  batch_source m = on_gpu(static_cast<cudaStream_t>(step));
  batch b = m.next();
  m.finish();
  const auto labels = b.get<&item::label>();
  const auto copy = contract::make_pinned(rows * 8);
  contract::stream_block block(consumer);
  auto tensors = mr::to_dlpack(std::move(b), {.stream = mr::stream_view(static_cast<cudaStream_t>(consumer))});
  CHECK(tensors[3]->dl_tensor.data == labels.data);
  for (const auto& t : tensors) {
    CHECK(t->dl_tensor.device.device_type == kDLCUDA);
    CHECK(t->dl_tensor.device.device_id == 0);
  }
  ok(cudaMemcpyAsync(copy.get(), labels.data, rows * 8, cudaMemcpyDeviceToHost, consumer));   // the consumer's work
  for (auto& t : tensors) t.reset();   // before that work begins
  CHECK(m.leased() == 0);

  batch next = m.next();
  next.also_used_on(static_cast<cudaStream_t>(watching));
  ok(cudaEventRecord(arrived, watching));
  for (int i = 0; i < 5 && !arrived.reached(); ++i) contract::pause();
  CHECK_FALSE(arrived.reached());
  CHECK_FALSE(block.is_over());
  block.unblock();
  watching.synchronize();
  std::array<std::int64_t, rows> values{};
  std::memcpy(values.data(), copy.get(), sizeof values);
  CHECK(values == std::array<std::int64_t, rows>{0, 1, 2, 3});
  m.finish();
  next.release();
}
