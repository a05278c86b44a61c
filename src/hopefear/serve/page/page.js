"use strict";
// Everything a user or a model says is set as text, never as markup.
const SVG = "http://www.w3.org/2000/svg";
const PAINTED = 20000; // tokens on the page, at most
const at = (id) => document.getElementById(id);
let models = [], asked = null, answer = null, chosen = [];

function el(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "on") for (const [event, act] of Object.entries(value)) made.addEventListener(event, act);
    else made.setAttribute(key, value);
  }
  made.append(...children); // strings become text
  return made;
}

function drawn(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function say(words, bad) {
  at("status").textContent = words;
  at("status").className = bad ? "error" : "quiet";
}

async function call(path, body) {
  const headers = {};
  if (at("token").value) headers.authorization = "Bearer " + at("token").value;
  if (body) headers["content-type"] = "application/json";
  const reply = await fetch(path, body ? { method: "POST", headers, body: JSON.stringify(body) } : { headers });
  const facts = await reply.json().catch(() => ({ error: "no answer, status " + reply.status }));
  if (reply.status === 401) at("key").hidden = false;
  if (!reply.ok) throw new Error(facts.error);
  return facts;
}

const model = () => models.find((one) => one.name === at("model").value) || models[0];

async function load() {
  try {
    models = (await call("/models")).models;
  } catch (error) {
    say(error.message, true);
    return;
  }
  at("model").replaceChildren(
    ...models.map((one) => el("option", { value: one.name }, `${one.name} (${one.task})`)));
  choose();
}

function choose() {
  const one = model();
  at("json").checked = !one.text;
  at("json").disabled = !one.text;
  at("about").textContent =
    `${one.task}, ${one.learner || "unknown learner"}, ${one.nonzeros.toLocaleString("en")} weights`;
  at("forms").textContent = "An input is " + one.input.join(", or ") + ".";
  example();
  for (const id of ["answer", "why", "copied"]) at(id).hidden = true;
  say("");
}

function example() {
  const one = model();
  const plain = one.text && !at("json").checked;
  at("input").value = plain ? one.example
    : JSON.stringify(one.text ? String(one.example).split(" ") : one.example, null, 1);
}

function question() {
  const text = at("input").value;
  if (!at("json").checked) return { model: model().name, input: text };
  try {
    return { model: model().name, input: JSON.parse(text) };
  } catch (error) {
    throw new Error("The input is no JSON: " + error.message);
  }
}

async function ask(event) {
  if (event) event.preventDefault();
  try {
    asked = question();
    say("…");
    const begun = performance.now();
    try {
      answer = await call("/nbest", { ...asked, n: Number(at("n").value) || 1 });
    } catch (error) { // votes, for one, have no n best
      const plain = await call("/predict", asked).catch(() => { throw error; });
      answer = { model: plain.model, output: single(plain.output) };
    }
    const took = performance.now() - begun;
    chosen = (answer.output.sentences || []).map(() => 0);
    at("why").hidden = at("copied").hidden = true;
    at("answer").hidden = false;
    show();
    say(`${answer.model} answered in ${took.toFixed(0)} ms`);
  } catch (error) {
    say(error.message, true);
  }
}

function single(output) {
  if (!output.sentences) return { outputs: [output] };
  return { sentences: output.sentences.map((one) => ({ ...one, outputs: [one] })) };
}

function show() {
  const output = answer.output;
  at("conll").hidden = !output.sentences;
  if (!output.sentences) {
    at("output").replaceChildren(ranking(output.outputs ?? output.candidates, null),
      el("p", {}, el("button", { type: "button", on: { click: () => why({}) } }, "Why the first?")));
    return;
  }
  let room = PAINTED;
  const parts = output.sentences.map((sentence, i) => {
    const best = sentence.outputs[chosen[i]] || sentence.outputs[0];
    room -= best.tokens.length;
    if (room < 0) return el("p", { class: "note" }, "More than the page shows; copy the JSON.");
    const body = best.tokens[0] && "head" in best.tokens[0] ? tree(best, i) : words(best, i);
    const more = sentence.outputs.length > 1
      ? el("details", i < 3 ? { open: "" } : {}, el("summary", {}, `${sentence.outputs.length} best`),
        ranking(sentence.outputs, i))
      : "";
    return el("div", { class: "sentence" }, body, more);
  });
  at("output").replaceChildren(...parts);
  at("output").querySelectorAll(".tree").forEach(arcs);
}

function colour(label) {
  let sum = 0;
  for (const letter of label) sum = (sum * 31 + letter.codePointAt(0)) % 8191;
  const labels = [...new Set(model().labels.map((one) => one.replace(/^[A-Z]-/, "")))];
  const place = labels.indexOf(label);
  return "c" + (place < 0 ? sum : place) % 8;
}

function token(one, i, t, first) {
  const act = { click: () => why({ sentence: i, token: t }, one.text) };
  const said = one.relation ? `${one.relation} of ${one.head}` : one.head === undefined ? one.label : `head ${one.head}`;
  return el("button", { type: "button", tabindex: first ? "0" : "-1", title: String(said), "data-token": t, on: act },
    one.text);
}

function words(best, i) {
  const line = el("p", { class: "words", on: { keydown: move } });
  // Places of spans are characters where those of tokens are, else tokens.
  const spans = new Map((best.spans || []).map((span) => [span.start, span]));
  let target = line, open = null;
  best.tokens.forEach((one, t) => {
    if (t && !(one.start !== undefined && one.start === best.tokens[t - 1].end)) target.append(" ");
    const start = one.start ?? t, end = one.end ?? t + 1;
    if (spans.has(start)) {
      open = spans.get(start);
      target = el("mark", { class: colour(open.label) });
      line.append(target);
    }
    target.append(token(one, i, t, t === 0));
    if (!best.spans) target.append(" ", el("small", {}, String(one.label)));
    if (open && end === open.end) {
      target.append(" ", el("small", {}, open.label));
      target = line;
      open = null;
    }
  });
  return line;
}

function tree(best, i) {
  const line = el("div", { class: "line", on: { keydown: move } },
    ...best.tokens.map((one, t) => token(one, i, t, t === 0)));
  const box = el("div", { class: "tree", role: "group", "aria-label": "Dependency tree" }, line);
  box.arcs = best.tokens.map((one, t) => ({ head: one.head, word: t + 1, label: one.relation || "" }));
  return box;
}

function arcs(box) {
  const line = box.firstChild, places = [0];
  for (const word of line.children) places.push(word.offsetLeft + word.offsetWidth / 2);
  const span = (arc) => (arc.head ? [Math.min(arc.head, arc.word), Math.max(arc.head, arc.word)]
    : [arc.word - 0.5, arc.word + 0.5]);
  const levels = new Map();
  const order = [...box.arcs].sort((a, b) => !a.head - !b.head || span(a)[1] - span(a)[0] - span(b)[1] + span(b)[0]);
  for (const arc of order) {
    const [first, last] = span(arc);
    let below = 0;
    for (const [other, level] of levels) {
      const [a, b] = span(other);
      if (other.head && a < last && first < b) below = Math.max(below, level);
    }
    levels.set(arc, below + 1);
  }
  const deep = Math.max(1, ...levels.values()), ground = 22 * deep + 16;
  const picture = drawn("svg", { width: line.offsetWidth, height: ground, "aria-hidden": "true" });
  const texts = [];
  for (const arc of [...levels.keys()].sort((a, b) => levels.get(b) - levels.get(a))) {
    const end = places[arc.word] + (arc.head && arc.head < arc.word ? -5 : arc.head ? 5 : 0);
    const crest = ground - 22 * levels.get(arc);
    let path = `M${end} ${crest}V${ground - 5}`, middle = end;
    if (arc.head) {
      const side = arc.head < arc.word ? 1 : -1, start = places[arc.head] + 5 * side;
      const bend = Math.min(9, Math.abs(end - start) / 2);
      path = `M${start} ${ground}V${crest + bend}Q${start} ${crest} ${start + side * bend} ${crest}` +
        `H${end - side * bend}Q${end} ${crest} ${end} ${crest + bend}V${ground - 5}`;
      middle = (start + end) / 2;
    }
    picture.append(drawn("path", { d: path }),
      drawn("path", { class: "tip", d: `M${end} ${ground}l-3.2 -7h6.4z` }));
    texts.push(drawn("text", { x: middle, y: crest + 4 }, arc.label || (arc.head ? "" : "root")));
  }
  picture.append(...texts);
  box.prepend(picture);
}

// What an output says otherwise than the best one, of three tokens at most.
function others(one, best) {
  const key = (token) => (token.head === undefined ? token.label : `${token.relation || "head"} ${token.head}`);
  const said = (token) => {
    if (token.head === undefined) return token.label;
    const head = token.head ? one.tokens[token.head - 1].text : "the root";
    return `${token.relation || "head"} of ${head}`;
  };
  const away = one.tokens.flatMap((token, t) => (key(token) === key(best.tokens[t]) ? [] : [`${token.text} ${said(token)}`]));
  return away.length ? away.slice(0, 3).join(", ") + (away.length > 3 ? ", …" : "") : "the best";
}

function percent(p) {
  if (p === undefined) return "";
  return (p && p < 0.001 ? "< 0.1" : (100 * p).toFixed(1)) + " %";
}

function ranking(outputs, i) {
  const most = Math.max(1e-300, ...outputs.map((one) => one.probability || 0));
  const rows = outputs.map((one, k) => {
    const p = one.probability, text = one.tokens ? "" : one.text ?? one.tree;
    const name = one.label ?? (one.tokens ? others(one, outputs[0]) : `candidate ${one.position ?? one.best}`);
    const bar = el("div", { class: "bar" });
    bar.style.width = `${100 * (i === null ? Math.min(1, p || 0) : (p || 0) / most)}%`;
    const cells = [el("span", {}, String(name), text ? " " : "", text ? el("code", {}, text) : ""),
      el("span", {}, bar), el("span", { class: "number" }, percent(p))];
    if (i === null) return el("li", { class: "plain" }, ...cells);
    const pick = () => { chosen[i] = k; show(); at("output").querySelector(`[data-pick="${i}-${k}"]`).focus(); };
    return el("li", {}, el("button",
      { type: "button", "aria-pressed": String(chosen[i] === k), "data-pick": `${i}-${k}`, on: { click: pick } }, ...cells));
  });
  return el("ol", { class: "best" }, ...rows);
}

// Arrows go from token to token; Tab leaves them.
function move(event) {
  const tokens = [...event.currentTarget.querySelectorAll("button")];
  const k = tokens.indexOf(document.activeElement);
  const next = { ArrowRight: k + 1, ArrowLeft: k - 1, Home: 0, End: tokens.length - 1 }[event.key];
  if (next === undefined || !tokens[next]) return;
  event.preventDefault();
  tokens[k].tabIndex = -1;
  tokens[next].tabIndex = 0;
  tokens[next].focus();
}

async function why(place, word) {
  try {
    const facts = await call("/explain", { ...asked, top: 15, ...place });
    at("reasons").replaceChildren(...facts.output.reasons.map((reason) => reasons(reason, word)));
    at("why").hidden = false;
    at("why").focus({ preventScroll: true });
    at("why").scrollIntoView({ block: "nearest" });
  } catch (error) {
    say(error.message, true);
  }
}

function reasons(reason, word) {
  const head = el("p", {}, word === undefined ? "" : `${word}: `, el("strong", {}, String(reason.label)),
    `, not ${reason.runner_up}, by ${reason.gap.toFixed(3)}`);
  const most = Math.max(1e-9, ...reason.features.map((one) => Math.abs(one.amount)));
  const rows = reason.features.map((one) => {
    const bar = el("div", { class: one.amount < 0 ? "bar against" : "bar" });
    bar.style.width = `${(100 * Math.abs(one.amount)) / most}%`;
    return el("tr", {}, el("td", { class: "name" }, one.name), el("td", { class: "share" }, bar),
      el("td", { class: "number" }, (one.amount < 0 ? "−" : "+") + Math.abs(one.amount).toFixed(3)));
  });
  const table = el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "feature"),
    el("th", { scope: "col" }, "speaks for it, or against"), el("th", { scope: "col", class: "number" }, "amount"))),
  el("tbody", {}, ...rows));
  return el("div", {}, head, table, reason.more ? el("p", { class: "note" }, `and ${reason.more} more`) : "");
}

