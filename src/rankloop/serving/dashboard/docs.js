// The API as a page: every call of the OpenAPI description, its types, and a form that makes the call.
import { call, useKey } from "./api.js";
import { byId, h, tell } from "./format.js";

const description = await (await fetch("/openapi.json")).json();
const schemas = description.components.schemas;

tell(byId("about"), `${description.info.description} Version ${description.info.version}.`);
byId("key").onsubmit = (event) => {
  event.preventDefault();
  useKey(byId("key-field").value.trim());
  tell(byId("key-used"), "This key is used from now on.");
};
function section(path, method, told) {
  const id = told.operationId;
  const parameters = told.parameters ?? [];
  const asked = schemaOf(told.requestBody?.content);
  const answered = schemaOf(told.responses["200"]?.content);
  const fields = parameters.map((one) => [
    one,
    h("input", { id: `${id}-${one.name}`, required: one.in === "path", autocomplete: "off", spellcheck: "false" }),
  ]);
  const body = asked && h("textarea", { id: `${id}-body`, rows: 6, spellcheck: "false" });
  if (body) body.value = JSON.stringify(example(asked), null, 2);
  const result = h("div", { role: "status" });
  const send = async (event) => {
    event.preventDefault();
    const query = new URLSearchParams();
    let where = path;
    for (const [one, field] of fields) {
      if (one.in === "path") where = where.replace(`{${one.name}}`, encodeURIComponent(field.value));
      else if (field.value) query.set(one.name, field.value);
    }
    const { status, text } = await call(method, query.size ? `${where}?${query}` : where, body?.value);
    result.replaceChildren(h("p", {}, h("strong", {}, `Status ${status}`)), h("pre", { tabindex: 0 }, pretty(text)));
  };
  const form = h(
    "form",
    { onsubmit: send },
    ...fields.flatMap(([one, field]) => [
      h("label", { for: field.id }, one.description ? `${one.name}: ${one.description}` : one.name),
      field,
    ]),
    ...(body ? [h("label", { for: body.id }, "Body, as JSON"), body] : []),
    h("div", {}, h("button", {}, "Send")),
    result,
  );
  return h(
    "details",
    { class: "card call", id },
    h("summary", {}, h("span", { class: "method" }, method), h("code", {}, path), h("span", { class: "soft" }, told.summary)),
    h("p", {}, told.description ?? ""),
    ...types("Request", asked),
    ...types("Answer", answered),
    form,
  );
}

const schemaOf = (content) => content?.["application/json"]?.schema;
const resolved = (schema) => (schema?.$ref ? schemas[schema.$ref.split("/").pop()] : schema);

function types(words, schema) {
  return schema ? [h("p", { class: "small soft" }, words), h("pre", { tabindex: 0 }, inWords(schema))] : [];
}

/** A type, written as a programmer would. */
function inWords(schema, indent = "", seen = []) {
  const name = schema.$ref;
  const one = resolved(schema);
  if (!one || (name && seen.includes(name))) return name?.split("/").pop() ?? "any value";
  const next = name ? [...seen, name] : seen;
  if (one.anyOf) return [...new Set(one.anyOf.map((part) => inWords(part, indent, next)))].join(" or ");
  if (one.enum) return one.enum.map((value) => JSON.stringify(value)).join(" or ");
  if (one.type === "array") {
    const inner = one.items ?? one.prefixItems?.[0];
    return `[${inner ? inWords(inner, indent, next) : "any value"}, ...]`;
  }
  if (one.properties) {
    const lines = Object.entries(one.properties).map(([key, value]) => {
      const optional = one.required?.includes(key) ? "" : "?";
      return `${indent}  ${key}${optional}: ${inWords(value, `${indent}  `, next)}`;
    });
    return `{\n${lines.join("\n")}\n${indent}}`;
  }
  if (one.type === "object") return "{name: value, ...}";
  return one.type ?? "any value";
}

/** What a body must have, with a value of the right type; the rest is left out. */
function example(schema) {
  const one = resolved(schema);
  if (!one) return null;
  if (one.anyOf) return example(one.anyOf.find((part) => resolved(part).properties) ?? one.anyOf[0]);
  if (one.enum) return one.enum[0];
  if (one.properties)
    return Object.fromEntries((one.required ?? []).map((key) => [key, example(one.properties[key])]));
  return { array: [], integer: 1, number: 1, boolean: true, object: {} }[one.type] ?? "";
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

byId("calls").replaceChildren(
  ...Object.entries(description.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, told]) => section(path, method.toUpperCase(), told)),
  ),
);
