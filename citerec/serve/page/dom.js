// Helpers for the page. All text is inserted as text, never as HTML.

/** The element of an id. */
export const get = (id) => document.getElementById(id);

/** A new element. Children are nodes or texts; what is empty or false is left out. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter(Boolean));
  return element;
}

/** Shows an element with a text, or hides it if there is none. */
export function show(element, text) {
  element.textContent = text ?? "";
  element.hidden = !text;
}

/** "1 error", "2 errors". */
export const counted = (count, one, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;

let clearing;

/** Says something in the bar at the bottom; screen readers read it. */
export function say(text) {
  clearTimeout(clearing);
  get("status").textContent = text;
  clearing = setTimeout(() => say(""), 15_000);
}

/** Shows an error with its remedy, and a button if there is something to do. */
export function showProblem(element, error, action) {
  if (!error) {
    element.hidden = true;
    element.replaceChildren();
    return;
  }
  const button = action && make("button", { type: "button", onclick: action.run }, action.name);
  element.replaceChildren(
    make("p", {}, make("strong", {}, sentence(error.message)), " ", sentence(error.remedy ?? "")),
    ...(button ? [button] : []),
  );
  element.hidden = false;
}

/** A text that begins with a capital, unless that is the name of a file, and ends with a stop. */
export function sentence(text) {
  const isName = /^\S+\.\w/.test(text);
  return text && (isName ? text[0] : text[0].toUpperCase()) + text.slice(1) + (/[.?!…]$/.test(text) ? "" : ".");
}

/** Copies a text, and says so; true if the browser allowed it. */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    say(`${what} copied.`);
    return true;
  } catch {
    say("The browser did not allow to copy. Select the text and copy it yourself.");
    return false;
  }
}

/** Offers a text as a file. */
export function download(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" }));
  make("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Moves the focus among elements by j, k and the arrows; true if the key was one of these. */
export function step(event, elements, letters) {
  const ways = { ArrowDown: 1, ArrowUp: -1, ...(letters ? { j: 1, k: -1 } : {}) };
  if (!(event.key in ways) || event.ctrlKey || event.metaKey || event.altKey) return false;
  const at = elements.indexOf(document.activeElement) + ways[event.key];
  elements[Math.max(0, Math.min(at, elements.length - 1))]?.focus();
  event.preventDefault();
  return true;
}
