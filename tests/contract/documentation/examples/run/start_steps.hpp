#include <millrace/measure/read_meter.hpp>
void example(mr::detail::trainer_times& times, mr::detail::read_meter& meter, std::uint64_t now) {
EXAMPLE
}
