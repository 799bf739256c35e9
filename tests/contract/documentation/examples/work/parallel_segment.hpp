struct clip {
  std::size_t size;
};
struct window {};
struct windows_of {
  using output = window;
  std::size_t frames;
  std::size_t max_outputs(const clip& c) const { return c.size / frames; }
  void push(const clip&, auto& emit) const { emit(window{}); }
};
using next_segment = mr::detail::parallel_segment<mr::detail::fused_maps<window>, mr::detail::no_expanding_stage>;

void show(mr::detail::executor& pool, next_segment& next) {
EXAMPLE
}
