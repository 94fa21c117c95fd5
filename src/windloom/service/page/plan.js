// The plan as a picture to point at: streams, scans, slices, trees, queries; what belongs together lights up.

import { api, feed } from "/page/api.js";
import { h, put, s } from "/page/dom.js";
import { counted, number, work } from "/page/words.js";

const COLUMNS = [["STREAMS", 1, 124], ["SCANS", 155, 100], ["SLICES", 285, 190], ["TREES", 505, 110], ["QUERIES", 645, 254]];
const TOP = 30, GAP = 8;

export function plan(main) {
  const picture = h("div", { class: "card plan scroll", id: "plan" }), side = h("aside", { class: "card plan-side", "aria-live": "polite" });
  put(main, h("div", { class: "row" }, h("h1", { class: "grow" }, "Plan"), h("a", { class: "button", href: "/api/v1/plan.svg", target: "_blank" }, "SVG"), h("a", { class: "button", href: "/api/v1/plan", target: "_blank" }, "JSON")),
    h("div", { class: "plan-wrap" }, picture, side));
  const load = async () => {
    const [made, sharing] = await Promise.all([api.plan(), api.sharing()]);
    if (!main.contains(picture)) return;
    const nodes = nodesOf(made, sharing);
    draw(picture, side, nodes);
    tell(side, null, made, nodes);
  };
  load().catch(() => {});
  return feed.watch((what) => { if (what === "queries") load().catch(() => {}); });
}

/** Every node with its column, its texts and the nodes that feed it; queries decide the order of all. */
function nodesOf(made, sharing) {
  const nodes = new Map();
  const add = (id, column, title, sub, from, facts, more = {}) => nodes.set(id, { id, column, title, sub, from, facts, ...more });
  for (const one of made.streams) {
    add(`stream ${one.name}`, 0, one.name, `${number(one.events_per_second)} events/s`, [], { rate: `${number(one.events_per_second)} events/s, ${one.rate}`, time: one.time, "windows per tuple": number(one.windows_per_tuple) });
  }
  for (const one of made.relations) {
    const kind = one.retroactive ? "retroactive" : "non-retroactive", seen = one.version;
    add(`relation ${one.name}`, 0, one.name, `${kind} relation`, [], {
      kind, version: seen ? `${seen.number} since round ${seen.round}` : "not read yet", rows: seen && seen.rows !== null && number(seen.rows),
      bytes: seen && seen.bytes !== null && number(seen.bytes), "read by": one.read_by.join(", "),
    });
  }
  for (const one of made.enriched) {
    const names = one.joined.map((other) => other.relation).join(", ");
    add(`stream ${one.name}`, 0, `${one.stream} + ${names}`, "joined as tuples come", [], { joined: one.joined.map((other) => `${other.kind} ${other.relation} on ${other.on}`).join("; ") });
  }
  for (const one of made.scans) {
    add(`scan ${one.number}`, 1, `scan ${one.number}`, one.intake, [`stream ${one.stream}`], { intake: one.intake, why: one.why, feeds: counted(one.feeds.length, "set"), where: one.where });
  }
  for (const one of made.sets) {
    const cost = sharing.sets.find((other) => other.number === one.number);
    const groups = one.group_by.map((group) => group.expression).join(", ");
    const feeds = made.scans.filter((scan) => scan.feeds.some((feeding) => feeding.set === one.number)).map((scan) => `scan ${scan.number}`);
    feeds.push(...made.relations.filter((relation) => relation.sets.includes(one.number)).map((relation) => `relation ${relation.name}`));
    add(`set ${one.number}`, 2, groups ? `by ${groups}` : "all together", one.where ? `where ${one.where}` : `${number(one.edges.per_second)} slices/s`, feeds, {
      grouping: groups || "none", predicate: one.where || "none", slices: `${one.edges.exact ? "" : "≈ "}${number(one.edges.per_second)} per second`,
      kept: one.components.map((part) => part.name).join(", "), costs: cost && work(cost.total),
    });
    for (const tree of one.trees) {
      add(tree.name, 3, tree.name, counted(tree.queries.length, "query", "queries"), [`set ${one.number}`], {
        slices: `${number(tree.edges.per_second)} per second`, costs: work(tree.cost.total),
        techniques: Object.entries(tree.techniques).map(([part, how]) => `${part}: ${how}`).join("; "),
      });
      for (const query of tree.queries) {
        const share = sharing.queries[query.name];
        add(`query ${query.name}`, 4, query.name, query.window.text, [tree.name], {
          window: query.window.text, answer: query.answer, tree: tree.name, "shares slices with": counted(query.shares.slices_with, "query", "queries"),
          "shares partials with": counted(query.shares.partials_with, "query", "queries"), costs: share && work(share.seconds), alone: share && work(share.alone),
        }, { query: query.name, text: query.text });
      }
    }
  }
  return nodes;
}

