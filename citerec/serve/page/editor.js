// The two files: shown and edited in a field with marks behind its text, opened, dropped, copied, saved.

import { copy, download, get, make, say } from "./dom.js";
import { EXAMPLE_BIB, EXAMPLE_KEY, keep, state } from "./state.js";

const field = get("text");
const backdrop = get("backdrop");
const tabs = { draft: get("tab-draft"), bib: get("tab-bib") };
const MOST_BYTES = 4_000_000;

let marks = [];
let actions;

/** Sets what happens after edits, `onEdit(isNewFile)`, and when the cursor enters a place, `onPlace(number)`. */
export function setUp(given) {
  actions = given;
  field.addEventListener("input", () => {
    const file = state[state.tab];
    if (state.tab === "draft") moveMarks(file.text, field.value);
    file.text = field.value;
    noExample();
    draw();
    actions.onEdit(false);
  });
  field.addEventListener("scroll", () => (backdrop.scrollTop = field.scrollTop));
  field.addEventListener("click", () => {
    const at = field.selectionStart;
    const mark = at === field.selectionEnd && state.tab === "draft" && marks.find((one) => one.start <= at && at <= one.end);
    if (mark) actions.onPlace(mark.number);
  });
  for (const [name, tab] of Object.entries(tabs)) {
    tab.addEventListener("click", () => showFile(name));
    tab.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowRight" && event.key !== "ArrowLeft") return;
      showFile(name === "draft" ? "bib" : "draft");
      tabs[state.tab].focus();
    });
  }
  get("format").addEventListener("change", (event) => {
    state.draft.name = state.draft.name.replace(/(\.\w+)?$/, event.target.value);
    showFile("draft");
    actions.onEdit(false);
  });
  get("open").addEventListener("click", () => get("file").click());
  get("file").addEventListener("change", async (event) => {
    await openFiles([...event.target.files]);
    event.target.value = "";
  });
  get("copy").addEventListener("click", () => copy(forFile(state[state.tab]), state[state.tab].name));
  get("save").addEventListener("click", () => {
    const file = state[state.tab];
    download(file.name, forFile(file));
    say(`${file.name} saved as a download.`);
  });
  get("mark").addEventListener("click", addPlace);
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    openFiles([...event.dataTransfer.files]);
  });
}

/** Shows one of the files, `draft` or `bib`. */
export function showFile(name = state.tab) {
  state.tab = name;
  const { name: shown, text } = state[name];
  if (field.value !== text) field.value = text;
  field.setAttribute("aria-label", name === "draft" ? "Text of the draft" : "Text of the bibliography");
  for (const [key, tab] of Object.entries(tabs)) {
    tab.textContent = state[key].name;
    tab.setAttribute("aria-selected", String(key === name));
    tab.tabIndex = key === name ? 0 : -1;
  }
  get("editor-panel").setAttribute("aria-labelledby", tabs[name].id);
  const ending = /\.\w+$/.exec(state.draft.name)?.[0].toLowerCase() ?? ".txt";
  const kind = { ".ltx": ".tex", ".latex": ".tex", ".markdown": ".md", ".qmd": ".md", ".rmd": ".md" }[ending] ?? ending;
  get("format").value = kind; // none of the options for an ending that is not known
  get("mark").disabled = name !== "draft";
  get("save").setAttribute("aria-label", `Save ${shown}`);
  get("copy").setAttribute("aria-label", `Copy ${shown}`);
  draw();
  keep();
}

/** Marks places of the draft: `{number, start, end}` in JavaScript's units. */
export function showMarks(places) {
  marks = [...places].sort((one, other) => one.start - other.start);
  draw();
}

/** Whether somebody writes in the file shown. */
export const hasFocus = () => document.activeElement === field;

/** Puts the cursor in a place, and scrolls to it. Who writes keeps the cursor. */
export function reveal(start, end) {
  if (hasFocus()) return draw();
  if (state.tab !== "draft") showFile("draft");
  field.setSelectionRange(start, end);
  draw();
  const chosen = backdrop.querySelector("mark.chosen") ?? backdrop.firstElementChild;
  if (chosen) field.scrollTop = Math.max(0, chosen.offsetTop - field.clientHeight / 3);
  backdrop.scrollTop = field.scrollTop;
}

/** Puts the cursor at the beginning of a line of the file shown. */
export function goToLine(line) {
  const at = field.value.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  field.focus();
  field.setSelectionRange(at, at);
  // Lines wrap: only the text itself says how far down one is.
  backdrop.replaceChildren(field.value.slice(0, at), make("span"));
  field.scrollTop = Math.max(0, backdrop.lastElementChild.offsetTop - field.clientHeight / 3);
  draw();
}

function draw() {
  const text = field.value;
  const parts = [];
  let at = 0;
  for (const { number, start, end } of state.tab === "draft" ? marks : []) {
    if (start < at || end > text.length) continue;
    parts.push(text.slice(at, start), make("mark", { class: number === state.place ? "chosen" : null }, text.slice(start, end)));
    at = end;
  }
  backdrop.replaceChildren(...parts, `${text.slice(at)}\n`);
  backdrop.scrollTop = field.scrollTop;
}

/** Moves the marks with the text while it is edited; those that are edited themselves go, until the draft is read. */
function moveMarks(before, after) {
  const caret = field.selectionEnd;
  const grown = after.length - before.length;
  const rest = after.length - caret; // what follows the cursor is as before
  const changed = before.length - rest;
  let start = 0;
  while (start < Math.min(caret, changed) && before[start] === after[start]) start++;
  marks = marks.flatMap((mark) => {
    if (mark.end <= start) return [mark];
    return mark.start >= changed ? [{ ...mark, start: mark.start + grown, end: mark.end + grown }] : [];
  });
}

function addPlace() {
  const marker = { ".tex": "\\cite{?}", ".md": "[@?]", ".typ": "@?", ".org": "[cite:@?]" }[get("format").value] ?? "<REF>";
  const at = field.selectionEnd;
  field.focus();
  field.setRangeText(/\s|^$/.test(field.value.charAt(at - 1)) ? marker : ` ${marker}`, at, at, "end");
  field.dispatchEvent(new Event("input"));
}

/** The text of a file with its own ends of lines. */
const forFile = ({ text, ends }) => (ends === "\n" ? text : text.replaceAll("\n", ends));

async function openFiles(files) {
  for (const file of files) {
    if (file.size > MOST_BYTES) {
      say(`${file.name} is too long for this page.`);
      continue;
    }
    const { text, isUtf8 } = decoded(await file.arrayBuffer());
    const name = /\.bib(tex)?$/i.test(file.name) ? "bib" : "draft";
    const ends = text.includes("\r\n") ? "\r\n" : "\n";
    state[name] = { name: file.name, text: text.replace(/\r\n?/g, "\n"), ends };
    noExample();
    showFile(name);
    say(isUtf8 ? `${file.name} is open.` : `${file.name} is not UTF-8: it was read as Windows-1252, and is saved as UTF-8.`);
  }
  if (files.some((file) => !/\.bib(tex)?$/i.test(file.name))) showFile("draft");
  if (files.length) actions.onEdit(true);
}

/** The example's bibliography goes with the example's text. */
function noExample() {
  if (!state.isExample || state.draft.text.includes(EXAMPLE_KEY)) return;
  state.isExample = false;
  if (state.bib.text === EXAMPLE_BIB) state.bib.text = "";
}

function decoded(bytes) {
  try {
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(bytes), isUtf8: true };
  } catch {
    return { text: new TextDecoder("windows-1252").decode(bytes), isUtf8: false };
  }
}
