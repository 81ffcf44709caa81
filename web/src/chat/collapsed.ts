import { readStored, writeStored } from "../client/storage";
import { Store } from "../client/store";
import type { RunView } from "../log/view";

const KEY = "folds";
const MOST_REMEMBERED = 300;

/** Of which runs the user wants to see the steps, and of which not. The browser remembers it. */
class Folds extends Store<ReadonlyMap<string, boolean>> {
  constructor() {
    super(new Map(readStored<[string, boolean][]>(KEY, [])));
  }

  choose(runs: readonly RunView[], open: boolean): void {
    const chosen = new Map(this.getSnapshot());
    for (const { runId } of runs) {
      chosen.delete(runId); // so that it counts among the newest
      chosen.set(runId, open);
    }
    writeStored(KEY, [...chosen].slice(-MOST_REMEMBERED));
    this.set(chosen);
  }
}

export const folds = new Folds();
