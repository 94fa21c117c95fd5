// The description of the API, readable: what can be asked, with which parameters.

import { byId, h } from "/page/dom.js";

const theme = localStorage.getItem("theme") || "auto";
document.documentElement.dataset.theme = theme === "auto" ? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light") : theme;

const kind = (schema = {}) => schema.$ref?.split("/").at(-1) || (schema.anyOf || []).map(kind).join(" or ") || (schema.enum || []).join(" | ") || schema.type || "";

function parameters(request) {
  const rows = (request.parameters || []).filter((one) => one.in !== "cookie").map((one) => [one.name, one.in, kind(one.schema), one.schema?.default]);
  const body = request.requestBody?.content?.["application/json"]?.schema;
  if (body) rows.push(["body", "JSON", kind(body), undefined]);
  return rows.length ? h("table", {}, h("tbody", {}, rows.map(([name, place, type, standard]) => h("tr", {}, h("td", { class: "name" }, name), h("td", { class: "soft" }, place), h("td", {}, type), h("td", { class: "soft" }, standard === undefined ? "" : `default ${standard}`))))) : null;
}

const found = await (await fetch("/api/v1/openapi.json")).json();
for (const [path, methods] of Object.entries(found.paths)) {
  for (const [method, request] of Object.entries(methods)) {
    byId("main").append(h("section", { class: "card" }, h("h1", {}, h("code", {}, `${method.toUpperCase()} ${path}`)), h("p", {}, request.description || request.summary), parameters(request)));
  }
}
for (const [name, schema] of Object.entries(found.components.schemas).filter(([, one]) => one.properties)) {
  byId("main").append(h("section", { class: "card", id: name }, h("h2", {}, name), schema.description && h("p", {}, schema.description),
    h("table", {}, h("tbody", {}, Object.entries(schema.properties).map(([field, one]) => h("tr", {}, h("td", { class: "name" }, field), h("td", {}, kind(one))))))));
}
