bool example(const mr::detail::band_stream& first, const mr::detail::block_run& blocks, bool stored, bool refines) {
  struct {
    bool refines;
  } scan{refines};
  mr::detail::band_stream stream = first;
EXAMPLE
  return whole;
}
