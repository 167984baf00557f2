"""Pages in a headless Chromium, for tests and for the pictures of the documentation."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CHROMEDRIVER = shutil.which("chromedriver")
_FLAGS = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
DESKTOP, PHONE = (1440, 900), (390, 844)


def missing() -> str:
    """The tool that is not there, or ''."""
    if CHROMIUM is None:
        return "chromium is not installed"
    if CHROMEDRIVER is None:
        return "chromedriver is not installed (package chromium-driver)"
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "selenium is not installed (pip install selenium)"
    return ""


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    """A Chromium of its own; its downloads, profile and logs are gone afterwards."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = str(CHROMIUM)
        for flag in (*_FLAGS, f"--user-data-dir={profile}", *(["--no-sandbox"] if os.geteuid() == 0 else [])):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        # Selenium's own manager would look for a driver in the network.
        driver = webdriver.Chrome(options=options, service=Service(str(CHROMEDRIVER)))
        try:
            yield driver
        finally:
            driver.quit()


def look(driver: Any, page: Path, *, size: tuple[int, int] = DESKTOP, dark: bool = False, fragment: str = "") -> None:
    """Open a page from the disk, of this size in CSS pixels, for a person who likes it dark or light."""
    width, height = size
    phone = width < 600
    metrics = {"width": width, "height": height, "deviceScaleFactor": 2 if phone else 1, "mobile": phone}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    # A change of the fragment alone would not load the page anew.
    driver.get("about:blank")
    driver.get(page.resolve().as_uri() + (f"#{fragment}" if fragment else ""))


def requests(driver: Any) -> list[str]:
    """Every address that was asked for since the last call, but for the empty page."""
    asked = []
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated"):
            found = message["params"]
            asked.append(found["request"]["url"] if "request" in found else found["url"])
    return [address for address in asked if address != "about:blank"]


def complaints(driver: Any) -> list[str]:
    """What stands in the console since the last call: errors, violations of the page's policy, anything."""
    return [f"{entry['level']}: {entry['message']}" for entry in driver.get_log("browser")]
