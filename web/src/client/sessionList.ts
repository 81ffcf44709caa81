/**
 * The list of sessions, which is polled while it has subscribers.
 *
 * Sessions also change in other tabs and clients. An unchanged entry stays the same object. Renames and deletions are
 * shown at once, and reverted if the server refuses.
 */

import { ApiError, api, type SessionEntry, type SessionPage } from "../wire/api";
import { removeSessionData } from "./storage";
import { Store } from "./store";

/**
 * The list after its first page was read again.
 *
 * Later pages stay (`isComplete` is false then); an entry that is missing in the first page is removed.
 */
export function applied(
  old: readonly SessionEntry[],
  page: SessionPage,
): { entries: readonly SessionEntry[]; whole: boolean } {
  const last = page.sessions.at(-1);
  if (page.next === null || last === undefined) return { entries: same(old, page.sessions), whole: true };
  const head = new Set(page.sessions.map((entry) => entry.session_id));
  const tail = old.filter((entry) => !head.has(entry.session_id) && entry.active_at <= last.active_at);
  return { entries: same(old, [...page.sessions, ...tail]), whole: tail.length === 0 };
}

/** The list with another page. */
export function joined(old: readonly SessionEntry[], more: readonly SessionEntry[]): readonly SessionEntry[] {
  const known = new Set(old.map((entry) => entry.session_id));
  return [...old, ...more.filter((entry) => !known.has(entry.session_id))];
}