function draw(picture, side, nodes) {
  const all = [...nodes.values()];
  const heights = [46, 46, 46, 46, all.filter((one) => one.column === 4).length > 40 ? 24 : 40];
  let y = TOP;
  for (const one of all.filter((node) => node.column === 4)) {
    [one.y, one.height] = [y, heights[4]];
    y += heights[4] + GAP;
  }
  for (let column = 3; column >= 0; column--) {
    let free = TOP;
    for (const one of all.filter((node) => node.column === column)) {
      const fed = all.filter((other) => other.from.includes(one.id));
      const middle = fed.length ? fed.reduce((sum, other) => sum + other.y + other.height / 2, 0) / fed.length : free;
      one.height = heights[column];
      one.y = Math.max(free, middle - one.height / 2);
      free = one.y + one.height + GAP;
      y = Math.max(y, free);
    }
  }
  const svg = s("svg", { viewBox: `0 0 900 ${y + 4}`, role: "group", "aria-label": "The plan: streams, scans, slices, trees, queries" });
  svg.append(...COLUMNS.map(([label, x]) => s("text", { x, y: 14 }, label)));
  const edges = all.flatMap((one) => one.from.filter((id) => nodes.has(id)).map((id) => edge(nodes.get(id), one)));
  svg.append(...edges.map((one) => one.path));
  for (const one of all) {
    one.shape = node(one);
    const point = () => light(picture, side, nodes, edges, one);
    one.shape.addEventListener("pointerenter", point);
    one.shape.addEventListener("focus", point);
    one.shape.addEventListener("click", () => one.query && (location.hash = `#/query/${encodeURIComponent(one.query)}`));
    one.shape.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && one.query) location.hash = `#/query/${encodeURIComponent(one.query)}`;
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) {
        event.preventDefault();
        const column = all.filter((other) => other.column === one.column);
        column[column.indexOf(one) + step]?.shape.focus();
      }
    });
    svg.append(one.shape);
  }
  svg.addEventListener("pointerleave", () => picture.classList.remove("pointing"));
  put(picture, svg);
}

function node(one) {
  const [, x, width] = COLUMNS[one.column];
  const most = Math.floor((width - 20) / 7.4), small = one.height < 30;
  const cut = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);
  return s("g", { class: "node", tabindex: "0", role: "button", "aria-label": `${COLUMNS[one.column][0].toLowerCase().slice(0, -1)} ${one.title}, ${one.sub}` },
    s("rect", { x, y: one.y, width, height: one.height, rx: 6 }),
    s("text", { x: x + 10, y: one.y + (small ? 16 : 17) }, cut(one.title, most)),
    !small && s("text", { class: "sub", x: x + 10, y: one.y + one.height - 8 }, cut(one.sub, most + 3)));
}

function edge(from, to) {
  const [, x, width] = COLUMNS[from.column];
  const [x0, y0, x1, y1] = [x + width, from.y + from.height / 2, COLUMNS[to.column][1], to.y + to.height / 2];
  const middle = (x0 + x1) / 2;
  return { from: from.id, to: to.id, path: s("path", { class: "edge", d: `M${x0} ${y0}C${middle} ${y0} ${middle} ${y1} ${x1} ${y1}` }) };
}

/** What feeds a node and what it feeds; of a query also those that share its tree, which are what it feeds from. */
function light(picture, side, nodes, edges, one) {
  const on = new Set([one.id]);
  const up = (id) => nodes.get(id)?.from.forEach((other) => { on.add(other); up(other); });
  const down = (id) => { for (const other of nodes.values()) if (other.from.includes(id)) { on.add(other.id); down(other.id); } };
  up(one.id);
  down(one.id);
  picture.classList.add("pointing");
  for (const other of nodes.values()) other.shape.classList.toggle("on", on.has(other.id));
  for (const other of edges) other.path.classList.toggle("on", on.has(other.from) && on.has(other.to));
  tell(side, one, null, nodes);
}

function tell(side, one, made, nodes) {
  if (!one) {
    put(side, h("h2", {}, "At a glance"), h("dl", {}, Object.entries(made.counts).map(([what, count]) => [h("dt", {}, what), h("dd", {}, number(count))])), h("p", { class: "soft" }, "Point at something, or move with Tab and the arrow keys, to see what it shares and with whom. Enter opens a query."));
    return;
  }
  const facts = Object.entries(one.facts).filter(([, value]) => value);
  const sharers = one.query ? [...nodes.values()].filter((other) => other.query && other.id !== one.id && other.from[0] === one.from[0]) : [...nodes.values()].filter((other) => other.query && reaches(nodes, other, one.id));
  put(side, h("h2", {}, one.title), h("dl", {}, facts.map(([what, value]) => [h("dt", {}, what), h("dd", {}, value)])),
    h("h2", {}, one.query ? "In the same tree" : "Its queries"),
    sharers.length ? h("p", {}, sharers.slice(0, 30).map((other, i) => [i ? ", " : "", h("a", { href: `#/query/${encodeURIComponent(other.query)}` }, other.query)]), sharers.length > 30 ? ` and ${sharers.length - 30} more` : "") : h("p", { class: "soft" }, "none"),
    one.text && h("pre", { class: "wrap" }, one.text));
}

const reaches = (nodes, one, id) => one.from.some((other) => other === id || (nodes.has(other) && reaches(nodes, nodes.get(other), id)));
