// What is known of a paper, in words.

import { ask } from "./api.js";
import { copy, make, say } from "./dom.js";
import { state } from "./state.js";

const MOST_AUTHORS = 3;

/** Authors, venue, year and citations, in one line. */
export function about(paper) {
  const more = paper.authors.length > MOST_AUTHORS ? " et al." : "";
  const cited = paper.citation_count;
  const parts = [paper.authors.slice(0, MOST_AUTHORS).join(", ") + more, paper.venue, paper.year ?? "year unknown"];
  if (cited != null) parts.push(cited === 1 ? "1 citation" : `${cited.toLocaleString("en")} citations`);
  return parts.filter(Boolean).join(" · ");
}

/** Links of a paper, and buttons that copy its entry and its key. */
export function links(paper) {
  const doi = paper.external_ids?.DOI;
  const there = { target: "_blank", rel: "noopener noreferrer" };
  return make(
    "p",
    { class: "row" },
    doi && make("a", { href: `https://doi.org/${encodeURI(doi)}`, ...there }, "Open by its DOI"),
    make("button", { type: "button", class: "quiet", onclick: () => copyEntry(paper, false) }, "Copy BibTeX"),
    make("button", { type: "button", class: "quiet", onclick: () => copyEntry(paper, true) }, "Copy key"),
  );
}

async function copyEntry(paper, isKey) {
  const index = state.index ? `?index=${encodeURIComponent(state.index)}` : "";
  try {
    const { bibtex } = await ask("entry", `papers/${encodeURIComponent(paper.paper_id)}${index}`);
    const key = paper.key ?? /\{([^,]+),/.exec(bibtex)[1];
    await (isKey ? copy(key, key) : copy(bibtex, "The entry"));
  } catch (error) {
    say(error.message);
  }
}

/** How sure the system is of an answer, as a sentence; nothing if it is not calibrated. */
export function sure({ confidence, hits, nothing_fits }) {
  if (!confidence || !hits.length) return "";
  if (nothing_fits) return "Nothing in this index seems to fit. These papers are the nearest.";
  const [first, ten] = [confidence.first, confidence.among_ten].map((share) => `${Math.round(share * 100)} %`);
  const best = hits.find((hit) => hit.rank === 1);
  const named = best === hits[0] ? "the first paper" : `“${best.title}”, which the system ranks first,`;
  return `How sure: ${named} is right with ${first}, one of the first ten with ${ten}.`;
}

/** "once", "twice", "3 times". */
export const times = (count) => ({ 1: "once", 2: "twice" })[count] ?? `${count} times`;

/** A sentence whose place is shown as a mark, and citations by their keys. */
export function withMark(text) {
  const [before, ...after] = text.replace(/\\cite\{([^}]*)\}(?=<)/g, "[$1] ").replace(/\\cite\{([^}]*)\}/g, "[$1]").split("<REF>");
  return after.length ? [before, make("mark", {}, "citation?"), after.join(" ")] : [before];
}