function conll() {
  const blocks = answer.output.sentences.map((sentence, i) => {
    const best = sentence.outputs[chosen[i]] || sentence.outputs[0];
    return best.tokens.map((one, t) => ("head" in one
      ? [t + 1, one.text, "_", "_", "_", "_", one.head, one.relation || "_", "_", "_"]
      : [one.text, one.label]).join("\t") + "\n").join("");
  });
  return blocks.join("\n");
}

function curl() {
  const quoted = "'" + JSON.stringify({ ...asked }).replaceAll("'", "'\\''") + "'";
  const token = at("token").value ? " -H 'authorization: Bearer TOKEN'" : "";
  return `curl -H 'content-type: application/json'${token} -d ${quoted} ${location.origin}/predict\n`;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    say("copied");
  } catch {
    at("copied").hidden = false;
    at("copy").value = text;
    at("copy").select();
  }
}

at("ask").addEventListener("submit", ask);
at("input").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) ask(event);
});
at("model").addEventListener("change", choose);
at("json").addEventListener("change", example);
at("example").addEventListener("click", example);
at("token").addEventListener("change", load);
at("conll").addEventListener("click", () => copy(conll()));
at("asjson").addEventListener("click", () => copy(JSON.stringify(answer, null, 1)));
at("curl").addEventListener("click", () => copy(curl()));
load();
