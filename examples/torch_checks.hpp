// What adapt/torch.hpp promises, tried on a flow of pictures and labels: `torch_trainer --check`.
//
//   check_torch_tensors(1'000, start, expected);
//   // start(device, session_options) gives a session of batches of 2; expected(n) what sample n of an epoch looks like
//
// No copy: the tensors' pointers are the batch's. Tensors and views that are kept past their batch, and past their
// session, keep their contents; one that lets go too early shows by a wrong value, or in a build with AddressSanitizer
// by its report. Errors: data_error for a promise that does not hold. Threads: one.
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

inline void require(bool holds, const std::string& promise) {
  if (!holds) throw millrace::data_error("this does not hold: " + promise, "");
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

  void kept_tensors(std::uint64_t steps) const {
    std::deque<kept> all;
    {
      auto run = start_(millrace::host_device(), quiet((steps + batches - 1) / batches));
      for (std::uint64_t step = 0; step < steps; ++step) {
        auto b = run.next();
        const auto [pixels_view, labels_view] = b.columns();
        const auto [pixels, labels] = millrace::to_torch(std::move(b));
        require(pixels.data_ptr() == pixels_view.data && labels.data_ptr() == labels_view.data, "there is no copy");
        require(pixels.scalar_type() == at::kByte && labels.scalar_type() == at::kLong, "types are the columns'");
        require(pixels.sizes() == at::IntArrayRef({2, 16, 16, 3}) && pixels.is_contiguous(), "so are shapes");
        all.push_back({.first_sample = step % batches * rows, .row = pixels[step % rows], .labels = labels,
                       .row_number = step % rows});
        if (all.size() + 1 < run.slots()) continue;
        check(all.front());
        all.pop_front();
      }
    }
    require(all.size() == 2, "as many are kept as slots allow");
    for (const kept& k : all) check(k);
  }

  void too_many_kept() const {
    auto run = start_(millrace::host_device(), quiet(1));
    std::vector<at::Tensor> all;
    try {
      for (auto& b : run) all.push_back(millrace::to_torch(std::move(b))[1]);
    } catch (const millrace::setup_error& refused) {
      require(all.size() == run.slots(), "every slot can be kept");
      require(refused.message().find("all slots are leased") != std::string::npos, "the error says why");
      return;
    }
    require(false, "a loop that keeps all its tensors is told so");
  }

  void by_dlpack() const {
    auto run = start_(millrace::host_device(), quiet(1));
    auto b = run.next();
    const auto* const data = std::get<0>(b.columns()).data;
    auto tensors = millrace::to_dlpack(std::move(b));
    at::Tensor pixels = at::fromDLPack(tensors[0].release()), labels = at::fromDLPack(tensors[1].release());
    require(pixels.data_ptr() == data && pixels.sizes() == at::IntArrayRef({2, 16, 16, 3}), "there is no copy");
    check({.first_sample = 0, .row = pixels[1], .labels = labels, .row_number = 1});
    const auto back = millrace::from_dlpack<std::uint8_t, 4>(millrace::dlpack_tensor(at::toDLPack(pixels)));
    pixels.reset();
    require(back.view().data == data && back.shape()[0] == rows, "there is no copy on the way back");
    const auto picture = expected_(1).pixels;
    require(std::ranges::equal(back.view()[1].host(), picture.span()), "what comes back is what went");
  }

  /// Where the memory says that it is a GPU's, the tensors say so too; nothing is computed.
  void on_a_device() const {
    struct said_to_be_a_gpu final : millrace::host_backend {
      millrace::memory_kind memory() const override { return millrace::memory_kind::device; }
      int ordinal() const noexcept override { return 0; }
    };
    auto run = start_(millrace::device(std::make_shared<said_to_be_a_gpu>()), quiet(1));
    auto b = run.next();
    const auto* const data = std::get<0>(b.columns()).data;
    const auto tensors = millrace::to_torch(std::move(b));
    require(tensors[0].device() == at::Device(at::kCUDA, 0), "the tensors lie where the batch lies");
    require(tensors[0].data_ptr() == data, "there is no copy");
  }

 private:
  static constexpr std::uint64_t rows = 2, batches = 105;   // of an epoch

  struct kept {
    std::size_t first_sample = 0;
    at::Tensor row, labels;   // a view of one picture; all labels
    std::size_t row_number = 0;
  };

  static millrace::session_options quiet(std::uint64_t epochs) { return {.epochs = epochs, .notice = millrace::quiet}; }

  void check(const kept& k) const {
    for (std::size_t i = 0; i < rows; ++i)
      require(k.labels.template data_ptr<std::int64_t>()[i] == expected_(k.first_sample + i).label,
              "labels that are kept stay as they are");
    const auto picture = expected_(k.first_sample + k.row_number).pixels;
    require(std::equal(picture.data(), picture.data() + picture.size(), k.row.template data_ptr<std::uint8_t>()),
            "a picture that is kept stays as it is");
  }

  const Start& start_;
  const Expected& expected_;
};

template <class Start, class Expected>
void check_torch_tensors(std::uint64_t steps, const Start& start, const Expected& expected) {
  const torch_checks<Start, Expected> checks(start, expected);
  checks.kept_tensors(steps);
  checks.too_many_kept();
  checks.by_dlpack();
  checks.on_a_device();
  std::printf("%llu steps: no copy, and what was kept stayed as it was\n", static_cast<unsigned long long>(steps));
}
