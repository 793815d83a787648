// The list of places, and remarks on what is cited.

import { get, make, sentence, show, step } from "./dom.js";
import { goToLine, showFile } from "./editor.js";
import { state } from "./state.js";
import { withMark } from "./words.js";

const list = get("places");

let suggestions = [];

/** Sets what happens when a place is chosen, `choose(number)`, or a suggestion, `takeSuggestion(suggestion)`. */
export function setUp({ choose, takeSuggestion }) {
  get("suggestions").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) takeSuggestion(suggestions[button.dataset.number]);
  });
  list.addEventListener("keydown", (event) => step(event, [...list.querySelectorAll("button")], state.shortcuts));
  list.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) choose(Number(button.dataset.number), true);
  });
}

/** Shows the places of a draft that was read. */
export function showPlaces(answer) {
  const hadFocus = list.contains(document.activeElement);
  list.replaceChildren(...answer.places.map(item));
  const count = answer.places.length;
  get("places-heading").textContent = count === 1 ? "1 place" : `${count} places`;
  const none = `No place wants a citation. Write ${answer.marker} where one is missing, use “Add a place”, or let places be suggested.`;
  show(get("places-note"), count ? "" : none);
  showRemarks(answer);
  showSuggestions([]); // those that were shown are of the draft as it was
  if (hadFocus) (list.querySelector("[aria-current]") ?? list.querySelector("button") ?? get("places-heading")).focus();
}

/** Shows sentences that may want a citation. */
export function showSuggestions(found) {
  suggestions = found;
  get("suggested").hidden = !found.length;
  const items = found.map((one, number) =>
    make(
      "li",
      {},
      make(
        "button",
        { type: "button", "data-number": number },
        make("span", { class: "where" }, `Line ${one.line} · ${one.title}`),
        make("span", { class: "sentence" }, one.sentence),
      ),
    ),
  );
  get("suggestions").replaceChildren(...items);
}

/** Shows which place is chosen. */
export function showChosen() {
  for (const button of list.querySelectorAll("button")) {
    if (Number(button.dataset.number) !== state.place) button.removeAttribute("aria-current");
    else {
      button.setAttribute("aria-current", "true");
      button.scrollIntoView({ block: "nearest" });
    }
  }
}

function item(place) {
  const current = place.number === state.place ? "true" : null;
  return make(
    "li",
    {},
    make(
      "button",
      { type: "button", "data-number": place.number, "aria-current": current },
      make("span", { class: "where" }, `Line ${place.line}${place.section ? ` · ${place.section}` : ""}`),
      make("span", { class: "sentence" }, withMark(place.text)),
    ),
  );
}

function showRemarks(answer) {
  const missing = [...new Set(answer.cited.filter((one) => one.title === null).map((one) => one.key))];
  const remarks = answer.unreadable.map((text) => {
    const line = /^[^:]*:(\d+): /.exec(text);
    const go = () => {
      showFile("bib");
      goToLine(Number(line[1]));
    };
    const told = sentence(text.replace(/^refs\.bib/, state.bib.name));
    return make("li", {}, `${told} This entry is not used. `, line && make("button", { type: "button", class: "quiet", onclick: go }, "Show it"));
  });
  if (missing.length) remarks.push(make("li", {}, `Cited, but not in the bibliography: ${missing.join(", ")}.`));
  const box = get("remarks");
  box.hidden = !remarks.length;
  box.querySelector("ul").replaceChildren(...remarks);
  box.querySelector("summary").textContent = remarks.length === 1 ? "1 remark on the bibliography" : `${remarks.length} remarks on the bibliography`;
}
