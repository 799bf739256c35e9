struct example {
  mr::tensor<std::uint8_t, 3> pixels;
  std::int32_t label;
};

void show(const example& first, std::byte* base, const mr::row_mix& how) {
EXAMPLE
}
