// The plan as a picture to point at: streams, scans, slices, trees, joins, queries; what belongs together lights up.

import { api, feed } from "/page/api.js";
import { debounced, h, put, s, say } from "/page/dom.js";
import { belonging, chosen, laidOut, nodesOf, relatives } from "/page/graph.js";
import { counted, number } from "/page/words.js";

const MOST_NAMES = 30;
/** Queries that are drawn at once; the search finds the others. */
const MOST_QUERIES = 150;

export function plan(main) {
  const picture = h("div", { class: "card plan scroll", id: "plan" }), side = h("aside", { class: "card plan-side", "aria-live": "polite" });
  const search = h("input", { type: "search", id: "search", placeholder: "Search queries ( / )", "aria-label": "Search queries" }), told = h("span", { class: "soft" });
  let version = null, nodes = new Map(), counts = {};
  const drawAll = () => {
    const { drawn, found, all } = chosen(nodes, search.value.toLowerCase().split(/\s+/).filter(Boolean), MOST_QUERIES);
    const shown = Math.min(found, MOST_QUERIES);
    say(told, shown < all ? `${shown} of ${counted(all, "query", "queries")}` : "");
    draw(picture, side, drawn, nodes, counts);
  };
  const load = async () => {
    const [made, sharing] = await Promise.all([api.plan(), api.sharing()]);
    if (left) return;
    [nodes, counts] = [nodesOf(made, sharing), made.counts];
    if (!main.contains(picture)) show(main, picture, side, search, told);
    drawAll();
  };
  let left = false;
  search.addEventListener("input", debounced(150, drawAll));
  put(main, h("h1", {}, "Plan"));
  load().catch(() => {});
  const unwatch = feed.watch((what, done) => {
    const isOther = what === "round" && version !== null && done.plan_version !== version;
    if (what === "round") version = done.plan_version;
    if (what === "queries" || isOther) load().catch(() => {});
  });
  return () => { left = true; unwatch(); };
}

function show(main, picture, side, search, told) {
  put(main, h("div", { class: "row" }, h("h1", {}, "Plan"), h("div", { class: "grow" }, search), told, h("a", { class: "button", href: "/api/v1/plan.svg", target: "_blank" }, "SVG"), h("a", { class: "button", href: "/api/v1/plan", target: "_blank" }, "JSON")),
    h("div", { class: "plan-wrap" }, picture, side));
}

/** `nodes` are those that are drawn, `all` those of the plan. */
function draw(picture, side, nodes, all, counts) {
  const focused = picture.contains(document.activeElement) ? document.activeElement.dataset.node : null;
  const { columns, width, height } = laidOut(nodes);
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "The plan, from streams to queries" });
  svg.style.minWidth = `${Math.round(0.85 * width)}px`; // below that it is scrolled, so that it can be read
  svg.append(...columns.map((column) => s("text", { x: column.x, y: 14 }, column.label)));
  const edges = [...nodes.values()].flatMap((one) => one.from.map((id) => edge(nodes.get(id), one)));
  svg.append(...edges.map((one) => one.path));
  const point = (one) => { light(picture, nodes, edges, one); tell(side, one, relatives(all, one)); };
  const open = (one) => { if (one.query) location.hash = `#/query/${encodeURIComponent(one.query)}`; };
  columns.forEach((column, at) => column.nodes.forEach((one) => {
    one.shape = node(one, column);
    one.shape.addEventListener("pointerenter", () => point(one));
    one.shape.addEventListener("focus", () => point(one));
    // A finger cannot point without pressing: it is told here, and opens the query by the link beside.
    one.shape.addEventListener("click", (event) => (event.pointerType === "touch" ? point(one) : open(one)));
    one.shape.addEventListener("keydown", (event) => {
      if (event.key === "Enter") open(one);
      const next = nextTo(columns, at, one, event.key);
      if (next) {
        event.preventDefault();
        next.shape.focus();
      }
    });
    svg.append(one.shape);
  }));
  svg.addEventListener("pointerleave", () => picture.classList.remove("pointing"));
  put(picture, svg);
  glance(side, counts);
  if (focused && nodes.has(focused)) nodes.get(focused).shape.focus();
}

/** Up and down within a column; left and right to what feeds a node, and to what it feeds. */
function nextTo(columns, at, one, key) {
  const column = columns[at].nodes, step = { ArrowDown: 1, ArrowUp: -1 }[key];
  if (step) return column[column.indexOf(one) + step];
  if (key === "ArrowLeft") return columns.flatMap((other) => other.nodes).find((other) => one.from.includes(other.id));
  if (key === "ArrowRight") return columns.flatMap((other) => other.nodes).find((other) => other.from.includes(one.id));
  return null;
}

function node(one, column) {
  const [x, y, width, height] = one.place, most = Math.floor((width - 16) / 7.4), small = height < 30;
  const cut = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);
  return s("g", { class: "node", tabindex: "0", role: "button", "data-node": one.id, "data-kind": one.kind, "aria-label": `${column.label.toLowerCase()}: ${one.title}, ${one.sub}` },
    s("rect", { x, y, width, height, rx: 6 }),
    s("text", { x: x + (small ? 7 : 10), y: y + (small ? 15 : 17) }, cut(one.title, most)),
    !small && s("text", { class: "sub", x: x + 10, y: y + height - 8 }, cut(one.sub, most + 3)));
}

function edge(from, to) {
  const [x, y, width, height] = from.place, [left, top, , tall] = to.place, [x1, y1] = to.door || [left, top + tall / 2];
  const [x0, y0] = [x + width, y + height / 2], middle = (x0 + x1) / 2;
  return { from: from.id, to: to.id, path: s("path", { class: "edge", d: `M${x0} ${y0}C${middle} ${y0} ${middle} ${y1} ${x1} ${y1}` }) };
}

function light(picture, nodes, edges, one) {
  const on = belonging(nodes, one), near = new Set(one.query ? relatives(nodes, one).map((other) => other.id) : []);
  picture.classList.add("pointing");
  for (const other of nodes.values()) {
    other.shape.classList.toggle("on", on.has(other.id));
    other.shape.classList.toggle("near", near.has(other.id));
  }
  for (const other of edges) other.path.classList.toggle("on", on.has(other.from) && on.has(other.to));
}

function glance(side, counts) {
  put(side, h("h2", {}, "At a glance"), h("dl", {}, Object.entries(counts).map(([what, count]) => [h("dt", {}, what), h("dd", {}, number(count))])),
    h("p", { class: "soft" }, "Point at something, or move with Tab and the arrow keys, to see what it shares and with whom. Enter opens a query."));
}

const link = (name, text) => h("a", { href: `#/query/${encodeURIComponent(name)}` }, text);

function tell(side, one, others) {
  const facts = Object.entries(one.facts).filter(([, value]) => value);
  const names = others.slice(0, MOST_NAMES).map((other, i) => [i ? ", " : "", link(other.query, other.query)]);
  put(side, h("h2", {}, one.query ? link(one.query, one.title) : one.title),
    h("dl", {}, facts.map(([what, value]) => [h("dt", {}, what), h("dd", {}, value)])),
    h("h2", {}, one.query ? "In the same tree" : "Its queries"),
    others.length ? h("p", {}, names, others.length > MOST_NAMES ? ` and ${others.length - MOST_NAMES} more` : "") : h("p", { class: "soft" }, "none"),
    one.text && h("pre", { class: "wrap" }, one.text));
}
