/**
 * Sends requests to the server's HTTP interface, and defines the types of the responses that the page uses. URLs are
 * relative to the page, so any root path works.
 */

import type { Args, RunState } from "../log/viewModel";
import type { Decision, JsonObject, JsonValue } from "../wire/events";

export type SessionState = "idle" | "processing" | "completed" | "error" | "expired";

export interface AgentInfo {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly framework: string;
  /** The sandbox that confines code that the agent's model writes; "" if the agent runs no code. */
  readonly sandbox?: string;
  /** Why the strongest sandbox is not used; "" if it is. */
  readonly sandbox_reason?: string;
  readonly default: boolean;
  /** Name of the model: `understudy` for the offline model, "" if it is not known. */
  readonly model?: string;
  /** JSON Schema of the agent's input, if it takes more than a question. */
  readonly input_schema?: JsonObject;
  /** Key of the input that takes the question; "" if a question alone does not fit the agent. */
  readonly question_key?: string;
  readonly context_schema?: JsonObject;
  /** JSON Schema of further context values. */
  readonly configurable_schema?: JsonObject;
  /** Whether requests may set context values: all, none, or those with these names. */
  readonly context_from_request?: boolean | readonly string[];
}

export interface AgentList {
  readonly agents: readonly AgentInfo[];
  readonly version?: string;
}

export interface SessionEntry {
  readonly session_id: string;
  readonly title: string;
  readonly agent: string;
  readonly state: SessionState;
  readonly created_at: number;
  readonly active_at: number;
  readonly turns: number;
  readonly last_seq: number;
  readonly run_id: string | null;
  /** State of the newest run: `waiting` while it waits for an approval. */
  readonly run_state: RunState | "queued" | null;
}

export interface SessionPage {
  readonly sessions: readonly SessionEntry[];
  readonly next: string | null;
}

export interface ToolCall {
  readonly call_id: string;
  readonly name: string;
  readonly args: Args | null;
  readonly output: string;
  readonly result: JsonValue;
  readonly error: string | null;
  readonly media_type: string;
  readonly size: number;
}

export interface ApprovalDetails {
  readonly args: Args;
  readonly edited_args: Args | null;
  readonly answered?: boolean;
  /** Whether the server has stored only the beginning of the arguments. */
  readonly truncated?: boolean;
  readonly state: "requested" | Decision;
}

/** An error response of the server. `code` is `unreachable` if the server did not respond. */
export class ApiError extends Error {
  readonly code: string;
  readonly status: number;

  constructor(message: string, code: string, status: number) {
    super(message);
    this.name = "ApiError";
    this.code = code;
    this.status = status;
  }
}

export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Returns the absolute URL of a path on the server. Adds the server's root path if the path does not contain it. */
export function serverUrl(path: string): string {
  const here = new URL(".", document.baseURI.replace(/[#?].*$/, ""));
  const below = path.startsWith(here.pathname) ? path.slice(here.pathname.length) : path.replace(/^\//, "");
  return new URL(`./${below}`, here).href;
}

export function artifactUrl(artifactId: string): string {
  return serverUrl(`artifacts/${encodeURIComponent(artifactId)}`);
}

export interface CurrentUser {
  readonly user: string;
  readonly name: string;
  /** Whether the server needs no API key. */
  readonly open: boolean;
}

/** Name of the window event for a request that the server refused because the browser has no valid API key. */
export const UNAUTHORIZED = "limelight:unauthorized";

/** Matches control characters, and the backslash, which browsers take for a slash. */
const CONTROL = /[\x00-\x1f\x7f\\]/;

export const api = {
  me: (signal?: AbortSignal) => json<CurrentUser>("auth/me", { signal }),
  /** Sends an API key to the server, which stores it in an HttpOnly cookie of the browser. */
  login: async (key: string): Promise<void> => {
    await request("auth/login", { method: "POST", body: { key } });
  },
  logout: async (): Promise<void> => {
    await request("auth/logout", { method: "POST" });
  },
  agents: (signal?: AbortSignal) => json<AgentList>("agents", { signal }),
  sessions: (query: { q?: string; after?: string; limit?: number } = {}, signal?: AbortSignal) =>
    json<SessionPage>(`sessions${queryString(query)}`, { signal }),
  session: (id: string, signal?: AbortSignal) => json<SessionEntry>(`sessions/${encodeURIComponent(id)}`, { signal }),
  renameSession: (id: string, title: string) =>
    json<SessionEntry>(`sessions/${encodeURIComponent(id)}`, { method: "PATCH", body: { title } }),
  deleteSession: async (id: string): Promise<void> => {
    await request(`sessions/${encodeURIComponent(id)}`, { method: "DELETE" });
  },
  toolCall: (runId: string, callId: string, signal?: AbortSignal) =>
    json<ToolCall>(`runs/${runId}/tools/${callSegment(callId)}`, { signal }),
  approval: (runId: string, approvalId: string, signal?: AbortSignal) =>
    json<ApprovalDetails>(`runs/${runId}/approvals/${encodeURIComponent(approvalId)}`, { signal }),
  /** Fetches the complete text of an input or an answer that the log truncates. */
  text: async (path: string, signal?: AbortSignal): Promise<string> => (await request(path, { signal })).text(),
};

/**
 * Returns the segment of a path that names a tool call. An id that a browser or a proxy would change in a path, such as
 * `..`, is sent as `~` and its Base64.
 */
export function callSegment(callId: string): string {
  const hasDots = callId.split("/").some((segment) => segment === "." || segment === "..");
  if (callId !== "" && !hasDots && !callId.startsWith("~") && !CONTROL.test(callId)) {
    return encodeURIComponent(callId);
  }
  const bytes = Array.from(new TextEncoder().encode(callId), (byte) => String.fromCharCode(byte)).join("");
  return `~${btoa(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

interface Options {
  method?: string;
  body?: unknown;
  signal?: AbortSignal | undefined;
}

async function json<T>(path: string, options: Options): Promise<T> {
  return (await (await request(path, options)).json()) as T;
}

async function request(path: string, { method = "GET", body, signal }: Options): Promise<Response> {
  const init: RequestInit = { method, signal: signal ?? null };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { "Content-Type": "application/json" };
  }
  let response: Response;
  try {
    response = await fetch(serverUrl(path), init);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError("The server cannot be reached.", "unreachable", 0);
  }
  if (response.ok) return response;
  if (response.status === 401) window.dispatchEvent(new Event(UNAUTHORIZED));
  throw await errorOf(response);
}

async function errorOf(response: Response): Promise<ApiError> {
  try {
    const problem = (await response.json()) as { detail?: string; title?: string; code?: string };
    return new ApiError(problem.detail ?? problem.title ?? response.statusText, problem.code ?? "", response.status);
  } catch {
    return new ApiError(`The server answered ${response.status}.`, "", response.status);
  }
}

function queryString(query: Record<string, string | number | undefined>): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  return given.length === 0 ? "" : `?${new URLSearchParams(given.map(([key, value]) => [key, String(value)]))}`;
}
