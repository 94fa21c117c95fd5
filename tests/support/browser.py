"""Chromium from the system's packages, headless, driven by selenium."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.common.exceptions import TimeoutException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
_PATIENCE = 60.0
_SHIFTS = """
    const done = arguments[0];
    let sum = 0;
    new PerformanceObserver((list) => {
      for (const one of list.getEntries()) if (!one.hadRecentInput) sum += one.value;
    }).observe({ type: "layout-shift", buffered: true });
    setTimeout(() => done(sum), 200);
"""
_LOADED = """
    const all = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
    const own = all.filter((one) => !one.name.includes("/api/v1/"));
    return Object.fromEntries(own.map((one) => [one.name, one.decodedBodySize]));
"""


@contextmanager
def browser(profile: Path, pictures: Path) -> Iterator[Browser]:
    """Skips the test where there is no browser: `make setup` installs one where it may."""
    program = next((found for name in ("chromium", "chromium-browser") if (found := shutil.which(name))), None)
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("no browser: install the packages chromium and chromium-driver")
    options = Options()
    options.binary_location = program
    for flag in (*_FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    pictures.mkdir(parents=True, exist_ok=True)
    started = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield Browser(started, pictures)
    finally:
        started.quit()


class Browser:
    """What a person does with a page, and sees of it."""

    def __init__(self, driver: webdriver.Chrome, pictures: Path) -> None:
        self.driver, self._pictures = driver, pictures

    def open(self, address: str) -> None:
        self.driver.get(address)

    def find(self, selector: str) -> WebElement:
        return self.until(lambda: self.driver.find_element("css selector", selector), selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements("css selector", selector)

    def text(self, selector: str) -> str:
        return str(self.driver.execute_script("return document.querySelector(arguments[0])?.innerText || ''", selector))

    def sees(self, selector: str, text: str) -> None:
        try:
            self.until(lambda: text in self.text(selector), f"'{text}' in {selector}")
        except TimeoutException as error:
            raise AssertionError(f"{error.msg}, and the page says: {self.text('main')}") from None

    def click(self, selector: str) -> None:
        self.until(lambda: self.find(selector).is_enabled(), f"{selector} to be enabled")
        self.find(selector).click()

    def write(self, selector: str, text: str) -> None:
        field = self.find(selector)
        field.clear()
        field.send_keys(text)

    def theme(self, name: str) -> None:
        self.driver.execute_script("localStorage.setItem('theme', arguments[0])", name)
        self.driver.refresh()

    def size(self, width: int, height: int) -> None:
        self.driver.set_window_size(width, height)

    def picture(self, name: str) -> None:
        self.driver.save_screenshot(str(self._pictures / f"{name}.png"))

    def until(self, done: Callable[[], Any], what: str) -> Any:
        return WebDriverWait(self.driver, _PATIENCE, poll_frequency=0.1).until(lambda _: done(), f"waited for {what}")

    def press(self, *keys: str) -> None:
        """Keys, to whatever has the focus."""
        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def point_at(self, selector: str) -> None:
        ActionChains(self.driver).move_to_element(self.find(selector)).perform()

    def focused(self, what: str = "id") -> str | None:
        """An attribute of the element that has the focus."""
        return self.driver.switch_to.active_element.get_attribute(what)

    def shifts(self) -> float:
        """How far what is shown has moved by itself since the page was loaded: its cumulative layout shift."""
        return float(self.driver.execute_async_script(_SHIFTS))

    def loaded_bytes(self) -> dict[str, int]:
        """Bytes of all that the page has loaded but answers of the API, by address."""
        return dict(self.driver.execute_script(_LOADED))

    def complaints(self) -> list[str]:
        """What the browser found wrong, but for answers that were meant to be refusals."""
        found = [str(entry["message"]) for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]
        return [message for message in found if "status of 401" not in message and "status of 422" not in message]
