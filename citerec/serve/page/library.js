// The papers of the index: searched by title, author, year or DOI, and filtered.

import { ask } from "./api.js";
import { get, make, show } from "./dom.js";
import { state } from "./state.js";
import { about, links } from "./words.js";

const FILTERS = ["year_from", "year_to", "venues", "min_citations"];
let offset = 0;
let actions;

/** Sets what may fail, `attempt(work, box, again)`, and what "Insert" does, `insert(ids)`. */
export function setUp(given) {
  actions = given;
  get("library-search").addEventListener("submit", (event) => {
    event.preventDefault();
    browse();
  });
  get("library-more").addEventListener("click", () => browse(offset));
}

/** Shows the papers that are searched for, from one on. */
export async function browse(from = 0) {
  const wanted = new URLSearchParams({ q: get("library-words").value.trim(), offset: from });
  if (state.index) wanted.set("index", state.index);
  for (const name of FILTERS) {
    const value = get(`library-${name}`).value.trim();
    if (value) wanted.set(name, value);
  }
  const work = async () => {
    const { papers, next_offset: next } = await ask("library", `papers?${wanted}`);
    const cards = papers.map(card);
    if (from) get("library").append(...cards);
    else get("library").replaceChildren(...cards);
    offset = next;
    get("library-more").hidden = next === null;
    show(get("library-note"), from || papers.length ? "" : "No paper found. Try fewer words, or loosen the filters.");
  };
  await actions.attempt(work, get("library-problem"), () => browse(from));
}

function card(paper) {
  const insert = make("button", { type: "button", onclick: () => actions.insert([paper.paper_id]) }, "Insert");
  insert.setAttribute("aria-label", `Insert ${paper.title}`);
  return make(
    "li",
    {},
    make(
      "div",
      { class: "card" },
      make("h3", {}, paper.title || "(untitled)"),
      make("p", { class: "about" }, about(paper)),
      paper.tldr && make("p", {}, make("b", {}, "In short: "), paper.tldr),
      make("details", {}, make("summary", {}, "Abstract and links"), paper.abstract && make("p", {}, paper.abstract), links(paper)),
    ),
    insert,
  );
}
