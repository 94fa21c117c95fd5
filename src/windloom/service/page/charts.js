// Three charts, drawn as SVG at the size they have: stacked bars, lines, and a line as small as a word.

import { h, put, s } from "/page/dom.js";
import { clock, number } from "/page/words.js";

const MARGIN = { left: 52, right: 12, top: 10, bottom: 24 };

/** Round numbers from 0 or the least value to the largest. */
export function ticks(least, most, count = 4) {
  const span = most - least || Math.abs(most) || 1;
  const power = 10 ** Math.floor(Math.log10(span / count));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => span / one <= count) || power * 10;
  const found = [];
  for (let at = Math.ceil(least / step - 1e-9) * step; at <= most + step * 1e-6; at += step) found.push(Math.abs(at) < step * 1e-9 ? 0 : at);
  return found;
}

const size = (place) => [Math.max(place.clientWidth, 240), Math.max(place.clientHeight, 120)];

function frame(width, height, label) {
  return s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
}

function rows(svg, width, y, marks, text) {
  for (const at of marks) {
    svg.append(
      s("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(at), y2: y(at) }),
      s("text", { x: MARGIN.left - 8, y: y(at) + 4, "text-anchor": "end" }, text(at)),
    );
  }
}

function empty(place, text) {
  const [width, height] = size(place);
  const svg = frame(width, height, text);
  svg.append(s("text", { class: "nothing", x: width / 2, y: height / 2, "text-anchor": "middle" }, text));
  put(place, svg);
}

/** `bars` are {label, parts: [numbers]}; `names` are of the parts, from the bottom up. */
export function stackedBars(place, bars, names, unit) {
  if (!bars.length) return empty(place, "no round yet");
  const [width, height] = size(place);
  const svg = frame(width, height, `seconds per stage of the last ${bars.length} rounds`);
  const totals = bars.map((bar) => bar.parts.reduce((sum, one) => sum + one, 0));
  // One slow round, usually the first, must not flatten all the others.
  const sorted = [...totals].sort((a, b) => a - b);
  const most = Math.min(sorted.at(-1), 4 * sorted[Math.floor(sorted.length / 2)]) || 1;
  const y = (value) => height - MARGIN.bottom - (Math.min(value, most) / most) * (height - MARGIN.top - MARGIN.bottom);
  rows(svg, width, y, ticks(0, most), (at) => `${number(at)} ${unit}`);
  const slots = Math.max(bars.length, 24);
  const step = (width - MARGIN.left - MARGIN.right) / slots;
  const tip = h("div", { class: "tip", hidden: true });
  bars.forEach((bar, i) => {
    const x = MARGIN.left + (slots - bars.length + i) * step;
    const group = s("g", {});
    let below = 0;
    bar.parts.forEach((part, k) => {
      const top = y(below + part);
      group.append(s("rect", { class: `c${k % 8}`, x: x + step * 0.12, y: top, width: step * 0.76, height: Math.max(0, y(below) - top) }));
      below += part;
    });
    if (totals[i] > most) group.append(s("text", { x: x + step / 2, y: MARGIN.top + 1, "text-anchor": "middle" }, "▲"));
    group.append(s("rect", { x, y: MARGIN.top, width: step, height: height - MARGIN.top - MARGIN.bottom, fill: "transparent" }));
    group.addEventListener("pointerenter", () => {
      const lines = bar.parts.map((part, k) => [part, names[k]]).filter(([part]) => part > 0);
      put(tip, h("strong", {}, bar.label), lines.map(([part, what]) => h("div", {}, `${what} ${number(part)} ${unit}`)));
      tip.hidden = false;
      tip.style.top = "8px";
      tip.style.left = x > width / 2 ? "" : `${x + step + 6}px`;
      tip.style.right = x > width / 2 ? `${width - x + 6}px` : "";
    });
    group.addEventListener("pointerleave", () => (tip.hidden = true));
    svg.append(group);
  });
  const at = (i) => MARGIN.left + (slots - bars.length + i + 0.5) * step;
  svg.append(s("text", { x: at(bars.length - 1), y: height - 6, "text-anchor": "end" }, bars.at(-1).label));
  if (bars.length > 8) svg.append(s("text", { x: at(0), y: height - 6, "text-anchor": "start" }, bars[0].label));
  put(place, svg, tip);
}

export function legend(names) {
  return h("div", { class: "legend" }, names.map((name, i) => h("span", {}, h("i", { class: `c${i % 8}` }), name)));
}

/** `series` are {name, points: [[instant, value]]}, instants as milliseconds; `nothing` is said where there are none. */
export function lines(place, series, label, nothing) {
  const all = series.flatMap((one) => one.points);
  if (!all.length) return empty(place, nothing);
  const [width, height] = size(place);
  const svg = frame(width, height, label);
  const xs = all.map(([at]) => at), ys = all.map(([, value]) => value);
  const [x0, x1] = [Math.min(...xs), Math.max(...xs)];
  const marks = ticks(Math.min(...ys), Math.max(...ys));
  const [y0, y1] = [Math.min(marks[0] ?? ys[0], ...ys), Math.max(marks.at(-1) ?? ys[0], ...ys)];
  const x = (at) => MARGIN.left + (x1 === x0 ? 0.5 : (at - x0) / (x1 - x0)) * (width - MARGIN.left - MARGIN.right);
  const y = (value) => height - MARGIN.bottom - (y1 === y0 ? 0.5 : (value - y0) / (y1 - y0)) * (height - MARGIN.top - MARGIN.bottom);
  rows(svg, width, y, marks, number);
  for (const at of instants(x0, x1, width > 560 ? 6 : 3)) {
    const anchor = x(at) < MARGIN.left + 24 ? "start" : x(at) > width - MARGIN.right - 24 ? "end" : "middle";
    svg.append(s("text", { x: x(at), y: height - 6, "text-anchor": anchor }, timeText(at)));
  }
  series.forEach((one, k) => {
    if (one.points.length === 1) svg.append(s("circle", { class: `c${k % 8}`, cx: x(one.points[0][0]), cy: y(one.points[0][1]), r: 3 }));
    else svg.append(s("path", { class: `series l${k % 8}`, d: path(one.points, x, y) }));
  });
  put(place, svg, pointer(place, svg, series, { x, y, width, height }));
}

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400].map((one) => one * 1000);

