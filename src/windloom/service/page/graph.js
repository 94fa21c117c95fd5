// The graph of a plan: what each node is, what feeds it, and where it stands in the picture.

import { counted, number, work } from "/page/words.js";

/** Kinds of nodes from left to right, with what stands above them and how wide they are; kinds that come later stand before the queries. */
const KINDS = { stream: ["STREAMS", 112], relation: ["RELATIONS", 130], enriched: ["ENRICHED", 150], scan: ["SCANS", 84], set: ["SLICES", 170], tree: ["TREES", 104], fold: ["JOINS", 140], answer: ["QUERIES", 250] };
const OTHER = 140, TOP = 30, TALL = 46, GAP = 8, BETWEEN = 24;
/** Queries stand below each other, or if there are more, side by side: so many, so wide and tall, with so much between. */
const FEW = 40, ABREAST = 3, NARROW = 138, LOW = 22, CLOSE = 5;

/** Every node of the plan by its id, with its texts, what feeds it, and of a query its name and text. */
export function nodesOf(plan, sharing) {
  const known = lookUp(plan, sharing), nodes = new Map();
  for (const one of plan.nodes) {
    const { title, sub, facts, text } = (TELL[one.kind] || tellOther)(one, known);
    nodes.set(one.id, { id: one.id, kind: one.kind, from: one.inputs, title, sub, text, facts, query: one.kind === "answer" ? one.query : null });
  }
  for (const one of nodes.values()) one.above = closure(one.from, (id) => nodes.get(id).from);
  return nodes;
}

function closure(ids, next) {
  const found = new Set(), waiting = [...ids];
  while (waiting.length) {
    const id = waiting.pop();
    if (!found.has(id)) {
      found.add(id);
      waiting.push(...next(id));
    }
  }
  return found;
}

const by = (all, key) => new Map(all.map((one) => [one[key], one]));

function lookUp(plan, sharing) {
  const members = plan.sets.flatMap((one) => one.trees.flatMap((tree) => tree.queries));
  return {
    streams: by(plan.streams, "name"), scans: by(plan.scans, "number"), sets: by(plan.sets, "number"), queries: by(members, "name"),
    relations: by(plan.relations, "name"), enriched: by(plan.enriched, "name"), joins: by(plan.joins || [], "name"), setCosts: by(sharing.sets, "number"), shares: sharing.queries,
  };
}

const rate = (edges) => `${edges.exact ? "" : "≈ "}${number(edges.per_second)} per second`;

const TELL = {
  stream: (one, { streams }) => {
    const { events_per_second: events, rate: how, time, windows_per_tuple: windows } = streams.get(one.stream);
    return { title: one.stream, sub: `${number(events)} events/s`, facts: { rate: `${number(events)} events/s, ${how}`, time, "windows per tuple": number(windows) } };
  },
  relation: (one, { relations }) => {
    const { retroactive, version, read_by: readers } = relations.get(one.relation), kind = retroactive ? "retroactive" : "non-retroactive";
    const known = (figure) => (figure === null || figure === undefined ? undefined : number(figure));
    return {
      title: one.relation, sub: kind,
      facts: { kind, version: version ? `${version.number} since round ${version.round}` : "not read yet", rows: version && known(version.rows), bytes: version && known(version.bytes), "read by": readers.join(", ") },
    };
  },
  enriched: (one, { enriched }) => {
    const { stream, joined } = enriched.get(one.enriched);
    return {
      title: `${stream} + ${joined.map((other) => other.relation).join(", ")}`, sub: "joined as tuples come",
      facts: { joined: joined.map((other) => `${other.kind} ${other.relation} on ${other.on}`).join("; ") },
    };
  },
  scan: (one, { scans }) => {
    const { intake, why, feeds, where } = scans.get(one.scan);
    return { title: `scan ${one.scan}`, sub: intake, facts: { intake, why, feeds: counted(feeds.length, "set"), where } };
  },
  set: (one, { sets, setCosts }) => {
    const { group_by, where, edges, components } = sets.get(one.set), cost = setCosts.get(one.set);
    const groups = group_by.map((group) => group.expression).join(", ");
    return {
      title: groups ? `by ${groups}` : "all together", sub: where ? `where ${where}` : `${number(edges.per_second)} slices/s`,
      facts: { grouping: groups || "none", predicate: where || "none", slices: rate(edges), kept: components.map((part) => part.name).join(", "), costs: cost && work(cost.total) },
    };
  },
  tree: (one, { sets }) => {
    const { name, edges, cost, techniques, queries } = sets.get(one.set).trees.find((tree) => tree.number === one.tree);
    const sides = queries.filter((query) => query.shape === null).length, own = queries.length - sides;
    const told = [own && counted(own, "query", "queries"), sides && counted(sides, "side")].filter(Boolean).join(", ");
    return { title: name, sub: told, facts: { answers: told, slices: rate(edges), costs: work(cost.total), techniques: Object.entries(techniques).map(([part, how]) => `${part}: ${how}`).join("; ") } };
  },
  fold: (one, { joins }) => {
    const { sides, links, fold } = joins.get(one.join);
    return {
      title: `⋈ ${one.join}`, sub: fold,
      facts: { sides: sides.map((side) => `${side.alias}: ${side.stream} ${side.window}`).join("; "), links: links.map((link) => link.text).join("; "), fold },
    };
  },
  answer: (one, { queries, joins, shares }) => {
    const plain = queries.get(one.query), join = joins.get(one.query), share = shares[one.query];
    const window = plain ? plain.window.text : join ? join.window : "";
    return {
      title: one.query, sub: window, text: (plain || join || {}).text,
      facts: {
        window, answer: (plain || join || {}).answer, "slices with": plain && counted(plain.shares.slices_with, "query", "queries"),
        "partials with": plain && counted(plain.shares.partials_with, "query", "queries"), costs: share && work(share.seconds), alone: share && work(share.alone),
      },
    };
  },
};

