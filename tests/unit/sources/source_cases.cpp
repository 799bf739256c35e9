// Prints the items of files of tokens and of joined shards, one per line; for source_oracles.py.
//
//   source_cases windows LENGTH STRIDE FILE...   # the tokens of each window
//   source_cases documents FILE...               # the tokens of each document of Megatron's .bin files
//   source_cases join skip|partial FIRST SECOND  # key, field "n" of the first set, field "emb" of the second, or -1
#include <millrace/item/tensor/ragged.hpp>
#include <millrace/join.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/shards.hpp>
#include <millrace/sources/token_files.hpp>
#include <millrace/stages/batch.hpp>
#include <millrace/stages/map.hpp>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace mr = millrace;

namespace {

struct document {
  mr::ragged<std::uint32_t> ids;
};
struct joined {
  std::int32_t n, emb;
};

mr::session_options in_order() { return {.epochs = 1, .threads = 2, .notice = mr::quiet}; }

void print_row(const auto& row) {
  for (const std::uint32_t id : row.span()) std::printf("%u ", id);
  std::printf("\n");
}

void print_windows(const std::vector<std::string>& arguments) {
  const std::vector<std::string> names(arguments.begin() + 2, arguments.end());
  mr::session run{mr::token_files(names, {.length = std::stoul(arguments[0]), .stride = std::stoul(arguments[1])}) |
                      mr::batch<&mr::packed::ids>({.size = 4, .drop_last = false}),
                  in_order()};
  for (auto& b : run)
    for (std::size_t i = 0; i < b.size(); ++i) print_row(b.get<&mr::packed::ids>()[i]);
}

void print_documents(const std::vector<std::string>& names) {
  mr::session run{mr::token_files(names, {.documents = true}) | mr::map([](mr::packed p) {
                    return document{mr::ragged(std::move(p.ids), {.max_length = 1'000})};
                  }) | mr::batch<document>({.size = 4, .drop_last = false}),
                  in_order()};
  for (auto& b : run)
    for (std::size_t i = 0; i < b.size(); ++i) print_row(b.get<&document::ids>()[i]);
}

void print_join(const std::vector<std::string>& arguments) {
  const auto missing = arguments[0] == "skip" ? mr::missing::skip : mr::missing::partial;
  mr::session run{mr::join(mr::shards(arguments[1], {.notice = mr::quiet}),
                           mr::shards(arguments[2], {.notice = mr::quiet}), {.missing = missing}) |
                      mr::map([](const mr::record& r) {
                        return joined{r["n"].as<std::int32_t>(), r.has("emb") ? r["emb"].as<std::int32_t>() : -1};
                      }) |
                      mr::batch<joined>({.size = 4, .drop_last = false, .keys = true}),
                  in_order()};
  for (auto& b : run) {
    const auto [n, emb] = b.columns();
    for (std::size_t i = 0; i < b.size(); ++i)
      std::printf("%s %d %d\n", std::string(b.keys()[i]).c_str(), n[i], emb[i]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string subject = argc > 1 ? argv[1] : "";
    const std::vector<std::string> arguments(argv + (argc > 1 ? 2 : 1), argv + argc);
    if (subject == "windows" && arguments.size() > 2) print_windows(arguments);
    else if (subject == "documents" && !arguments.empty()) print_documents(arguments);
    else if (subject == "join" && arguments.size() == 3) print_join(arguments);
    else return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
