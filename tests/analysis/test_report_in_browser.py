"""The report as a person meets it: at three widths, with clicks and keys, with 1,000 runs."""

import copy
import json
import time

import pytest

import hindsched as hs
from hindsched.analysis.comparison import Comparison
from hindsched.analysis.plan import plan_tasks
from hindsched.analysis.report import data as report_data
from hindsched.analysis.report import html
from hindsched.analysis.report.html import write_report
from hindsched.analysis.store import ResultStore
from hindsched.analysis.sweep import run_tasks
from tests.browser import WIDTHS, chromium, complaints, show, too_wide

pytestmark = pytest.mark.nightly

OWN = ["oasis", "oasis-chunk", "fifo", "drf", "rrh"]
OPENS_WITHIN_SECONDS = 2.0
"""Of processor time, so that a loaded machine does not matter."""
MOST_BYTES = 5_000_000


@pytest.fixture(scope="module")
def browser():
    with chromium() as driver:
        yield driver


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    instances = [hs.generate("oasis", seed=seed, jobs=6) for seed in (1, 2)]
    tasks = plan_tasks(instances, OWN, seeds=2, offline={"method": "bound", "time_limit": 1.0})
    made = ResultStore.create(tmp_path_factory.mktemp("page") / "out", instances, tasks)
    run_tasks(tasks, instances, workers=0, on_record=made.add)
    return made


@pytest.fixture(scope="module")
def page(store):
    return write_report(store).as_uri()


def find(browser, selector):
    return browser.find_elements("css selector", selector)


def click(browser, selector):
    (element,) = find(browser, selector)
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    element.click()


