#include <millrace/read/lost_shards.hpp>
#include <millrace/run/session_options.hpp>
void account_for(const mr::session_options& options, mr::detail::lost_shards& lost, mr::detail::event_counts& counts,
                 const mr::detail::ready_batch& batch, const mr::detail::batch_origin& origin) {
EXAMPLE
}
