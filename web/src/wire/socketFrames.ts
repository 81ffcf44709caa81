/** Parses the frames of a session's socket. Pure. */

import type { SessionState } from "../client/api";
import type { Gap } from "../log/viewModel";
import type { LogRecord, RequestedDecision } from "./events";

export interface SessionInfo {
  readonly session_id: string;
  readonly agent_type: string;
  readonly state: SessionState;
  readonly title: string;
  readonly run_id: string | null;
  /** The end of the session's log. */
  readonly cursor: string;
}

export type Frame =
  | { readonly type: "records"; readonly records: readonly LogRecord[] }
  | { readonly type: "gap"; readonly gap: Gap }
  | { readonly type: "state"; readonly state: SessionInfo }
  | { readonly type: "accepted"; readonly request_id: string; readonly run_id: string }
  | { readonly type: "decided"; readonly approval_id: string; readonly decision: RequestedDecision }
  | {
      readonly type: "error";
      readonly message: string;
      readonly error_code: string;
      readonly request_id?: string;
      /** Seconds to wait before a new attempt. */
      readonly retry_after?: number;
    }
  | { readonly type: "pong" }
  | { readonly type: "other" };

const REPLIES = new Set(["state", "accepted", "decided", "error", "pong"]);

/** Parses a frame from the server. A frame of records contains several; one, if the server does not batch them. */
export function parseFrame(text: string): Frame {
  const value = JSON.parse(text) as Record<string, unknown>;
  if (Array.isArray(value.records)) return { type: "records", records: value.records as LogRecord[] };
  if (typeof value.seq === "number") return { type: "records", records: [value as unknown as LogRecord] };
  if (value.gap) return { type: "gap", gap: value.gap as Gap };
  return REPLIES.has(String(value.type)) ? (value as unknown as Frame) : { type: "other" };
}
