// Tokenizes text once, before the training: lines of text to flat files of tokens.
//
//   tokenize_shards --model corpus.model --out data/train- corpus-{0000..1023}.txt.gz      # data/train-00000.u16 ...
//
// In a trainer: mr::token_files("data/train-*.u16", {.length = 2049}) | mr::shuffle({.window = 65536}) | mr::batch<...>
#include "command_line.hpp"
#include "token_shards.hpp"

#include <chrono>

namespace mr = millrace;

namespace {

void tokenize(command_line& args) {
  token_shards_options options{.prefix = args.text("--out", "tokens-")};
  options.shard_tokens = args.number("--shard-tokens", options.shard_tokens);
  options.threads = args.number("--threads", options.threads);
  const std::string model = args.text("--model", "");
  const auto patterns = args.rest();
  if (model.empty() || patterns.empty() || options.shard_tokens == 0) args.refuse("expected --model FILE and texts");
  for (const std::string& pattern : patterns)
    for (auto& name : mr::list_texts(pattern)) options.texts.push_back(std::move(name));
  const mr::sentencepiece tokenizer(model);
  const auto started = std::chrono::steady_clock::now();
  const token_shards written = write_token_shards(options, tokenizer);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
  std::printf("%llu tokens in %zu files, %.2f million a second\n", static_cast<unsigned long long>(written.tokens),
              written.files.size(), 1e-6 * static_cast<double>(written.tokens) / took.count());
}

}   // namespace

int main(int argc, char** argv) {
  return run_program({argc, argv,
                      "usage: tokenize_shards --model MODEL [--out PREFIX] [--shard-tokens N] "
                      "[--threads N] TEXTS..."},
                     tokenize);
}
