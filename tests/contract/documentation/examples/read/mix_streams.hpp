#include <millrace/sources/lines.hpp>
#include <millrace/sources/shards.hpp>

void use(std::size_t source, const std::variant<mr::record, mr::line>& item);

void show(const mr::detail::mix_rule& rule, const mr::detail::shards_source& shards,
          const mr::detail::lines_source& lines, std::uint64_t epoch) {
EXAMPLE
}
