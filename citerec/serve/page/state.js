// What the page keeps: the two files, the chosen place, filters. It survives a reload.

const KEPT = "citerec";

/** The example; with papers, one that is about them. */
export function exampleOf(papers = []) {
  if (!papers.length) return EXAMPLE;
  const about = (title) => title.replace(/[.?!\s]+$/, "").replace(/[\\{}$&#%_^~]/g, "");
  const sentences = papers.map((one) => `There is work on ${about(one.title)} \\cite{?}.`);
  return `\\title{A short example}\n\\section{Introduction}\n${sentences.join("\n")}\n`;
}

const EXAMPLE = String.raw`\title{A short example}
\section{Introduction}
Recurrent networks with gated memory cells learn dependencies across long sequences \cite{?}.
Attention alone, without any recurrence, suffices to translate sentences \citep{hochreiter1997long, ?}.

\section{Ranking}
The pages of the web can be ranked by the links between them \todo{cite the paper on ranking by links}.
`;

export const EXAMPLE_KEY = "hochreiter1997long";
export const EXAMPLE_BIB = `@article{${EXAMPLE_KEY},
  author = {Sepp Hochreiter and Jürgen Schmidhuber},
  title = {Long Short-Term Memory},
  journal = {Neural Computation},
  year = {1997}
}
`;

const fresh = () => ({
  draft: { name: "paper.tex", text: EXAMPLE, ends: "\n" },
  bib: { name: "refs.bib", text: EXAMPLE_BIB, ends: "\n" },
  isExample: true,
  tab: "draft",
  place: null,
  words: "",
  filters: {},
  ownFirst: true,
  index: null,
  shortcuts: true,
});

/** The state; change it, then call `keep`. */
export const state = { ...fresh(), ...kept() };

function kept() {
  try {
    const value = JSON.parse(localStorage.getItem(KEPT) ?? "{}");
    const isWhole = [value?.draft, value?.bib].every((file) => typeof file?.text === "string");
    return isWhole ? value : {};
  } catch {
    return {};
  }
}

/** Keeps the state for the next visit; false if the browser has no room for it. */
export function keep() {
  try {
    localStorage.setItem(KEPT, JSON.stringify(state));
    return true;
  } catch {
    return false;
  }
}

/** Forgets everything. */
export function forget() {
  localStorage.removeItem(KEPT);
  Object.assign(state, fresh());
  changes.length = 0;
}

// Insertions that can be undone, oldest first.
const changes = [];

export const canUndo = () => changes.length > 0;

/** Takes new texts of both files, in which papers are cited at a place, and remembers how to go back. */
export function change(draft, bib, keys, place) {
  changes.push({ draft: difference(state.draft.text, draft), bib: difference(state.bib.text, bib), keys, place });
  state.draft.text = draft;
  state.bib.text = bib;
}

/** Takes back the last insertion, wherever it is by now: its keys and place; null if its text was changed since. */
export function undo() {
  const change = changes.pop();
  const draft = without(state.draft.text, change.draft);
  const bib = without(state.bib.text, change.bib);
  if (draft === null || bib === null) return null;
  state.draft.text = draft;
  state.bib.text = bib;
  return change;
}

/** What differs between two texts: from `start` on, `removed` became `added`; `rest` characters follow. */
function difference(before, after) {
  const most = Math.min(before.length, after.length);
  let start = 0;
  while (start < most && before[start] === after[start]) start++;
  let rest = 0;
  while (rest < most - start && before.at(-1 - rest) === after.at(-1 - rest)) rest++;
  return { start, rest, removed: before.slice(start, before.length - rest), added: after.slice(start, after.length - rest) };
}

/** The text without a change; people may have typed before it or after it, but not both. */
function without(text, { start, rest, removed, added }) {
  for (const at of [start, text.length - rest - added.length]) {
    if (at >= 0 && text.startsWith(added, at)) return text.slice(0, at) + removed + text.slice(at + added.length);
  }
  return null;
}

/** A function from places in characters (code points), as the server counts, to places in JavaScript's units. */
export function toUnits(text) {
  if (!/[\u{10000}-\u{10ffff}]/u.test(text)) return (point) => point;
  const starts = [];
  let unit = 0;
  for (const character of text) {
    starts.push(unit);
    unit += character.length;
  }
  return (point) => starts[point] ?? unit;
}