/** Round instants, or of windows of rows round positions. */
function instants(least, most, count) {
  if (most === least) return [least];
  if (most < 1e11) return ticks(least, most, count);
  const step = STEPS.find((one) => (most - least) / one <= count) || Math.ceil((most - least) / count / 864e5) * 864e5;
  const found = [];
  for (let at = Math.ceil(least / step) * step; at <= most; at += step) found.push(at);
  return found;
}

const timeText = (at) => (at > 1e11 ? clock(new Date(at).toISOString()) : number(at));
const path = (points, x, y) => points.map(([at, value], i) => `${i ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("");

/** The values at the instant that the pointer is nearest to. */
function pointer(place, svg, series, { x, width, height }) {
  const tip = h("div", { class: "tip", hidden: true });
  const cursor = s("line", { class: "cursor", y1: MARGIN.top, y2: height - MARGIN.bottom, visibility: "hidden" });
  svg.append(cursor);
  const known = [...new Set(series.flatMap((one) => one.points.map(([at]) => at)))].sort((a, b) => a - b);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const where = ((event.clientX - box.left) / box.width) * width;
    const at = known.reduce((best, one) => (Math.abs(x(one) - where) < Math.abs(x(best) - where) ? one : best), known[0]);
    cursor.setAttribute("x1", x(at));
    cursor.setAttribute("x2", x(at));
    cursor.setAttribute("visibility", "visible");
    const there = series.map((one) => [one.name, one.points.find(([when]) => when === at)]).filter(([, point]) => point);
    put(tip, h("strong", {}, timeText(at)), there.map(([name, point]) => h("div", {}, `${name} ${number(point[1])}`)));
    tip.hidden = false;
    tip.style.top = "8px";
    tip.style.left = x(at) > width / 2 ? "" : `${x(at) + 10}px`;
    tip.style.right = x(at) > width / 2 ? `${width - x(at) + 10}px` : "";
  });
  svg.addEventListener("pointerleave", () => {
    tip.hidden = true;
    cursor.setAttribute("visibility", "hidden");
  });
  return tip;
}

export function sparkline(points) {
  const svg = s("svg", { class: "spark", viewBox: "0 0 108 26", "aria-hidden": "true" });
  if (points.length < 2) return svg;
  const ys = points.map(([, value]) => value);
  const [least, most] = [Math.min(...ys), Math.max(...ys)];
  const y = (value) => 23 - (most === least ? 0.5 : (value - least) / (most - least)) * 20;
  const x = (i) => 1 + (i / (points.length - 1)) * 106;
  svg.append(s("path", { d: points.map(([, value], i) => `${i ? "L" : "M"}${x(i).toFixed(1)} ${y(value).toFixed(1)}`).join("") }));
  return svg;
}

/** Draw now, and again whenever the place changes its width. */
export function drawn(place, draw) {
  let width = 0;
  new ResizeObserver(() => {
    if (place.clientWidth === width) return;
    width = place.clientWidth;
    draw();
  }).observe(place);
}
