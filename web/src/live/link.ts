/**
 * The socket of one session, which comes back by itself: after a cut, a restart of the server, a closed lid.
 *
 * It knows nothing of what it carries but when it was last heard.
 */

import { address } from "../wire/api";

export type LinkStatus =
  | { readonly kind: "connecting" }
  | { readonly kind: "open" }
  /** It will be tried again by itself. */
  | { readonly kind: "lost"; readonly since: number; readonly next: number }
  /** It will not. */
  | { readonly kind: "ended"; readonly why: "deleted" | "refused"; readonly reason: string };

export interface LinkEvents {
  open(): void;
  message(text: string): void;
  status(status: LinkStatus): void;
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

export class Link {
  private socket: WebSocket | null = null;
  private attempts = 0;
  private lostSince: number | null = null;
  private heardAt = 0;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private watch: ReturnType<typeof setInterval> | undefined;
  private patience: ReturnType<typeof setTimeout> | undefined;
  private closed = false;
  /** The server does not want us back; only `restart` goes there again. */
  private isOver = false;

  /** `path` is asked anew for each attempt, because the place to go on from moves. */
  constructor(
    private readonly path: () => string,
    private readonly events: LinkEvents,
  ) {
    window.addEventListener("online", this.hurry);
    document.addEventListener("visibilitychange", this.wake);
    this.connect();
  }

  send(message: object): boolean {
    if (this.socket?.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(message));
    return true;
  }

  close(): void {
    this.closed = true;
    window.removeEventListener("online", this.hurry);
    document.removeEventListener("visibilitychange", this.wake);
    clearTimeout(this.retry);
    this.drop();
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

  private readonly wake = (): void => {
    if (document.visibilityState !== "visible") return;
    if (this.socket === null) this.hurry();
    // After a long sleep the socket may be dead without knowing it.
    else if (Date.now() - this.heardAt > QUIET) this.restart();
  };

  private connect(): void {
    if (this.lostSince === null) this.events.status({ kind: "connecting" });
    const socket = new WebSocket(address(this.path()).replace(/^http/, "ws"));
    this.socket = socket;
    socket.onopen = () => this.opened();
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

  private opened(): void {
    this.attempts = 0;
    this.lostSince = null;
    this.heardAt = Date.now();
    clearTimeout(this.patience);
    clearInterval(this.watch);
    this.watch = setInterval(() => this.listen(), 5000);
    this.events.status({ kind: "open" });
    this.events.open();
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
    if (code === DELETED || code === REFUSED) {
      this.isOver = true;
      this.events.status({ kind: "ended", why: code === DELETED ? "deleted" : "refused", reason });
      return;
    }
    this.lostSince ??= Date.now();
    const wait = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** this.attempts) * (0.75 + Math.random() / 2);
    this.attempts += 1;
    this.events.status({ kind: "lost", since: this.lostSince, next: Date.now() + wait });
    this.retry = setTimeout(() => this.connect(), wait);
  }

  private drop(): void {
    clearInterval(this.watch);
    clearTimeout(this.patience);
    const socket = this.socket;
    this.socket = null;
    if (socket === null) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
  }
}
