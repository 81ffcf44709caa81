/** Sends the user's messages in one session, as many at a time as the server accepts, until each has started a run. */

import { inputText, type RunValues } from "../form/agentFields";
import type { SessionView } from "../log/viewModel";
import { onOtherTabChange } from "./browserStorage";
import { isInOutbox, loadOutbox, type OutboxMessage, outboxKeyPrefix, saveOutbox, withoutStarted } from "./outbox";

/**
 * Number of unanswered queries on a socket. The server accepts five; the fifth is reserved for one that interrupts.
 */
const MAX_IN_FLIGHT = 4;
/** Maximum size of a message in bytes; smaller than the server's limit. */
const MAX_BYTES = 1_000_000;
/** The server's error for a query that was withdrawn. */
const WITHDRAWN = "Query was stopped while it waited";

export class MessageSender {
  private messages: readonly OutboxMessage[];
  /** Request ids that were sent on the current connection and have neither a run nor an error yet. */
  private readonly inFlight = new Set<string>();
  /** Request ids of messages that another tab sends. */
  private readonly inOtherTab = new Set<string>();
  readonly close: () => void;

  constructor(
    private readonly sessionId: string,
    private readonly send: (message: object) => boolean,
    private readonly changed: (pending: readonly OutboxMessage[]) => void,
  ) {
    this.messages = loadOutbox(sessionId);
    this.close = onOtherTabChange(outboxKeyPrefix(sessionId), () => this.readStorage());
  }

  get pending(): readonly OutboxMessage[] {
    return this.messages;
  }

  ask(text: string, ifBusy: OutboxMessage["ifBusy"], values: RunValues = {}): void {
    // Later than every other message, because messages are ordered by this time.
    const at = Math.max(Date.now(), ...this.messages.map((other) => other.at + 1));
    this.update([...this.messages, newMessage(text, ifBusy, at, values)]);
    this.sendPending();
  }

  withdraw(one: OutboxMessage): void {
    const isSent = this.inFlight.delete(one.requestId) || this.inOtherTab.has(one.requestId);
    if (isSent && one.error === null) this.send({ type: "cancel", request_id: one.requestId });
    this.update(this.messages.filter((other) => other.requestId !== one.requestId));
    this.sendPending();
  }

  retry(one: OutboxMessage): void {
    const renewed = { ...one, error: null, requestId: newId() };
    this.update(this.messages.map((other) => (other.requestId === one.requestId ? renewed : other)));
    this.sendPending();
  }

  /** Sends all pending messages again after a reconnect, because they may not have arrived. */
  sendAllAgain(): void {
    this.inFlight.clear();
    this.inOtherTab.clear();
    this.update(this.messages.map((one) => (one.runId === null ? one : { ...one, runId: null })));
    this.sendPending();
  }

  accepted(requestId: string, runId: string, isKnown: boolean): void {
    if (isKnown) this.update(this.messages.filter((one) => one.requestId !== requestId));
    else this.updateOne(requestId, { runId });
    this.freeSlot(requestId);
  }

  refused(requestId: string, message: string, code: string): void {
    const one = this.messages.find((other) => other.requestId === requestId);
    // After a shutdown the message is sent again on the next connection.
    if (one === undefined || code === "shutting_down") return;
    // The server also sends this error if an earlier query failed. A withdrawn message is no longer stored.
    const isWithdrawn = message === WITHDRAWN && !isInOutbox(this.sessionId, one);
    if (isWithdrawn) this.update(this.messages.filter((other) => other !== one));
    else this.updateOne(requestId, { error: message });
    this.freeSlot(requestId);
  }

  /** Removes the pending messages whose runs have started. */
  removeStarted(before: SessionView, after: SessionView, skew: number): void {
    const left = withoutStarted(this.messages, before, after, skew);
    if (left !== this.messages) this.update(left);
  }

  private update(pending: readonly OutboxMessage[]): void {
    saveOutbox(this.sessionId, this.messages, pending);
    this.messages = pending;
    this.changed(pending);
  }

  private updateOne(requestId: string, part: Partial<OutboxMessage>): void {
    this.update(this.messages.map((one) => (one.requestId === requestId ? { ...one, ...part } : one)));
  }

  /** Removes a message from `inFlight` and sends the next one. */
  private freeSlot(requestId: string): void {
    this.inFlight.delete(requestId);
    this.sendPending();
  }

  private sendPending(): void {
    for (const one of this.messages) {
      const room = MAX_IN_FLIGHT + (one.ifBusy === "cancel" ? 1 : 0);
      const isSent = this.inFlight.has(one.requestId) || this.inOtherTab.has(one.requestId);
      if (isSent || one.error !== null || one.runId !== null || this.inFlight.size >= room) continue;
      const text = one.isForm ? "" : one.text;
      const query = { type: "query", query: text, ...one.values, if_busy: one.ifBusy, request_id: one.requestId };
      if (isTooLong(query)) this.updateOne(one.requestId, { error: "too long: at most 1 MB" });
      else if (this.send(query)) this.inFlight.add(one.requestId);
    }
  }

  /**
   * Reads the messages again after another tab changed them. That tab sends new messages; this tab sends them only
   * after a reconnect.
   */
  private readStorage(): void {
    const pending = loadOutbox(this.sessionId);
    const known = new Set(this.messages.map((one) => one.requestId));
    for (const { requestId } of pending) if (!known.delete(requestId)) this.inOtherTab.add(requestId);
    for (const gone of known) this.inFlight.delete(gone);
    this.messages = pending;
    this.changed(pending);
    this.sendPending();
  }
}

/** A message for the outbox. Without a text, it is described by its values. */
export function newMessage(
  text: string,
  ifBusy: OutboxMessage["ifBusy"],
  at: number,
  values: RunValues = {},
): OutboxMessage {
  const message = { requestId: newId(), text, ifBusy, at, error: null, runId: null };
  const isForm = text === "" && values.input !== undefined;
  if (isForm) return { ...message, text: inputText(values.input ?? {}), values, isForm };
  return Object.keys(values).length === 0 ? message : { ...message, values };
}

function isTooLong(message: object): boolean {
  return new TextEncoder().encode(JSON.stringify(message)).length > MAX_BYTES;
}

export function newId(): string {
  // `crypto.randomUUID` exists only on https and localhost.
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
