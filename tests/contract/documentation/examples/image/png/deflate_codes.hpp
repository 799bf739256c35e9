constexpr int damaged = 1;
int example(std::span<const std::uint8_t> literal_lengths, std::span<const std::uint8_t> distance_lengths,
            std::uint64_t bits) {
EXAMPLE
  return static_cast<int>(e);
}
