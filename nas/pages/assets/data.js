// What the page holds: columns as typed arrays, numbers and designs as text.
const DATA = JSON.parse(document.getElementById("data").textContent);
const TYPES = {u8: Uint8Array, u16: Uint16Array, i32: Int32Array, f32: Float32Array, f64: Float64Array};

function decoded(column) {
  if ("all" in column) return new Float64Array(column.n).fill(Number(column.all));
  const text = atob(column.base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new TYPES[column.kind](bytes.buffer);
}

function decodedAll(columns) {
  return Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, decoded(column)]));
}

function number(value, digits = 5) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e7 || size < 1e-4)) return value.toPrecision(digits).replace(/\.?0+e/, "e");
  const places = size === 0 ? 0 : Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
  return value.toLocaleString("en-US", {maximumFractionDigits: Math.min(places, 20)});
}

function signed(value, digits = 3) {
  return (value > 0 ? "+" : value < 0 ? "−" : "±") + number(Math.abs(value), digits);
}

function count(value) {
  return value >= 999.5e6 ? `${Number((value / 1e9).toPrecision(3))} G` : `${Number((value / 1e6).toPrecision(3))} M`;
}

function spelled(value) { return count(value).replace("G", "billion").replace("M", "million"); }

function valueText(metric, value) {
  return metric.startsWith("params_") ? count(value) : number(value);
}

const KINDS = ["n_local", "n_linear", "n_conv"];

function fullLayers(shape, i) {
  return KINDS.reduce((left, name) => left - (shape[name]?.[i] ?? 0), shape.depth[i]);
}

function layersText(shape, i) {
  const full = fullLayers(shape, i), shared = shape.n_kv_shared?.[i] ? `, ${shape.n_kv_shared[i]} share KV` : "";
  if (full === shape.depth[i]) return shared && ` (full${shared})`;
  const called = {
    n_local: () => `within ${shape.window[i].toLocaleString("en")}`,
    n_linear: () => DATA.words.linear_kind[shape.linear_kind[i]],
    n_conv: () => "of convolution",
  };
  const others = KINDS.filter(name => shape[name]?.[i]).map(name => `${shape[name][i]} ${called[name]()}`);
  return ` (${[...(full ? [`${full} full`] : []), ...others].join(" + ")}${shared})`;
}

function designText(shape, i) {
  const experts = shape.n_experts[i] === 1 ? "dense" : `${shape.n_experts[i]} experts top-${shape.top_k[i]}`;
  const each = shape.n_experts[i] === 1 ? "" : " each", heads = `${shape.n_heads[i]} heads (${shape.n_kv_heads[i]} KV)`;
  const ratio = Number((shape.expert_size[i] / shape.width[i]).toPrecision(4));
  const on = shape.device ? `${DATA.words.device[shape.device[i]]}: ` : "";
  const format = shape.precision ? `${DATA.words.precision[shape.precision[i]]}, ` : "";
  const tokens = shape.tokens?.[i] ? `, ${number(shape.tokens[i] / 1e9)} B tokens` : "";
  const words = ["speculation", "experts_in"].map(name => shape[name] ? DATA.words[name][shape[name][i]] : "");
  const served = words.filter(word => word.includes(":")).map(word => `, ${word.replace("slow:", "experts slow:")}`).join("");
  return `${on}${format}${shape.depth[i]} layers${layersText(shape, i)}, width ${shape.width[i].toLocaleString("en")}, ${experts}, FFN ratio ${ratio}${each}, ${heads}${tokens}${served}`;
}

function metricOf(name) {
  return DATA.metrics.find(metric => metric.name === name) ?? {name, label: name, log: false};
}

// A metric's label in two parts: its words, and its unit.
function labelOf(name) {
  const [, words, unit] = metricOf(name).label.match(/^(.*?)(?: \(([^()]*)\))?$/);
  return [words, unit ?? ""];
}

function fact(name, text) { return make("div", {}, make("dt", {}, name), make("dd", {}, text)); }

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children);
  return element;
}
