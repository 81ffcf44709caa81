/**
 * The store of the session list. It polls the server while it has subscribers.
 *
 * Sessions also change in other tabs and clients. An unchanged entry stays the same object. Renames and deletions are
 * shown at once, and reverted if the server refuses.
 */

import { ApiError, api, errorMessage, type SessionEntry, type SessionPage } from "./api";
import { removeSessionData } from "./browserStorage";
import { Store } from "./store";

/**
 * Merges a newly read first page into the list.
 *
 * Old entries of later pages stay, and `isComplete` is false then. An old entry that belongs to the first page but is
 * missing there is removed.
 */
function mergeFirstPage(
  old: readonly SessionEntry[],
  page: SessionPage,
): { entries: readonly SessionEntry[]; isComplete: boolean } {
  const last = page.sessions.at(-1);
  if (page.next === null || last === undefined)
    return { entries: reuseUnchanged(old, page.sessions), isComplete: true };
  const head = new Set(page.sessions.map((entry) => entry.session_id));
  const tail = old.filter((entry) => !head.has(entry.session_id) && entry.active_at <= last.active_at);
  return { entries: reuseUnchanged(old, [...page.sessions, ...tail]), isComplete: tail.length === 0 };
}

/** Returns the list of sessions with another page appended. */
function appendPage(old: readonly SessionEntry[], more: readonly SessionEntry[]): readonly SessionEntry[] {
  const known = new Set(old.map((entry) => entry.session_id));
  return [...old, ...more.filter((entry) => !known.has(entry.session_id))];
}

/** Replaces unchanged entries of the new list by the old objects. Returns the old list if nothing has changed. */
function reuseUnchanged(old: readonly SessionEntry[], fresh: readonly SessionEntry[]): readonly SessionEntry[] {
  const known = new Map(old.map((entry) => [entry.session_id, entry]));
  const kept = fresh.map((entry) => {
    const before = known.get(entry.session_id);
    return before !== undefined && equal(before, entry) ? before : entry;
  });
  return kept.length === old.length && kept.every((entry, at) => entry === old[at]) ? old : kept;
}

function equal(one: SessionEntry, other: SessionEntry): boolean {
  return (Object.keys(other) as (keyof SessionEntry)[]).every((key) => one[key] === other[key]);
}

interface SessionListState {
  readonly entries: readonly SessionEntry[];
  readonly q: string;
  readonly hasMore: boolean;
  readonly loading: boolean;
  readonly error: string | null;
}

const POLL_MS = 4_000;
const HIDDEN_POLL_MS = 15_000;
const SEARCH_DELAY_MS = 180;
const PAGE_SIZE = 50;
/** The largest page that the server returns. */
const MAX_PAGE_SIZE = 200;

export class SessionList extends Store<SessionListState> {
  /** The entries as the server sent them, before pending renames and deletions are applied. */
  private serverEntries: readonly SessionEntry[] = [];
  private next: string | null = null;
  /** Whether `serverEntries` are the result of an earlier search. */
  private isOutdated = false;
  private isStopped = true;
  private readonly renaming = new Map<string, string>();
  private readonly deleting = new Set<string>();
  private readonly titles = new Map<string, string>();
  private pollTimer: ReturnType<typeof setTimeout> | undefined;
  private searchTimer: ReturnType<typeof setTimeout> | undefined;
  private abort = new AbortController();
  /** Number that increases with each search and change. Responses to requests of an older generation are ignored. */
  private generation = 0;
  private requests = 0;
  private lastAnswered = 0;
  private pageRequest: Promise<void> | null = null;

  constructor(private readonly isPolling = true) {
    super({ entries: [], q: "", hasMore: false, loading: true, error: null });
  }

  /** The title of a session, also if the current search does not include it; "" if it was never listed. */
  titleOf(id: string | null): string {
    return (id !== null && this.titles.get(id)) || "";
  }

  readonly refresh = async (): Promise<void> => {
    clearTimeout(this.pollTimer);
    const { generation } = this;
    this.requests += 1;
    const mine = this.requests;
    const limit = this.isOutdated ? PAGE_SIZE : Math.min(MAX_PAGE_SIZE, Math.max(PAGE_SIZE, this.serverEntries.length));
    try {
      const page = await api.sessions({ q: this.getSnapshot().q.trim(), limit }, this.abort.signal);
      if (generation !== this.generation || mine < this.lastAnswered) return;
      this.lastAnswered = mine;
      this.handlePage(page);
    } catch (error) {
      if (generation === this.generation && mine >= this.lastAnswered) this.fail(error);
    } finally {
      this.schedule();
    }
  };

