/** A fake of the server's session requests, for tests. */

import { vi } from "vitest";
import type { SessionEntry } from "../client/api";

export function sessionEntry(id: string, title: string, more: Partial<SessionEntry> = {}): SessionEntry {
  const at = Date.now();
  const known = {
    agent: "deep",
    created_at: at,
    active_at: at,
    turns: 1,
    last_seq: 9,
    run_id: null,
    run_state: null,
  } as const;
  return { session_id: id, title, state: "completed", ...known, ...more };
}

export interface FakeServer {
  sessions: SessionEntry[];
  /** The requests other than reading the list, as "METHOD path". */
  readonly asked: string[];
  refuses: boolean;
}

export function fakeSessionServer(...sessions: SessionEntry[]): FakeServer {
  const server: FakeServer = { sessions, asked: [], refuses: false };
  vi.stubGlobal("fetch", async (url: string, init: RequestInit) => {
    const { pathname, searchParams } = new URL(url);
    const id = pathname.split("/")[2];
    const method = init.method ?? "GET";
    if (id === undefined) {
      const q = (searchParams.get("q") ?? "").toLowerCase();
      return Response.json({
        sessions: server.sessions.filter((one) => one.title.toLowerCase().includes(q)),
        next: null,
      });
    }
    server.asked.push(`${method} ${pathname}`);
    if (server.refuses) return Response.json({ detail: "it is locked" }, { status: 409 });
    const { title } = JSON.parse(typeof init.body === "string" ? init.body : "{}") as { title?: string };
    if (method === "DELETE") server.sessions = server.sessions.filter((one) => one.session_id !== id);
    else server.sessions = server.sessions.map((one) => (one.session_id === id && title ? { ...one, title } : one));
    return method === "DELETE" ? new Response(null, { status: 204 }) : Response.json({});
  });
  return server;
}
