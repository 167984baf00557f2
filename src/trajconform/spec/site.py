"""Renders the specification as a static site: a page a chapter, an anchor a clause, its cases beside it, search.

Markdown is rendered by markdown-it-py and pages by Jinja2; the clauses come from the catalogue, so that a page shows
exactly the items that the kit judges by. Nothing on a page needs a network.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trajconform.spec.catalogue import Catalogue, Chapter, Clause

_REFERENCE = re.compile(r"\b(?:MREC|OTJ)-[A-Z]+-\d{2,}\b")
_RENDERED_ITEM = re.compile(
    r"<li>\s*(?:<p>)?<strong>(?P<id>(?:MREC|OTJ)-[A-Z]+-\d{2,})</strong> \((?P<role>\w+), (?P<level>[A-Z ]+)\) "
    r"(?P<text>.*?) \[(?P<mark>[STCR])\](?:</p>)?\s*</li>",
    re.DOTALL,
)
_MARKS = {
    "S": "stands in a source document",
    "T": "from a table that the source document lost",
    "C": "companion fact",
    "R": "ruling of this project",
}


def render_site(
    root: Path, catalogue: Catalogue, cases: Mapping[str, Sequence[tuple[str, str]]], out: Path
) -> list[Path]:
    """Write the site into ``out`` and return the files written.

    ``cases`` maps a clause's identifier to the cases that bind it, each ``(case id, title)``. Files of another site in
    ``out`` are replaced, anything else there is left alone.
    """
    import jinja2
    from markdown_it import MarkdownIt

    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("trajconform.spec", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    places = {
        clause.id: f"{_page_name(chapter)}#{clause.id}" for chapter in catalogue.chapters for clause in chapter.clauses
    }
    page = environment.get_template("page.html")
    shared: dict[str, Any] = {"chapters": [_nav_entry(c) for c in catalogue.chapters], "marks": _MARKS}
    out.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []

    def write(name: str, text: str) -> None:
        (out / name).write_text(text, "utf-8")
        written.append(out / name)

    for number, chapter in enumerate(catalogue.chapters):
        source = (root / chapter.path).read_text("utf-8")
        body = _chapter_html(markdown.render(source), chapter, cases, places)
        near = [catalogue.chapters[i] if 0 <= i < len(catalogue.chapters) else None for i in (number - 1, number + 1)]
        context = {
            "title": chapter.title,
            "body": body,
            "here": _page_name(chapter),
            "before": near[0] and _nav_entry(near[0]),
            "after": near[1] and _nav_entry(near[1]),
        }
        write(_page_name(chapter), page.render(**shared, **context))
    for name, title in (("README.md", "About this specification"), ("sources.md", "Sources")):
        file = root / "spec" / name
        if file.exists():
            target = "index.html" if name == "README.md" else "sources.html"
            body = _link_references(markdown.render(file.read_text("utf-8")), places)
            body = re.sub(r'href="(mrec|otj)/([a-z-]+)\.md"', r'href="\1-\2.html"', body).replace(
                'href="sources.md"', 'href="sources.html"'
            )
            write(target, page.render(**shared, title=title, body=body, here=target, before=None, after=None))
    index = [
        _search_entry(clause, places[clause.id], chapter)
        for chapter in catalogue.chapters
        for clause in chapter.clauses
    ]
    # A script, not a JSON file: pages opened from a disk may not fetch.
    write("search-index.js", "const CLAUSES = " + json.dumps(index, ensure_ascii=True).replace("<", "\\u003c") + ";\n")
    write("search.js", environment.get_template("search.js").render())
    write("style.css", environment.get_template("style.css").render())
    return written


def _page_name(chapter: Chapter) -> str:
    return f"{chapter.format}-{chapter.topic}.html"


def _nav_entry(chapter: Chapter) -> dict[str, Any]:
    return {
        "format": chapter.format,
        "topic": chapter.topic,
        "title": chapter.title,
        "page": _page_name(chapter),
        "count": len(chapter.clauses),
    }


def _search_entry(clause: Clause, place: str, chapter: Chapter) -> dict[str, str]:
    plain = clause.statement.replace("`", "")
    return {
        "id": clause.id,
        "at": place,
        "role": clause.role,
        "level": clause.level,
        "text": plain,
        "in": chapter.title,
    }


def _chapter_html(
    rendered: str, chapter: Chapter, cases: Mapping[str, Sequence[tuple[str, str]]], places: Mapping[str, str]
) -> str:
    """Rendered Markdown with every clause as a card."""
    clauses = {clause.id: clause for clause in chapter.clauses}

    def card(found: re.Match[str]) -> str:
        clause = clauses[found["id"]]
        bound = list(cases.get(clause.id, ()))
        rows = "".join(f"<li><code>{html.escape(case)}</code> {html.escape(title)}</li>" for case, title in bound)
        count = f"{len(bound)} case{'' if len(bound) == 1 else 's'}"
        listed = (
            f"<details><summary>{count}</summary><ul>{rows}</ul></details>"
            if bound
            else f'<span class="none">{count}</span>'
        )
        return (
            f'<li class="clause {clause.role}" id="{clause.id}"><div class="head">'
            f'<a class="id" href="#{clause.id}">{clause.id}</a>'
            f'<span class="role">{clause.role}</span><span class="level">{clause.level}</span>'
            f'<abbr class="mark" title="{_MARKS[clause.mark]}">{clause.mark}</abbr></div>'
            f'<div class="text">{_link_references(found["text"], places)}</div>{listed}</li>'
        )

    pieces: list[str] = []
    end = 0
    for found in _RENDERED_ITEM.finditer(rendered):
        pieces += [_link_references(rendered[end : found.start()], places), card(found)]
        end = found.end()
    pieces.append(_link_references(rendered[end:], places))
    return "".join(pieces)


def _link_references(text: str, places: Mapping[str, str]) -> str:
    def link(found: re.Match[str]) -> str:
        place = places.get(found[0])
        return f'<a class="ref" href="{place}">{found[0]}</a>' if place else found[0]

    return _REFERENCE.sub(link, text)
