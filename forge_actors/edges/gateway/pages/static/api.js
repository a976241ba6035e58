// What the pages ask of the service.

export class Failure extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** The address of a route, each part escaped; values that are empty are left out. */
export function route(parts, query = {}) {
  const path = ["", "v1", ...parts].map((part) => encodeURIComponent(part)).join("/");
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const each of [value].flat()) {
      if (each !== null && each !== undefined && each !== "") pairs.append(name, each);
    }
  }
  const text = pairs.toString();
  return text ? `${path}?${text}` : path;
}

/** The address of a page. */
export function page(...parts) {
  return `/${parts.map((part) => encodeURIComponent(part)).join("/")}`;
}

export async function ask(method, address, { body, signal, headers = {} } = {}) {
  const options = { method, signal, credentials: "same-origin", headers: { accept: "application/json", ...headers } };
  if (method !== "GET") {
    options.body = JSON.stringify(body ?? {});
    options.headers["content-type"] = "application/json";
  }
  let answer;
  try {
    answer = await fetch(address, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure(0, "UNREACHABLE", "The service does not answer.");
  }
  if (answer.ok) return answer;
  throw await failure(answer);
}

async function failure(answer) {
  if (answer.status === 401) document.dispatchEvent(new Event("forge:login"));
  let told = {};
  try {
    told = await answer.json();
  } catch {
    // It is no error of the service's own; its status says enough.
  }
  const { code = "FAILED", detail = `The service answered with ${answer.status}.` } = told;
  return new Failure(answer.status, code, detail);
}

export async function get(parts, query, signal) {
  return (await ask("GET", route(parts, query), { signal })).json();
}

export async function post(parts, body) {
  return (await ask("POST", route(parts), { body })).json();
}
