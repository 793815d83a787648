// The check of a draft: findings, what web services know of its entries, and papers that are added by id or title.

import { ask } from "./api.js";
import { counted, get, make, say, sentence, show } from "./dom.js";
import { goToLine, showFile } from "./editor.js";
import { change, state } from "./state.js";
import { about } from "./words.js";

const ORDER = ["error", "warning", "note"];
const verdicts = new Map(); // by key: what services know of an entry, with the text of this entry
let last = null; // the last check
let isAsking = false;
let actions;

/** Sets how a request begins, `request()`, what may fail, `attempt(work, box, again)`, and `onChange()` after a change. */
export function setUp(given) {
  actions = given;
  get("verify").addEventListener("click", verify);
  get("verify-stop").addEventListener("click", () => (isAsking = false));
  get("add").addEventListener("submit", (event) => {
    event.preventDefault();
    add(get("reference").value.trim());
  });
}

/** Checks the draft as it is now. */
export async function check() {
  const work = async () => {
    last = await ask("check", "drafts/check", actions.request());
    draw();
  };
  await actions.attempt(work, get("check-problem"), check);
}

/** Asks the services for one entry after the other. */
async function verify() {
  isAsking = true;
  for (const key of last.keys.filter((one) => !known(one))) {
    if (!isAsking) break;
    draw();
    if (!(await verifyOne(key))) break;
  }
  isAsking = false;
  draw();
}

async function verifyOne(key) {
  const { bibliography, index } = actions.request();
  const work = async () => {
    const answer = await ask("verify", "bibliography/check", { bibliography, index, keys: [key] });
    for (const one of answer.entries) verdicts.set(key, { ...one, block: block(bibliography, one.line) });
    for (const failed of answer.failed) say(sentence(failed));
  };
  return actions.attempt(work, get("check-problem"), verify);
}

/** The text of the entry that begins in a line. */
function block(text, line) {
  const [first, ...rest] = text.split("\n").slice(line - 1);
  const end = rest.findIndex((one) => /^\s*@/.test(one));
  return [first, ...(end < 0 ? rest : rest.slice(0, end))].join("\n");
}

/** What services know of an entry, unless it was changed since. */
function known(key) {
  const verdict = verdicts.get(key);
  return verdict && state.bib.text.includes(verdict.block) ? verdict : null;
}

const lineOf = ({ block }) => state.bib.text.slice(0, state.bib.text.indexOf(block)).split("\n").length;

async function mend(key, mending) {
  const { bibliography, index } = actions.request();
  const work = async () => {
    const answer = await ask("mend", "bibliography/mend", { bibliography, index, key, mendings: [mending] });
    const wasKnown = known(key);
    change(state.draft.text, answer.bibliography, [key], state.place);
    say(`${mending.field} of ${key} is changed.`);
    if (wasKnown) await verifyOne(key); // its answers are kept: this is quick
    await actions.onChange();
  };
  await actions.attempt(work, get("check-problem"), () => mend(key, mending));
}

async function add(reference) {
  const { bibliography, index } = actions.request();
  say("Looking it up…");
  const work = async () => {
    const answer = await ask("add", "bibliography/add", { bibliography, index, references: [reference] });
    const isNew = answer.bibliography !== bibliography;
    change(state.draft.text, answer.bibliography, answer.keys, state.place);
    say(isNew ? `${answer.keys[0]} is added to ${state.bib.name}.` : `${answer.keys[0]} is in ${state.bib.name} already.`);
    get("reference").value = "";
    showFile("bib");
    await actions.onChange();
  };
  await actions.attempt(work, get("check-problem"), () => add(reference));
}

function draw() {
  const asked = last.keys.map((key) => known(key)).filter(Boolean);
  const keys = new Set(asked.map((one) => one.key));
  const online = asked.flatMap((one) => one.findings.map((finding) => ({ ...finding, line: lineOf(one) })));
  const shown = last.findings.filter((one) => one.code !== "place-open" && !keys.has(one.key)); // places have their list
  const findings = [...shown, ...online];
  const rank = (one) => ORDER.indexOf(one.severity);
  findings.sort((one, other) => rank(one) - rank(other) || one.file.localeCompare(other.file) || one.line - other.line);
  get("findings").replaceChildren(...findings.map(item));
  const counts = ORDER.map((name) => [name, findings.filter((one) => one.severity === name).length]).filter(([, count]) => count);
  show(get("check-summary"), counts.length ? `${counts.map(([name, count]) => counted(count, name)).join(", ")}.` : "Nothing to mend.");
  drawOnline(asked);
  const compared = last.citations.filter((one) => one.verdict);
  list("citations", compared, `${counted(compared.length, "citation")} compared: ${tally(compared)}`, (one) => [
    make("code", {}, one.key), ` ${one.verdict}`, one.says && [": ", make("q", {}, one.says)],
  ]);
}

function drawOnline(asked) {
  get("online").hidden = !last.services.length;
  const left = last.keys.length - asked.length;
  get("verify").disabled = isAsking || !left;
  get("verify-stop").hidden = !isAsking;
  const told = `Ids, titles, first authors and venues go to ${last.services.join(", ")}, until one has the entry.`;
  get("verify-note").textContent = isAsking || asked.length ? `${asked.length} of ${counted(last.keys.length, "entry", "entries")} asked for.` : told;
  list("verdicts", asked, `Entries: ${tally(asked)}`, (one) => [
    make("code", {}, one.key), ` ${one.verdict}`, one.record && `: ${one.record.title} · ${about({ ...one.record, citation_count: null })} (${one.source})`,
  ]);
}

function list(id, entries, summary, parts) {
  const box = get(id);
  box.hidden = !entries.length;
  box.querySelector("summary").textContent = summary;
  box.querySelector("ul").replaceChildren(...entries.map((one) => make("li", {}, ...parts(one).flat())));
}

/** How many there are of each verdict: "5 found, 1 differs". */
function tally(entries) {
  const counts = new Map();
  for (const { verdict } of entries) counts.set(verdict, (counts.get(verdict) ?? 0) + 1);
  return [...counts].map(([verdict, count]) => `${count} ${verdict}`).join(", ");
}

function item(finding) {
  const file = finding.file === "draft" ? "draft" : "bib";
  const go = () => {
    showFile(file);
    goToLine(finding.line);
  };
  const { mending, key } = finding;
  return make(
    "li",
    { "data-severity": finding.severity },
    make(
      "p",
      { class: "where" },
      make("span", { class: "severity" }, finding.severity),
      ` ${finding.code} · `,
      make("button", { type: "button", class: "quiet", onclick: go }, `${state[file].name}, line ${finding.line}`),
    ),
    make("p", {}, `${finding.message}. ${finding.remedy}`),
    mending && key && make("button", { type: "button", onclick: () => mend(key, mending) }, `Change ${mending.field} to ${mending.value}`),
  );
}
