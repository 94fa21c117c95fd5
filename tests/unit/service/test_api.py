"""The API over a loom without Spark: every request of docs/service.md, and what is refused."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from support.asgi import Client
from support.fake_loom import AVERAGE, FLOW, FakeLoom, made_round
from windloom.engine.snapshots import not_kept
from windloom.errors import QueryError, WindloomError
from windloom.service.app import make_app
from windloom.service.models import problem_of
from windloom.service.service import Limits, Service, UnregisteredQuery
from windloom.sinks.delivery import SinkWait

TWICE = (
    "SELECT a.symbol, count(*) AS pairs FROM trades [RANGE 1 minute SLIDE 20 seconds] a"
    " JOIN trades [RANGE 20 seconds] b ON a.symbol = b.symbol GROUP BY a.symbol"
)


@pytest.fixture
def loom() -> FakeLoom:
    return FakeLoom(
        [UnregisteredQuery("bad", "SELECT nothing", QueryError("query 'bad': FROM is missing", "line 1", "add it"))]
    )


@pytest.fixture
def service(loom: FakeLoom) -> Service:
    service = Service(loom)
    for done in loom.rounds:
        service.round_done(done)
    return service


@pytest.fixture
def client(service: Service) -> Iterator[Client]:
    with Client(make_app(service)) as client:
        yield client


def test_queries_are_listed_with_their_place_and_cost_and_bad_ones_with_the_reason(client: Client) -> None:
    found = client.get("/api/v1/queries").json()
    assert [query["name"] for query in found["queries"]] == ["flow", "high"]
    flow = found["queries"][0]
    assert (flow["streams"], flow["trees"], flow["text"]) == (["trades"], ["tree 1.0"], FLOW)
    assert 0 < flow["seconds"] <= flow["alone"]
    assert flow["rows_per_second"] > 0
    assert sum(query["share"] for query in found["queries"]) == pytest.approx(1)
    assert [(rejected["name"], rejected["error"]["hint"]) for rejected in found["rejected"]] == [("bad", "add it")]


def test_a_join_is_listed_with_all_that_feeds_it_and_its_sides_are_not(client: Client, service: Service) -> None:
    assert client.post("/api/v1/queries", json={"name": "twice", "text": TWICE}).status_code == 201
    found = {query["name"]: query for query in client.get("/api/v1/queries").json()["queries"]}
    assert set(found) == {"flow", "high", "twice"}
    twice = found["twice"]
    assert (twice["streams"], twice["window"]) == (["trades"], "[RANGE 1 minute SLIDE 20 seconds]")
    assert twice["trees"] == ["tree 1.0"]  # both sides are of one set, with "flow"
    nodes = {node["id"]: node["kind"] for node in client.get("/api/v1/plan").json()["nodes"]}
    assert (nodes["fold:twice"], nodes["answer:twice"]) == ("fold", "answer")
    costs = re.findall(r'windloom_query_cost_seconds\{query="(.+)"\}', client.get("/metrics").text)
    assert set(costs) <= set(found)


def test_a_query_is_tried_added_read_replaced_and_removed(client: Client) -> None:
    tried = client.post("/api/v1/queries/dry-run", json={"text": AVERAGE}).json()
    assert tried["allowed"] is True
    assert tried["added"] == pytest.approx(tried["after"] - tried["before"])
    assert tried["complete_from"] == "2026-01-05T00:02:00+00:00"
    assert re.fullmatch(r"adds .+/s of event time; alone it would take .+/s", tried["summary"])
    assert tried["keeps"] == []

    added = client.post("/api/v1/queries", json={"name": "average", "text": AVERAGE})
    assert (added.status_code, added.json()["round"]) == (201, 2)
    again = client.post("/api/v1/queries", json={"name": "average", "text": AVERAGE})
    assert again.status_code == 422
    assert again.json()["error"]["message"] == "query 'average' is already registered"

    shown = client.get("/api/v1/queries/average").json()
    assert shown["text"] == AVERAGE
    assert "average" in shown["explain"]
    assert client.put("/api/v1/queries/average", json={"text": FLOW}).json()["query"] == "average"
    assert client.get("/api/v1/queries/average").json()["text"] == FLOW
    assert client.delete("/api/v1/queries/average").status_code == 200
    kept = client.get("/api/v1/queries/average/answers", params={"limit": 3})
    assert (kept.status_code, kept.json()["removed"], len(kept.json()["rows"])) == (200, True, 3)
    assert kept.headers["X-Windloom-Removed"] == "true"
    assert client.get("/api/v1/queries/flow/answers").json()["removed"] is False
    assert client.get("/api/v1/queries/never/answers").status_code == 404
    gone = client.get("/api/v1/queries/average")
    assert gone.status_code == 404
    assert gone.json()["error"]["message"] == "unknown query 'average'"


def test_of_a_row_query_a_dry_run_says_what_is_kept_for_it(client: Client) -> None:
    tried = client.post("/api/v1/queries/dry-run", json={"text": "SELECT symbol, price FROM trades [TUMBLE 1 minute]"})
    (kept,) = tried.json()["keeps"]
    assert kept.startswith("trades: ")
    assert tried.json()["summary"] == f"keeps tuples, by stream: {kept}"


def test_a_mistake_in_a_query_is_told_with_its_place(client: Client) -> None:
    for path in ("/api/v1/queries/dry-run", "/api/v1/ask"):
        text = "SELECT sum(prise) AS v FROM trades [TUMBLE 1 minute]"
        answer = client.post(path, json={"text": text})
        assert answer.status_code == 422
        error = answer.json()["error"]
        assert error["message"] == "unknown column 'prise'"
        assert "^^^^^" in error["detail"]
        assert error["hint"] == "did you mean 'price'?"


def test_a_body_that_does_not_fit_is_told_without_patterns_and_with_a_hint(client: Client) -> None:
    wrong: list[dict[str, object]] = [{"name": "a/b", "text": FLOW}, {"name": "a"}, {"name": "a", "text": FLOW, "x": 1}]
    found = [client.post("/api/v1/queries", json=body).json()["error"] for body in wrong]
    assert found[0]["detail"] == "body.name: it has a slash, a backslash or an invisible character"
    assert found[0]["hint"].startswith("a name has 1 to 200 characters, without slashes")
    assert found[1]["detail"] == "body.text: Field required"
    assert {error["hint"].split("; ")[-1] for error in found} == {"GET /api/v1/openapi.json describes every request"}


def test_hints_name_requests_instead_of_calls_in_python() -> None:
    assert problem_of(not_kept("q")).hint == (
        "add it as a query, with POST /api/v1/queries: it answers from the next round on"
    )
    taken = WindloomError("query 'q' is already registered", "", "give it another name, or use handle.replace")
    assert problem_of(taken).hint == "give it another name, or replace it with PUT /api/v1/queries/NAME"


def test_a_question_is_answered_once(client: Client) -> None:
    found = client.post("/api/v1/ask", json={"text": FLOW}).json()
    assert found["columns"] == ["window_start", "window_end", "symbol", "v"]
    assert found["rows"][0] == ["2026-01-05T00:00:00Z", "2026-01-05T00:00:30Z", "A", 100]
    assert found["watermark"] == "2026-01-05T00:01:00+00:00"
    assert len(client.get("/api/v1/queries").json()["queries"]) == 2


def test_answers_come_as_json_csv_or_arrow(client: Client) -> None:
    as_json = client.get("/api/v1/queries/flow/answers", params={"limit": 2}).json()
    assert len(as_json["rows"]) == 2
    as_csv = client.get("/api/v1/queries/flow/answers", params={"limit": 2, "format": "csv"})
    assert as_csv.headers["content-type"].startswith("text/csv")
    assert as_csv.text.splitlines()[0] == '"window_start","window_end","symbol","v"'
    asked = client.get(
        "/api/v1/queries/flow/answers", params={"limit": 2}, headers={"Accept": "application/vnd.apache.arrow.stream"}
    )
    table = pa.ipc.open_stream(io.BytesIO(asked.content)).read_all()
    assert table["v"].to_pylist() == [100, 101]
    assert client.get("/api/v1/queries/none/answers").status_code == 404


def test_a_parameter_that_nobody_would_read_is_refused_on_every_route(client: Client) -> None:
    assert client.get("/api/v1/queries/flow/answers", params={"symbol": "A", "limit": 5}).status_code == 200
    misspelt = client.get("/api/v1/queries/flow/answers", params={"symbl": "A"})
    assert misspelt.status_code == 422
    assert misspelt.json()["error"] == {
        "message": "unknown parameter 'symbl'",
        "detail": "this request knows since, until, limit, format, symbol",
        "hint": "did you mean 'symbol'?",
    }
    assert client.get("/api/v1/queries/high/answers", params={"symbol": "A"}).status_code == 422, "it has no groups"
    pages = {"/", "/api", "/page/api.js", "/api/v1/openapi.json"}
    described = client.get("/api/v1/openapi.json").json()["paths"]
    asked = 0
    for path, methods in {**described, **{page: {"get": {}} for page in pages}}.items():
        for method in methods:
            answer = client.request(method.upper(), path.replace("{name}", "flow"), params={"contry": "DE"})
            assert answer.status_code == 422, (method, path)
            error = answer.json()["error"]
            assert error["message"] == "unknown parameter 'contry'", (method, path)
            assert error["hint"]
            asked += 1
    assert asked > 20


def test_the_latest_answers_are_a_row_and_the_points_of_its_group(client: Client) -> None:
    found = client.get("/api/v1/latest", params={"query": ["flow", "none"]}).json()
    assert list(found) == ["flow"]
    assert found["flow"]["row"]["symbol"] == "B"
    assert found["flow"]["figure"] == "v"
    assert [value for _, value in found["flow"]["points"]] == [float(v) for v in range(101, 130, 2)]


def test_the_latest_answers_are_read_once_per_round(client: Client, loom: FakeLoom, service: Service) -> None:
    read: list[str] = []
    rows = loom.answers
    loom.answers = lambda name, *given: (read.append(name), rows(name, *given))[1]  # type: ignore[method-assign]
    for _ in range(3):
        client.get("/api/v1/latest", params={"query": "flow"})
    assert read == ["flow"]
    service.round_done(made_round(2))
    client.get("/api/v1/latest", params={"query": "flow"})
    client.put("/api/v1/queries/flow", json={"text": AVERAGE})
    client.get("/api/v1/latest", params={"query": "flow"})
    assert read == ["flow"] * 3


def test_the_plan_is_data_and_a_picture(client: Client) -> None:
    assert client.get("/api/v1/plan").json()["counts"]["queries"] == 2
    picture = client.get("/api/v1/plan.svg")
    assert picture.headers["content-type"] == "image/svg+xml"
    assert picture.text.startswith("<svg")
    assert set(client.get("/api/v1/sharing").json()["queries"]) == {"flow", "high"}


def test_rounds_and_the_loom_at_a_glance(client: Client) -> None:
    assert [round_["round"] for round_ in client.get("/api/v1/rounds").json()["rounds"]] == [0, 1]
    assert [round_["round"] for round_ in client.get("/api/v1/rounds?limit=1").json()["rounds"]] == [1]
    found = client.get("/api/v1/status").json()
    assert (found["round"], found["queries"], found["rejected"], found["message"]) == (1, 2, 1, "running")
    assert (found["events"], found["rows"]) == (2_001, 24)
    assert found["streams"][0]["late_partly"] == 4
    stream = found["streams"][0]
    assert (stream["lag"], stream["tuples"], stream["cells"]) == (3.5, 2_021, 40)
    assert stream["tuples_per_second"] > 0


def test_a_stream_that_failed_is_not_ready_and_tells_no_path(client: Client, loom: FakeLoom) -> None:
    assert client.get("/readyz").text == "ready\n"
    loom.is_active = False
    loom.failure = WindloomError("cannot write '/srv/answers/a/round-1.parquet'", "no space left", "make room")
    assert client.get("/readyz").status_code == 503
    assert client.get("/healthz").status_code == 200
    message = client.get("/api/v1/status").json()["message"]
    assert "cannot write '…/round-1.parquet'" in message
    assert "/srv" not in message


def test_metrics_are_those_of_the_rounds(client: Client) -> None:
    text = client.get("/metrics").text
    lines = text.splitlines()
    assert "windloom_rounds_total 2.0" in lines
    assert "windloom_events_total 2001.0" in lines
    assert 'windloom_late_total{fate="partly",stream="trades"} 4.0' in lines
    assert 'windloom_stage_seconds_count{stage="step"} 2.0' in lines
    assert 'windloom_lag_seconds{stream="trades"} 3.5' in lines
    assert 'windloom_tuples_total{stream="trades"} 2021.0' in lines
    assert 'windloom_cells{stream="trades"} 40.0' in lines
    assert "windloom_up 1.0" in lines
    assert any(line.startswith('windloom_query_cost_seconds{query="flow"} ') for line in lines)


def test_a_round_that_waits_for_a_sink_is_told_everywhere(client: Client, loom: FakeLoom, service: Service) -> None:
    assert client.get("/api/v1/status").json()["waiting"] is None
    since = datetime(2026, 1, 5, 12, 0, 5, tzinfo=UTC)
    reason = "the Delta table '/data/lake/t' does not take the round"
    for attempts in (1, 2):
        loom.waiting = SinkWait("delta", 7, since, attempts, reason, 600.0)
        service.round_waits(loom.waiting)
    status = client.get("/api/v1/status").json()
    assert status["waiting"] == {
        "sink": "delta",
        "round": 7,
        "since": "2026-01-05T12:00:05+00:00",
        "attempts": 2,
        "reason": "the Delta table '…/t' does not take the round",
        "patience": 600.0,
    }
    assert status["message"].startswith("round 7 waits for the sink 'delta' since 12:00:05 UTC, tried 2 times: ")
    assert "/data/lake" not in status["message"]
    ready = client.get("/readyz")
    assert (ready.status_code, ready.text) == (503, "round 7 waits for the sink 'delta', which is down\n")
    assert client.get("/healthz").status_code == 200
    text = client.get("/metrics").text
    assert 'windloom_sink_waiting{sink="delta"} 1.0' in text
    assert 'windloom_sink_failures_total{sink="delta"} 2.0' in text

    loom.waiting = None
    service.round_waits(None)
    figures = {"seconds": 0.5, "waited": 31.0, "dead_letters": 2}
    service.round_done(made_round(7, sinks={"delta": figures, "parquet": {"seconds": 0.25}}))
    text = client.get("/metrics").text
    assert client.get("/readyz").text == "ready\n"
    assert 'windloom_sink_waiting{sink="delta"} 0.0' in text
    assert 'windloom_sink_waiting{sink="parquet"} 0.0' in text
    assert 'windloom_sink_seconds_total{sink="delta"} 0.5' in text
    assert 'windloom_sink_waited_seconds_total{sink="delta"} 31.0' in text
    assert 'windloom_sink_figures_total{figure="dead_letters",sink="delta"} 2.0' in text


def test_every_figure_of_the_dashboard_is_one_of_the_metrics(client: Client, service: Service) -> None:
    service.round_waits(SinkWait("webhook", 2, datetime.now(UTC), 1, "it is away", 600.0))
    dashboard = (Path(__file__).resolve().parents[3] / "docs" / "grafana.json").read_text()
    client.get("/healthz")  # requests are counted when they are answered
    known = set(re.findall(r"^(windloom_\w+)", client.get("/metrics").text, re.MULTILINE))
    assert set(re.findall(r"windloom_\w+", dashboard)) <= known


def test_a_query_above_the_largest_cost_is_refused_with_the_figure(loom: FakeLoom) -> None:
    service = Service(loom, limits=Limits(max_cost=1e-12))
    with Client(make_app(service)) as client:
        tried = client.post("/api/v1/queries/dry-run", json={"text": AVERAGE}).json()
        assert (tried["allowed"], tried["max_cost"]) == (False, 1e-12)
        refused = client.post("/api/v1/queries", json={"name": "average", "text": AVERAGE})
        assert refused.status_code == 422
        assert refused.json()["error"]["message"] == "query 'average' costs too much"
        assert "of event time, and" in refused.json()["error"]["detail"]
        assert "average" not in loom.queries


def test_the_description_of_the_api_names_every_request(client: Client) -> None:
    paths = client.get("/api/v1/openapi.json").json()["paths"]
    assert {"/api/v1/queries", "/api/v1/queries/{name}/answers", "/api/v1/ask", "/api/v1/rounds/live"} <= set(paths)


def test_a_round_that_comes_later_is_in_the_figures(client: Client, service: Service) -> None:
    service.round_done(made_round(2, results=100))
    assert client.get("/api/v1/status").json()["rows"] == 124
