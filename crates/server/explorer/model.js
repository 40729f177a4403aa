/** The choice of models, and details of the current one. */

import { ask } from "./api.js";
import { byId, count, make } from "./dom.js";

/** The choices for the vocabulary limit. */
const LIMITS = [1_000, 5_000, 10_000, 50_000, 100_000, 500_000];

let served = null;

/** Requests the models, and shows details of the query's model. */
export async function loadModels(question, signal) {
  const { answer } = await ask("models", { signal });
  served = answer;
  const choice = byId("model");
  choice.replaceChildren(...served.models.map((model) => make("option", {}, model.name)));
  choice.closest("label").hidden = served.models.length < 2;
  document.body.classList.toggle("empty", served.models.length === 0);
  if (served.models.length === 0) byId("facts").replaceChildren();
  showModel(question);
}

/** Shows details of the query's model, or of the default model, and its vocabulary limits. */
export function showModel({ model: name, limit: chosen }) {
  const model = described(name);
  if (!model) return;
  byId("model").value = model.name;
  byId("no-documents").hidden = model.documents === true;
  const { provenance: from } = model;
  const facts = [
    ["Name", model.name],
    [model.documents ? "Documents" : "Words", count(model.rows)],
    ["Dimensions", count(model.dim)],
    ["Vectors", bytes(model.rows * model.dim * 4)],
    ["Engine", `${model.engine.name}: ${model.engine.detail}`],
    ["Source", `${from.source} (${from.source_format}, ${bytes(from.source_bytes)})`],
    ["Prepared", `${from.prepared_at.slice(0, 10)} by ${from.prepared_by}`],
    ["Version", model.version],
    ...(model.position === undefined ? [] : [["Position", count(model.position)]]),
  ];
  byId("facts").replaceChildren(
    ...facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))),
  );
  const all = make("option", { value: "" }, `all ${count(model.rows)} words`);
  const limits = LIMITS.filter((limit) => limit < model.rows);
  // An address may contain any other limit.
  if (chosen && !limits.includes(chosen)) limits.push(chosen);
  limits.sort((a, b) => a - b);
  const choices = limits.map((limit) => make("option", { value: limit }, `the ${count(limit)} most frequent`));
  byId("limit").replaceChildren(all, ...choices);
  byId("limit").value = chosen ?? "";
}

/** A model, or the default model, as `/model` describes it; none before the models are known. */
export const described = (name) => served?.models.find((model) => model.name === (name ?? served.default));

/** The attributes of a model, as `/model` describes them. */
export const attributesOf = (name) => described(name)?.attributes ?? [];

/** Whether the service has no model at all. */
export const isEmpty = () => served?.models.length === 0;

/** The version of a model, with the position of its rows if they change. */
export const stampOf = ({ name, model, version, position }) => `${model ?? name} ${version} ${position}`;

/** Whether an answer is from a model, version and position that this page knows. */
export const isKnown = (answer) => served?.models.some((known) => stampOf(known) === stampOf(answer));

/** Whether the name is the default model's, which addresses omit. */
export const isDefault = (name) => name === served?.default;

function bytes(value) {
  const units = ["bytes", "kB", "MB", "GB"];
  const unit = Math.min(Math.floor(Math.log10(Math.max(value, 1)) / 3), 3);
  return `${(value / 1000 ** unit).toFixed(unit > 1 ? 1 : 0)} ${units[unit]}`;
}
