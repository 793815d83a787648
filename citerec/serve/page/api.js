// Requests to the server: the newest of a kind wins, and a busy server is asked once more.

const MOST_SECONDS = 10; // that a busy server may let us wait
const LONG = 200_000; // characters of a body that a server may refuse
const TOO_LONG = ["the draft and its bibliography are too long", "Leave out entries that you do not cite, or chapters."];
const TOKEN = "citerec.token";

/** What a server answers if it does not do what it is asked. */
export class ApiError extends Error {
  constructor(status, message, remedy) {
    super(message);
    Object.assign(this, { status, remedy });
  }
}

/** Keeps a token until the tab is closed. */
export function useToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

export const hasToken = () => sessionStorage.getItem(TOKEN) !== null;

/** Whether a request was given up because a newer one took its place. */
export const isOvertaken = (error) => error.name === "AbortError";

const running = new Map();

/** Gives up the request of a kind that is running. */
export function giveUp(kind) {
  running.get(kind)?.abort();
}

/**
 * The answer to a request; an ApiError if there is none.
 * A request gives up the one of the same kind that is still running. Without a body it is a GET.
 */
export async function ask(kind, path, body) {
  giveUp(kind);
  const controller = new AbortController();
  running.set(kind, controller);
  try {
    return await answer(path, body, controller.signal, true);
  } finally {
    if (running.get(kind) === controller) running.delete(kind);
  }
}

async function answer(path, body, signal, again) {
  const headers = {};
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body) headers["Content-Type"] = "application/json";
  const options = { method: body ? "POST" : "GET", headers, signal, body: body && JSON.stringify(body) };
  let response;
  try {
    response = await fetch(`api/v1/${path}`, options);
  } catch (error) {
    if (isOvertaken(error)) throw error;
    if (options.body?.length > LONG) throw new ApiError(413, ...TOO_LONG); // the server hangs up before it has all
    throw new ApiError(0, "the server does not answer", "Check that `citerec serve` runs, then try again.");
  }
  if (response.status === 503 && again) {
    const seconds = Math.min(Number(response.headers.get("Retry-After")) || 1, MOST_SECONDS);
    await pause(seconds * 1000, signal);
    return answer(path, body, signal, false);
  }
  const content = await response.json().catch((error) => {
    if (isOvertaken(error)) throw error;
    return {};
  });
  if (response.ok) return content;
  if (response.status === 413) throw new ApiError(413, ...TOO_LONG);
  throw new ApiError(response.status, content.error ?? "the server made a mistake", content.remedy ?? "Try again.");
}

function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
