"""The page of a running loom, in a real browser: rounds arrive, a query is added, answered, asked and removed."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from selenium.webdriver.common.keys import Keys

from support.browser import Browser, browser
from support.files import follow, put
from support.receiver import Receiver
from support.trades import WINDOW
from windloom import Loom, sink
from windloom.service.app import serving
from windloom.service.server import Place
from windloom.service.service import Limits, Relay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ADMIN, READ = "the-admins-own-token", "the-readers-own-token"
PICTURES = Path(__file__).resolve().parents[2] / "build" / "browser"
_BEGUN = datetime.datetime(2026, 1, 5, tzinfo=datetime.UTC)
FLOW = f"SELECT symbol, sum(volume) AS v {WINDOW} GROUP BY symbol"
ONCE = "SELECT symbol, sum(volume) AS v FROM trades [RANGE 1 minute SLIDE 10 seconds] GROUP BY symbol"
PAIRS = (
    "SELECT a.symbol, count(*) AS pairs FROM trades [RANGE 30 seconds SLIDE 10 seconds] a"
    " JOIN trades [RANGE 20 seconds] b ON a.symbol = b.symbol GROUP BY a.symbol"
)
PRICES = f"SELECT symbol, max(price) AS highest {WINDOW} GROUP BY symbol"


@dataclass
class Served:
    """A loom with tokens on a free port of this machine."""

    address: str
    folder: Path
    receiver: Receiver
    files: int = 0

    def bring(self) -> None:
        """A file of trades: two minutes of them."""
        start = _BEGUN + datetime.timedelta(minutes=2 * self.files)
        rows = [(start + datetime.timedelta(seconds=s), "AB"[s % 2], 100.0 + s % 17, s) for s in range(0, 120, 5)]
        put(self.folder, f"{self.files:03}", rows)
        self.files += 1


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile"), PICTURES) as found:
        yield found


@pytest.fixture(scope="module")
def served(page: Browser, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    place = tmp_path_factory.mktemp("served")
    (place / "tokens").write_text(f"admin: {ADMIN}\nread: {READ}\n")
    loom = Loom(spark)
    loom.stream("trades", follow(spark, place / "in"), time="ts", delay="10 seconds")
    loom.query("flow", FLOW)
    loom.query("calm", "SELECT min(price) AS low FROM trades [TUMBLE 1 minute]")
    rounds, out = Relay(), place / "out"
    here = Place(port=0, token_file=str(place / "tokens"))
    with Receiver().running() as receiver, here.open() as listening:
        sinks = ["parquet", sink("webhook", receiver.url, queries="calm")]
        told = {"progress": rounds, "waiting": rounds.wait}
        handle = loom.start(sinks, path=out, checkpoint=place / "checkpoint", keep="1 hour", **told)
        try:
            address = f"http://127.0.0.1:{listening.getsockname()[1]}"
            with serving(handle, loom.streams, out, rounds, here, listening, here.tokens(), Limits()):
                yield Served(address, place / "in", receiver)
        finally:
            handle.stop()


def log_in(page: Browser, served: Served, token: str) -> None:
    page.open(f"{served.address}/#/")
    page.driver.delete_all_cookies()
    page.driver.refresh()
    page.write("#token", token)
    page.click("#login")
    page.find("#rounds-chart")


def test_without_a_token_one_is_turned_away(page: Browser, served: Served) -> None:
    page.size(1280, 860)
    page.open(f"{served.address}/#/queries")
    page.sees("main", "Log in")
    page.write("#token", "none-of-the-tokens")
    page.click("#login")
    page.sees("#login-trouble", "this token is not known")
    assert "flow" not in page.driver.page_source
    page.picture("login")


def test_rounds_arrive_while_one_watches(page: Browser, served: Served) -> None:
    log_in(page, served, ADMIN)
    page.sees("#state-text", "waiting for the first round")
    for number in range(3):
        served.bring()
        page.sees("#state-text", f"round {number}")
    page.until(lambda: len(page.all("#rounds-chart svg g")) == 3, "three rounds in the chart")
    page.sees("#streams", "trades")
    page.sees("#streams", "2026-01-05 00:05:45")
    page.picture("overview")


def test_a_query_is_written_added_answered_asked_and_removed(page: Browser, served: Served) -> None:
    log_in(page, served, ADMIN)
    page.open(f"{served.address}/#/new")
    page.write("#query-name", "prices")
    page.write("#query-text", PRICES.replace("price", "prise"))
    page.sees("#verdict", "unknown column 'prise'")
    page.sees("#verdict", "^^^^^")
    assert not page.find("#add").is_enabled()
    page.picture("mistake")

    page.write("#query-text", ONCE)
    page.click("#ask")
    page.sees("#answer", "complete up to 2026-01-05 00:05:45")
    assert len(page.all("#answer tbody tr")) > 10
    page.picture("asked")

    page.write("#query-text", PRICES)
    page.sees("#verdict", "of event time")
    page.sees("#verdict", "complete from")
    page.click("#add")
    page.sees("h1", "prices")
    served.bring()
    page.until(lambda: len(page.all(".answers tbody tr")) > 3, "its first answers")
    page.sees(".answers thead", "highest")
    page.until(lambda: page.all(".chart.tall path.series"), "the chart")
    page.picture("query")

    page.open(f"{served.address}/#/queries")
    page.sees("#queries", "prices")
    page.write("#search", "highest")
    page.until(lambda: len(page.all("#queries tbody tr")) == 1, "the search")
    page.click("#queries tbody a")
    page.click("#remove")
    page.click("#remove")
    page.sees("#note", "prices is gone from round")
    page.sees("#queries", "flow")
    assert "prices" not in page.text("#queries")


def test_a_join_is_tried_added_answered_and_seen_in_the_plan(page: Browser, served: Served) -> None:
    log_in(page, served, ADMIN)
    page.open(f"{served.address}/#/new")
    page.write("#query-name", "pairs")
    page.write("#query-text", PAIRS)
    page.sees("#verdict", "of event time")
    page.click("#ask")
    page.sees("#answer", "complete up to")
    page.click("#add")
    page.sees(".figures", "Share of the plan")
    page.sees(".cols", "How it is answered")
    served.bring()
    page.sees(".answers thead", "pairs")
    page.open(f"{served.address}/#/plan")
    page.point_at("#plan [data-node='answer:pairs']")
    page.sees(".plan-side", "JOIN trades")
    assert {"fold:pairs", "stream:trades"} < lit(page)
    page.picture("plan_join")
    page.open(f"{served.address}/#/queries")
    page.sees("#queries", "pairs")
    assert "⋈" not in page.text("#queries")
    page.open(f"{served.address}/#/query/pairs")
    page.sees(".answers thead", "pairs")
    page.picture("query_join")
    page.click("#remove")
    page.click("#remove")
    page.sees("#note", "pairs is gone from round")


def test_the_api_is_described(page: Browser, served: Served) -> None:
    page.open(f"{served.address}/api")
    page.sees("main", "POST /api/v1/queries/dry-run")
    page.sees("#DryRun", "complete_from")
    page.picture("api")


def lit(page: Browser) -> set[str | None]:
    return {node.get_attribute("data-node") for node in page.all("#plan .node.on")}


def test_the_plan_shows_what_belongs_together(page: Browser, served: Served) -> None:
    log_in(page, served, ADMIN)
    page.open(f"{served.address}/#/plan")
    page.point_at("#plan [data-node='answer:flow']")
    page.sees(".plan-side", "In the same tree")
    page.sees(".plan-side", FLOW)
    above = {"stream:trades", "scan:0"}
    assert above < lit(page)
    kinds = [node.get_attribute("data-kind") for node in page.all("#plan .node.on")]
    assert kinds == ["stream", "scan", "set", "tree", "answer"]
    page.picture("plan_query")

    page.point_at("#plan [data-node='scan:0']")
    page.sees(".plan-side", "Its queries")
    page.sees(".plan-side", "flow")
    page.sees(".plan-side", "calm")
    assert {"answer:flow", "answer:calm"} <= lit(page)
    page.picture("plan_scan")
    page.write("#search", "min(price)")
    page.until(lambda: len(page.all("#plan [data-kind=answer]")) == 1, "the query that is searched for")
    page.find("#plan [data-node='answer:calm']")


def test_everything_is_reached_by_keyboard(page: Browser, served: Served) -> None:
    log_in(page, served, ADMIN)
    page.press("q")
    page.sees("#queries", "calm")
    page.press("/")
    assert page.focused() == "search"
    page.press("flow", Keys.TAB, Keys.TAB)
    page.until(lambda: len(page.all("#queries tbody tr")) == 1, "the search")
    assert page.focused() == "sort-name"
    page.press(Keys.ENTER)
    assert page.focused() == "sort-name"
    assert page.find("th[aria-sort]").get_attribute("aria-sort") == "ascending"
    for _ in range(20):
        if page.focused() == "open-flow":
            break
        page.press(Keys.TAB)
    page.press(Keys.ENTER)
    page.sees("h1", "flow")

    page.press("p")
    page.find("#plan .node")
    page.press(Keys.TAB)
    while page.focused("data-node") is None:
        page.press(Keys.TAB)
    assert page.focused("data-node") == "stream:trades"
    page.press(*[Keys.ARROW_RIGHT] * 4)
    assert str(page.focused("data-node")).startswith("answer:")
    page.press(Keys.ARROW_DOWN, Keys.ARROW_UP, Keys.ENTER)
    page.sees(".cols", "How it is answered")
    page.press("n")
    page.until(lambda: page.focused() == "query-name", "the field to be ready for a name")


def test_a_sink_that_is_down_is_told_and_the_round_goes_on_when_it_is_back(page: Browser, served: Served) -> None:
    log_in(page, served, ADMIN)
    page.sees("#sinks", "takes rounds")
    assert not page.find("#alarm").is_displayed()
    served.receiver.behaviour = lambda _: 503
    served.bring()
    page.sees("#alarm", "waits for the sink “webhook” since")
    page.sees("#alarm", "Nothing is lost.")
    page.sees("#state-text", "waits for webhook")
    page.sees("#sinks", "down since")
    page.picture("waiting")
    page.open(f"{served.address}/#/query/flow")
    page.click("#remove")
    page.click("#remove")
    page.sees("main", "queries cannot be changed now")
    served.receiver.behaviour = lambda _: 200
    page.until(lambda: not page.find("#alarm").is_displayed(), "the end of the alarm")
    page.open(f"{served.address}/#/")
    page.sees("#sinks", "takes rounds")
    page.sees("#sinks", "letters")


def test_a_reader_may_look_and_not_change(page: Browser, served: Served) -> None:
    log_in(page, served, READ)
    page.open(f"{served.address}/#/query/flow")
    page.sees("h1", "flow")
    page.sees("main", "this token may only read")
    assert not page.find("#remove").is_enabled()


#: What each page shows when it is there.
SHOWN = {"": "#streams", "queries": "#queries", "plan": ".node", "new": "#query-text", "query/calm": ".answers"}


@pytest.mark.parametrize(("theme", "width"), [("dark", 1280), ("light", 390), ("dark", 390)])
def test_every_page_fits_keeps_still_and_makes_no_complaint(
    page: Browser, served: Served, theme: str, width: int
) -> None:
    log_in(page, served, ADMIN)
    page.size(width, 860)
    page.theme(theme)
    for name, what in SHOWN.items():
        page.open("about:blank")
        page.open(f"{served.address}/#/{name}")
        page.find(what)
        if name == "":
            served.bring()
        page.sees("#state-text", f"round {served.files - 1}")
        wide = page.driver.execute_script("return document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{name} is {wide} px wider than a screen of {width}"
        moved = page.shifts()
        assert moved < 0.005, f"{name} moves by itself: {moved:.3f}"
        page.picture(f"{name.replace('/', '_') or 'overview'}_{theme}_{width}")
    page.size(1280, 860)
    page.theme("light")
    assert page.complaints() == []


def test_what_is_loaded_is_little_and_from_here(page: Browser, served: Served) -> None:
    page.open("about:blank")
    page.open(f"{served.address}/")
    page.find("#streams")
    loaded = page.loaded_bytes()
    assert all(address.startswith(served.address) for address in loaded)
    assert 20_000 < sum(loaded.values()) < 300_000
