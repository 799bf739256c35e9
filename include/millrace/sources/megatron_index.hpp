// Reads an .idx file of Megatron. This file describes the documents of a .bin file, and the type of the tokens.
//
//   const auto index = mr::detail::read_megatron_index(storage, "corpus_text_document.bin", size_of_bin);
//   if (index) use(index->type, index->first_tokens);   // document i: tokens first_tokens[i] to first_tokens[i + 1]
//
// A document consists of one or more consecutive sequences of the index. Documents without tokens are omitted.
// Cost: 8 bytes of memory for each document. The lengths and offsets of the sequences are read in pieces.
// Errors: data_error with the name of the .idx file, if its version or type is not supported, or if it does not match
// the .bin file.
// Threads: pure functions. Source of the format: Megatron-LM, megatron/core/datasets/indexed_dataset.py.
#pragma once

#include <millrace/io/file/storage.hpp>
#include <millrace/sources/token_layout.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The content of an .idx file.
struct megatron_index {
  token_type type{};
  /// Index of each document's first token in the .bin file. The last entry is the number of all tokens.
  std::vector<std::uint64_t> first_tokens{};
  std::uint64_t empty_documents = 0;
};

/// Returns the name of the .idx file that belongs to a .bin file, or "" if `bin_name` does not end in .bin.
std::string megatron_index_name(std::string_view bin_name);

/// Returns the token type in the .idx file, or nothing if the file is missing or has another format.
std::optional<token_type> megatron_token_type(const storage& at, std::string_view bin_name);

/// Returns the documents of a .bin file, or nothing if no .idx file exists. `bin_bytes` is the size of the .bin file.
std::optional<megatron_index> read_megatron_index(const storage& at, std::string_view bin_name,
                                                  std::uint64_t bin_bytes);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/sources/impl/megatron_index.inl>
#endif
