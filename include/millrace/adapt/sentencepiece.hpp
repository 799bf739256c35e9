// Tokenizes the texts of a flow with SentencePiece.
//
//   #include <millrace/adapt/sentencepiece.hpp>                         // link with -lsentencepiece
//   const mr::sentencepiece tokenizer("corpus.model");                  // setup_error if it cannot be loaded
//   auto flow = mr::lines("corpus-{0000..1023}.txt.gz") | mr::map(tokenizer)
//             | mr::pack({.length = 2049, .separator = tokenizer.end_of_text()}) | ...
//
// Opt-in: needs SentencePiece (libsentencepiece-dev). Converts UTF-8 text to std::vector<std::uint32_t>.
// Errors: data_error for a text that SentencePiece cannot encode. Threads: any number of threads may use a tokenizer
// and its copies concurrently. The copies share one model.
#pragma once

#include <millrace/base/error.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#if !__has_include(<sentencepiece_processor.h>)
#error "millrace: SentencePiece is not installed: apt-get install libsentencepiece-dev"
#endif
#include <sentencepiece_processor.h>

namespace millrace { inline namespace MILLRACE_ABI {

/// A tokenizer for map(), with a SentencePiece model.
class sentencepiece {
 public:
  /// Loads a model file. Throws setup_error if SentencePiece cannot load the file.
  explicit sentencepiece(const std::string& model_file) {
    auto model = std::make_shared<::sentencepiece::SentencePieceProcessor>();
    const auto status = model->Load(model_file);
    if (!status.ok())
      throw setup_error("SentencePiece cannot use the model '" + printable(model_file) + "': " + status.ToString(),
                        "Pass a .model file written by spm_train");
    model_ = std::move(model);
  }

  /// Returns the tokens of a text. Throws data_error if SentencePiece cannot encode the text.
  std::vector<std::uint32_t> operator()(std::string_view text) const {
    std::vector<int> ids;
    const auto status = model_->Encode(text, &ids);
    if (!status.ok()) throw data_error("SentencePiece cannot encode the text: " + status.ToString(), "Check the text");
    return {ids.begin(), ids.end()};
  }
  /// Returns the text of the tokens.
  std::string decode(const std::vector<std::uint32_t>& tokens) const {
    return model_->DecodeIds(std::vector<int>(tokens.begin(), tokens.end()));
  }

  /// Returns the number of different tokens.
  std::size_t vocabulary_size() const { return static_cast<std::size_t>(model_->GetPieceSize()); }
  /// Returns the end-of-sentence token of the model. If the model has no such token, returns the unknown token.
  std::uint32_t end_of_text() const {
    return static_cast<std::uint32_t>(model_->eos_id() >= 0 ? model_->eos_id() : model_->unk_id());
  }

 private:
  std::shared_ptr<const ::sentencepiece::SentencePieceProcessor> model_;
};

}}   // namespace millrace
