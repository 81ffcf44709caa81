/**
 * Logs in with an API key, and loads the user that the key belongs to.
 *
 * The page sends the key once, at login. The server then sets it as an HttpOnly cookie, which the browser adds to every
 * request and which no script can read.
 */

import { useEffect, useState } from "react";
import { api, type CurrentUser, UNAUTHORIZED } from "./api";
import { readStored, removeUnsentMessages, writeStored } from "./browserStorage";
import { Store } from "./store";

/** Whether the page is locked: from the first request that is refused as unauthorized until the user logs in. */
export class AuthStore extends Store<{ readonly isLocked: boolean }> {
  constructor(private readonly reload = () => location.reload()) {
    super({ isLocked: false });
    window.addEventListener(UNAUTHORIZED, () => this.lock());
  }

  /** Logs in with an API key. Rejects with the server's message if the key is not valid. */
  readonly logIn = async (key: string): Promise<void> => {
    await api.login(key);
    const { user } = await api.me();
    const isOtherUser = user !== readStored("user", user);
    writeStored("user", user);
    if (isOtherUser) {
      // Data of the previous user must neither be shown to the new user nor be sent in the new user's name.
      this.removeUserData();
      this.reload();
    } else this.set({ isLocked: false });
  };

  readonly logOut = async (): Promise<void> => {
    await api.logout();
    this.removeUserData();
    this.lock();
  };

  private removeUserData(): void {
    removeUnsentMessages();
    location.hash = "#/";
  }

  private lock(): void {
    if (!this.getSnapshot().isLocked) this.set({ isLocked: true });
  }
}

/** The user of this browser's API key; null on a server that needs no key. */
export function useCurrentUser(): CurrentUser | null {
  const [user, setUser] = useState<CurrentUser | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    api.me(abort.signal).then(
      (found) => setUser(found.open ? null : found),
      () => {}, // the request for the agents reports the error if the server cannot be reached
    );
    return () => abort.abort();
  }, []);
  return user;
}
