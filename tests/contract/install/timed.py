# Builds of consumers in the processor time that they may take.
from checks import ROOT, YARDSTICK, StepFailed, allowed_here

# Of processor time, that a consumer may take at most where the yardstick takes what it costs.
BUILD_SECONDS = 15
LIBRARY_BUILD_SECONDS = 6   # of one that links the compiled library, without debug information


def run_in_time(leg, what, command, limit_seconds=BUILD_SECONDS):
    """As leg.run(), in the time that a consumer's build may take. One that takes longer is weighed by the yardstick: a
    slower machine, or one that is busy, gets as much more as the slower of two yardsticks takes longer there."""
    seconds = processor_seconds(leg, what, command)
    allowed = limit_seconds
    if seconds > allowed:
        allowed = allowed_here(limit_seconds, max(yardstick_seconds(leg) for _ in range(2)))
    leg.write(f"{what}: {seconds:.1f} s of processor time, of {allowed:.1f}")
    if seconds > allowed:
        raise StepFailed(f"{what}: {seconds:.1f} s of processor time, more than the {allowed:.1f} allowed here")


def yardstick_seconds(leg):
    file = ROOT / "build" / "install" / "yardstick.cpp"
    file.write_text(YARDSTICK)
    return processor_seconds(leg, "time the yardstick", ["g++", "-std=c++20", "-fsyntax-only", file])


def processor_seconds(leg, what, command):
    """Of a command that is run; other legs' processes are not counted."""
    timed = ["bash", "-c", 'TIMEFORMAT="%U %S"; time "$@"', "bash", *command]
    return sum(map(float, leg.run(what, timed).splitlines()[-1].split()))
