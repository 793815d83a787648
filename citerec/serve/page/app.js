// The page: the draft is read, papers are found for a place of it, and inserted.

import { ApiError, ask, giveUp, hasToken, isOvertaken, useToken } from "./api.js";
import { copy, counted, get, make, say, show, showProblem } from "./dom.js";
import * as editor from "./editor.js";
import * as checks from "./check.js";
import * as library from "./library.js";
import * as panels from "./panels.js";
import * as papers from "./papers.js";
import * as places from "./places.js";
import * as search from "./search.js";
import { canUndo, change, exampleOf, forget, keep, state, toUnits, undo } from "./state.js";
import { about, sure } from "./words.js";

const PAUSE = 600; // milliseconds without a key after which the draft is read again
const PAGE = 10;

let read = null; // the last answer on the draft, with the text that it is about
let pausing;
let k = PAGE;
let said = null; // the generated text that is shown, with the draft that it is for

function request() {
  const { draft, bib, index } = state;
  return { name: draft.name, text: draft.text, bibliography: bib.text, ...(index && { index }) };
}

/** Does what may fail, and shows the error with its remedy at its place. True if it went well. */
async function attempt(work, box, again) {
  try {
    await work();
    showProblem(box, null);
    return true;
  } catch (error) {
    if (isOvertaken(error)) return false;
    if (!(error instanceof ApiError)) throw error;
    if (error.status === 401) askForToken();
    else showProblem(box, error, remedy(error, box, again));
    return false;
  }
}

function remedy(error, box, again) {
  const line = box.id === "draft-problem" && /, line (\d+)$/.exec(error.message);
  const go = () => {
    editor.showFile("draft");
    editor.goToLine(Number(line[1]));
  };
  if (line) return { name: `Go to line ${line[1]}`, run: go };
  return error.status === 422 ? null : { name: "Try again", run: again };
}

function askForToken() {
  get("token-form").hidden = false;
  get("token").focus();
  say(hasToken() ? "The server does not know this token." : "This server needs a token.");
}

/** Reads the draft. Its places stay shown, but dimmed, while it cannot be read. */
async function readDraft() {
  const went = await attempt(
    async () => {
      clearTimeout(pausing);
      const sent = request();
      const answer = await ask("read", "drafts", sent);
      const unit = toUnits(sent.text);
      for (const place of answer.places) Object.assign(place, { start: unit(place.start), end: unit(place.end) });
      const hadPlace = state.place !== null;
      follow(answer);
      read = { ...answer, sent: sent.text };
      if (hadPlace && state.place === null) choose(null); // its sentence is gone
      if (answer.bibliographies.length && state.bib.name === "refs.bib") state.bib.name = answer.bibliographies[0];
      if (sent.text === state.draft.text) editor.showMarks(answer.places);
      editor.showFile();
      places.showPlaces(answer);
      showStart();
      keep();
      if (panels.isShown("check")) checks.check();
    },
    get("draft-problem"),
    readDraft,
  );
  document.querySelector(".places").classList.toggle("stale", !went && !get("draft-problem").hidden);
  return went;
}

/** Keeps the chosen place when its number changes. */
function follow(answer) {
  if (state.place === null) return;
  const before = read?.places[state.place];
  if (!before) {
    if (state.place >= answer.places.length) state.place = null;
    return;
  }
  const same = answer.places.filter((place) => place.text === before.text);
  const nearest = same.sort((one, other) => Math.abs(one.number - before.number) - Math.abs(other.number - before.number))[0];
  state.place = nearest?.number ?? (answer.places.length === read.places.length ? state.place : null);
}

function onEdit(isNewFile) {
  if (isNewFile) {
    read = null;
    choose(null);
  }
  clearTimeout(pausing);
  pausing = setTimeout(readDraft, isNewFile ? 0 : PAUSE);
  if (!keep()) say("This browser has no room to keep the draft for your next visit.");
}

