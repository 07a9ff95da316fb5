/** Sends requests, and sends them again where that is safe. */

import { SamefaceError } from "./errors.js";
import type { Problem } from "./answers.js";

/** How to reach a server. */
export interface Options {
  /** The API key; in Node, the variable SAMEFACE_API_KEY if none is given. */
  key?: string;
  /** The longest time of a request. */
  timeoutSeconds?: number;
  /** How often a request is sent again. */
  retries?: number;
  /** Another fetch than the global one. */
  fetch?: typeof fetch;
}

/** The content of a request in a format of its own. */
export interface Body {
  content: string | Uint8Array<ArrayBuffer>;
  type: string;
}

/** One request; unless it is `once`, sending it twice does no more than sending it once. */
export interface Request {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  path: string;
  query?: Record<string, unknown>;
  form?: FormData;
  json?: unknown;
  body?: Body;
  idempotencyKey?: string;
  once?: boolean;
}

const FIRST_WAIT_SECONDS = 0.25; // doubled with every attempt, where the server says nothing
const LONGEST_WAIT_SECONDS = 60; // that a server may ask for; beyond it the error is thrown
const PAGE = 1000; // items of a list that are asked for at once
const BY_PROXIES = [502, 503, 504];

export class Connection {
  private readonly url: string;
  private readonly headers: Record<string, string>;
  private readonly milliseconds: number;
  private readonly retries: number;
  private readonly fetch: typeof fetch;

  constructor(url: string, options: Options) {
    this.url = url.replace(/\/+$/, "");
    const key = options.key ?? environment()["SAMEFACE_API_KEY"];
    this.headers = key ? { Authorization: `Bearer ${key}` } : {};
    this.milliseconds = (options.timeoutSeconds ?? 120) * 1000;
    this.retries = options.retries ?? 4;
    this.fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
  }

  /** The JSON of the answer. */
  async ask<Answer>(request: Request): Promise<Answer> {
    return JSON.parse(await this.send(request)) as Answer;
  }

  /** The text of the answer. */
  async send(request: Request): Promise<string> {
    for (let attempt = 0; ; attempt++) {
      const pause = FIRST_WAIT_SECONDS * 2 ** attempt;
      let failure: SamefaceError;
      let seconds: number | undefined;
      try {
        const response = await this.attempt(request);
        const text = await response.text();
        if (response.ok) return text;
        failure = readFailure(response, text);
        seconds = secondsToWait(response, failure, request, pause);
      } catch (error) {
        failure = toConnectionFailure(error);
        seconds = request.once || isTimeout(error) ? undefined : pause;
      }
      if (seconds === undefined || seconds > LONGEST_WAIT_SECONDS || attempt >= this.retries) throw failure;
      const jitter = 1 + Math.random() / 4; // so that many clients do not return at once
      await new Promise((resolve) => setTimeout(resolve, seconds * jitter * 1000));
    }
  }

  private attempt(request: Request): Promise<Response> {
    const headers = { ...this.headers };
    if (request.idempotencyKey) headers["Idempotency-Key"] = request.idempotencyKey;
    let body: BodyInit | undefined = request.form;
    if (request.body) {
      headers["Content-Type"] = request.body.type;
      body = request.body.content;
    } else if (request.json !== undefined) {
      headers["Content-Type"] = "application/json";
      body = JSON.stringify(request.json);
    }
    const query = new URLSearchParams(toTexts(request.query ?? {})).toString();
    const signal = AbortSignal.timeout(this.milliseconds);
    const address = this.url + request.path + (query && `?${query}`);
    return this.fetch(address, { method: request.method, headers, body, signal });
  }
}

/** The options that have a value, as a form or an address holds them. */
export function toTexts(options: object): [string, string][] {
  return Object.entries(options)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => [name, typeof value === "object" ? JSON.stringify(value) : String(value)]);
}

/** The seconds before another attempt, undefined if there must be none. */
function secondsToWait(
  response: Response,
  failure: SamefaceError,
  request: Request,
  pause: number,
): number | undefined {
  // A browser shows the header to pages of other origins only if the server allows it; the problem has it too.
  const told = response.headers.get("Retry-After") ?? failure.problem.retry_after_seconds;
  if ([429, 503].includes(response.status) && told !== undefined && !Number.isNaN(Number(told))) {
    return Number(told);
  }
  const byProxy = BY_PROXIES.includes(response.status) && failure.code === "unexpected_answer";
  return byProxy && !request.once ? pause : undefined;
}

function readFailure(response: Response, text: string): SamefaceError {
  try {
    const problem = JSON.parse(text) as Problem;
    if (typeof problem.code === "string") return SamefaceError.of(problem);
  } catch {
    // not JSON: no sameface server has written it
  }
  const detail = `Something answered ${response.status} that is no sameface server.`;
  return new SamefaceError("unexpected_answer", detail, response.status);
}

function isTimeout(error: unknown): boolean {
  return error instanceof DOMException && error.name === "TimeoutError";
}

function toConnectionFailure(error: unknown): SamefaceError {
  const why = isTimeout(error) ? "it took too long" : String((error as Error).message);
  const detail = `The server cannot be used: ${why}.`;
  return new SamefaceError("connection_failed", detail, undefined, {}, { cause: error });
}

/** The environment of Node; a browser has none. */
function environment(): Record<string, string | undefined> {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env ?? {};
}

interface Page<Item> {
  items: Item[];
  next_cursor: string | null;
}

/** Yields the items of all pages of a list, each page read when it is needed. */
export async function* readPages<Item>(
  connection: Connection,
  path: string,
  filter: object = {},
): AsyncGenerator<Item, void, void> {
  let cursor: string | null = "";
  while (cursor !== null) {
    const query = { ...filter, limit: PAGE, cursor };
    const page: Page<Item> = await connection.ask({ method: "GET", path, query });
    yield* page.items;
    cursor = page.next_cursor;
  }
}
