// The description of the API, readable: what can be asked, with which parameters, and what is answered.

import { byId, h } from "/page/dom.js";

const theme = localStorage.getItem("theme") || "auto";
document.documentElement.dataset.theme = theme === "auto" ? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light") : theme;

/** The type of a value; a model is a link to what it holds. */
function kind(schema = {}) {
  if (schema.$ref) return [link(schema.$ref.split("/").at(-1))];
  if (schema.anyOf) return schema.anyOf.flatMap((one, i) => [i ? " or " : "", ...kind(one)]);
  if (schema.enum) return [schema.enum.join(" | ")];
  if (schema.type === "array") return ["list of ", ...kind(schema.items)];
  if (schema.type === "object" && schema.additionalProperties?.$ref) return ["object of ", ...kind(schema.additionalProperties)];
  return [schema.type || "any"];
}

const link = (name) => h("a", { href: `#${name}` }, name);
const inJson = (part) => part?.content?.["application/json"]?.schema;

function facts(request) {
  const rows = (request.parameters || []).filter((one) => one.in !== "cookie").map((one) => [one.name, one.in, kind(one.schema), one.schema?.default]);
  const body = inJson(request.requestBody), [status, answer] = Object.entries(request.responses || {}).find(([code]) => code < "300") || [];
  if (body) rows.push(["body", "JSON", kind(body), undefined]);
  if (inJson(answer)) rows.push([status, "answer", kind(inJson(answer)), undefined]);
  return rows.length ? h("div", { class: "scroll" }, h("table", { class: "fixed api" }, h("tbody", {}, rows.map(([name, place, type, standard]) => h("tr", {},
    h("td", { class: "name" }, name), h("td", { class: "soft" }, place), h("td", {}, type), h("td", { class: "soft" }, standard === undefined || standard === null ? "" : `default ${standard}`)))))) : null;
}

const found = await (await fetch("/api/v1/openapi.json")).json();
const sections = [];
for (const [path, methods] of Object.entries(found.paths)) {
  for (const [method, request] of Object.entries(methods)) {
    sections.push(h("section", { class: "card" }, h("h1", {}, h("code", {}, `${method.toUpperCase()} ${path}`)), h("p", {}, request.description || request.summary), facts(request)));
  }
}
for (const [name, schema] of Object.entries(found.components.schemas).filter(([name, one]) => one.properties && !/Validation/.test(name))) {
  sections.push(h("section", { class: "card", id: name }, h("h2", {}, name), schema.description && h("p", {}, schema.description),
    h("table", { class: "fixed api" }, h("tbody", {}, Object.entries(schema.properties).map(([field, one]) => h("tr", {}, h("td", { class: "name" }, field), h("td", {}, kind(one))))))));
}
byId("main").append(...sections);
