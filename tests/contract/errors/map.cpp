#include <millrace/base/random.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>

#include <string>

namespace mr = millrace;

struct example {
  int number;
};
example prepare(int n) { return {n}; }
const std::vector<int> numbers(100);

// case: callable_without_map
// error: the operand after '\|' is not a stage\. Put a callable into map
void train() {
#if MISTAKE
  auto flow = mr::from(numbers) | prepare | mr::batch<&example::number>({.size = 4});   // wrong here
#else
  auto flow = mr::from(numbers) | mr::map(prepare) | mr::batch<&example::number>({.size = 4});
#endif
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: expand_without_max_outputs
// error: the type in expand\(\) is incomplete: expected 'using output = T;', 'max_outputs\(const In&\) const' and
struct doubled {
  using output = example;
#if !MISTAKE
  std::size_t max_outputs(const int&) const { return 2; }
#endif
  void push(int n, auto& emit) const {
    emit(prepare(n));
    emit(prepare(n));
  }
};

void train() {
  auto flow = mr::from(numbers)
            | mr::expand(doubled{})   // wrong here
            | mr::batch<&example::number>({.size = 4});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: expand_without_output
// error: the type in expand\(\) is incomplete: expected 'using output = T;', 'max_outputs\(const In&\) const' and
struct doubled {
#if !MISTAKE
  using output = example;
#endif
  std::size_t max_outputs(const int&) const { return 2; }
  void push(int n, auto& emit) const {
    emit(prepare(n));
    emit(prepare(n));
  }
};

void train() {
  auto flow = mr::from(numbers)
            | mr::expand(doubled{})   // wrong here
            | mr::batch<&example::number>({.size = 4});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: map_arguments_swapped
// error: the callable in map\(\) accepts its arguments in the wrong order: expected \(item, rng&, scratch&\)
#if MISTAKE
example shift(mr::rng& random, int n) { return {n + static_cast<int>(random.below(3))}; }
#else
example shift(int n, mr::rng& random) { return {n + static_cast<int>(random.below(3))}; }
#endif

void train() {
  auto flow = mr::from(numbers)
            | mr::map(shift)   // wrong here
            | mr::batch<&example::number>({.size = 4});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: map_is_mutable
// error: the callable in map\(\) is 'mutable'
void train() {
#if MISTAKE
  auto count = [total = 0](int n) mutable { return n + ++total; };
#else
  auto count = [total = 0](int n) { return n + total; };
#endif
  auto flow = mr::from(numbers)
            | mr::map(count)   // wrong here
            | mr::map(prepare)
            | mr::batch<&example::number>({.size = 4});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: map_creates_an_immovable_item
// error: the item that this stage creates cannot be moved
struct immovable {
  int number;
#if MISTAKE
  explicit immovable(int n) : number(n) {}
  immovable(const immovable&) = delete;
#endif
};
immovable hold(int n) { return immovable{n}; }

void train() {
  auto flow = mr::from(numbers)
            | mr::map(hold)   // wrong here
            | mr::batch<&immovable::number>({.size = 4});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&immovable::number>());
}

// case: map_of_an_overloaded_function
// error: no matching function for call to .map
// shows: millrace: wrap an overloaded function in a lambda
// errors: 2
example prepare(int, mr::rng&);

void train() {
  auto flow =
#if MISTAKE
      mr::from(numbers) | mr::map(prepare)   // wrong here
#else
      mr::from(numbers) | mr::map([](int n) { return prepare(n); })
#endif
      | mr::batch<&example::number>({.size = 4});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: map_returns_void
// error: the callable in map\(\) returns void: expected the next item
void train() {
#if MISTAKE
  auto look = [](int n) { static_cast<void>(n); };
#else
  auto look = [](int n) { return n; };
#endif
  auto flow = mr::from(numbers)
            | mr::map(look)   // wrong here
            | mr::map(prepare)
            | mr::batch<&example::number>({.size = 4});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: map_accepts_a_reference
// error: accepts its item by a reference that is not const
void train() {
  auto flow =
#if MISTAKE
      mr::from(numbers) | mr::map([](int& n) { return example{n}; })   // wrong here
#else
      mr::from(numbers) | mr::map([](const int& n) { return example{n}; })
#endif
      | mr::batch<&example::number>({.size = 4});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: map_accepts_another_type
// error: flow_item<int>.*stage_input<.*string.*the stage after '\|' does not accept the type that the flow
#if MISTAKE
int wrong(const std::string& s) { return static_cast<int>(s.size()); }
#else
int wrong(int n) { return n; }
#endif

void train() {
  auto flow = mr::from(numbers)
            | mr::map(wrong)   // wrong here
            | mr::map(prepare)
            | mr::batch<&example::number>({.size = 4});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: map_accepts_auto_references
// error: accepts its item by a reference that is not const
void train() {
  auto flow =
#if MISTAKE
      mr::from(numbers) | mr::map([](auto& n, auto&) { return example{n}; })   // wrong here
#else
      mr::from(numbers) | mr::map([](const auto& n, auto&) { return example{n}; })
#endif
      | mr::batch<&example::number>({.size = 4});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}

// case: map_without_from
// error: the operand before '\|' is not a flow
void train() {
  auto flow =
#if MISTAKE
      numbers | mr::map([](int n) { return example{n}; })   // wrong here
#else
      mr::from(numbers) | mr::map([](int n) { return example{n}; })
#endif
      | mr::batch<&example::number>({.size = 4});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}
