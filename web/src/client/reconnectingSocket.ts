/**
 * A WebSocket that reconnects by itself after a lost connection, a server restart or a suspended machine.
 *
 * Of the protocol it knows only the close codes, the codes of temporary refusals, and `ping`. Its owner parses the
 * messages, and calls `accepted` and `noteRefusal`.
 */

import { serverUrl } from "./api";
import { backoffDelay } from "./retry";

export type SocketStatus =
  | { readonly kind: "connecting" }
  | { readonly kind: "open" }
  /** Disconnected; the next attempt is at `next`. `reason` is the server's reason for refusing the connection. */
  | { readonly kind: "lost"; readonly since: number; readonly next: number; readonly reason?: string }
  /** Permanently disconnected: the server deleted the session or refused the connection permanently. */
  | { readonly kind: "ended"; readonly why: "deleted" | "refused"; readonly reason: string };

interface SocketEvents {
  open(): void;
  message(text: string): void;
  status(status: SocketStatus): void;
}

const FIRST_DELAY_MS = 400;
const MAX_DELAY_MS = 8000;
/** Time without a message from the server after which the socket sends a ping. */
const PING_AFTER_MS = 15_000;
/** Additional time without a message after which the socket reconnects. */
const PONG_TIMEOUT_MS = 6000;
/** Time limit of one connection attempt. The browser's own limit is minutes. */
const ATTEMPT_TIMEOUT_MS = 8000;
const CLOSE_DELETED = 4404;
const CLOSE_REFUSED = 1008;
const CLOSE_TRY_LATER = 1013;
/** Error codes of refusals after which the socket tries again. */
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
  /** Whether the server has accepted the connection, so that messages may be sent. */
  private isAccepted = false;
  /** The server's last temporary refusal, and the time before which a new attempt would be refused too. */
  private refusal: { readonly reason: string; readonly until: number } | null = null;
  /** Whether the server ended the connection permanently, so that only `restart` connects again. */
  private isEnded = false;

  /** Connects at once. `path` is called for each attempt, because the cursor in the path changes. */
  constructor(
    private readonly path: () => string,
    private readonly events: SocketEvents,
  ) {
    window.addEventListener("online", this.onWake);
    document.addEventListener("visibilitychange", this.onWake);
    this.connect();
  }

  /** Sends a message as JSON. Returns false if the server has not accepted the connection. */
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

  /** Marks the connection as accepted by the server. Called by the owner when the server's state arrives. */
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

  /** Stores a temporary refusal. Returns false for a permanent one, or if the connection is already accepted. */
  noteRefusal(code: string, reason: string, retryAfter: number): boolean {
    if (this.isAccepted || !TEMPORARY_REFUSALS.includes(code)) return false;
    this.refusal = { reason, until: Date.now() + retryAfter * 1000 };
    return true;
  }

  /** Starts a connection attempt without waiting for the delay; aborts an attempt in progress. An open socket stays. */
  readonly reconnectNow = (): void => {
    if (this.closed || this.isEnded) return;
    if (this.socket !== null && this.socket.readyState !== WebSocket.CONNECTING) return;
    this.closeSocket();
    clearTimeout(this.retryTimer);
    this.connect();
  };

  /** Closes the current connection and starts a new one, also after a permanent end. */
  restart(): void {
    if (this.closed) return;
    this.isEnded = false;
    this.closeSocket();
    clearTimeout(this.retryTimer);
    this.connect();
  }

  private readonly onWake = (event: Event): void => {
    if (event.type !== "online" && document.visibilityState !== "visible") return;
    // Only a request of the user connects before the retry time that the server named.
    if (this.refusal !== null && Date.now() < this.refusal.until) return;
    if (this.socket === null || event.type === "online") this.reconnectNow();
    // After the machine was suspended, the connection may be lost without a close event.
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

  /** Sends a ping or reconnects if the server has sent nothing for too long. */
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
    // Random factor, so that clients that were disconnected together do not reconnect at the same moment.
    const jitter = 0.75 + Math.random() / 2;
    const delay = backoffDelay(this.attempts, FIRST_DELAY_MS, MAX_DELAY_MS) * jitter;
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
