// Checks the guarantees of adapt/torch.hpp on a flow of images and labels: `torch_trainer --check`.
//
//   check_torch_tensors(1'000, start, expected);
//   // start(device, session_options) returns a session of batches of 2; expected(n) returns sample n of an epoch
//
// No copy: the pointers of the tensors are those of the batch. Tensors and views that outlive their batch and their
// session keep their contents. A premature release causes a wrong value, or a report in a build with AddressSanitizer.
// Errors: data_error for a violated guarantee. Threads: one.
#pragma once

#include <ATen/DLConvertor.h>   // brings a header of DLPack
#include <millrace/adapt/dlpack.hpp>
#include <millrace/adapt/torch.hpp>
#include <millrace/item/tensor/ragged.hpp>
#include <millrace/run/session.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

inline void require(bool is_true, const std::string& guarantee) {
  if (!is_true) throw millrace::data_error("a guarantee is violated: " + guarantee, "");
}

/// A ragged column becomes two tensors, values and lengths.
struct words_and_label {
  millrace::ragged<std::uint32_t> words;
  std::int64_t label;
};
using batch_of_words = millrace::batch_of<&words_and_label::words, &words_and_label::label>;
static_assert(std::is_same_v<decltype(millrace::to_torch(std::declval<batch_of_words>())), std::array<at::Tensor, 3>>);

template <class Start, class Expected>
class torch_checks {
 public:
  torch_checks(const Start& start, const Expected& expected) : start_(start), expected_(expected) {}

  void check_retained_tensors(std::uint64_t steps) const {
    std::deque<retained> all;
    {
      auto run = start_(millrace::host_device(), quiet((steps + batches - 1) / batches));
      for (std::uint64_t step = 0; step < steps; ++step) {
        auto b = run.next();
        const auto [pixels_view, labels_view] = b.columns();
        const auto [pixels, labels] = millrace::to_torch(std::move(b));
        require(pixels.data_ptr() == pixels_view.data && labels.data_ptr() == labels_view.data,
                "tensors are not copies");
        require(pixels.scalar_type() == at::kByte && labels.scalar_type() == at::kLong,
                "tensors have the types of the columns");
        require(pixels.sizes() == at::IntArrayRef({2, 16, 16, 3}) && pixels.is_contiguous(),
                "tensors have the shapes of the columns");
        all.push_back({.first_sample = step % batches * rows,
                       .row = pixels[step % rows],
                       .labels = labels,
                       .row_number = step % rows});
        if (all.size() + 1 < run.slots()) continue;
        check(all.front());
        all.pop_front();
      }
    }
    require(all.size() == 2, "all slots but one can be retained");
    for (const retained& k : all) check(k);
  }

  void check_too_many_retained() const {
    auto run = start_(millrace::host_device(), quiet(1));
    std::vector<at::Tensor> all;
    try {
      for (auto& b : run) all.push_back(millrace::to_torch(std::move(b))[1]);
    } catch (const millrace::setup_error& refused) {
      require(all.size() == run.slots(), "every slot can be retained");
      require(refused.message().find("all slots are leased") != std::string::npos, "the error states the reason");
      return;
    }
    require(false, "a loop that retains all tensors gets an error");
  }

  void check_dlpack() const {
    auto run = start_(millrace::host_device(), quiet(1));
    auto b = run.next();
    const auto* const data = std::get<0>(b.columns()).data;
    auto tensors = millrace::to_dlpack(std::move(b));
    at::Tensor pixels = at::fromDLPack(tensors[0].release()), labels = at::fromDLPack(tensors[1].release());
    require(pixels.data_ptr() == data && pixels.sizes() == at::IntArrayRef({2, 16, 16, 3}), "tensors are not copies");
    check({.first_sample = 0, .row = pixels[1], .labels = labels, .row_number = 1});
    const auto back = millrace::from_dlpack<std::uint8_t, 4>(millrace::dlpack_tensor(at::toDLPack(pixels)));
    pixels.reset();
    require(back.view().data == data && back.shape()[0] == rows, "from_dlpack() does not copy");
    const auto picture = expected_(1).pixels;
    require(std::ranges::equal(back.view()[1].host(), picture.span()), "from_dlpack() returns the same pixels");
  }

  /// Tensors of memory that claims to be on a GPU are on that GPU. Nothing is computed.
  void check_device() const {
    struct claimed_gpu final : millrace::host_backend {
      millrace::memory_kind memory() const override { return millrace::memory_kind::device; }
      int ordinal() const noexcept override { return 0; }
    };
    auto run = start_(millrace::device(std::make_shared<claimed_gpu>()), quiet(1));
    auto b = run.next();
    const auto* const data = std::get<0>(b.columns()).data;
    const auto tensors = millrace::to_torch(std::move(b));
    require(tensors[0].device() == at::Device(at::kCUDA, 0), "tensors are on the device of the batch");
    require(tensors[0].data_ptr() == data, "tensors are not copies");
  }

 private:
  static constexpr std::uint64_t rows = 2, batches = 105;   // of an epoch

  struct retained {
    std::size_t first_sample = 0;
    at::Tensor row, labels;   // a view of one image; all labels
    std::size_t row_number = 0;
  };

  static millrace::session_options quiet(std::uint64_t epochs) { return {.epochs = epochs, .notice = millrace::quiet}; }

  void check(const retained& k) const {
    for (std::size_t i = 0; i < rows; ++i)
      require(k.labels.template data_ptr<std::int64_t>()[i] == expected_(k.first_sample + i).label,
              "retained labels do not change");
    const auto picture = expected_(k.first_sample + k.row_number).pixels;
    require(std::equal(picture.data(), picture.data() + picture.size(), k.row.template data_ptr<std::uint8_t>()),
            "a retained image does not change");
  }

  const Start& start_;
  const Expected& expected_;
};

template <class Start, class Expected>
void check_torch_tensors(std::uint64_t steps, const Start& start, const Expected& expected) {
  const torch_checks<Start, Expected> checks(start, expected);
  checks.check_retained_tensors(steps);
  checks.check_too_many_retained();
  checks.check_dlpack();
  checks.check_device();
  std::printf("%llu steps: no copy, and retained tensors did not change\n", static_cast<unsigned long long>(steps));
}
