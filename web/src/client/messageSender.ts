/** Sends the messages of one session, as many at a time as the server accepts, until each has a run. */

import type { SessionView } from "../log/view";
import { isInOutbox, loadOutbox, type OutboxMessage, outboxKeyPrefix, saveOutbox, withoutStarted } from "./outbox";
import { onOtherTabChange } from "./storage";

/**
 * The server accepts five queries without a run on each socket. The fifth is reserved for a message that interrupts.
 */
const IN_FLIGHT = 4;
/** Below the server's limit, in bytes. */
const LONGEST = 1_000_000;
/** The server's error for a query that was withdrawn. */
const WITHDRAWN = "Query was stopped while it waited";

export class MessageSender {
  private all: readonly OutboxMessage[];
  /** Sent on this socket, and not a run yet. */
  private readonly inFlight = new Set<string>();
  /** Sent by another tab. */
  private readonly elsewhere = new Set<string>();
  readonly close: () => void;

  constructor(
    private readonly sessionId: string,
    private readonly send: (message: object) => boolean,
    private readonly changed: (pending: readonly OutboxMessage[]) => void,
  ) {
    this.all = loadOutbox(sessionId);
    this.close = onOtherTabChange(outboxKeyPrefix(sessionId), () => this.takeOver());
  }

  get pending(): readonly OutboxMessage[] {
    return this.all;
  }

  ask(text: string, ifBusy: OutboxMessage["ifBusy"]): void {
    // Strictly increasing, because messages are ordered by time.
    const at = Math.max(Date.now(), ...this.all.map((other) => other.at + 1));
    this.post([...this.all, { requestId: newId(), text, ifBusy, at, error: null, runId: null }]);
    this.transmit();
  }

  withdraw(one: OutboxMessage): void {
    const isSent = this.inFlight.delete(one.requestId) || this.elsewhere.has(one.requestId);
    if (isSent && one.error === null) this.send({ type: "cancel", request_id: one.requestId });
    this.post(this.all.filter((other) => other.requestId !== one.requestId));
    this.transmit();
  }

  retry(one: OutboxMessage): void {
    const again = { ...one, error: null, requestId: newId() };
    this.post(this.all.map((other) => (other.requestId === one.requestId ? again : other)));
    this.transmit();
  }

  /** Sends everything again after a reconnect, because it may not have arrived. */
  again(): void {
    this.inFlight.clear();
    this.elsewhere.clear();
    this.post(this.all.map((one) => (one.runId === null ? one : { ...one, runId: null })));
    this.transmit();
  }

  accepted(requestId: string, runId: string, isKnown: boolean): void {
    if (isKnown) this.post(this.all.filter((one) => one.requestId !== requestId));
    else this.mark(requestId, { runId });
    this.arrived(requestId);
  }

  refused(requestId: string, message: string, code: string): void {
    const one = this.all.find((other) => other.requestId === requestId);
    // A server that shuts down comes back, and gets the message then.
    if (one === undefined || code === "shutting_down") return;
    // The same error follows from a failed earlier query; only a message that is no longer stored was withdrawn.
    const isWithdrawn = message === WITHDRAWN && !isInOutbox(this.sessionId, one);
    if (isWithdrawn) this.post(this.all.filter((other) => other !== one));
    else this.mark(requestId, { error: message });
    this.arrived(requestId);
  }

  /** Removes messages that have become runs. */
  seen(before: SessionView, after: SessionView, skew: number): void {
    const left = withoutStarted(this.all, before, after, skew);
    if (left !== this.all) this.post(left);
  }

  private post(pending: readonly OutboxMessage[]): void {
    saveOutbox(this.sessionId, this.all, pending);
    this.all = pending;
    this.changed(pending);
  }

  private mark(requestId: string, part: Partial<OutboxMessage>): void {
    this.post(this.all.map((one) => (one.requestId === requestId ? { ...one, ...part } : one)));
  }

  /** Frees its place on the socket. */
  private arrived(requestId: string): void {
    this.inFlight.delete(requestId);
    this.transmit();
  }

  private transmit(): void {
    for (const one of this.all) {
      const room = IN_FLIGHT + (one.ifBusy === "cancel" ? 1 : 0);
      const isSent = this.inFlight.has(one.requestId) || this.elsewhere.has(one.requestId);
      if (isSent || one.error !== null || one.runId !== null || this.inFlight.size >= room) continue;
      const query = { type: "query", query: one.text, if_busy: one.ifBusy, request_id: one.requestId };
      if (isTooLong(query)) this.mark(one.requestId, { error: "too long: at most 1 MB" });
      else if (this.send(query)) this.inFlight.add(one.requestId);
    }
  }

  /** Another tab sent or withdrew a message. This tab sends it only after a reconnect. */
  private takeOver(): void {
    const pending = loadOutbox(this.sessionId);
    const known = new Set(this.all.map((one) => one.requestId));
    for (const { requestId } of pending) if (!known.delete(requestId)) this.elsewhere.add(requestId);
    for (const gone of known) this.inFlight.delete(gone);
    this.all = pending;
    this.changed(pending);
    this.transmit();
  }
}

function isTooLong(message: object): boolean {
  return new TextEncoder().encode(JSON.stringify(message)).length > LONGEST;
}

export function newId(): string {
  // `randomUUID` needs https or localhost.
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
