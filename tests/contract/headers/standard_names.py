# For each name of std:: in a header or an x.inl in include/millrace, that file must include, itself or through another
# of ours, a standard header that is documented to declare the name. headers.py compiles all files after a precompiled
# standard library, in half the time, so the compiler does not detect a missing include. Also, standard libraries differ
# in the headers that they include indirectly.
#
#   python3 tests/contract/headers/standard_names.py
import functools
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import ROOT, Report, reached_text

INCLUDE = ROOT / "include"
# The names by header (cppreference.com). For a name in several lines, any of them is sufficient. Including <ranges> is
# expensive, and both common standard libraries also declare these three of its names in <span>.
NAMES = """
algorithm: adjacent_find all_of any_of binary_search clamp copy copy_if copy_n count count_if equal fill fill_n find
algorithm: find_if is_sorted lower_bound make_heap max max_element min min_element minmax mismatch none_of nth_element
algorithm: partition_point pop_heap push_heap ranges::all_of ranges::find ranges::for_each reverse rotate
algorithm: sort stable_sort transform unique upper_bound move
array: array apply get tuple_size tuple_size_v tuple_element tuple_element_t begin data end size swap
atomic: atomic atomic_ref memory_order_acq_rel memory_order_acquire memory_order_relaxed memory_order_release
bit: bit_cast bit_ceil bit_floor bit_width countl_zero countr_one countr_zero endian has_single_bit popcount rotr
bitset: bitset
cctype: isdigit tolower
charconv: chars_format errc from_chars to_chars
chrono: chrono::duration chrono::duration_cast chrono::milliseconds chrono::nanoseconds chrono::seconds
chrono: chrono::hours chrono::system_clock
cmath: abs ceil fabs floor fma fmod frexp isfinite nearbyint sqrt trunc
concepts: constructible_from convertible_to copy_constructible derived_from floating_point integral invocable
concepts: move_constructible same_as signed_integral
condition_variable: condition_variable
csetjmp: jmp_buf longjmp
cstddef: byte nullptr_t ptrdiff_t size_t to_integer
cstdint: int8_t int16_t int32_t int64_t intptr_t uint8_t uint16_t uint32_t uint64_t uintptr_t
cstdio: FILE fclose ferror fgets fopen fprintf fputs fread snprintf sscanf size_t
cstdlib: abs aligned_alloc free getenv qsort strtoul strtoull size_t
cstring: memchr memcmp memcpy memmove memset strcmp strerror strlen strncmp size_t
ctime: strftime time time_t tm size_t
deque: deque erase_if begin end size
exception: bad_exception current_exception exception exception_ptr make_exception_ptr rethrow_exception terminate
fstream: ifstream
functional: function less
future: future future_status packaged_task
initializer_list: initializer_list begin end
iterator: back_inserter begin data default_sentinel_t end input_iterator_tag iter_difference_t next
iterator: random_access_iterator size sized_sentinel_for ssize
limits: numeric_limits
list: list erase_if begin end size
map: map erase_if begin end size
memory: addressof align allocate_shared allocator construct_at default_delete destroy_at destroy_n
memory: enable_shared_from_this make_shared make_shared_for_overwrite make_unique make_unique_for_overwrite
memory: shared_ptr static_pointer_cast swap unique_ptr
mutex: call_once lock_guard mutex once_flag recursive_mutex try_to_lock unique_lock
new: align_val_t bad_alloc bad_array_new_length nothrow
numeric: exclusive_scan accumulate gcd iota
optional: nullopt optional
queue: priority_queue
ranges: ranges::disable_sized_range ranges::enable_borrowed_range ranges::enable_view
set: set erase_if begin end size
shared_mutex: shared_lock shared_mutex
span: as_bytes as_writable_bytes span begin data end size
span: ranges::disable_sized_range ranges::enable_borrowed_range ranges::enable_view
sstream: istringstream ostringstream
istream: getline ws
string: getline string to_string string_literals erase_if begin data end size
string_view: string_view string_view_literals begin data end size
system_error: errc generic_category system_error
thread: this_thread::sleep_for this_thread::yield thread
tuple: apply get tie tuple tuple_cat tuple_element tuple_element_t tuple_size tuple_size_v
type_traits: conditional_t decay_t has_unique_object_representations_v integral_constant is_arithmetic_v is_base_of_v
type_traits: is_aggregate_v is_array_v is_member_object_pointer_v remove_pointer_t is_const_v is_constructible_v
type_traits: is_convertible_v is_enum_v is_floating_point_v is_function_v
type_traits: is_integral_v is_invocable_r_v
type_traits: is_lvalue_reference_v is_move_constructible_v is_same_v is_signed_v is_trivially_copyable_v is_unsigned_v
type_traits: is_void_v remove_const_t remove_cvref_t remove_reference_t type_identity
unordered_map: unordered_map erase_if begin end size
unordered_set: unordered_set erase_if begin end size
utility: as_const cmp_greater cmp_less declval exchange forward get in_place_index index_sequence
utility: make_index_sequence move pair swap tuple_element_t tuple_size_v
variant: get in_place_index variant visit
vector: erase erase_if vector begin data end size swap
"""
# Names that are used without std::.
MARKS = {
    "cerrno": re.compile(r"\b(errno|E(?:AGAIN|CHILD|EXIST|FBIG|INTR|INVAL|IO|ISDIR|NOENT|NOMEM|NOSPC|NOTDIR|PERM))\b"),
    "compare": re.compile(r"(<=>)"),
    "typeinfo": re.compile(r"\b(typeid)\b"),
    "new": re.compile(r"\b(new \()"),
}
# By the standard, the first one includes the others.
BRINGS = {
    "algorithm": "initializer_list", "array": "compare initializer_list", "fstream": "istream", "sstream": "istream",
    "memory": "compare", "optional": "compare", "map": "compare initializer_list", "queue": "compare initializer_list",
    "deque": "compare initializer_list", "set": "compare initializer_list", "string": "compare initializer_list",
    "string_view": "compare", "system_error": "compare", "thread": "compare", "tuple": "compare",
    "unordered_map": "compare initializer_list", "unordered_set": "compare initializer_list",
    "utility": "compare initializer_list", "variant": "compare", "vector": "compare initializer_list",
    "ranges": "compare initializer_list iterator", "condition_variable": "chrono", "mutex": "chrono system_error",
    "istream": "string", "new": "exception",
}
STANDARD_INCLUDE = re.compile(r"^\s*#\s*include\s*<([a-z_]+)>", re.MULTILINE)
STANDARD_NAME = re.compile(r"\bstd::((?:ranges::|chrono::|this_thread::)?\w+)")
NOT_CODE = re.compile(r'//.*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"')


