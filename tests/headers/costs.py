# What including a header costs, and what nvcc makes of the headers (nvcc.py).
#
#   python3 tests/headers/costs.py
#
# Costs are processor seconds over an empty file, best of six. The limits hold for a machine on which <string> costs
# 0.20 s and the yardstick of checks.py 1.2 s. A slower one, or one that is busy, gets as much more as the yardstick
# takes longer there at the same time.
import pathlib
import resource
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import nvcc
from checks import YARDSTICK, YARDSTICK_COST_SECONDS, RememberedPasses, Report
from headers import INCLUDE, UMBRELLA, syntax_check

COST_LIMITS_SECONDS = {UMBRELLA: 2.0, "millrace/flow/stage.hpp": 0.3, "millrace/device/view.hpp": 0.3}
ROUNDS = 6


def least_processor_seconds(texts):
    """For each of the texts, None if it does not compile. Compiled in turns, so that all meet the same load."""
    def spent():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime
    least = {}
    for _ in range(ROUNDS):
        for text in texts:
            before = spent()
            compiled = syntax_check("g++", text).returncode == 0
            seconds = spent() - before
            least[text] = min(seconds, least.get(text) or seconds) if compiled else None
    return least


def check_costs(report):
    empty = ""
    text_of = {header: f"#include <{header}>\n" for header in COST_LIMITS_SECONDS if (INCLUDE / header).exists()}
    least = least_processor_seconds([empty, YARDSTICK, *text_of.values()])
    yardstick = least[YARDSTICK] - least[empty]
    for header, limit in COST_LIMITS_SECONDS.items():
        name = f"cost of {header}"
        if header not in text_of:
            report.skip(name, "the header is not there")
            continue
        if least[text_of[header]] is None:
            report.add(name, "it does not compile")
            continue
        cost = least[text_of[header]] - least[empty]
        allowed = limit * max(1.0, yardstick / YARDSTICK_COST_SECONDS)
        report.add(f"{name}: {cost:.2f} s; the yardstick: {yardstick:.2f} s", None if cost <= allowed else
                   f"it costs {cost:.2f} s over an empty file; {allowed:.2f} s are allowed on this machine")


def main():
    report = Report()
    nvcc.check(report, RememberedPasses())
    check_costs(report)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
