/**
 * The socket of one session, which comes back by itself: after a cut, a restart of the server, a closed lid.
 *
 * It knows nothing of what it carries but when it was last heard.
 */

import { serverUrl } from "../wire/api";

export type SocketStatus =
  | { readonly kind: "connecting" }
  | { readonly kind: "open" }
  /** It will be tried again by itself. `reason` is what the server said, if it was there. */
  | { readonly kind: "lost"; readonly since: number; readonly next: number; readonly reason?: string }
  /** It will not. */
  | { readonly kind: "ended"; readonly why: "deleted" | "refused"; readonly reason: string };

export interface SocketEvents {
  open(): void;
  message(text: string): void;
  status(status: SocketStatus): void;
}

const FIRST_WAIT = 400;
const LONGEST_WAIT = 8000;
/** The page asks for a sign of life after so long a silence, and gives up after the second time span. */
const QUIET = 15_000;
const DEAF = 6000;
/** A server that is stopped, or a net that swallows everything, would let an attempt hang for minutes. */
const PATIENCE = 8000;
const DELETED = 4404;
const REFUSED = 1008;
const NOT_NOW = 1013;
/** Refusals that pass by themselves. */
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
  /** The server has taken us in: only then it hears what is sent. */
  private isIn = false;
  /** What the server said when it did not, and when it wants to be asked again. */
  private refusal: { readonly reason: string; readonly until: number } | null = null;
  /** The server does not want us back; only `restart` goes there again. */
  private isOver = false;

  /** `path` is asked anew for each attempt, because the place to go on from moves. */
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

  /** The server has greeted us. */
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

  /** The server does not take us in now. False if no time helps, or if it is about something else. */
  refused(code: string, reason: string, retryAfter: number): boolean {
    if (this.isIn || !PASSING.includes(code)) return false;
    this.refusal = { reason, until: Date.now() + retryAfter * 1000 };
    return true;
  }

  /** Try now instead of later, also if an attempt goes on that may hang. */
  readonly hurry = (): void => {
    if (this.closed || this.isOver) return;
    if (this.socket !== null && this.socket.readyState !== WebSocket.CONNECTING) return;
    this.drop();
    clearTimeout(this.retry);
    this.connect();
  };

  /** Begin again, e.g. from another place. */
  restart(): void {
    if (this.closed) return;
    this.isOver = false;
    this.drop();
    clearTimeout(this.retry);
    this.connect();
  }

  private readonly wake = (event: Event): void => {
    if (event.type !== "online" && document.visibilityState !== "visible") return;
    // Who was told to wait waits; only the user may ask earlier.
    if (this.refusal !== null && Date.now() < this.refusal.until) return;
    if (this.socket === null || event.type === "online") this.hurry();
    // After a long sleep the socket may be dead without knowing it.
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
    // Those who are told the same time should not all come back in the same moment.
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
