struct row {
  std::int32_t label;
};

void example(decltype(mr::from(std::vector<row>()) | mr::batch<&row::label>({.size = 16})) flow) {
EXAMPLE
}