const tellOther = (one) => ({ title: one.id.slice(one.id.indexOf(":") + 1), sub: one.kind, facts: { kind: one.kind } });

/** The nodes to draw: of the queries those whose name or text holds all words, the first `most` of them. */
export function chosen(nodes, words, most) {
  const queries = [...nodes.values()].filter((one) => one.query);
  const found = queries.filter((one) => words.every((word) => `${one.query} ${one.text}`.toLowerCase().includes(word)));
  const drawn = new Set(found.slice(0, most).map((one) => one.id));
  return { drawn: new Map([...nodes].filter(([id, one]) => !one.query || drawn.has(id))), found: found.length, all: queries.length };
}

/** The columns that the picture has, and the place of every node in it: [x, y, width, height]. */
export function laidOut(nodes) {
  const all = [...nodes.values()], present = new Set(all.map((one) => one.kind));
  const known = Object.keys(KINDS).filter((kind) => kind !== "answer" && present.has(kind));
  const kinds = [...known, ...[...present].filter((kind) => !KINDS[kind]), "answer"];
  let x = 1;
  const columns = kinds.map((kind) => {
    const own = all.filter((one) => one.kind === kind), isGrid = kind === "answer" && own.length > FEW;
    const [label, wide] = KINDS[kind] || [`${kind.toUpperCase()}S`, OTHER];
    const width = isGrid ? ABREAST * (NARROW + CLOSE) - CLOSE : wide;
    const column = { label, x, width, nodes: own, isGrid };
    x += width + BETWEEN;
    return column;
  });
  inOrder(columns);
  const height = placed(columns, nodes);
  return { columns, width: x - BETWEEN + 1, height };
}

const mean = (values) => values.reduce((sum, one) => sum + one, 0) / values.length;

/** Nodes of a column in the order of what feeds them, so that few edges cross. */
function inOrder(columns) {
  const place = new Map();
  for (const column of columns) {
    const wanted = new Map(column.nodes.map((one, i) => [one, one.from.length ? mean(one.from.map((id) => place.get(id) ?? 0)) : i]));
    column.nodes.sort((a, b) => wanted.get(a) - wanted.get(b));
    column.nodes.forEach((one, i) => place.set(one.id, (i + 0.5) / column.nodes.length));
  }
}

/** Places of the queries from `top` on, and where they end. Those of one tree stand together. */
function placedQueries({ x, width, nodes, isGrid }, top) {
  let y = top, abreast = 0, feeder = null;
  for (const one of nodes) {
    const isNext = isGrid && abreast > 0 && abreast < ABREAST && one.from.join() === feeder;
    if (!isNext && feeder !== null) {
      y += isGrid ? LOW + (one.from.join() === feeder ? CLOSE : 3 * GAP) : 40 + GAP;
      abreast = 0;
    }
    feeder = one.from.join();
    one.place = isGrid ? [x + abreast * (NARROW + CLOSE), y, NARROW, LOW] : [x, y, width, 40];
    one.door = [x, y + one.place[3] / 2];
    abreast += 1;
  }
  return y + (isGrid ? LOW : 40) + GAP;
}

/** Queries first; everything else beside the middle of what it feeds. */
function placed(columns, nodes) {
  const feeds = new Map([...nodes.keys()].map((id) => [id, []]));
  for (const one of nodes.values()) for (const id of one.from) feeds.get(id).push(one);
  const last = columns.at(-1), most = Math.max(...columns.slice(0, -1).map((column) => column.nodes.length * (TALL + GAP)));
  const spare = TOP + most - placedQueries(last, TOP);
  let bottom = spare > 0 ? placedQueries(last, TOP + spare / 2) : placedQueries(last, TOP);
  for (const column of columns.slice(0, -1).reverse()) {
    const height = TALL;
    let free = TOP;
    for (const one of column.nodes) {
      const fed = feeds.get(one.id).filter((other) => other.place);
      const middle = fed.length ? mean(fed.map((other) => other.place[1] + other.place[3] / 2)) : free + height / 2;
      const y = Math.max(free, middle - height / 2);
      one.place = [column.x, y, column.width, height];
      one.door = null;
      free = y + height + GAP;
    }
    bottom = Math.max(bottom, free);
  }
  for (const column of columns.slice(0, -1)) {
    let limit = bottom;
    for (const one of [...column.nodes].reverse()) {
      const fed = feeds.get(one.id), [x, y, width, height] = one.place;
      const wanted = fed.length ? mean(fed.map((other) => other.place[1] + other.place[3] / 2)) - height / 2 : y;
      one.place = [x, Math.min(limit - height - GAP, Math.max(y, wanted)), width, height];
      limit = one.place[1];
    }
  }
  return bottom + 4;
}

/** All that belongs to a node: what feeds it and what it feeds. */
export function belonging(nodes, one) {
  const found = new Set([one.id, ...one.above]);
  for (const other of nodes.values()) if (other.above.has(one.id)) found.add(other.id);
  return found;
}

/** Of a query those that share a tree with it; of anything else the queries that it feeds. */
export function relatives(nodes, one) {
  const queries = [...nodes.values()].filter((other) => other.query && other.id !== one.id);
  if (!one.query) return queries.filter((other) => other.above.has(one.id));
  const trees = [...one.above].filter((id) => nodes.get(id).kind === "tree");
  return queries.filter((other) => trees.some((id) => other.above.has(id)));
}
