import { memo, useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { VList } from "virtua";
import { WholeResults } from "../live/wholeResults";
import { type Filter, matches } from "../log/filter";
import { plural } from "../log/readable";
import type { Item, RunView } from "../log/view";
import { Button } from "../parts/Button";
import { useChat } from "./context";
import { ItemBody } from "./ItemBody";
import "./search.css";
import { visible } from "../text/visible";

interface Hit {
  readonly run: RunView;
  readonly item: Item;
}

/** What a search found, over all turns. */
export const Hits = memo(function Hits({ runs, filter }: { runs: readonly RunView[]; filter: Filter }) {
  const { pick } = useChat();
  const [results] = useState(() => new WholeResults());
  const whole = useSyncExternalStore(results.subscribe, results.getSnapshot);
  useEffect(() => {
    if (filter.text !== "") results.want(runs);
    return () => results.rest();
  }, [results, runs, filter.text]);
  const hits = useMemo(
    () =>
      runs.flatMap((run) =>
        run.items.filter((item) => matches(item, filter, whole.of)).map((item): Hit => ({ run, item })),
      ),
    [runs, filter, whole],
  );
  return (
    <div className="hits">
      <p className="hits-count" role="status">
        {hits.length === 0 ? "Nothing found" : plural(hits.length, "hit")}
        {whole.pending > 0 && ` · reading ${plural(whole.pending, "long result")} …`}
      </p>
      <VList className="hits-list">
        {hits.map(({ run, item }) => (
          <div className="row hit" key={item.key}>
            <p className="hit-where">
              Turn {run.turn}
              {item.agentId !== "" && ` · ${visible(run.agents.get(item.agentId)?.name ?? "")}`}
              <Button look="quiet" onClick={() => pick(run, item)}>
                Show in place
              </Button>
            </p>
            <ItemBody run={run} item={item} />
          </div>
        ))}
      </VList>
    </div>
  );
});
