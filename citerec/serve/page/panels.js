// What is shown beside the draft: papers for a place, the check, or the library.

import { get } from "./dom.js";

const NAMES = ["papers", "check", "library"];
let onShow;

/** Sets what happens when a panel is shown: functions by its name. */
export function setUp(given) {
  onShow = given;
  for (const [at, name] of NAMES.entries()) {
    const tab = get(`tab-${name}`);
    tab.addEventListener("click", () => showPanel(name));
    tab.addEventListener("keydown", (event) => {
      const way = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!way) return;
      const next = NAMES[(at + way + NAMES.length) % NAMES.length];
      showPanel(next);
      get(`tab-${next}`).focus();
    });
  }
}

export const isShown = (name) => !get(`${name}-panel`).hidden;

/** Shows a panel, and hides the others. */
export function showPanel(name) {
  if (isShown(name)) return;
  for (const one of NAMES) {
    get(`${one}-panel`).hidden = one !== name;
    get(`tab-${one}`).setAttribute("aria-selected", String(one === name));
    get(`tab-${one}`).tabIndex = one === name ? 0 : -1;
  }
  onShow[name]?.();
}
