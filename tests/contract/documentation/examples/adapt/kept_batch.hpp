struct row {
  std::int32_t label;
};

void example(mr::detail::batch_of<&row::label> b, mr::stream_view s) {
EXAMPLE
}
