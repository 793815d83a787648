// The list of papers: what is shown of each, and which are picked.

import { get, make, step } from "./dom.js";
import { state } from "./state.js";
import { about, links, times } from "./words.js";

const list = get("papers");
const picked = new Set();
let shown = [];
let actions;

/** Sets what a paper's button and Enter do: `insert(ids)`; and `onPick()`, after a pick. */
export function setUp(given) {
  actions = given;
  list.addEventListener("keydown", (event) => {
    if (step(event, boxes(), state.shortcuts)) return;
    const hit = shown[boxes().indexOf(event.target)];
    if (event.key !== "Enter" || !hit) return;
    event.preventDefault();
    actions.insert(picked.size ? pickedIds() : [hit.cite_id]);
  });
}

/** Shows papers; those picked before stay so if they are still there. */
export function showPapers(hits) {
  const ids = new Set(hits.map((hit) => hit.paper_id));
  for (const id of picked) if (!ids.has(id)) picked.delete(id);
  shown = hits;
  list.replaceChildren(...hits.map(card));
  const known = new Set(hits.flatMap((hit) => hit.fields_of_study));
  get("known-fields").replaceChildren(...[...known].map((name) => make("option", { value: name })));
  actions.onPick();
}

/** The ids to cite of the picked papers, in their order. */
export const pickedIds = () => shown.filter((hit) => picked.has(hit.paper_id)).map((hit) => hit.cite_id);

/** Nothing is picked any more. */
export function unpick() {
  picked.clear();
}

export const areShown = () => shown.length > 0;

/** The ids to cite of the first papers. */
export const firstIds = (count) => shown.slice(0, count).map((hit) => hit.cite_id);

/** Moves the focus to the first paper. */
export const focusFirst = () => boxes()[0]?.focus();

/** Whether the focus is among the papers. */
export const hasFocus = () => list.contains(document.activeElement);

const boxes = () => [...list.querySelectorAll("input[type=checkbox]")];

function card(hit, at) {
  const [title, details] = [`paper-${at}`, `paper-about-${at}`];
  const box = make("input", { type: "checkbox", id: `pick-${at}`, "aria-describedby": details });
  box.checked = picked.has(hit.paper_id);
  const item = make("li", { class: box.checked ? "picked" : null });
  box.addEventListener("change", () => {
    picked[box.checked ? "add" : "delete"](hit.paper_id);
    item.classList.toggle("picked", box.checked);
    actions.onPick();
  });
  const insert = make("button", { type: "button", onclick: () => actions.insert([hit.cite_id]) }, "Insert");
  insert.setAttribute("aria-label", `Insert ${hit.title}`);
  item.append(
    ...group(at),
    box,
    make(
      "div",
      { class: "card" },
      make("h3", { id: title }, make("label", { for: box.id }, hit.title || "(untitled)")),
      make("p", { class: "about", id: details }, about(hit)),
      badges(hit),
      quote(hit),
      hit.tldr && make("p", {}, make("b", {}, "In short: "), hit.tldr),
      why(hit),
      more(hit),
    ),
    insert,
  );
  return item;
}

/** A heading above the papers of the bibliography that come first, and above all others. */
function group(at) {
  const { comes_first: isOwn } = shown[at];
  if (!shown[0].comes_first || (at && isOwn === shown[at - 1].comes_first)) return [];
  return [make("p", { class: "group" }, isOwn ? "From your bibliography" : "All others")];
}

const VERDICTS = { sure: "Sure", likely: "Likely", weak: "Weak" };

function badges(hit) {
  const texts = [];
  if (hit.verdict) texts.push([VERDICTS[hit.verdict]]);
  if (hit.key) texts.push(["In your bibliography: ", make("code", {}, hit.key)]);
  if (hit.cited_before) texts.push([`Your draft cites it ${times(hit.cited_before)}`]);
  return texts.length && make("p", { class: "badges" }, texts.map((text) => make("span", {}, text)));
}

function quote(hit) {
  if (hit.citance) {
    const by = hit.citance.citing_title ?? `paper ${hit.citance.citing_id}`;
    return make("p", { class: "quote" }, make("b", {}, "Cited like this: "), make("q", {}, hit.citance.text), ` (${by})`);
  }
  return hit.support && make("p", { class: "quote" }, make("b", {}, "It says: "), make("q", {}, hit.support));
}

function why(hit) {
  return hit.why && make("p", { class: "why" }, make("b", {}, "Why: "), hit.why.join("; "));
}

function more(hit) {
  const also = (hit.also ?? []).map((other) => [other.title, other.venue, other.year].filter(Boolean).join(", "));
  return make(
    "details",
    {},
    make("summary", {}, "Abstract and links"),
    hit.abstract && make("p", {}, hit.abstract),
    also.length && make("p", {}, make("b", {}, "Other editions: "), also.join("; ")),
    links(hit),
  );
}
