"""A headless Chromium for tests of pages; they skip, and say so, where there is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
WIDTHS = (390, 768, 1280)


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser that is closed at the end."""
    selenium = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("chromium and chromedriver are not installed")
    from selenium.webdriver.chrome.service import Service

    options = selenium.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = Service(DRIVER, log_output=os.devnull)
    driver = selenium.Chrome(options=options, service=service)
    try:
        yield driver
    finally:
        driver.quit()


def show(driver: Any, address: str, width: int, height: int = 900) -> None:
    """Open a page at a width, anew."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get("about:blank")
    driver.get(address)


def complaints(driver: Any) -> list[str]:
    """What the browser's console says: errors of scripts and things that were not loaded."""
    return [entry["message"] for entry in driver.get_log("browser")]


def too_wide(driver: Any) -> list[str]:
    """Texts that are cut at the page's right edge: what sticks out of the window or its picture."""
    return driver.execute_script(
        """
        const out = [];
        if (document.documentElement.scrollWidth > innerWidth) out.push("the page");
        for (const part of document.querySelectorAll("svg text, p, h1, h2, h3, td, th, button")) {
          const box = part.getBoundingClientRect();
          const picture = part.ownerSVGElement;
          const frame = picture ? picture.getBoundingClientRect() : { left: 0, right: innerWidth };
          if (box.width && (box.right > frame.right + 1 || box.left < frame.left - 1))
            out.push(part.textContent.trim().slice(0, 60));
        }
        return out;
        """
    )