  /** Loads the next page. */
  readonly more = (): Promise<void> => {
    if (this.next === null || this.isOutdated) return Promise.resolve();
    this.pageRequest ??= this.page(this.next).finally(() => {
      this.pageRequest = null;
    });
    return this.pageRequest;
  };

  /** Filters the list by title. The request is sent when the user pauses typing. */
  readonly search = (q: string): void => {
    if (q === this.getSnapshot().q) return;
    this.abortRequests();
    this.isOutdated = true;
    this.update({ q, loading: true });
    clearTimeout(this.pollTimer);
    clearTimeout(this.searchTimer);
    this.searchTimer = setTimeout(() => void this.refresh(), SEARCH_DELAY_MS);
  };

  readonly rename = async (id: string, title: string): Promise<void> => {
    this.renaming.set(id, title);
    this.publish();
    await this.change(
      () => api.renameSession(id, title),
      () => this.renaming.get(id) === title && this.renaming.delete(id),
      (entry) => (entry.session_id === id ? { ...entry, title } : entry),
    );
  };

  readonly remove = async (id: string): Promise<void> => {
    this.deleting.add(id);
    this.publish();
    await this.change(
      () => api.deleteSession(id).catch(ignoreMissing),
      () => this.deleting.delete(id),
      (entry) => (entry.session_id === id ? null : entry),
    );
    removeSessionData(id);
  };

  protected override onFirstSubscriber(): void {
    this.isStopped = false;
    document.addEventListener("visibilitychange", this.onVisibilityChange);
    void this.refresh();
  }

  protected override onNoSubscribers(): void {
    this.isStopped = true;
    clearTimeout(this.pollTimer);
    clearTimeout(this.searchTimer);
    document.removeEventListener("visibilitychange", this.onVisibilityChange);
    this.abortRequests();
  }

  private readonly onVisibilityChange = (): void => {
    if (document.visibilityState === "visible" && this.isPolling) void this.refresh();
  };

  private schedule(): void {
    clearTimeout(this.pollTimer);
    if (!this.isPolling || this.isStopped) return;
    const pause = document.visibilityState === "hidden" ? HIDDEN_POLL_MS : POLL_MS;
    this.pollTimer = setTimeout(() => void this.refresh(), pause);
  }

  /** Aborts all requests. */
  private abortRequests(): void {
    this.abort.abort();
    this.abort = new AbortController();
    this.generation += 1;
    this.pageRequest = null;
  }

  private async page(after: string): Promise<void> {
    const { generation } = this;
    try {
      const page = await api.sessions({ q: this.getSnapshot().q.trim(), after, limit: PAGE_SIZE }, this.abort.signal);
      if (generation !== this.generation) return;
      this.serverEntries = appendPage(this.serverEntries, page.sessions);
      this.next = page.next;
      this.publish({ error: null });
    } catch (error) {
      if (generation === this.generation) this.fail(error);
    }
  }

  private handlePage(page: SessionPage): void {
    const { entries, isComplete } = mergeFirstPage(this.isOutdated ? [] : this.serverEntries, page);
    this.isOutdated = false;
    this.serverEntries = entries;
    if (isComplete) this.next = page.next;
    this.publish({ loading: false, error: null });
  }

  private fail(error: unknown): void {
    this.update({ loading: false, error: errorMessage(error) });
  }

  private async change(
    send: () => Promise<unknown>,
    settleChange: () => void,
    edit: (entry: SessionEntry) => SessionEntry | null,
  ): Promise<void> {
    try {
      await send();
      this.serverEntries = this.serverEntries.map(edit).filter((entry) => entry !== null);
    } catch (error) {
      settleChange();
      this.publish({ error: errorMessage(error) });
      throw error;
    }
    settleChange();
    this.abortRequests();
    this.publish({ error: null });
    void this.refresh();
  }

  private publish(more: Partial<SessionListState> = {}): void {
    const wanted = this.serverEntries
      .filter((entry) => !this.deleting.has(entry.session_id))
      .map((entry) => {
        const title = this.renaming.get(entry.session_id);
        return title === undefined || title === entry.title ? entry : { ...entry, title };
      });
    for (const { session_id, title } of wanted) if (title) this.titles.set(session_id, title);
    const old = this.getSnapshot().entries;
    this.update({ ...more, entries: reuseUnchanged(old, wanted), hasMore: this.next !== null });
  }

  private update(change: Partial<SessionListState>): void {
    const old = this.getSnapshot();
    const isChanged = (Object.keys(change) as (keyof SessionListState)[]).some((key) => old[key] !== change[key]);
    if (isChanged) this.set({ ...old, ...change });
  }
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof ApiError && error.status === 404)) throw error;
}
