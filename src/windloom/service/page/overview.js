// The loom at a glance: figures, rounds as they come, streams.

import { api, feed } from "/page/api.js";
import { drawn, legend, stackedBars } from "/page/charts.js";
import { h, put, say, throttled } from "/page/dom.js";
import { bytes, clock, counted, duration, instant, large, number } from "/page/words.js";

const FIGURES = ["Events per second", "Rows per second", "Lag", "Seconds per round", "Late tuples", "State"];

export function overview(main) {
  const figures = FIGURES.map((label) => {
    const value = h("span", {}, "–"), unit = h("span", { class: "unit" }), more = h("div", { class: "more" }, "\u00a0");
    return { value, unit, more, box: h("div", { class: "figure" }, h("div", { class: "label" }, label), h("div", { class: "value" }, value, unit), more) };
  });
  const chart = h("div", { class: "chart", id: "rounds-chart" });
  const key = h("div", {});
  const streams = h("tbody", {}), sinks = h("tbody", {});
  const show = () => put(
    main,
    h("h1", { class: "skip" }, "Overview"),
    h("div", { class: "figures" }, figures.map((one) => one.box)),
    h("section", { class: "card", "aria-label": "Rounds" }, h("h2", {}, "Rounds: seconds per stage"), chart, key),
    h("section", { class: "card" }, h("h2", {}, "Streams"), h("div", { class: "scroll" }, h("table", { id: "streams", class: "fixed" }, h("thead", {}, h("tr", {},
      h("th", { class: "w-name" }, "stream"), h("th", { class: "num" }, "rate"), h("th", { class: "num" }, "lag"), h("th", { class: "w-instant" }, "complete up to"),
      h("th", { class: "num" }, "partly late"), h("th", { class: "num" }, "dropped as late"), h("th", { class: "num" }, "state"))), streams))),
    h("section", { class: "card" }, h("h2", {}, "Sinks"), h("div", { class: "scroll" }, h("table", { id: "sinks", class: "fixed" }, h("thead", {}, h("tr", {},
      h("th", { class: "w-name" }, "sink"), h("th", {}, "state"), h("th", { class: "num" }, "last round"), h("th", { class: "num" }, "waited"),
      h("th", { class: "w-instant" }, "counts of the last round"))), sinks))),
    h("p", { class: "soft" }, "For programs: ", h("a", { href: "/api" }, "API"), ", ", h("a", { href: "/metrics" }, "metrics")),
  );
  let left = false;
  const draw = () => {
    const rounds = feed.rounds.slice(-60);
    const stages = [...new Set(rounds.flatMap((one) => Object.keys(one.seconds)))];
    stackedBars(chart, rounds.map((one) => ({ label: `round ${one.round}`, parts: stages.map((stage) => one.seconds[stage] || 0) })), stages, "s");
    put(key, legend(stages));
  };
  const refresh = async () => {
    const now = await api.status().catch(() => null);
    if (left) return;
    if (!main.contains(chart)) {  // all at once, so that nothing moves when the rest comes
      show();
      drawn(chart, draw);
      draw();
    }
    if (now === null) return;
    fillIn(figures, now);
    put(streams, now.streams.map(streamRow));
    put(sinks, sinkRows(now.waiting));
  };
  put(main);
  refresh();
  const soon = throttled(250, () => { // one who comes is told up to 100 rounds at once
    if (left) return;
    if (main.contains(chart)) draw();
    refresh();
  });
  const unwatch = feed.watch((what) => { if (what === "round" || what === "waiting") soon(); });
  return () => { left = true; unwatch(); };
}

function fillIn(figures, now) {
  const late = now.streams.reduce((sum, one) => sum + one.late_partly + one.late_dropped, 0);
  const told = [
    [large(now.events_per_second), `${number(now.events)} since the start`],
    [large(now.rows_per_second), `${number(now.rows)} since the start`],
    [duration(now.lag), `up to ${clock(now.watermark)}`],
    [duration(now.seconds_per_round), now.round === null ? "no round yet" : `round ${now.round} was the last`],
    [large(late), "per stream below"],
    [bytes(now.state_bytes), `${counted(now.queries, "query", "queries")}, ${counted(now.trees, "tree")}`],
  ];
  told.forEach(([[value, unit], more], i) => {
    say(figures[i].value, value);
    say(figures[i].unit, unit);
    say(figures[i].more, more);
    figures[i].more.title = more;
  });
}

function streamRow(one) {
  const columns = Object.entries(one.columns).map(([name, kind]) => `${name} ${kind}`).join(", ");
  return h("tr", {}, h("td", { class: "name", title: columns }, one.name), h("td", { class: "num" }, one.tuples_per_second === null ? "–" : `${large(one.tuples_per_second).join(" ")}/s`),
    h("td", { class: "num" }, duration(one.lag).join(" ")), h("td", { class: "instant" }, instant(one.frontier)),
    h("td", { class: "num" }, number(one.late_partly)), h("td", { class: "num" }, number(one.late_dropped)), h("td", { class: "num" }, one.cells === null ? "–" : counted(one.cells, "cell")));
}

/** As the last round found them; what was waited is over all rounds that are remembered. */
function sinkRows(waiting) {
  const last = feed.rounds.at(-1), found = last ? Object.entries(last.sinks || {}) : [];
  if (waiting && !found.some(([name]) => name === waiting.sink)) found.push([waiting.sink, {}]);
  return found.map(([name, { seconds, waited: _, ...figures }]) => {
    const isDown = waiting !== null && waiting.sink === name;
    const waited = feed.rounds.reduce((sum, one) => sum + ((one.sinks && one.sinks[name] && one.sinks[name].waited) || 0), 0);
    return h("tr", {}, h("td", { class: "name" }, name), h("td", { class: isDown ? "wrong-text" : "" }, isDown ? `down since ${clock(waiting.since)}` : "takes rounds"),
      h("td", { class: "num" }, duration(seconds).join(" ")), h("td", { class: "num" }, waited ? duration(waited).join(" ") : "–"),
      h("td", { class: "soft" }, Object.entries(figures).map(([figure, value]) => `${number(value)} ${figure.replaceAll("_", " ")}`).join(", ") || "–"));
  });
}
