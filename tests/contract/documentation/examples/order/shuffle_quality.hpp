void show(const mr::detail::exact_order& order, const mr::detail::world& mine,
          const mr::detail::ordered_sample& planned) {
EXAMPLE
}
