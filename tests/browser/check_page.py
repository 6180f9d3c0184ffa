#!/usr/bin/env python3
"""Opens pages of `tilescope report` and `tilescope series` in headless Chromium and looks at them as readers do.

    check_page.py PAGE.html ...

Each page must write nothing to the console, ask for nothing but itself, tell its pictures and tables to
assistive technology, and sort its tables by click and by key. Needs chromium and chromedriver;
Python's standard library does the rest.
"""
import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--window-size=1280,900"]
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
ENTER = "\ue007"
SECONDS_TO_START = 30


class Browser:
    """A session of chromedriver."""

    def __init__(self, profile):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.base = f"http://127.0.0.1:{port}"
        self.driver = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
        self.session = None
        options = {"args": [*FLAGS, f"--user-data-dir={profile}"]}
        logs = {"browser": "ALL", "performance": "ALL"}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": logs}
        started = time.monotonic()
        while True:
            try:
                answer = self.post("/session", {"capabilities": {"alwaysMatch": wanted}})
                break
            except OSError:
                if time.monotonic() - started > SECONDS_TO_START:
                    raise
                time.sleep(0.2)
        self.session = answer["sessionId"]

    def post(self, path, body):
        url = self.base + (f"/session/{self.session}" if self.session else "") + path
        request = urllib.request.Request(url, json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            # What the driver has against it is in its answer.
            raise AssertionError(f"{path}: {json.load(error)['value']['message'][:300]}") from error

    def run(self, script, *arguments):
        return self.post("/execute/sync", {"script": script, "args": list(arguments)})

    def log(self, kind):
        return self.post("/se/log", {"type": kind})

    def cdp(self, command, **parameters):
        return self.post("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def close(self):
        try:
            if self.session:
                url = f"{self.base}/session/{self.session}"
                urllib.request.urlopen(urllib.request.Request(url, method="DELETE"), timeout=30)
        finally:
            self.driver.terminate()
            self.driver.wait(30)


def check(condition, words):
    if not condition:
        raise AssertionError(words)


def check_requests(browser, url):
    asked = []
    for entry in browser.log("performance"):
        message = json.loads(entry["message"])["message"]
        # The browser's own first tab asks for things, too.
        of_page = message["params"].get("documentURL") == url
        if message["method"] == "Network.requestWillBeSent" and of_page:
            asked.append(message["params"]["request"]["url"])
    outside = [one for one in asked if one != url and not one.startswith("data:")]
    check(url in asked, f"the page itself was asked for: {asked}")
    check(not outside, f"nothing else is asked for: {outside[:5]}")


def check_names(browser):
    """What assistive technology is told."""
    browser.cdp("Accessibility.enable")
    nodes = browser.cdp("Accessibility.getFullAXTree")["nodes"]
    told = [(node["role"]["value"], node.get("name", {}).get("value", ""))
            for node in nodes if not node.get("ignored") and "role" in node]
    roles = {role for role, _ in told}
    wanted = {"heading", "navigation", "main", "table", "columnheader", "rowheader", "button", "link"}
    check(wanted <= roles, f"there is no {sorted(wanted - roles)} among {sorted(roles)}")
    named = {"img", "image", "table", "button", "region", "searchbox", "columnheader", "link"}
    nameless = [role for role, name in told if role in named and not name.strip()]
    check(not nameless, f"these have no name: {nameless[:5]}")


def number(text):
    found = re.search(r"[-+]?\d[\d,]*(\.\d+)?", text)
    return float(found.group().replace(",", "")) if found else None


COLUMN = """
const [table, column] = arguments;
const root = document.querySelectorAll('[data-table]')[table];
return [...root.querySelectorAll('tbody tr')].map(row => row.cells[column].textContent);
"""
STATE = """
const [table, column] = arguments;
return document.querySelectorAll('[data-table]')[table].querySelectorAll('thead th')[column].getAttribute('aria-sort');
"""
TABLES = """
return [...document.querySelectorAll('[data-table]')].map(root => ({
  name: root.dataset.table,
  rows: Number(root.dataset.count),
  columns: [...root.querySelectorAll('thead th')].map(head => [head.dataset.kind, !!head.querySelector('button')]),
}));
"""
OPEN = """
document.querySelectorAll('details').forEach(details => { details.open = true; });
document.querySelectorAll('.more button').forEach(button => { if (!button.closest('.more').hidden) button.click(); });
"""
BUTTON = """
const [table, column] = arguments;
return document.querySelectorAll('[data-table]')[table].querySelectorAll('thead th')[column].querySelector('button');
"""


def press(browser, table, column, key):
    button = browser.run(BUTTON, table, column)[ELEMENT]
    if key:
        browser.post(f"/element/{button}/value", {"text": ENTER})
    else:
        browser.post(f"/element/{button}/click", {})


def check_sorting(browser):
    sorted_columns = 0
    browser.run(OPEN)
    for place, table in enumerate(browser.run(TABLES)):
        numbers = [at for at, (kind, button) in enumerate(table["columns"]) if kind == "number" and button]
        if not numbers or table["rows"] > 500:
            continue
        column = numbers[0]
        for key, state in [(False, "descending"), (True, "ascending")]:
            press(browser, place, column, key)
            check(browser.run(STATE, place, column) == state, f"{table['name']} says that it is {state}")
            cells = browser.run(COLUMN, place, column)
            check(len(cells) == table["rows"], f"{table['name']} keeps its rows")
            values = [value for value in map(number, cells) if value is not None]
            check(values == sorted(values, reverse=not key), f"{table['name']} is {state}: {values[:9]}")
        sorted_columns += 1
    check(sorted_columns > 0, "some table was sorted")


THEME = "return getComputedStyle(document.body).backgroundColor"
WIDEST = "return document.documentElement.scrollWidth"
# Letters are wider in some fonts, and names longer on some machines, than here.
WIDER = "document.body.style.letterSpacing = arguments[0]"


def check_theme(browser):
    before = browser.run(THEME)
    browser.run("document.getElementById('theme').click()")
    check(browser.run(THEME) != before, "the other theme looks different")


def check_phone(browser):
    size = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    browser.cdp("Emulation.setDeviceMetricsOverride", **size)
    room = size["width"]
    for spacing in ["0", "0.05em", "0.15em"]:
        browser.run(WIDER, spacing)
        width = browser.run(WIDEST)
        check(width <= room, f"a phone of {room} pixels scrolls {width} pixels with letters {spacing} wider")
    browser.run(WIDER, "")
    browser.cdp("Emulation.clearDeviceMetricsOverride")


def check_page(browser, page):
    url = pathlib.Path(page).resolve().as_uri()
    browser.post("/url", {"url": url})
    check_names(browser)
    check_sorting(browser)
    check_theme(browser)
    check_phone(browser)
    check_requests(browser, url)
    said = browser.log("browser")
    check(not said, f"the console is silent: {said[:3]}")


def main():
    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(profile)
        try:
            for page in sys.argv[1:]:
                check_page(browser, page)
                print(f"{page}: as it should be")
        finally:
            browser.close()


if __name__ == "__main__":
    main()
