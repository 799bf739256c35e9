#include <millrace/millrace.hpp>
#include <millrace/flow/stage_list.hpp>
template <class First, class Second>
void show(First first_stage, Second second_stage) {
EXAMPLE
}
void use() { show(mr::shuffle({.window = 9}), mr::take(9)); }
