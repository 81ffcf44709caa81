/** Whether the server lets us in. It is locked as soon as anything is refused for want of a key. */

import { api, whenUnauthorized } from "../wire/api";
import { Watchable } from "./watchable";

export class Access extends Watchable<{ readonly isLocked: boolean }> {
  constructor() {
    super({ isLocked: false });
    whenUnauthorized(() => this.lock());
  }

  /** Rejects with what the server says of a key that it does not take. */
  readonly enter = async (key: string): Promise<void> => {
    await api.login(key);
    this.set({ isLocked: false });
  };

  readonly leave = async (): Promise<void> => {
    await api.logout();
    this.lock();
  };

  private lock(): void {
    if (!this.getSnapshot().isLocked) this.set({ isLocked: true });
  }
}

export const access = new Access();