/** Chooses a place and finds papers for it; with `focus` the focus goes to the first of them, unless somebody writes. */
async function choose(number, focus = false) {
  state.place = number;
  if (number !== null && read?.sent !== state.draft.text) {
    search.setBusy(true);
    if (!(await readDraft())) return search.setBusy(false);
  }
  state.words = "";
  k = PAGE;
  papers.unpick();
  search.showFilters();
  places.showChosen();
  keep();
  const place = read?.places[state.place];
  if (!place) {
    giveUp("search");
    search.setBusy(false);
    search.showSought(null);
    papers.showPapers([]);
    show(get("sure"), "");
    get("more").hidden = true;
    get("done").hidden = true;
    get("start").hidden = false;
    return showStart();
  }
  editor.reveal(place.start, place.end);
  await find(focus);
  if (focus && matchMedia("(max-width: 55rem)").matches) get("papers-heading").scrollIntoView();
}

/** Shows what a newcomer can do. */
function showStart() {
  get("start-example").hidden = !state.isExample;
  get("first").textContent = read?.places.length === 0 ? "Suggest places" : "Find papers for the first place";
}

async function find(focus = false) {
  const words = state.words.trim();
  if (state.place === null && !words) return;
  panels.showPanel("papers");
  get("start").hidden = true;
  get("done").hidden = true;
  search.showSought(read?.places[state.place]);
  search.setBusy(true);
  const wanted = { ...request(), filters: search.filters(), k, own_first: state.ownFirst };
  if (state.place !== null) wanted.place = state.place;
  if (words) wanted.words = words;
  let overtaken = true;
  const went = await attempt(
    async () => {
      try {
        const answer = await ask("search", "drafts/recommend", wanted);
        papers.showPapers(answer.hits);
        search.showCount(answer, sure(answer));
        get("more").hidden = answer.hits.length < k || k >= 100;
        overtaken = false;
      } catch (error) {
        overtaken = isOvertaken(error);
        throw error;
      }
    },
    get("papers-problem"),
    () => find(focus),
  );
  if (!overtaken) search.setBusy(false);
  if (!went && !overtaken) papers.showPapers([]);
  if (went && focus && !editor.hasFocus()) papers.focusFirst(); // who writes keeps the cursor
}

/** Cites papers at the chosen place, and goes on to the next one. */
async function insert(ids) {
  if (state.place === null || !read) return say("Choose a place first.");
  if (!(await isSettled())) return;
  if (state.place === null) return say("This place is no longer there. Choose another one.");
  const hadFocus = papers.hasFocus();
  const sent = request();
  const number = state.place;
  await attempt(
    async () => {
      const { text, bibliography, keys } = await ask("cite", "drafts/cite", { ...sent, place: number, papers: ids });
      await put({ sent, number, text, bibliography, keys }, hadFocus);
    },
    get("papers-problem"),
    () => insert(ids),
  );
}

/** Whether the list is that of the chosen place, and the draft was read as it is now. */
async function isSettled() {
  if (search.isBusy()) say("Wait for the papers of this place."); // the list is that of another one
  else return read?.sent === state.draft.text || readDraft();
  return false;
}

/** Takes new texts of both files, unless somebody wrote meanwhile, and goes on to the next place. */
async function put({ sent, number, text, bibliography, keys }, hadFocus) {
  if (sent.text !== state.draft.text || sent.bibliography !== state.bib.text) {
    return say("The text was changed meanwhile. Insert again.");
  }
  change(text, bibliography, keys, number);
  state.place = null;
  editor.showFile();
  await afterChange(number, hadFocus, `${keys.join(", ")} inserted.`);
}

async function afterChange(number, hadFocus, told) {
  get("undo").disabled = !canUndo();
  if (!(await readDraft())) return say(told);
  const left = read.places;
  const next = left.length ? Math.min(number, left.length - 1) : null;
  await choose(next, hadFocus);
  if (next === null) {
    get("start").hidden = true;
    get("done").hidden = false;
    say(`${told} No place is left: copy or save both files.`);
    if (hadFocus) get("places-heading").focus();
  } else say(`${told} Next: line ${left[next].line}.`);
}

