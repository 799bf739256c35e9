# What including a header costs, and what nvcc makes of the headers (nvcc.py).
#
#   python3 tests/headers/costs.py
#
# Costs are processor seconds over an empty file, best of six, or of up to eighteen where that is too much: on a busy
# machine the yardstick, which is shorter, finds a quiet moment sooner. The limits hold for a machine on which <string>
# costs 0.20 s and the yardstick of checks.py 1.2 s. A slower one, or one that is busy, gets as much more as the
# yardstick takes longer there at the same time.
import pathlib
import resource
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import nvcc
from checks import YARDSTICK, RememberedPasses, Report, allowed_here
from headers import INCLUDE, UMBRELLA, syntax_check

COST_LIMITS_SECONDS = {UMBRELLA: 2.0, "millrace/flow/stage.hpp": 0.3, "millrace/device/view.hpp": 0.3}
ROUNDS = 6
MOST_TIMES = 3


def take_least_processor_seconds(texts, least):
    """Into least[text], None if it does not compile. Compiled in turns, so that all meet the same load."""
    def spent():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime
    for _ in range(ROUNDS):
        for text in texts:
            before = spent()
            compiled = syntax_check("g++", text).returncode == 0
            seconds = spent() - before
            least[text] = min(seconds, least.get(text) or seconds) if compiled else None


def check_costs(report):
    empty = ""
    text_of = {header: f"#include <{header}>\n" for header in COST_LIMITS_SECONDS if (INCLUDE / header).exists()}
    least = {}

    def cost_of(text):
        return least[text] - least[empty]

    def allowed(limit):
        return allowed_here(limit, cost_of(YARDSTICK))

    for _ in range(MOST_TIMES):
        take_least_processor_seconds([empty, YARDSTICK, *text_of.values()], least)
        if all(least[text] is None or cost_of(text) <= allowed(COST_LIMITS_SECONDS[header])
               for header, text in text_of.items()):
            break
    for header, limit in COST_LIMITS_SECONDS.items():
        name = f"cost of {header}"
        if header not in text_of:
            report.skip(name, "the header is not there")
            continue
        if least[text_of[header]] is None:
            report.add(name, "it does not compile")
            continue
        cost = cost_of(text_of[header])
        problem = f"it costs {cost:.2f} s over an empty file; {allowed(limit):.2f} s are allowed on this machine"
        report.add(f"{name}: {cost:.2f} s; the yardstick: {cost_of(YARDSTICK):.2f} s",
                   problem if cost > allowed(limit) else None)


def main():
    report = Report()
    nvcc.check(report, RememberedPasses())
    check_costs(report)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
