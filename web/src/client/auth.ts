import { useEffect, useState } from "react";
import { api, type CurrentUser, whenUnauthorized } from "../wire/api";
import { readStored, removeUnsentMessages, writeStored } from "./storage";
import { Store } from "./store";

/** Whether the server lets us in. It is locked as soon as anything is refused for want of a key. */

export class AuthStore extends Store<{ readonly isLocked: boolean }> {
  /** For tests, in which there is no page to load. */
  reload = () => location.reload();

  constructor() {
    super({ isLocked: false });
    whenUnauthorized(() => this.lock());
  }

  /** Rejects with what the server says of a key that it does not take. */
  readonly enter = async (key: string): Promise<void> => {
    await api.login(key);
    const { user } = await api.me();
    const isAnother = user !== readStored("user", user);
    writeStored("user", user);
    if (isAnother) {
      // Nothing of the one before is shown to this one, or sent in their name.
      this.beginAnew();
      this.reload();
    } else this.set({ isLocked: false });
  };

  readonly leave = async (): Promise<void> => {
    await api.logout();
    this.beginAnew();
    this.lock();
  };

  private beginAnew(): void {
    removeUnsentMessages();
    location.hash = "#/";
  }

  private lock(): void {
    if (!this.getSnapshot().isLocked) this.set({ isLocked: true });
  }
}

export const access = new AuthStore();

/** Who the server takes us for; null on one that needs no key, where there is nobody else to be. */

export function useCurrentUser(): CurrentUser | null {
  const [me, setMe] = useState<CurrentUser | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    api.me(abort.signal).then(
      (found) => setMe(found.open ? null : found),
      () => {}, // the list of agents says what is wrong with the server
    );
    return () => abort.abort();
  }, []);
  return me;
}
