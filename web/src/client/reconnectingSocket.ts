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

interface SocketEvents {
  open(): void;
  message(text: string): void;
  status(status: SocketStatus): void;
}

const FIRST_DELAY_MS = 400;
const MAX_DELAY_MS = 8000;
/** It sends a ping after this silence, and reconnects after the second time span. */
const PING_AFTER_MS = 15_000;
const PONG_TIMEOUT_MS = 6000;
/** Limit of one connection attempt, which could otherwise hang for minutes. */
const ATTEMPT_TIMEOUT_MS = 8000;
const CLOSE_DELETED = 4404;
const CLOSE_REFUSED = 1008;
const CLOSE_TRY_LATER = 1013;
/** Refusals that are temporary. */
const TEMPORARY_REFUSALS: readonly string[] = [
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
  private lastMessageAt = 0;
  private retryTimer: ReturnType<typeof setTimeout> | undefined;
  private silenceTimer: ReturnType<typeof setInterval> | undefined;
  private attemptTimer: ReturnType<typeof setTimeout> | undefined;
  private closed = false;
  /** Whether the server has accepted the connection and reads messages. */
  private isAccepted = false;
  /** The server's last refusal, and the time before which it accepts no new attempt. */
  private refusal: { readonly reason: string; readonly until: number } | null = null;
  /** Whether the server ended the connection for good; only `restart` connects again. */
  private isEnded = false;

  /** `path` is called for each attempt, because the cursor in it changes. */
  constructor(
    private readonly path: () => string,
    private readonly events: SocketEvents,
  ) {
    window.addEventListener("online", this.onWake);
    document.addEventListener("visibilitychange", this.onWake);
    this.connect();
  }

  send(message: object): boolean {
    if (!this.isAccepted || this.socket?.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(message));
    return true;
  }

  close(): void {
    this.closed = true;
    window.removeEventListener("online", this.onWake);
    document.removeEventListener("visibilitychange", this.onWake);
    clearTimeout(this.retryTimer);
    this.closeSocket();
  }

  /** The server accepted the connection. */
  accepted(): void {
    if (this.isAccepted || this.socket === null) return;
    this.isAccepted = true;
    this.attempts = 0;
    this.lostSince = null;
    this.refusal = null;
    clearTimeout(this.attemptTimer);
    clearInterval(this.silenceTimer);
    this.silenceTimer = setInterval(() => this.checkSilence(), 5000);
    this.events.status({ kind: "open" });
    this.events.open();
  }

  /** Notes a refusal. False if it is not temporary, or if the connection is already accepted. */
  noteRefusal(code: string, reason: string, retryAfter: number): boolean {
    if (this.isAccepted || !TEMPORARY_REFUSALS.includes(code)) return false;
    this.refusal = { reason, until: Date.now() + retryAfter * 1000 };
    return true;
  }

  /** Reconnects now, also if an attempt hangs. */
  readonly reconnectNow = (): void => {
    if (this.closed || this.isEnded) return;
    if (this.socket !== null && this.socket.readyState !== WebSocket.CONNECTING) return;
    this.closeSocket();
    clearTimeout(this.retryTimer);
    this.connect();
  };

  /** Starts a new connection. */
  restart(): void {
    if (this.closed) return;
    this.isEnded = false;
    this.closeSocket();
    clearTimeout(this.retryTimer);
    this.connect();
  }

  private readonly onWake = (event: Event): void => {
    if (event.type !== "online" && document.visibilityState !== "visible") return;
    // Only the user may try before the time that the server named.
    if (this.refusal !== null && Date.now() < this.refusal.until) return;
    if (this.socket === null || event.type === "online") this.reconnectNow();
    // After a suspend the socket may be dead without an event.
    else if (Date.now() - this.lastMessageAt > PING_AFTER_MS) this.restart();
  };

  private connect(): void {
    if (this.lostSince === null) this.events.status({ kind: "connecting" });
    const socket = new WebSocket(serverUrl(this.path()).replace(/^http/, "ws"));
    this.socket = socket;
    socket.onmessage = (event: MessageEvent<string>) => {
      this.lastMessageAt = Date.now();
      this.events.message(event.data);
    };
    socket.onclose = (event) => {
      if (this.socket === socket) this.onLost(event.code, event.reason);
    };
    this.attemptTimer = setTimeout(() => {
      this.lostSince ??= Date.now() - ATTEMPT_TIMEOUT_MS;
      this.onLost();
    }, ATTEMPT_TIMEOUT_MS);
  }

  private checkSilence(): void {
    const silence = Date.now() - this.lastMessageAt;
    if (silence > PING_AFTER_MS + PONG_TIMEOUT_MS) {
      this.lostSince = this.lastMessageAt;
      this.events.status({ kind: "lost", since: this.lastMessageAt, next: Date.now() });
      this.restart();
    } else if (silence > PING_AFTER_MS) this.send({ type: "ping" });
  }

  private onLost(code = 0, reason = ""): void {
    this.closeSocket();
    if (this.closed) return;
    if (code === CLOSE_DELETED || (code === CLOSE_REFUSED && !TEMPORARY_REFUSALS.includes(reason))) {
      this.isEnded = true;
      this.events.status({ kind: "ended", why: code === CLOSE_DELETED ? "deleted" : "refused", reason });
      return;
    }
    this.lostSince ??= Date.now();
    const delay = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** this.attempts) * (0.75 + Math.random() / 2);
    // Jitter, so that clients with the same delay do not reconnect at the same moment.
    const wait = Math.max(0, (this.refusal?.until ?? 0) - Date.now()) + delay;
    this.attempts += 1;
    const why = code === CLOSE_REFUSED || code === CLOSE_TRY_LATER ? { reason: this.refusal?.reason ?? reason } : {};
    this.events.status({ kind: "lost", since: this.lostSince, next: Date.now() + wait, ...why });
    this.retryTimer = setTimeout(() => this.connect(), wait);
  }

  private closeSocket(): void {
    clearInterval(this.silenceTimer);
    clearTimeout(this.attemptTimer);
    const socket = this.socket;
    this.socket = null;
    this.isAccepted = false;
    if (socket === null) return;
    socket.onmessage = socket.onclose = null;
    socket.close();
  }
}
