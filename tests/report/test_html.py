"""The report's page as a person meets it, in a headless Chromium."""

from __future__ import annotations

import copy
import json
import statistics
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.report import browser as chromium
from tests.report.browser import DESKTOP, PHONE, complaints, look, requests
from tests.report.runs import a_run
from trajconform import kit
from trajconform.cli import main
from trajconform.harness.protocol import find_fault
from trajconform.harness.verdicts import CaseResult, Verdict
from trajconform.model.errors import TrajconformError
from trajconform.report.document import dump, report_document
from trajconform.report.html import render_html
from trajconform.spec.catalogue import load_catalogue
from trajconform.vectors.cases import load_cases

pytestmark = pytest.mark.skipif(bool(chromium.missing()), reason=chromium.missing())

# Each sets a global when a page runs it; which one says how it got in.
INJECTIONS = (
    "</script><script>window.pwned='script'</script>",
    "<img src=x onerror=\"window.pwned='img'\">",
    '"><svg onload="window.pwned=\'attribute\'">',
    "' autofocus onfocus='window.pwned=1' x='",
    "<!--<script>window.pwned='comment'//",
    "javascript:window.pwned=1",
    "</style></title></textarea><iframe srcdoc=\"<script>parent.pwned='iframe'</script>\">",
    "{{7*7}}${7*7}\u2028\u202e\x1b[31m\x00\ud800`<b>bold</b>`",
)
ALL = "".join(INJECTIONS)


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    with chromium.browser() as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


