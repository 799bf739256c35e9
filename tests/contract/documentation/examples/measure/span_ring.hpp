void draw(const mr::detail::span_ring::span& s);
void example(mr::detail::span_ring& ring, std::uint64_t t0, std::uint64_t t1, std::uint64_t batch) {
EXAMPLE
}
