// The stages from a text file to a batch.
#include "subject_run.hpp"

#include <millrace/text.hpp>

namespace mr = millrace;

namespace {

std::vector<std::uint32_t> tokenize(std::string_view text) { return {text.begin(), text.end()}; }

struct counted {
  std::uint64_t digest;
};

counted count(const mr::line& l) {
  const std::string_view text = l;
  return {mr::detail::digest_bytes(std::as_bytes(std::span(text.data(), text.size())))};
}

void lines(const places& at, delivered& to) {
  deliver(mr::lines(at.data + "/text/*", {.seed = 5}) | mr::shuffle({.window = 16}) | mr::map(count) |
              mr::batch<&counted::digest>({.size = 8, .drop_last = false}),
          quietly(2), to);
}

void tokens(const places& at, delivered& to) {
  deliver(mr::token_files(at.data + "/tokens/*.u16", {.length = 64, .seed = 5}) | mr::shuffle({.window = 16}) |
              mr::batch<&mr::packed::ids>({.size = 8}),
          quietly(2), to);
}

void pack(const places& at, delivered& to) {
  deliver(mr::lines(at.data + "/text/*", {.seed = 5}) | mr::map(tokenize) |
              mr::pack({.length = 65, .separator = 1, .segments = true}) |
              mr::batch<&mr::packed::ids, &mr::packed::segments>({.size = 4, .drop_last = false}),
          quietly(2), to);
}

void best_fit(const places& at, delivered& to) {
  deliver(mr::lines(at.data + "/text/*", {.seed = 5}) | mr::map(tokenize) |
              mr::pack_best_fit({.length = 90, .separator = 1, .open_rows = 8}) |
              mr::batch<&mr::packed::ids>({.size = 4, .drop_last = false}),
          quietly(), to);
}

/// The documents of Megatron's files.
void documents(const places& at, delivered& to) {
  deliver(mr::token_files(at.data + "/megatron/*.bin", {.seed = 5, .documents = true}) | mr::shuffle({.window = 8}) |
              mr::pack({.length = 65, .separator = 1}) | mr::batch<&mr::packed::ids>({.size = 4, .drop_last = false}),
          quietly(2), to);
}

}  // namespace

std::span<const stage> text_stages() {
  static constexpr stage all[] = {{"lines", lines},
                                  {"tokens", tokens},
                                  {"pack", pack},
                                  {"best_fit", best_fit},
                                  {"documents", documents}};
  return all;
}
