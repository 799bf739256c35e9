// ---- batch_ring.hpp
// block 1 is a diagram of a slot's states
void example(std::vector<std::byte*> pieces, std::uint64_t batch) {
EXAMPLE 2
}

// ---- doorbell.hpp
void example(mr::detail::doorbell& bell, std::atomic<int>& work_to_do) {
EXAMPLE
}

// ---- queues.hpp
#include <millrace/item/sample.hpp>
#include <string>
void read(const std::string& shard);
void example() {
EXAMPLE 1
}
void example(std::uint64_t ticket, mr::detail::sample<mr::record> s) {
EXAMPLE 2
}

// ---- notice_outlet.hpp
struct session_options { std::function<void(const mr::notice&)> notice; };
void example(const session_options& options) {
EXAMPLE
}

// ---- slow_step.hpp
struct place { int find(const std::string& name) const; };
void example(const std::vector<std::string>& names, const place* at, std::vector<int>& stamps, std::size_t i) {
EXAMPLE
}

// ---- start_thread.hpp
void read_all();
void work(std::size_t index);
void example(std::vector<std::thread>& all) {
EXAMPLE
reader.join();
}
