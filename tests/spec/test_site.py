"""The specification as a site: every clause a card, every link leads somewhere, nothing in a title can run, search works."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from trajconform import kit
from trajconform.spec.catalogue import load_catalogue
from trajconform.spec.site import render_site

HOSTILE = "<script>document.title = 'run'</script>"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    cases = {
        "MREC-COMMIT-01": [("mrec/commit-marker/x", HOSTILE)],
        "OTJ-SUM-01": [("otj/checksum/a", "one"), ("otj/checksum/b", "two")],
    }
    render_site(kit.root(), load_catalogue(), cases, folder)
    return folder


def test_every_clause_is_one_card_with_its_words(site: Path) -> None:
    catalogue = load_catalogue()
    for chapter in catalogue.chapters:
        page = (site / f"{chapter.format}-{chapter.topic}.html").read_text("utf-8")
        assert re.findall(r'<li class="clause \w+" id="([A-Z0-9-]+)">', page) == [c.id for c in chapter.clauses]
        plain = " ".join(html.unescape(re.sub(r"<[^>]+>", "", page)).split())
        for clause in chapter.clauses:
            assert clause.level in plain
            words = " ".join(clause.statement.replace("`", "").replace("*", "").split())
            assert words in plain.replace("`", ""), clause.id


def test_every_link_leads_to_a_page_and_an_anchor(site: Path) -> None:
    pages = {path.name: path.read_text("utf-8") for path in site.glob("*.html")}
    checked = 0
    for name, text in pages.items():
        for target in re.findall(r'href="([^"]+)"', text):
            if target.startswith(("http:", "https:", "mailto:")):
                continue
            page, _, anchor = target.partition("#")
            assert (site / page).exists() if page else True, f"{name}: {target}"
            if anchor and (not page or page in pages):
                assert f'id="{anchor}"' in pages[page or name], f"{name}: {target}"
            checked += 1
    assert checked > len(pages)


def test_cases_stand_beside_their_clause_and_cannot_run(site: Path) -> None:
    page = (site / "mrec-commit-marker.html").read_text("utf-8")
    assert HOSTILE not in page and html.escape(HOSTILE) in page
    assert "2 cases" in (site / "otj-checksum.html").read_text("utf-8")


def test_nothing_needs_a_network(site: Path) -> None:
    for path in site.iterdir():
        text = path.read_text("utf-8")
        assert not re.search(r'(?:src|href)="(?:https?:)?//', text), path.name
        assert "@import" not in text


def test_search_in_a_browser(site: Path, tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("no chromium to try the search in")
    page = (site / "mrec-regular.html").read_text("utf-8")
    typed = "<script>const q = document.getElementById('q'); q.value = 'uniform_rows positive';"
    typed += "q.dispatchEvent(new Event('input'));</script></body>"
    (site / "searched.html").write_text(page.replace("</body>", typed), "utf-8")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
    command += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    command += [f"--user-data-dir={tmp_path}", "--dump-dom", f"file://{site / 'searched.html'}"]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    hits = re.search(r'<ol id="hits"[^>]*>(.*?)</ol>', dom, re.DOTALL)
    assert hits is not None
    found = re.findall(r'href="([^"]+)"', hits[1])
    assert "mrec-regular.html#MREC-REGULAR-04" in found
    assert all("otj" not in link for link in found)