async function takeBack() {
  if (!canUndo()) return;
  const undone = undo();
  get("undo").disabled = !canUndo();
  if (undone === null) return say("What was inserted has been changed since: it stays.");
  state.place = null;
  editor.showFile();
  await afterChange(undone.place, papers.hasFocus(), `${undone.keys.join(", ")} taken back.`);
}

/** Shows sentences that may want a citation, and for which the index has papers. */
async function suggest() {
  say("Looking for sentences that may want a citation…");
  const sent = request();
  await attempt(
    async () => {
      const { suggestions } = await ask("suggest", "drafts/suggest", sent);
      if (sent.text !== state.draft.text) return;
      const unit = toUnits(sent.text);
      places.showSuggestions(suggestions.map((one) => ({ ...one, at: unit(one.at) })));
      say(suggestions.length ? `${counted(suggestions.length, "sentence")} may want a citation.` : "No sentence seems to want a citation that this index has.");
    },
    get("draft-problem"),
    suggest,
  );
}

/** Makes a place at the end of a suggested sentence, and finds papers for it. */
async function takeSuggestion({ at, marker }) {
  const { text } = state.draft;
  change(`${text.slice(0, at)}${marker}${text.slice(at)}`, state.bib.text, ["A place"], null);
  editor.showFile("draft");
  get("undo").disabled = !canUndo();
  if (!(await readDraft())) return;
  const place = read.places.find((one) => one.start >= at);
  if (place) await choose(place.number, true);
}

/** Shows a generated text that cites the picked papers, or else the first three. */
async function sayIt() {
  if (!(await isSettled())) return;
  const picked = papers.pickedIds();
  const sent = request();
  const number = state.place;
  const words = state.words.trim();
  const wanted = { ...sent, papers: picked.length ? picked : papers.firstIds(3) };
  if (number !== null) wanted.place = number;
  if (words) wanted.words = words;
  say("Writing…");
  await attempt(
    async () => {
      const made = await ask("say", "drafts/say", wanted);
      said = { ...made, sent, number };
      get("said-text").textContent = made.text;
      get("said-sources").replaceChildren(...made.papers.map(source));
      get("said-writer").textContent = `Generated by the writer “${made.writer}”.`;
      get("said-insert").hidden = made.draft === null;
      say("");
      get("said").showModal();
    },
    get("papers-problem"),
    sayIt,
  );
}

const source = (paper) => make("li", {}, make("code", {}, paper.key), ` ${paper.title} · ${about(paper)}`);

/** Puts the generated text into the draft, behind the sentence of its place. */
async function insertSaid() {
  get("said").close();
  await put({ ...said, text: said.draft }, false);
}

/** Copies the generated text. Its keys need their entries: the bibliography gets them. */
async function copySaid() {
  if (!(await copy(said.text, "The text"))) return;
  get("said").close();
  const { sent, number, bibliography, keys } = said;
  if (sent.bibliography !== state.bib.text || bibliography === state.bib.text) return;
  change(state.draft.text, bibliography, keys, number);
  editor.showFile();
  await readDraft();
  get("undo").disabled = !canUndo();
  say("The text is copied, and the bibliography has the entries of its papers.");
}

function showPicked() {
  const count = papers.pickedIds().length;
  get("insert").textContent = count > 1 ? `Insert ${count} papers` : count ? "Insert 1 paper" : "Insert picked";
  get("insert").disabled = !count;
  get("say").disabled = !papers.areShown();
}

