// Searching: the words and filters that are asked for, and the state of the list while it is waited for.

import { get, make, say, show } from "./dom.js";
import { keep, state } from "./state.js";
import { withMark } from "./words.js";

const NUMBERS = ["year_from", "year_to", "min_citations"];
const LISTS = ["venues", "fields"];
const SLOW = 200; // milliseconds after which waiting is shown

let waiting;

/** Sets what happens when a search is asked for, `search(hasWords)`, and on Escape, `leave()`. */
export function setUp({ search, leave }) {
  get("search").addEventListener("submit", (event) => {
    event.preventDefault();
    search(true);
  });
  get("words").addEventListener("input", () => (state.words = get("words").value));
  get("words").addEventListener("keydown", (event) => {
    if (event.key === "Escape") leave();
  });
  for (const name of [...NUMBERS, ...LISTS]) {
    get(name).addEventListener("change", () => {
      const value = get(name).value.trim();
      if (value) state.filters[name] = value;
      else delete state.filters[name];
      showFilters();
      keep();
      search(false);
    });
  }
  get("own-first").addEventListener("change", () => {
    state.ownFirst = get("own-first").checked;
    keep();
    search(false);
  });
  get("filters-clear").addEventListener("click", () => {
    state.filters = {};
    showFilters();
    keep();
    search(false);
  });
}

/** Shows the words, filters and order of the state. */
export function showFilters() {
  get("own-first").checked = state.ownFirst;
  get("words").value = state.words;
  for (const name of [...NUMBERS, ...LISTS]) get(name).value = state.filters[name] ?? "";
  const count = Object.keys(state.filters).length;
  get("filters-count").textContent = count ? ` (${count})` : "";
}

/** The filters as the server takes them. */
export function filters() {
  const given = Object.entries(state.filters).map(([name, value]) => [name, NUMBERS.includes(name) ? Number(value) : [value]]);
  return Object.fromEntries(given);
}

/** Shows what is searched for: a sentence, or words. */
export function showSought(place) {
  const words = state.words.trim();
  const sentence = get("sentence");
  sentence.hidden = !place && !words;
  sentence.replaceChildren(...(words ? [make("b", {}, "Words: "), words] : place ? withMark(place.text) : []));
}

/** Shows that papers are waited for, or no longer. The old list stays in its place meanwhile. */
export function setBusy(isBusy) {
  clearTimeout(waiting);
  get("papers").setAttribute("aria-busy", String(isBusy));
  if (!isBusy) get("progress").hidden = true;
  else {
    waiting = setTimeout(() => {
      get("progress").hidden = false;
      say("Searching…");
    }, SLOW);
  }
}

export const isBusy = () => get("papers").getAttribute("aria-busy") === "true";

/** Shows that there is no paper, or says how many there are. */
export function showCount(answer, sure) {
  const filtered = Object.keys(state.filters).length ? " Loosen the filters, or search with other words." : " Search with other words.";
  show(get("sure"), !answer.hits.length ? `No paper found.${filtered}` : sure);
  say(answer.hits.length === 1 ? "1 paper." : `${answer.hits.length} papers.`);
}
