// What is known of a paper, in words.

import { make } from "./dom.js";

const REASONS = {
  "words and vectors": "its words and meaning are near to your sentence",
  "title and abstract": "its title and abstract share words with your sentence",
  vectors: "its meaning is near to your sentence",
  "citing sentences": "others cite it in sentences like yours",
  "words of the title": "your sentence has words of its title",
  "authors named": "your sentence names its authors",
  "authors in common": "it shares authors with your paper",
  "authors in the draft": "your draft cites its authors",
  "cited in the draft": "your draft cites it already",
  "near the draft": "it is near to what your draft cites",
  "venue in common": "it has the venue of your paper",
  "citation count": "it is cited often",
  age: "its age fits",
};
const COUNTS = 0.1; // of a score: smaller reasons are not shown
const MOST_REASONS = 3;
const MOST_WORDS = 5;
const MOST_AUTHORS = 3;

/** The strongest reasons for a paper, such as "its meaning is near to your sentence". */
export function reasons(hit) {
  const strong = (hit.reasons ?? []).filter((reason) => reason.score >= COUNTS);
  const told = strong.slice(0, MOST_REASONS).map((reason) => REASONS[reason.name] ?? reason.name);
  const words = [...new Set((hit.matches ?? []).map((match) => match.word))].slice(0, MOST_WORDS);
  if (words.length) told.push(`words in common: ${words.join(", ")}`);
  return told;
}

/** Authors, venue, year and citations, in one line. */
export function about(paper) {
  const more = paper.authors.length > MOST_AUTHORS ? " et al." : "";
  const cited = paper.citation_count;
  const parts = [paper.authors.slice(0, MOST_AUTHORS).join(", ") + more, paper.venue, paper.year ?? "year unknown"];
  if (cited != null) parts.push(cited === 1 ? "1 citation" : `${cited.toLocaleString("en")} citations`);
  return parts.filter(Boolean).join(" · ");
}

/** How sure the system is of an answer, as a sentence; nothing if it is not calibrated. */
export function sure({ confidence, hits }) {
  if (!confidence || !hits.length) return "";
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
