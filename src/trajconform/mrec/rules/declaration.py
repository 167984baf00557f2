"""Rules of the topics ``declaration``, ``names``, ``precision`` (declared) and ``references`` (declared): the document."""

from __future__ import annotations

from collections.abc import Iterator

from trajconform.model.errors import Violation
from trajconform.mrec.book import rules
from trajconform.mrec.view import View


@rules("MREC-DECL-01", "MREC-DECL-02", "MREC-DECL-04", "MREC-DECL-12 MUST NOT", "MREC-DECL-14", role="store")
@rules("MREC-DECL-05", role="reader", level="SHOULD")
@rules("MREC-DECL-03", role="reader")
def form(view: View) -> Iterator[Violation]:
    yield from (v for v in view.declaration_faults if v.clause.startswith("MREC-DECL"))


@rules("MREC-NAME-03 MUST NOT", "MREC-NAME-04 MUST NOT", "MREC-NAME-05", "MREC-NAME-08", role="store")
@rules("MREC-NAME-06", role="reader")
@rules("MREC-NAME-07", role="reader", level="SHOULD")
def names(view: View) -> Iterator[Violation]:
    yield from (v for v in view.declaration_faults if v.clause.startswith("MREC-NAME"))


@rules("MREC-PREC-01", "MREC-PREC-02", role="store")
@rules("MREC-PREC-08", role="reader", level="SHOULD")
def precisions(view: View) -> Iterator[Violation]:
    yield from (v for v in view.declaration_faults if v.clause.startswith("MREC-PREC"))


@rules("MREC-REF-01", role="store")
@rules("MREC-REF-02", "MREC-REF-03", role="reader", level="SHOULD")
def targets(view: View) -> Iterator[Violation]:
    yield from (v for v in view.declaration_faults if v.clause.startswith("MREC-REF"))


@rules("MREC-ALIGN-01", role="store")
@rules("MREC-ALIGN-19", "MREC-ALIGN-20", "MREC-ALIGN-21", "MREC-ALIGN-23", role="store", level="MUST NOT")
@rules(
    "MREC-ALIGN-02", "MREC-ALIGN-03", "MREC-ALIGN-04", "MREC-ALIGN-05", "MREC-ALIGN-06", "MREC-ALIGN-10", role="reader"
)
def alignment(view: View) -> Iterator[Violation]:
    yield from (v for v in view.declaration_faults if v.clause.startswith("MREC-ALIGN"))


@rules("MREC-META-05", "MREC-META-13 MUST NOT", "MREC-META-14", role="store")
@rules("MREC-META-06", "MREC-META-15", role="reader")
def tags_and_fills(view: View) -> Iterator[Violation]:
    yield from (v for v in view.declaration_faults if v.clause.startswith("MREC-META"))


@rules("MREC-RECORD-11", role="reader")
def arrays_that_give_the_declaration(view: View) -> Iterator[Violation]:
    """Without a pinned declaration the arrays make it; one that cannot be looked at is a fault of its own."""
    yield from (v for v in view.declaration_faults if v.clause.startswith(("MREC-RECORD", "MREC-CODEC")))
