namespace rules {
using mr::detail::folder_rule;
using mr::detail::names_a_shard;
EXAMPLE
}