/** Single letters and signs, where no text is written. */
function onKey(event) {
  const isText = event.target.closest?.("textarea, select, input:not([type=checkbox]), dialog");
  if (isText || !state.shortcuts || event.ctrlKey || event.metaKey || event.altKey) return;
  const last = (read?.places.length ?? 0) - 1;
  const at = state.place ?? -1;
  const keys = {
    "/": () => get("words").focus(),
    "?": () => get("help").showModal(),
    u: takeBack,
    n: () => at < last && choose(at + 1, true),
    p: () => at > 0 && choose(at - 1, true),
  };
  if (!Object.hasOwn(keys, event.key)) return;
  event.preventDefault();
  keys[event.key]();
}

async function showIndexes() {
  const { indexes } = await ask("indexes", "indexes");
  const described = (one) => `${one.name} (${one.papers.toLocaleString("en")} papers)`;
  get("index").replaceChildren(...indexes.map((one) => make("option", { value: one.name }, described(one))));
  if (!indexes.some((one) => one.name === state.index)) state.index = null;
  get("index").value = state.index ?? indexes[0].name;
  get("index-label").hidden = indexes.length < 2;
  get("index-only").textContent = indexes.length < 2 ? described(indexes[0]) : "";
}

async function start() {
  search.showFilters();
  get("shortcuts").checked = state.shortcuts;
  get("undo").disabled = !canUndo();
  editor.showFile();
  if (!(await attempt(showIndexes, get("draft-problem"), start))) return;
  if (state.isExample && state.draft.text === exampleOf()) await attempt(showExample, get("draft-problem"), start);
  const words = state.words;
  if (!(await readDraft())) return;
  if (state.place === null) return choose(null);
  if (words) await find();
  else await choose(state.place);
}

/** The example is of the index: of its own papers, if it lacks those of the example that the page brings. */
async function showExample() {
  const index = state.index ? `&index=${encodeURIComponent(state.index)}` : "";
  const named = await ask("example", `papers?q=${encodeURIComponent("Long Short-Term Memory")}&limit=1${index}`);
  if (/^long short.term memory$/i.test(named.papers[0]?.title ?? "")) return;
  const { papers: some } = await ask("example", `papers?q=&limit=100${index}`);
  some.sort((one, other) => (other.citation_count ?? 0) - (one.citation_count ?? 0));
  state.draft.text = exampleOf(some.filter((one) => one.title).slice(0, 3));
  state.bib.text = "";
  editor.showFile("draft");
}

function startOver() {
  if (!confirm("Delete the draft, the bibliography and all settings that this page keeps?")) return;
  forget();
  read = null;
  choose(null);
  start();
  say("Everything was deleted. This is the example.");
}

editor.setUp({ onEdit, onPlace: (number) => choose(number) });
places.setUp({ choose, takeSuggestion });
panels.setUp({ check: checks.check, library: () => library.browse() });
checks.setUp({ request, attempt, onChange: () => (editor.showFile(), (get("undo").disabled = !canUndo()), readDraft()) });
library.setUp({ attempt, insert });
papers.setUp({ insert, onPick: showPicked });
search.setUp({ search: (hasWords) => ((k = PAGE), find(hasWords)), leave: papers.focusFirst });
document.addEventListener("keydown", onKey);
const clicks = {
  first: () => (read?.places.length ? choose(0, true) : suggest()),
  suggest,
  "check-now": () => panels.showPanel("check"),
  more: () => ((k += PAGE), find()),
  insert: () => insert(papers.pickedIds()),
  undo: takeBack,
  say: sayIt,
  clear: startOver,
  "help-open": () => get("help").showModal(),
  "said-insert": insertSaid,
  "said-copy": copySaid,
};
for (const [id, run] of Object.entries(clicks)) get(id).addEventListener("click", run);
for (const button of document.querySelectorAll("[data-close]")) button.addEventListener("click", () => button.closest("dialog").close());
get("shortcuts").addEventListener("change", (event) => {
  state.shortcuts = event.target.checked;
  keep();
});
get("index").addEventListener("change", (event) => {
  state.index = event.target.value;
  keep();
  readDraft().then(() => find());
});
get("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  useToken(get("token").value);
  get("token").value = "";
  get("token-form").hidden = true;
  start();
});
start();
