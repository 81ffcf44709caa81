/**
 * A WebSocket that reconnects by itself after a lost connection, a server restart or a suspended machine.
 *
 * It does not know the protocol, except when it last received something.
 */

import { serverUrl } from "../wire/api";

export type SocketStatus =
  | { readonly kind: "connecting" }
  | { readonly kind: "open" }
  /** It reconnects by itself. `reason` is the server's message, if there was one. */
  | { readonly kind: "lost"; readonly since: number; readonly next: number; readonly reason?: string }
  /** It does not reconnect. */
  | { readonly kind: "ended"; readonly why: "deleted" | "refused"; readonly reason: string };

export interface SocketEvents {
  open(): void;
  message(text: string): void;
  status(status: SocketStatus): void;
}

const FIRST_WAIT = 400;
const LONGEST_WAIT = 8000;
/** It sends a ping after this silence, and reconnects after the second time span. */
const QUIET = 15_000;
const DEAF = 6000;
/** Limit of one connection attempt, which could otherwise hang for minutes. */
const PATIENCE = 8000;
const DELETED = 4404;
const REFUSED = 1008;
const NOT_NOW = 1013;
/** Refusals that are temporary. */
const PASSING: readonly string[] = [
  "too_many_streams",
  "too_many_requests",
  "store_unavailable",
  "issuer_unavailable",
  "shutting_down",
];

export class ReconnectingSocket {
  private socket: WebSocket | null = null;
  private attempts = 0;
  private lostSince: number | null = null;
  private heardAt = 0;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private watch: ReturnType<typeof setInterval> | undefined;
  private patience: ReturnType<typeof setTimeout> | undefined;
  private closed = false;
  /** Whether the server has accepted the connection and reads messages. */
  private isIn = false;
  /** The server's last refusal, and the time before which it accepts no new attempt. */
  private refusal: { readonly reason: string; readonly until: number } | null = null;
  /** Whether the server ended the connection for good; only `restart` connects again. */
  private isOver = false;

  /** `path` is called for each attempt, because the cursor in it changes. */
  constructor(
    private readonly path: () => string,
    private readonly events: SocketEvents,
  ) {
    window.addEventListener("online", this.wake);
    document.addEventListener("visibilitychange", this.wake);
    this.connect();
  }

  send(message: object): boolean {
    if (!this.isIn || this.socket?.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(message));
    return true;
  }

  close(): void {
    this.closed = true;
    window.removeEventListener("online", this.wake);
    document.removeEventListener("visibilitychange", this.wake);
    clearTimeout(this.retry);
    this.drop();
  }

  /** The server accepted the connection. */
  greeted(): void {
    if (this.isIn || this.socket === null) return;
    this.isIn = true;
    this.attempts = 0;
    this.lostSince = null;
    this.refusal = null;
    clearTimeout(this.patience);
    clearInterval(this.watch);
    this.watch = setInterval(() => this.listen(), 5000);
    this.events.status({ kind: "open" });
    this.events.open();
  }

  /** Notes a refusal. False if it is not temporary, or if the connection is already accepted. */
  refused(code: string, reason: string, retryAfter: number): boolean {
    if (this.isIn || !PASSING.includes(code)) return false;
    this.refusal = { reason, until: Date.now() + retryAfter * 1000 };
    return true;
  }

  /** Reconnects now, also if an attempt hangs. */
  readonly hurry = (): void => {
    if (this.closed || this.isOver) return;
    if (this.socket !== null && this.socket.readyState !== WebSocket.CONNECTING) return;
    this.drop();
    clearTimeout(this.retry);
    this.connect();
  };

  /** Starts a new connection. */
  restart(): void {
    if (this.closed) return;
    this.isOver = false;
    this.drop();
    clearTimeout(this.retry);
    this.connect();
  }

  private readonly wake = (event: Event): void => {
    if (event.type !== "online" && document.visibilityState !== "visible") return;
    // Only the user may try before the time that the server named.
    if (this.refusal !== null && Date.now() < this.refusal.until) return;
    if (this.socket === null || event.type === "online") this.hurry();
    // After a suspend the socket may be dead without an event.
    else if (Date.now() - this.heardAt > QUIET) this.restart();
  };

  private connect(): void {
    if (this.lostSince === null) this.events.status({ kind: "connecting" });
    const socket = new WebSocket(serverUrl(this.path()).replace(/^http/, "ws"));
    this.socket = socket;
    socket.onmessage = (event: MessageEvent<string>) => {
      this.heardAt = Date.now();
      this.events.message(event.data);
    };
    socket.onclose = (event) => {
      if (this.socket === socket) this.lose(event.code, event.reason);
    };
    this.patience = setTimeout(() => {
      this.lostSince ??= Date.now() - PATIENCE;
      this.lose();
    }, PATIENCE);
  }

  private listen(): void {
    const silence = Date.now() - this.heardAt;
    if (silence > QUIET + DEAF) {
      this.lostSince = this.heardAt;
      this.events.status({ kind: "lost", since: this.heardAt, next: Date.now() });
      this.restart();
    } else if (silence > QUIET) this.send({ type: "ping" });
  }

  private lose(code = 0, reason = ""): void {
    this.drop();
    if (this.closed) return;
    if (code === DELETED || (code === REFUSED && !PASSING.includes(reason))) {
      this.isOver = true;
      this.events.status({ kind: "ended", why: code === DELETED ? "deleted" : "refused", reason });
      return;
    }
    this.lostSince ??= Date.now();
    const pause = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** this.attempts) * (0.75 + Math.random() / 2);
    // Jitter, so that clients with the same delay do not reconnect at the same moment.
    const wait = Math.max(0, (this.refusal?.until ?? 0) - Date.now()) + pause;
    this.attempts += 1;
    const why = code === REFUSED || code === NOT_NOW ? { reason: this.refusal?.reason ?? reason } : {};
    this.events.status({ kind: "lost", since: this.lostSince, next: Date.now() + wait, ...why });
    this.retry = setTimeout(() => this.connect(), wait);
  }

  private drop(): void {
    clearInterval(this.watch);
    clearTimeout(this.patience);
    const socket = this.socket;
    this.socket = null;
    this.isIn = false;
    if (socket === null) return;
    socket.onmessage = socket.onclose = null;
    socket.close();
  }
}
