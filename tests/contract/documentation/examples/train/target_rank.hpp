void count(std::span<const float> logits_of_one_sample, std::size_t label) {
EXAMPLE
}
