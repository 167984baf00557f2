"""The pictures of the documentation, made anew from real runs: ``python docs/pictures.py``.

Needs what the drivers of the kit need (gcc, cargo, node), chromium, chromedriver, and the extra ``browser``. Reports that
were saved before can be given instead of running again:

    python docs/pictures.py --reports DIR      with molrs.json, naive.json, reference.json, c-otj.json, node-otj.json

Pictures go to ``docs/img``, with colours of a palette so that each stays below 150 kB.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.report.browser import DESKTOP, PHONE, browser, complaints, look, missing  # noqa: E402

DRIVERS = ("molrs", "naive", "reference", "c-otj", "node-otj")
MOST_BYTES = 150_000
CASE = "mrec/step-and-time/time-minus-zero-start"
"""A time of minus zero where plus zero is due: one bit, the sign, differs."""
BYTES = "otj/tail/cut-header-single@cut-0020"


def main() -> int:
    """Run, render, look, save. Exit status 1 where a picture is too large or a page complains."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--reports", type=Path, metavar="DIR", help="saved JSON reports, one a driver")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "img", metavar="DIR")
    arguments = parser.parse_args()
    if missing():
        print(f"pictures: {missing()}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder, browser() as driver:
        pages = Path(folder)
        reports = arguments.reports or pages
        if arguments.reports is None:
            for name in ("molrs", "c-otj"):
                print(f"pictures: setting up {name}", file=sys.stderr)
                run("driver", "setup", name)
            for name in DRIVERS:
                print(f"pictures: judging {name}", file=sys.stderr)
                run("run", "--driver", name, "-j", "2", "-q", "--json", str(reports / f"{name}.json"))
        for page, names in (("all", DRIVERS[:3]), ("otj", DRIVERS[3:])):
            run("report", *(str(reports / f"{name}.json") for name in names), "--html", str(pages / f"{page}.html"))
        run("report", str(reports / "molrs.json"), "--html", str(pages / "one.html"))
        told = run("compare", *(f"{name}.json" for name in ("naive", "molrs")), "--output", "html", cwd=reports)
        (pages / "compare.html").write_text(told, "utf-8")
        run("spec", "html", str(pages / "site"))
        at_cases = "document.getElementById('cases').scrollIntoView()"
        bad = 0
        for name, page, size, dark, fragment, script in (
            ("report-light", "all.html", DESKTOP, False, "", ""),
            ("report-dark", "all.html", DESKTOP, True, "", ""),
            ("report-case", "one.html", DESKTOP, False, f"case={CASE}", at_cases),
            ("report-phone", "one.html", PHONE, True, f"case={CASE}", ""),
            ("report-bytes", "otj.html", DESKTOP, False, f"v=0&q=cut-header&case={BYTES}", at_cases),
            ("compare", "compare.html", DESKTOP, False, "", ""),
        ):
            look(driver, pages / page, size=size, dark=dark, fragment=fragment)
            if script:
                driver.execute_script(script)
            bad += save(driver, arguments.out / f"{name}.png")
        return int(bool(bad))


def run(*words: str, cwd: Path = ROOT) -> str:
    """A command of the kit; exit status 1, an implementation that does not conform, is no fault here."""
    done = subprocess.run(
        [sys.executable, "-c", "from trajconform.cli import main; main()", *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):
        raise SystemExit(f"trajconform {' '.join(words)} failed:\n{done.stderr}")
    return done.stdout


def save(driver: Any, path: Path) -> bool:
    """Save what is to be seen now; True where something is wrong with it, which is then said."""
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    with Image.open(io.BytesIO(driver.get_screenshot_as_png())) as seen:
        seen.convert("RGB").quantize(256, method=Image.Quantize.MEDIANCUT, kmeans=3, dither=Image.Dither.NONE).save(
            path, optimize=True
        )
    size, said = path.stat().st_size, complaints(driver)
    print(f"{path.name}: {size:,} bytes")
    for line in said:
        print(f"  the page complains: {line}", file=sys.stderr)
    if size >= MOST_BYTES:
        print(f"  is not below {MOST_BYTES:,} bytes", file=sys.stderr)
    return bool(said) or size >= MOST_BYTES


if __name__ == "__main__":
    sys.exit(main())