@functools.lru_cache
def headers_of():
    headers_of = {}
    for line in NAMES.strip().splitlines():
        header, _, names = line.partition(": ")
        for name in names.split():
            headers_of.setdefault(name, set()).add(header)
    return headers_of


def reached_headers(text):
    """The headers of the standard library that the text includes, itself or through ours."""
    all_text = "\n".join([text, *reached_text(text, INCLUDE).values()])
    headers = set(STANDARD_INCLUDE.findall(all_text))
    for header in list(headers):
        headers.update(BRINGS.get(header, "").split())
    return headers


def problems_of(text):
    """Names that the text uses without their header, one line each."""
    code = NOT_CODE.sub("", text)
    reached, lacks = reached_headers(text), []
    for name in sorted(set(STANDARD_NAME.findall(code))):
        having = headers_of().get(name)
        if not having:
            lacks.append(f"std::{name} is not in the table of {pathlib.Path(__file__).name}: add it, with its header")
        elif not having & reached:
            lacks.append(f"it lacks <{'> or <'.join(sorted(having))}> for std::{name}")
    for header, mark in MARKS.items():
        if (used := mark.search(code)) and header not in reached:
            lacks.append(f"it lacks <{header}> for {used[1]}")
    return lacks


def main():
    report = Report()
    planted = problems_of("#include <vector>\nstd::vector<int> given;\nstd::optional<int> x;\n")
    detected = planted == ["it lacks <optional> for std::optional"]
    report.add("a name without its header is detected", None if detected else f"it was not: {planted}")
    files = sorted(str(path.relative_to(INCLUDE)) for path in (INCLUDE / "millrace").rglob("*.*")
                   if path.suffix in (".hpp", ".inl"))
    lacking = [f"{file}: {problem}" for file in files for problem in problems_of((INCLUDE / file).read_text())]
    report.add(f"standard headers of {len(files)} files", "\n".join(lacking) or None)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
