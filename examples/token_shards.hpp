// Converts text files to flat files of tokens. Each line is a document, followed by a separator, in the order of the
// text.
//
//   const auto written = write_token_shards({.texts = {"a.txt"}, .prefix = "work/tokens-", .threads = 4}, tokenizer);
//   // work/tokens-00000.u16 ...: files for mr::token_files(); .u32 if the vocabulary is larger than 65,536
//
// Workers tokenize; this thread writes. A file gets its name when it is complete.
#pragma once

#include <millrace/adapt/sentencepiece.hpp>
#include <millrace/io/file/atomic_file.hpp>
#include <millrace/text.hpp>

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

struct token_shards_options {
  std::vector<std::string> texts{};
  std::string prefix{};
  std::uint64_t shard_tokens = std::uint64_t{100} << 20;   ///< limit of a file
  std::optional<unsigned> threads{};
};

struct token_shards {
  std::vector<std::string> files{};
  std::uint64_t tokens = 0;
};

class token_shard_writer {
 public:
  token_shard_writer(const token_shards_options& options, bool wide) : options_(options), wide_(wide) {}

  void write(std::span<const std::uint32_t> tokens) {
    for (const std::uint32_t token : tokens) {
      if (in_file_ == options_.shard_tokens) close();
      if (!file_) open();
      const auto narrow = static_cast<std::uint16_t>(token);
      if (wide_) file_->append(std::as_bytes(std::span(&token, 1)));
      else file_->append(std::as_bytes(std::span(&narrow, 1)));
      ++in_file_;
      ++written_.tokens;
    }
  }
  token_shards finish() {
    if (file_) close();
    return written_;
  }

 private:
  void open() {
    char number[32];
    std::snprintf(number, sizeof number, "%05zu.%s", written_.files.size(), wide_ ? "u32" : "u16");
    file_.emplace(options_.prefix + number);
    written_.files.push_back(options_.prefix + number);
    in_file_ = 0;
  }
  void close() {
    file_->commit();
    file_.reset();
  }

  const token_shards_options options_;
  const bool wide_;
  std::optional<millrace::atomic_file> file_;
  std::uint64_t in_file_ = 0;
  token_shards written_;
};

inline token_shards write_token_shards(const token_shards_options& options, const millrace::sentencepiece& tokenizer) {
  namespace mr = millrace;
  token_shard_writer writer(options, tokenizer.vocabulary_size() > 65'536);
  auto flow = mr::lines(options.texts, {.skip_empty = true}) | mr::map(tokenizer) |
              mr::pack({.length = 4096, .separator = tokenizer.end_of_text(), .segments = true}) |
              mr::batch<&mr::packed::ids, &mr::packed::segments>({.size = 16, .drop_last = false});
  mr::session run{std::move(flow), {.threads = options.threads, .notice = mr::quiet}};
  for (auto& b : run) {
    const auto [ids, segments] = b.columns();
    const auto tokens = ids.span();
    const auto documents = segments.span();
    std::size_t count = tokens.size();
    while (count > 0 && documents[count - 1] == 0) --count;   // padding at the end of the last row
    writer.write(tokens.first(count));
  }
  return writer.finish();
}