/** The new list with the old object of each unchanged entry, or the old list if nothing changed. */
export function same(old: readonly SessionEntry[], fresh: readonly SessionEntry[]): readonly SessionEntry[] {
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

export interface SessionListState {
  readonly entries: readonly SessionEntry[];
  readonly q: string;
  readonly hasMore: boolean;
  readonly loading: boolean;
  readonly error: string | null;
}

interface Options {
  /** Whether to poll. */
  poll?: boolean;
}

const VISIBLE_MS = 4_000;
const HIDDEN_MS = 15_000;
const TYPING_MS = 180;
const PAGE = 50;
/** The server's limit of a page. */
const MOST = 200;

export class SessionList {
  private readonly state = new Store<SessionListState>({
    entries: [],
    q: "",
    hasMore: false,
    loading: true,
    error: null,
  });
  private readonly poll: boolean;
  /** Entries of the server, without pending renames and deletions. */
  private told: readonly SessionEntry[] = [];
  private next: string | null = null;
  /** Whether `serverEntries` belong to another search. */
  private outdated = false;
  private closed = true;
  private readonly renamed = new Map<string, string>();
  private readonly removed = new Set<string>();
  private readonly titles = new Map<string, string>();
  private watchers = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private typing: ReturnType<typeof setTimeout> | undefined;
  private abort = new AbortController();
  /** Increases with each search and change; answers to older requests are ignored. */
  private epoch = 0;
  private asked = 0;
  private answered = 0;
  private paging: Promise<void> | null = null;

  constructor({ poll = true }: Options = {}) {
    this.poll = poll;
  }

  readonly subscribe = (changed: () => void): (() => void) => {
    const leave = this.state.subscribe(changed);
    this.watchers += 1;
    if (this.closed) this.open();
    let left = false;
    return () => {
      if (left) return;
      left = true;
      leave();
      this.watchers -= 1;
      if (this.watchers === 0) this.close();
    };
  };

  readonly getSnapshot = (): SessionListState => this.state.getSnapshot();

  /** The title of a session that has been listed, also if the current search leaves it out; "" if it is not known. */
  titleOf(id: string | null): string {
    return (id !== null && this.titles.get(id)) || "";
  }

  readonly refresh = async (): Promise<void> => {
    clearTimeout(this.timer);
    const { epoch } = this;
    this.asked += 1;
    const mine = this.asked;
    const limit = this.outdated ? PAGE : Math.min(MOST, Math.max(PAGE, this.told.length));
    try {
      const page = await api.sessions({ q: this.state.getSnapshot().q.trim(), limit }, this.abort.signal);
      if (epoch !== this.epoch || mine < this.answered) return;
      this.answered = mine;
      this.take(page);
    } catch (error) {
      if (epoch === this.epoch && mine >= this.answered) this.fail(error);
    } finally {
      this.schedule();
    }
  };

  /** Loads the next page. */
  readonly more = (): Promise<void> => {
    if (this.next === null || this.outdated) return Promise.resolve();
    this.paging ??= this.page(this.next).finally(() => {
      this.paging = null;
    });
    return this.paging;
  };

  /** Filters by title; requests the list when the user pauses typing. */
  readonly search = (q: string): void => {
    if (q === this.state.getSnapshot().q) return;
    this.forget();
    this.outdated = true;
    this.set({ q, loading: true });
    clearTimeout(this.timer);
    clearTimeout(this.typing);
    this.typing = setTimeout(() => void this.refresh(), TYPING_MS);
  };

  readonly rename = async (id: string, title: string): Promise<void> => {
    this.renamed.set(id, title);
    this.show();
    await this.change(
      () => api.renameSession(id, title),
      () => this.renamed.get(id) === title && this.renamed.delete(id),
      (entry) => (entry.session_id === id ? { ...entry, title } : entry),
    );
  };

  readonly remove = async (id: string): Promise<void> => {
    this.removed.add(id);
    this.show();
    await this.change(
      () => api.deleteSession(id).catch(unlessGone),
      () => this.removed.delete(id),
      (entry) => (entry.session_id === id ? null : entry),
    );
    removeSessionData(id);
  };

  /** Stops polling. The next subscriber starts it again. */
  readonly close = (): void => {
    this.closed = true;
    clearTimeout(this.timer);
    clearTimeout(this.typing);
    document.removeEventListener("visibilitychange", this.looked);
    this.forget();
  };

  private open(): void {
    this.closed = false;
    document.addEventListener("visibilitychange", this.looked);
    void this.refresh();
  }

  private readonly looked = (): void => {
    if (document.visibilityState === "visible" && this.poll) void this.refresh();
  };

  private schedule(): void {
    clearTimeout(this.timer);
    if (!this.poll || this.closed) return;
    const pause = document.visibilityState === "hidden" ? HIDDEN_MS : VISIBLE_MS;
    this.timer = setTimeout(() => void this.refresh(), pause);
  }

  /** Aborts all requests. */
  private forget(): void {
    this.abort.abort();
    this.abort = new AbortController();
    this.epoch += 1;
    this.paging = null;
  }

  private async page(after: string): Promise<void> {
    const { epoch } = this;
    try {
      const page = await api.sessions({ q: this.state.getSnapshot().q.trim(), after, limit: PAGE }, this.abort.signal);
      if (epoch !== this.epoch) return;
      this.told = joined(this.told, page.sessions);
      this.next = page.next;
      this.show({ error: null });
    } catch (error) {
      if (epoch === this.epoch) this.fail(error);
    }
  }

  private take(page: SessionPage): void {
    const { entries, whole } = applied(this.outdated ? [] : this.told, page);
    this.outdated = false;
    this.told = entries;
    if (whole) this.next = page.next;
    this.show({ loading: false, error: null });
  }

  private fail(error: unknown): void {
    this.set({ loading: false, error: wordsOf(error) });
  }

  private async change(
    send: () => Promise<unknown>,
    settle: () => void,
    edit: (entry: SessionEntry) => SessionEntry | null,
  ): Promise<void> {
    try {
      await send();
      this.told = this.told.map(edit).filter((entry) => entry !== null);
    } catch (error) {
      settle();
      this.show({ error: wordsOf(error) });
      throw error;
    }
    settle();
    this.forget();
    this.show({ error: null });
    void this.refresh();
  }

  private show(more: Partial<SessionListState> = {}): void {
    const wanted = this.told
      .filter((entry) => !this.removed.has(entry.session_id))
      .map((entry) => {
        const title = this.renamed.get(entry.session_id);
        return title === undefined || title === entry.title ? entry : { ...entry, title };
      });
    for (const { session_id, title } of wanted) if (title) this.titles.set(session_id, title);
    const old = this.state.getSnapshot().entries;
    this.set({ ...more, entries: same(old, wanted), hasMore: this.next !== null });
  }

  private set(change: Partial<SessionListState>): void {
    const old = this.state.getSnapshot();
    const changed = (Object.keys(change) as (keyof SessionListState)[]).some((key) => old[key] !== change[key]);
    if (changed) this.state.set({ ...old, ...change });
  }
}

function unlessGone(error: unknown): void {
  if (!(error instanceof ApiError && error.status === 404)) throw error;
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
