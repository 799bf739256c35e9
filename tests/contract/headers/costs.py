# What including a header costs, and what nvcc makes of the headers (nvcc.py).
#
#   python3 tests/contract/headers/costs.py
#
# Costs are processor seconds over an empty file, as on a machine on which <string> costs 0.20 s and the yardstick of
# checks.py 1.2 s: what a header costs for each yardstick measured right beside it, the median of three rounds, or of up
# to eighteen where that is too much. (The least of each would not do: the yardstick is the shorter one, and finds a
# quiet moment of a busy machine sooner.)
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import nvcc
from checks import (COMPILED, YARDSTICK, YARDSTICK_COST_SECONDS, RememberedPasses, Report,
                    processor_seconds_of_children)
from headers import INCLUDE, UMBRELLA, syntax_check

# By itself the umbrella brings all definitions. No class is a template for the sake of this cost: who compiles many
# files takes the compiled library, whose umbrella only declares. Header-only it costs 3.4 to 3.9 s as it is counted
# here, depending on the host. The limits are above that. Of g++ 12's 16.1 billion instructions behind the preprocessor,
# the standard headers take 2.8, <immintrin.h> 2.1 and the definitions 5.8 (valgrind --tool=cachegrind, on 27 November
# 2026).
COST_LIMITS_SECONDS = {(UMBRELLA,): 4.7, (UMBRELLA, COMPILED): 1.6, ("millrace/flow/stage.hpp",): 0.3,
                       ("millrace/device/view.hpp",): 0.3}   # a header and its flags
ROUNDS = 3
MAX_TIMES = 6


def processor_seconds(text, *flags):
    """Of the compiler; none if it does not compile."""
    before = processor_seconds_of_children()
    compiled = syntax_check("g++", text, *flags).returncode == 0
    return processor_seconds_of_children() - before if compiled else None


def add_round(costs):
    """To the costs of each (header, flags), in yardsticks; none where it does not compile."""
    empty = processor_seconds("")
    yardstick = processor_seconds(YARDSTICK) - empty
    for (header, *flags), of_header in costs.items():
        seconds = processor_seconds(f"#include <{header}>\n", *flags)
        of_header.append(None if seconds is None else (seconds - empty) / yardstick)


def check_costs(report):
    costs = {header: [] for header in COST_LIMITS_SECONDS if (INCLUDE / header[0]).exists()}

    def cost_of(header):
        return statistics.median(costs[header]) * YARDSTICK_COST_SECONDS

    def problem_of(header):
        if None in costs[header]:
            return "it does not compile"
        cost, limit = cost_of(header), COST_LIMITS_SECONDS[header]
        return f"it costs {cost:.2f} s over an empty file; {limit:.2f} s are allowed" if cost > limit else None

    for _ in range(MAX_TIMES):
        for _ in range(ROUNDS):
            add_round(costs)
        if not any(map(problem_of, costs)):
            break
    for header in COST_LIMITS_SECONDS:
        name = f"cost of {' '.join(header)}"
        if header not in costs:
            report.skip(name, "the header is not there")
        elif problem := problem_of(header):
            report.add(name, problem)
        else:
            report.add(f"{name}: {cost_of(header):.2f} s where the yardstick costs {YARDSTICK_COST_SECONDS} s", None)


def main():
    report = Report()
    nvcc.check(report, RememberedPasses())
    check_costs(report)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