def command(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main([*words])
    return int(ended.value.code or 0)


@pytest.fixture(scope="module")
def bent_report(pages: Path) -> dict[str, Any]:
    """A real run of an implementation that loses bits and empty blocks, over some topics of both formats."""
    path = pages / "bent.json"
    topics = [word for topic in ("states", "record", "frame", "header") for word in ("--topic", topic)]
    words = ["--driver", "tests.report.bent:bent", *topics, "--json", str(path), "-q"]
    assert command("run", *words) == 1
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    assert found["counts"]["FAIL"] > 5 and found["counts"]["PASS"] > 100
    return found


@pytest.fixture(scope="module")
def bent(pages: Path, bent_report: dict[str, Any]) -> Path:
    path = pages / "bent.html"
    assert command("report", str(pages / "bent.json"), "--html", str(path)) == 0
    return path


@pytest.fixture(scope="module")
def full(pages: Path) -> Path:
    """Every case of the kit by three implementations whose verdicts are made up; inputs and clauses are real."""
    catalogue = load_catalogue()
    made_up = ("PASS", "PASS", "FAIL", "SKIP", "PASS", "ERROR", "INFO")
    documents = []
    for number in range(3):
        results = []
        for i, case in enumerate(load_cases(kit.root())):
            verdict = Verdict(made_up[(i + number * (i // 40 % 2)) % 7])
            about = (case.id, case.title, case.format, case.topic, case.role, tuple(case.clauses))
            results.append(CaseResult(*about, verdict, "" if verdict is Verdict.PASS else "expected 1, got 2"))
        run = replace(a_run({}, name=f"made-up-{number}"), results=tuple(results), planned=len(results))
        documents.append(report_document(run, catalogue))
    path = pages / "full.html"
    path.write_text(render_html(documents, catalogue), "utf-8")
    return path


@pytest.fixture(scope="module")
def others(pages: Path, bent_report: dict[str, Any]) -> list[Path]:
    """The other pages that the kit writes: a comparison, and the specification."""
    later = copy.deepcopy(bent_report)
    for entry in later["cases"][::3]:
        entry["verdict"] = {"PASS": "FAIL", "FAIL": "PASS"}.get(entry["verdict"], entry["verdict"])
    (pages / "later.json").write_text(json.dumps(later), "utf-8")
    from trajconform.report.compare import compare, load_reports
    from trajconform.report.comparison import html

    found = compare(load_reports([pages / "bent.json", pages / "later.json"]))
    (pages / "compare.html").write_text(html(found), "utf-8")
    assert command("spec", "html", str(pages / "site")) == 0
    return [pages / "compare.html", pages / "site" / "index.html", pages / "site" / "mrec-blocks.html"]


# -- helpers ---------------------------------------------------------------------------------------------------------


def find(driver: Any, selector: str) -> Any:
    return driver.find_element("css selector", selector)


def listed(driver: Any) -> list[str]:
    """The cases found, all of them: the list grows as one goes down."""
    return driver.execute_script(
        "for (let b; !(b = document.getElementById('more-rows')).hidden; ) b.click();"
        "return [...document.querySelectorAll('#list .case-id')].map((e) => e.textContent)"
    )


def type_in(driver: Any, text: str) -> None:
    box = find(driver, "#q")
    box.clear()
    box.send_keys(text)


def press(driver: Any, *keys: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    for key in keys:
        ActionChains(driver).send_keys(key).perform()


def choose(driver: Any, name: str, value: str) -> None:
    from selenium.webdriver.support.ui import Select

    if find(driver, "#more").get_attribute("open") is None:
        find(driver, "#more > summary").click()
    Select(find(driver, f"#f-{name}")).select_by_visible_text(value)


def focused(driver: Any) -> str:
    return driver.execute_script(
        "const e = document.activeElement; return e.id || e.className + ' ' + (e.querySelector('.case-id') || e).textContent"
    )


def failing(report: dict[str, Any], **wanted: str) -> list[dict[str, Any]]:
    cases = [case for case in report["cases"] if case["verdict"] == "FAIL"]
    return [case for case in cases if all(case[key] == value for key, value in wanted.items())]


# -- filters ---------------------------------------------------------------------------------------------------------


def test_what_fails_is_there_first(driver: Any, bent: Path, bent_report: dict[str, Any]) -> None:
    look(driver, bent)
    assert sorted(listed(driver)) == sorted(case["case"] for case in failing(bent_report))
    assert find(driver, "#count").text == f"{len(failing(bent_report))} of {len(bent_report['cases'])} cases"


@pytest.mark.parametrize(
    ("kind", "keep"),
    [
        ("PASS", lambda case: case["verdict"] == "PASS"),
        ("SKIP", lambda case: case["verdict"] == "SKIP"),
        ("role:store", lambda case: case["role"] == "store"),
        ("role:writer", lambda case: case["role"] == "writer"),
        ("q:nan bits", lambda case: False),
        ("q:OTJ-HEADER-12", lambda case: "OTJ-HEADER-12" in case["clauses"]),
        ("q:record/version@", lambda case: case["case"].startswith("mrec/record/version@")),
    ],
)
def test_a_filter_leaves_what_it_names(
    driver: Any, bent: Path, bent_report: dict[str, Any], kind: str, keep: Callable[[dict[str, Any]], bool]
) -> None:
    look(driver, bent, fragment="q=")
    everything = [case["case"] for case in bent_report["cases"]]
    assert sorted(listed(driver)) == sorted(everything)
    name, _, value = kind.partition(":")
    if name == "role":
        choose(driver, "role", value)
    elif name == "q":
        type_in(driver, value)
        if value == "nan bits":
            # Free text looks at titles and messages too, word by word, whatever the case of letters.
            texts = {
                c["case"]: " ".join((c["case"], c["title"], c["message"], *c["clauses"])).lower()
                for c in bent_report["cases"]
            }
            wanted = sorted(name for name, text in texts.items() if "nan" in text and "bits" in text)
            assert sorted(listed(driver)) == wanted
            return
    else:
        find(driver, f".toggle.{kind}").click()
    wanted = sorted(case["case"] for case in bent_report["cases"] if keep(case))
    assert sorted(listed(driver)) == wanted
    assert (find(driver, "#nothing").is_displayed()) == (not wanted)


def test_profiles_topics_and_back_again(driver: Any, bent: Path, bent_report: dict[str, Any]) -> None:
    look(driver, bent, fragment="q=")
    companion = {name for name, clause in bent_report["clauses"].items() if clause["profile"] == "companion"}
    wanted = sorted(case["case"] for case in bent_report["cases"] if companion & set(case["clauses"]))
    choose(driver, "profile", "companion")
    assert wanted and sorted(listed(driver)) == wanted
    find(driver, "#clear").click()
    assert sorted(listed(driver)) == sorted(case["case"] for case in failing(bent_report))
    cell = find(driver, ".cell[aria-label*='three states']")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", cell)
    cell.click()
    assert sorted(listed(driver)) == sorted(case["case"] for case in failing(bent_report, topic="states"))
    find(driver, "#clear").click()
    type_in(driver, "no such thing at all")
    assert listed(driver) == [] and find(driver, "#nothing").is_displayed()
    assert find(driver, "#count").text.startswith("0 of ")


def test_a_clause_leads_to_its_cases(driver: Any, bent: Path, bent_report: dict[str, Any]) -> None:
    look(driver, bent)
    find(driver, ".open").click()
    link = find(driver, ".clause-row .clause-link")
    name = link.text
    link.click()
    assert sorted(listed(driver)) == sorted(c["case"] for c in bent_report["cases"] if name in c["clauses"])
    find(driver, "#clause-chip").click()
    assert len(listed(driver)) == len(bent_report["cases"])


def test_an_address_keeps_filters_and_case(driver: Any, bent: Path, bent_report: dict[str, Any]) -> None:
    look(driver, bent)
    type_in(driver, "states")
    find(driver, "#list .row").click()
    fragment = driver.execute_script("return location.hash.slice(1)")
    title, found = find(driver, "#detail-title").text, listed(driver)
    look(driver, bent, fragment=fragment)
    assert (find(driver, "#detail-title").text, listed(driver), find(driver, "#q").get_attribute("value")) == (
        title,
        found,
        "states",
    )


# -- a case ----------------------------------------------------------------------------------------------------------


def test_a_case_by_mouse(driver: Any, bent: Path, bent_report: dict[str, Any]) -> None:
    case = next(c for c in failing(bent_report, format="mrec") if any("expected_bits" in d for d in c["differences"]))
    look(driver, bent)
    type_in(driver, case["case"])
    find(driver, "#list .row").click()
    detail = find(driver, "#detail")
    assert case["title"] in detail.text
    for clause in case["clauses"]:
        statement = bent_report["clauses"].get(clause, {}).get("statement", "")
        assert clause in detail.text and statement.replace("`", "") in detail.text
    assert f"trajconform run --driver tests.report.bent:bent --case {case['case']}" in detail.text
    difference = next(d for d in case["differences"] if "expected_bits" in d)
    sides = [int(difference[side], 16) for side in ("expected_bits", "actual_bits")]
    marked = detail.find_elements("css selector", ".bits")[0].find_elements("css selector", "mark")
    assert len(marked) == 2 * (sides[0] ^ sides[1]).bit_count()
    assert difference["expected"] in detail.text and difference["actual"] in detail.text
    assert detail.find_elements("css selector", ".pair.differs mark")
    assert detail.find_elements("css selector", ".tree .name") and detail.find_elements("css selector", ".states rect")
    find(driver, "#detail .close").click()
    assert not detail.is_displayed()


def test_a_case_by_keyboard_alone(driver: Any, bent: Path) -> None:
    look(driver, bent)
    press(driver, "/")
    assert focused(driver) == "q"
    press(driver, "states", "\ue015")
    names = listed(driver)
    assert focused(driver).endswith(names[0])
    press(driver, "\ue015", "\ue007")
    assert focused(driver) == "detail" and names[1] in find(driver, "#detail .case-id").text
    press(driver, "\ue004")
    assert "before" in focused(driver)
    press(driver, "\ue004", "\ue007")
    assert names[2] in find(driver, "#detail .case-id").text
    press(driver, "\ue00c")
    assert not find(driver, "#detail").is_displayed() and focused(driver).endswith(names[2])
    # Nothing but the tabulator leads to everything else: the first stop skips to the cases.
    look(driver, bent)
    press(driver, "\ue004")
    assert driver.execute_script("return document.activeElement.getAttribute('href')") == "#cases"
    seen = set()
    for _ in range(12):
        press(driver, "\ue004")
        seen.add(driver.execute_script("return document.activeElement.id || document.activeElement.className"))
    assert {"theme", "open"} <= seen
    driver.execute_script("document.querySelector('.open').focus()")
    press(driver, "\ue007")
    assert find(driver, ".open").get_attribute("aria-expanded") == "true"
    assert driver.find_elements("css selector", ".clause-row")


def test_states_of_a_block_by_ordinal(driver: Any, bent: Path, bent_report: dict[str, Any]) -> None:
    """``mrec/states/all-three``: absent at 0, two rows at 1 and 2, empty at 3 and 4, three rows from 5 on."""
    look(driver, bent, fragment="v=&case=mrec/states/all-three")
    svgs = driver.find_elements("css selector", "#detail .states svg")
    told = [svg.get_attribute("aria-label") for svg in svgs]
    right = "b frame 0 absent; b frames 1 to 2 present 2 rows; b frames 3 to 4 empty; b frames 5 to 6 present 3 rows"
    wrong = "b frame 0 absent; b frames 1 to 2 present 2 rows; b frames 3 to 4 absent; b frames 5 to 6 present 3 rows"
    assert told == [wrong, right]
    assert len(svgs[0].find_elements("css selector", ".s-differs")) == 2
    updates = svgs[1].find_elements("css selector", ".s-update")
    assert len(updates) == 3


def test_bytes_are_annotated_and_the_changed_one_is_marked(driver: Any, bent: Path) -> None:
    look(driver, bent, fragment="v=&case=otj/header/flipped-bits-double@flip-0005-4")
    marks = [mark.text for mark in driver.find_elements("css selector", "#detail .hex mark")]
    assert marks == ["49"]
    assert [e.text for e in driver.find_elements("css selector", "#detail .bits mark")] == ["1", "0"]
    rows = [
        [cell.text for cell in row.find_elements("css selector", "td")]
        for row in driver.find_elements("css selector", "#detail .hex tr")
    ]
    assert ["16", "02 00 00 00 00 00 00 00", "particles", "2"] in rows
    assert ["24", "00 00 00 00 00 00 d0 3f", "timestep", "0.25"] in rows


def test_no_case_shows_what_is_not_there(driver: Any, bent: Path, full: Path) -> None:
    """Every kind of case is opened; what a value that is missing would leave behind is on none of them."""
    for page, step in ((bent, 4), (full, 113)):
        look(driver, page, fragment="q=")
        found = driver.execute_script(
            "for (let b; !(b = document.getElementById('more-rows')).hidden; ) b.click();"
            "const bad = [], rows = [...document.querySelectorAll('#list .row')];"
            "for (let i = 0; i < rows.length; i += arguments[0]) { rows[i].click();"
            " for (const d of document.querySelectorAll('#detail details')) d.open = true;"
            " const walk = document.createTreeWalker(document.getElementById('detail'), NodeFilter.SHOW_TEXT);"
            " while (walk.nextNode()) { const text = walk.currentNode.data;"
            "  if (text === 'undefined' || text.startsWith('[object')) bad.push([rows[i].textContent, text]); } }"
            "return [bad, rows.length]",
            step,
        )
        assert found[0] == [] and found[1] > 300
        # A hundred addresses a second are more than a person makes.
        assert [line for line in complaints(driver) if "Throttling navigation" not in line] == []


# -- looks -----------------------------------------------------------------------------------------------------------

CONTRAST = Path(__file__).with_name("contrast.js").read_text("utf-8")


def contrast(driver: Any, least: float = 4.5) -> tuple[int, list[Any]]:
    """How many texts were looked at, and which have less than this ratio (WCAG 2.2, 1.4.3)."""
    texts, poor = driver.execute_script(CONTRAST, least)
    return texts, poor


def states_of_the_page(driver: Any, bent: Path, others: list[Path], bent_report: dict[str, Any]) -> Iterator[Any]:
    """The pages in the states in which they show everything they can: ``(page, fragment, script)``."""
    cases = [c["case"] for c in (*failing(bent_report, format="mrec")[:3], *failing(bent_report, format="otj")[:2])]
    open_all = "for (const b of document.querySelectorAll('.open')) b.click()"
    yield bent, "", open_all
    for case in (*cases, "mrec/states/all-three", "otj/header/flipped-bits-double@flip-0005-4"):
        yield bent, f"v=&case={case}", ""
    yield bent, "q=no-such-case&role=reader&clause=MREC-STATE-04", ""
    for page in others:
        yield page, "", ""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_contrast_is_enough_everywhere(
    driver: Any, bent: Path, others: list[Path], bent_report: dict[str, Any], dark: bool
) -> None:
    for page, fragment, script in states_of_the_page(driver, bent, others, bent_report):
        look(driver, page, dark=dark, fragment=fragment)
        driver.execute_script(script)
        texts, poor = contrast(driver)
        assert texts > 20 and poor == [], (page.name, fragment)


def test_contrast_would_be_found_poor(driver: Any, pages: Path) -> None:
    page = pages / "poor.html"
    page.write_text(
        "<body style='background:#fff'><p style='color:#777'>pale</p><p style='color:#767676'>just enough", "utf-8"
    )
    look(driver, page)
    assert [found[2] for found in contrast(driver)[1]] == ["pale"]


def test_a_theme_can_be_chosen(driver: Any, bent: Path) -> None:
    look(driver, bent, dark=False)
    papers = []
    for _ in range(3):
        papers.append(driver.execute_script("return getComputedStyle(document.body).backgroundColor"))
        find(driver, "#theme").click()
    assert papers[0] == papers[1] != papers[2]
    assert find(driver, "#theme").text == "Theme: auto"


def test_nothing_sticks_out_on_a_phone(
    driver: Any, bent: Path, others: list[Path], full: Path, bent_report: dict[str, Any]
) -> None:
    for page, fragment, script in (*states_of_the_page(driver, bent, others, bent_report), (full, "", "")):
        look(driver, page, size=PHONE, fragment=fragment)
        driver.execute_script("for (const d of document.querySelectorAll('details')) d.open = true;" + script)
        wide = driver.execute_script(
            "return [document.documentElement, document.body, document.getElementById('detail')]"
            ".filter((e) => e && e.scrollWidth > e.clientWidth && e.clientWidth).map((e) => [e.tagName, e.scrollWidth])"
        )
        assert driver.execute_script("return innerWidth") == PHONE[0]
        assert wide == [], (page.name, fragment)


def test_a_case_on_a_phone_covers_the_list_and_gives_it_back(driver: Any, bent: Path) -> None:
    look(driver, bent, size=PHONE)
    find(driver, "#list .row").click()
    assert driver.execute_script("return document.getElementById('page').inert") is True
    box = find(driver, "#detail").rect
    assert (box["x"], box["width"]) == (0, PHONE[0])
    find(driver, "#detail .back").click()
    assert driver.execute_script("return document.getElementById('page').inert") is False


def test_a_print_has_no_controls(driver: Any, bent: Path) -> None:
    look(driver, bent, fragment="v=&case=mrec/states/all-three", dark=True)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert not find(driver, "#filters").is_displayed() and not find(driver, "#list").is_displayed()
        assert find(driver, "#detail-title").is_displayed()
        assert driver.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


# -- speed -----------------------------------------------------------------------------------------------------------


def test_thousands_of_cases_filter_at_once(driver: Any, full: Path) -> None:
    look(driver, full)
    assert (
        int(driver.execute_script("return JSON.parse(document.getElementById('data').textContent).cases.length")) > 4000
    )
    found = driver.execute_script(
        "const box = document.getElementById('q'), times = {};"
        "for (let turn = 0; turn < 3; turn++) "
        "for (const text of ['m', 'mr', 'mrec', 'flip 0005', 'MREC-BLOCK-05', 'nothing like it', '']) {"
        "  const begun = performance.now(); box.value = text; box.dispatchEvent(new Event('input', {bubbles: true}));"
        "  void document.body.offsetHeight; (times[text] ||= []).push(performance.now() - begun); }"
        "for (let turn = 0; turn < 3; turn++) for (const button of document.querySelectorAll('#verdicts .toggle')) {"
        "  const begun = performance.now(); button.click();"
        "  void document.body.offsetHeight; (times[button.className] ||= []).push(performance.now() - begun); }"
        "return times"
    )
    slow = {name: times for name, times in found.items() if statistics.median(times) >= 100}
    assert len(found) == 12 and slow == {}


def test_cases_open_at_once_and_the_list_goes_on(driver: Any, full: Path) -> None:
    look(driver, full, fragment="q=")
    times = driver.execute_script(
        "const times = [];"
        "for (const row of [...document.querySelectorAll('#list .row')].slice(0, 25)) {"
        "  const begun = performance.now(); row.click(); void document.body.offsetHeight; times.push(performance.now() - begun); }"
        "return times"
    )
    assert len(times) == 25 and statistics.median(times) < 100
    count = "return document.querySelectorAll('#list .row').length"
    before = driver.execute_script(count)
    driver.execute_script("scrollTo(0, document.body.scrollHeight)")
    for _ in range(50):
        if driver.execute_script(count) > before:
            break
    assert driver.execute_script(count) > before


# -- what comes from elsewhere ---------------------------------------------------------------------------------------


# What ran, and what stands on the page that only markup of a stranger can have put there.
WHAT_RAN = """
const markup = document.querySelectorAll("img, iframe, object, embed, link, base, form:not(#filters), b");
const attributes = [...document.querySelectorAll("*")].flatMap((e) => [...e.attributes]);
const bad = (a) => /^on|^srcdoc$|^autofocus$/.test(a.name) || (a.name === "style" && !/^--bar: \\d+px;$/.test(a.value)) ||
  (/^(href|src|action|xlink:href)$/.test(a.name) && /^\\s*javascript:/i.test(a.value));
return [window.pwned ?? null, document.scripts.length, markup.length, attributes.filter(bad).map((a) => a.name + "=" + a.value)];
"""


def poisoned(report: dict[str, Any]) -> dict[str, Any]:
    """The report of somebody who wants more than to be judged: every text that is free to choose."""
    out = copy.deepcopy(report)
    for key in ("name", "version", "language", "description", "argument"):
        out["driver"][key] = ALL
    out["driver"]["features"] = [*INJECTIONS]
    out["deviations"] = [
        {"case": name, "kind": "unexpected failure", "expected": "PASS", "actual": "FAIL", "message": ALL}
        for name in INJECTIONS
    ]
    for clause in list(out["clauses"].values())[:20]:
        clause["statement"] = ALL
        clause["topic"] = ALL
    worst = [case for case in out["cases"] if case["verdict"] == "FAIL"]
    for number, case in enumerate(worst):
        case["title"] = case["message"] = case["stderr"] = case["kept"] = ALL
        case["clauses"] = [*case["clauses"], INJECTIONS[number % len(INJECTIONS)]]
        for difference in case["differences"]:
            for key in ("path", "expected", "actual", "note"):
                difference[key] = ALL
        if number % 2:
            # Not a case of the kit.
            case["case"] = f"{INJECTIONS[number % len(INJECTIONS)]}{number}"
        for exchange in case["exchanges"]:
            exchange["request"]["path"] = ALL
            ok = (exchange.get("reply") or {}).get("ok")
            if ok:
                ok[ALL] = {ALL: [ALL]}
                for frame in ok.get("frames", []):
                    blocks = frame.setdefault("blocks", {})
                    for name in [*blocks]:
                        blocks[f"{name}{ALL}"] = blocks.pop(name)
                    frame[ALL] = ALL
                    blocks[INJECTIONS[1]] = {"rows": ALL, "columns": {ALL: {"dtype": ALL, "shape": [1], "data": ALL}}}
    return out


def test_nothing_from_a_driver_or_a_store_runs(driver: Any, pages: Path, bent_report: dict[str, Any]) -> None:
    document = poisoned(bent_report)
    text = json.dumps(document)
    assert find_fault("report", json.loads(text)) == "", "the schema lets this through, so the page has to stand it"
    (pages / "hostile.json").write_text(text, "utf-8")
    page = pages / "hostile.html"
    assert command("report", str(pages / "hostile.json"), str(pages / "bent.json"), "--html", str(page)) == 0
    mutants = a_matrix(a_proof(ALL, ALL, ALL, [ALL], [ALL]) | {"fault": ALL}) | {"scope": ALL, "lacking": [ALL]}
    (pages / "hostile-mutants.json").write_text(json.dumps(mutants), "utf-8")
    words = ("--mutants", str(pages / "hostile-mutants.json"))
    assert command("report", str(pages / "hostile.json"), *words, "--html", str(pages / "hostile-mutants.html")) == 0
    for path in (page, pages / "hostile-mutants.html"):
        requests(driver), complaints(driver)
        look(driver, path)
        driver.execute_script(
            "for (const b of document.querySelectorAll('.open, .case-link')) b.click();"
            "for (const row of [...document.querySelectorAll('#list .row')].slice(0, 40)) { row.click();"
            " for (const d of document.querySelectorAll('details')) d.open = true; }"
            "document.querySelectorAll('.clause-link').forEach((b) => b.click());"
        )
        assert driver.execute_script(WHAT_RAN) == [None, 2, 0, []]
        shown = driver.execute_script("return document.body.innerText")
        assert "<img src=x onerror=" in shown and "</script><script>" in shown and "{{7*7}}" in shown
        assert "\u202e" not in driver.execute_script("return document.getElementById('list').innerText")
        assert [address for address in requests(driver) if not address.startswith(path.as_uri())] == []
        assert complaints(driver) == []


@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_same_texts_run_where_nothing_holds_them(driver: Any, pages: Path, number: int) -> None:
    """The test above can fail: a page that writes these texts as they are is taken over."""
    page = pages / f"naive-{number}.html"
    page.write_text(f'<p title="{INJECTIONS[number]}"></p><p>{INJECTIONS[number]}</p>', "utf-8")
    look(driver, page)
    for _ in range(100):
        if driver.execute_script("return window.pwned ?? null"):
            break
    assert driver.execute_script("return window.pwned") == ("script", "img", "attribute")[number]
    complaints(driver), requests(driver)


def test_a_page_asks_for_nothing_and_complains_of_nothing(
    driver: Any, bent: Path, full: Path, others: list[Path], bent_report: dict[str, Any]
) -> None:
    for page, fragment, script in (*states_of_the_page(driver, bent, others, bent_report), (full, "", "")):
        requests(driver), complaints(driver)
        look(driver, page, fragment=fragment)
        driver.execute_script(script)
        elsewhere = [a for a in requests(driver) if not a.startswith(page.parent.as_uri())]
        assert (elsewhere, complaints(driver)) == ([], [])
        if page.parent == bent.parent:
            # One file that needs no other.
            assert len(page.read_bytes()) > 1000


def test_the_policy_stops_what_is_not_the_page_s_own(driver: Any, bent: Path) -> None:
    look(driver, bent)
    complaints(driver), requests(driver)
    driver.execute_script(
        "try { const s = document.createElement('script'); s.textContent = 'window.pwned = 1'; document.body.append(s); }"
        "catch {}"
        "const i = document.createElement('img'); i.src = 'http://127.0.0.1:9/x.png'; document.body.append(i);"
    )
    assert driver.execute_script("return window.pwned ?? null") is None
    assert complaints(driver)


def test_search_of_the_specification(driver: Any, others: list[Path]) -> None:
    look(driver, others[1])
    box = find(driver, "input[type=search]")
    box.send_keys("MREC-COMMIT-08")
    for _ in range(100):
        links = driver.find_elements("css selector", "a[href$='#MREC-COMMIT-08']")
        if links:
            break
    links[0].click()
    assert driver.current_url.endswith("mrec-commit-marker.html#MREC-COMMIT-08")
    top = driver.execute_script("return document.getElementById('MREC-COMMIT-08').getBoundingClientRect().top")
    assert 0 <= top < DESKTOP[1]


def a_proof(name: str, clause: str, status: str, cases: list[str], others: list[str]) -> dict[str, Any]:
    failing = dict.fromkeys(([clause] if cases else []) + others, 1)
    precision = 1 - len(others) / len(failing) if failing else 0.0
    about = {"mutant": name, "clauses": [clause], "mistake": f"the mistake of {name}", "status": status, "fault": ""}
    return about | {"failing": failing, "others": others, "precision": precision, "killers": {clause: cases}}


def a_matrix(*proofs: dict[str, Any]) -> dict[str, Any]:
    return {"proof": 1, "scope": "topic", "precision": 0.5, "lacking": [], "mutants": [*proofs]}


def test_mutants_are_shown_with_the_survivors_first(driver: Any, pages: Path, bent_report: dict[str, Any]) -> None:
    cases = [f"otj/tail/{number}" for number in range(25)]
    mutants = a_matrix(
        a_proof("reader/forgets-tail", "OTJ-TAIL-02", "killed", cases, ["OTJ-FLAGS-02"]),
        a_proof("reader/keeps-quiet", "MREC-STATE-04", "survives", [], []),
    )
    page = pages / "mutants.html"
    page.write_text(render_html([bent_report], load_catalogue(), mutants), "utf-8")
    look(driver, page)
    for summary in driver.find_elements("css selector", ".mutants summary"):
        summary.click()
    rows = [row.text for row in driver.find_elements("css selector", ".mutants tbody tr")]
    assert "keeps-quiet" in rows[0] and "survives" in rows[0] and "MREC-STATE-04, no case" in rows[0]
    assert "OTJ-TAIL-02, 25 cases" in rows[1] and "otj/tail/19" in rows[1] and "otj/tail/20" not in rows[1]
    assert "... 5 more" in rows[1] and "OTJ-FLAGS-02" in rows[1] and rows[1].endswith("50 %")
    assert "1 of 2" in find(driver, "#mutants > p").text


def test_what_prove_writes_is_shown(driver: Any, pages: Path, bent_report: dict[str, Any]) -> None:
    words = ("--mutant", "otj_reader/step-signed", "--scope", "clause", "--json", str(pages / "proof.json"))
    assert command("prove", *words) == 0
    words = ("--mutants", str(pages / "proof.json"), "--html", str(pages / "proof.html"))
    assert command("report", str(pages / "bent.json"), *words) == 0
    look(driver, pages / "proof.html")
    row = find(driver, ".mutants tbody tr").text
    assert "otj_reader/step-signed" in row and "killed" in row and "OTJ-CONV-02" in row


def test_what_is_no_kill_matrix_is_refused(bent_report: dict[str, Any]) -> None:
    for wrong in ([], {}, {"mutants": 1}, {"mutants": [{"mutant": "x"}]}, a_matrix() | {"precision": "much"}):
        with pytest.raises(TrajconformError, match="trajconform prove --json"):
            render_html([bent_report], load_catalogue(), wrong)  # type: ignore[arg-type]


def test_a_report_without_cases_is_a_page_too(driver: Any, pages: Path) -> None:
    page = pages / "empty.html"
    page.write_text(
        render_html([json.loads(dump(report_document(a_run({}), load_catalogue())))], load_catalogue()), "utf-8"
    )
    look(driver, page)
    assert find(driver, "#count").text == "0 of 0 cases" and find(driver, "#nothing").is_displayed()
    assert complaints(driver) == []


def test_what_is_not_as_recorded_comes_first(driver: Any, pages: Path, bent_report: dict[str, Any]) -> None:
    document = copy.deepcopy(bent_report)
    odd = failing(document)[-1]["case"]
    passed = next(case["case"] for case in document["cases"] if case["verdict"] == "PASS")
    document["deviations"] = [
        {"case": odd, "kind": "unexpected failure", "expected": "PASS", "actual": "FAIL", "message": ""},
        {"case": passed, "kind": "unexpected pass", "expected": "FAIL", "actual": "PASS", "message": ""},
    ]
    (pages / "odd.json").write_text(json.dumps(document), "utf-8")
    assert command("report", str(pages / "odd.json"), "--html", str(pages / "odd.html")) == 0
    look(driver, pages / "odd.html")
    assert listed(driver)[0] == odd
    tags = {row.text.split()[-1] for row in driver.find_elements("css selector", "#list .badges")}
    assert tags == {"deviates", "known"}
    choose(driver, "known", "only what is not as recorded")
    assert listed(driver) == [odd]
    find(driver, ".deviations summary").click()
    links = driver.find_elements("css selector", ".case-link")
    assert [link.text for link in links] == [odd, passed]
    links[1].click()
    assert sorted(listed(driver)) == sorted([odd, passed]) and passed in find(driver, "#detail .case-id").text
    choose(driver, "known", "left out")
    assert odd in listed(driver) and len(listed(driver)) == len(document["cases"]) - len(failing(document)) + 1
