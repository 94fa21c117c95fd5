"""The files of the page: small, complete, nothing from elsewhere, nothing that the Content-Security-Policy forbids."""

from __future__ import annotations

import re

import pytest

from support.asgi import Client
from support.fake_loom import FakeLoom
from windloom.service.app import make_app
from windloom.service.routes.pages import page_files
from windloom.service.service import Service

FILES = sorted(page_files())
MOST_BYTES = 300_000
NAMESPACE = "http://www.w3.org/2000/svg"


def text_of(name: str) -> str:
    return page_files()[name][0].decode()


def test_the_whole_page_is_small() -> None:
    assert {"index.html", "app.js", "style.css", "icon.svg"} <= set(FILES)
    assert sum(len(data) for data, _, _ in page_files().values()) < MOST_BYTES


@pytest.mark.parametrize("name", FILES)
def test_a_file_names_only_files_that_are_there_and_nothing_from_elsewhere(name: str) -> None:
    text = text_of(name).replace(NAMESPACE, "")
    assert not re.search(r"https?:|//\w+\.\w+/", text)
    assert set(re.findall(r"/page/([\w.]+)", text)) <= set(FILES)


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".html")])
def test_a_page_has_no_script_or_style_of_its_own(name: str) -> None:
    text = text_of(name)
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", text)
    assert '<html lang="en">' in text
    assert 'name="viewport"' in text


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".js")])
def test_nothing_that_is_shown_is_read_as_markup(name: str) -> None:
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text_of(name))


def test_a_file_that_has_not_changed_is_not_sent_again() -> None:
    with Client(make_app(Service(FakeLoom()))) as client:
        first = client.get("/page/app.js")
        assert first.headers["content-type"].startswith("text/javascript")
        again = client.get("/page/app.js", headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert client.get("/api").headers["content-type"].startswith("text/html")