def eventually(holds, seconds=20.0):
    """Whether a page comes to be so: it answers clicks and a new address a little later."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def says(browser, selector, words):
    return eventually(lambda: any(words in element.text for element in find(browser, selector)))


def cells(browser, table, column):
    return browser.execute_script(
        "return [...document.querySelectorAll(arguments[0] + ' tbody tr')]"
        ".filter((row) => !row.hidden).map((row) => row.cells[arguments[1]].textContent)",
        table,
        column,
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_cut_off_and_nothing_fails(browser, page, width):
    show(browser, page, width)
    for element in find(browser, "[data-plot]"):
        browser.execute_script("arguments[0].scrollIntoView()", element)
    assert eventually(lambda: len(find(browser, "[data-plot] svg")) == 2)
    assert too_wide(browser) == []
    browser.execute_script("location.hash = 'run-0'")
    assert eventually(lambda: len(find(browser, "dialog[open] svg")) == 2)
    assert too_wide(browser) == []
    assert complaints(browser) == []


def test_tables_sort_and_filter(browser, page):
    show(browser, page, 1280)
    table = "#runs-table"
    heading = f"{table} thead th:nth-child(5)"
    for order in ("ascending", "descending"):
        click(browser, f"{heading} button")
        assert find(browser, heading)[0].get_attribute("aria-sort") == order
        values = [float(text) for text in cells(browser, table, 4)]
        assert values == sorted(values, reverse=order == "descending")
    find(browser, "#find")[0].send_keys("fifo")
    assert eventually(lambda: set(cells(browser, table, 1)) == {"fifo"})
    assert says(browser, "#count", "2 of 10 shown")
    assert len(cells(browser, "#algorithms", 1)) == len(OWN)
    click(browser, "#algorithms a[data-algorithm='drf']")
    assert eventually(lambda: set(cells(browser, table, 1)) == {"drf"})
    assert find(browser, "#family")[0].get_attribute("value") == "oasis"


def test_a_number_leads_to_its_instance_certificate_and_command(browser, page, store):
    show(browser, page, 1280)
    click(browser, "#runs-table tr[data-run='0'] td:nth-child(3)")
    assert says(browser, "#detail-body", "Run it again")
    text = find(browser, "#detail-body")[0].text
    record = next(item for item in store.records() if item["kind"] == "online")
    name = record["instance"]
    for part in (f"instances/{name}.json", f"certificates/{name}.json", "Run it again"):
        assert part in text
    assert f"hindsched simulate instances/{name}.json --algorithm oasis --seed 0" in text
    links = [link.get_attribute("href") for link in find(browser, "#detail-body a")]
    assert f"{store.folder.as_uri()}/solutions/{record['task']}.json" in links
    find(browser, "body")[0].send_keys("\ue00c")  # Escape
    assert eventually(lambda: find(browser, "dialog[open]") == [])
    click(browser, "#instances tr[data-instance='1'] a")
    assert says(browser, "#detail-body", "Solve it again")


def test_pictures_answer_to_the_keyboard(browser, page):
    show(browser, page, 1280)
    click(browser, "#profiles .legend button:first-child")
    picture = find(browser, "#profiles svg")[0]
    before = len(find(browser, "#profiles svg path"))
    assert before == len(OWN) - 1
    picture.send_keys("\ue014")  # to the right
    assert says(browser, "#said", "of the best: ")
    ratios = find(browser, "#ratios svg")[0]
    ratios.send_keys("\ue014")
    assert says(browser, "#tip", "ratio [")
    ratios.send_keys("\ue007")  # Enter opens the run
    assert says(browser, "#detail-title", "oasis on ")


def test_a_profile_in_which_nobody_is_worse_is_drawn(browser, tmp_path):
    instance = hs.generate("oasis", seed=1, jobs=4)
    tasks = plan_tasks([instance], ["fifo"], offline={"method": "bound", "time_limit": 1.0})
    made = ResultStore.create(tmp_path / "out", [instance], tasks)
    run_tasks(tasks, [instance], workers=0, on_record=made.add)
    show(browser, write_report(made).as_uri(), 768)
    browser.execute_script("document.querySelector('#profiles').scrollIntoView()")
    assert eventually(lambda: find(browser, "#profiles svg path"))
    wide = "return document.querySelector('#profiles svg path').getBBox().width"
    assert browser.execute_script(wide) > 300
    find(browser, "#profiles svg")[0].send_keys("\ue014")
    assert says(browser, "#tip", "within 1 of the best: fifo 100.0 %")


def test_sections_fold_and_the_theme_turns(browser, page):
    show(browser, page, 768)
    assert find(browser, "#runs-table")[0].is_displayed()
    click(browser, "#runs > summary")
    assert not find(browser, "#runs-table")[0].is_displayed()

    def background():
        return browser.execute_script("return getComputedStyle(document.body).backgroundColor")

    light = background()
    click(browser, "#theme")
    assert background() != light


def test_every_control_has_a_name(browser, page):
    show(browser, page, 1280)
    nameless = browser.execute_script(
        """
        return [...document.querySelectorAll("button, input, select, [role=region], svg")]
          .filter((part) => !(part.textContent.trim() || part.ariaLabel || part.labels?.length))
          .map((part) => part.outerHTML.slice(0, 80));
        """
    )
    assert nameless == []


def test_a_page_of_a_thousand_runs_is_light_and_opens_at_once(browser, store, monkeypatch):
    records = store.records()
    copies = []
    for number in range(100):
        for record in copy.deepcopy(records):
            record["instance"] += f"-{number}"
            copies.append(record)
    many = Comparison(copies)
    runs = sum(len(item.algorithms) for item in many.instances)
    assert runs == 1000
    true = report_data.page_data(store, Comparison(records))
    heavy = fill(true, many)
    monkeypatch.setattr(html, "page_data", lambda *_: heavy)
    monkeypatch.setattr(html, "Comparison", lambda _: many)
    path = write_report(store)
    assert path.stat().st_size < MOST_BYTES
    assert len(json.dumps(heavy["schedules"])) > report_data.MOST_SCHEDULE_BYTES
    browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    show(browser, path.as_uri(), 1280)
    browser.execute_async_script("setTimeout(arguments[0], 100)")
    metrics = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    busy = {item["name"]: item["value"] for item in metrics}["TaskDuration"]
    assert len(find(browser, "#runs-table tbody tr")) == 1000
    assert len(find(browser, "#ratios svg [data-open]")) == 1000
    assert 0 < busy < OPENS_WITHIN_SECONDS


def fill(data, many):
    """The data of a page with the rows of `many` and as many schedules as a page carries."""
    places = {item.instance: place for place, item in enumerate(many.instances)}
    runs = [
        {**data["runs"][index % len(data["runs"])], "instance": places[row.instance]}
        for index, row in enumerate(row for item in many.instances for row in item.algorithms)
    ]
    instances = [
        {**data["instances"][index % len(data["instances"])], "name": item.instance}
        for index, item in enumerate(many.instances)
    ]
    one = next(iter(data["schedules"].values()))
    size = len(json.dumps(one, separators=(",", ":")))
    count = report_data.MOST_SCHEDULE_BYTES // size + 1
    schedules = {f"task-{index}": one for index in range(count)}
    return {**data, "runs": runs, "instances": instances, "schedules": schedules}
