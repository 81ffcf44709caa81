import { tokenCount } from "../log/plainText";
import { visible } from "../text/invisibleCharacters";
import { took } from "../ui/formatDuration";
import { STATE_WORDS } from "../ui/StateIcon";
import type { Row } from "./layout";

export interface HintPlace {
  readonly index: number;
  readonly left: number;
  /** From the top of the chart, or from its bottom where there is no room below. */
  readonly top: number | null;
  readonly bottom: number | null;
}

/** What the pointer or the focus is on. The row says the same to a screen reader. */
export function Hint({ row, place }: { row: Row; place: HintPlace }) {
  const waited = row.parts.filter((part) => part.kind === "wait").reduce((sum, part) => sum + part.end - part.begin, 0);
  const { left, top, bottom } = place;
  return (
    <div className="timeline-hint" aria-hidden="true" style={{ left, top: top ?? "auto", bottom: bottom ?? "auto" }}>
      <div className="timeline-hint-name">{visible(row.label)}</div>
      {row.about && <div className="timeline-hint-about">{visible(row.about)}</div>}
      <dl>
        <dt>State</dt>
        <dd>{STATE_WORDS[row.state]}</dd>
        <dt>Start</dt>
        <dd>{took(row.begin)}</dd>
        <dt>Duration</dt>
        <dd>{row.state === "unseen" ? "not known" : took(row.end - row.begin)}</dd>
        {waited > 0 && row.kind !== "approval" && (
          <>
            <dt>Waited for you</dt>
            <dd>{took(waited)}</dd>
          </>
        )}
        {row.tokens && (
          <>
            <dt>Tokens</dt>
            <dd>
              {tokenCount(row.tokens.input)} in, {tokenCount(row.tokens.output)} out
            </dd>
          </>
        )}
      </dl>
    </div>
  );
}
