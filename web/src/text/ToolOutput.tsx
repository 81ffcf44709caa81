import { memo, useMemo, useState } from "react";
import { Button } from "../ui/Button";
import { Spans } from "./AnsiText";
import { ending } from "./ansi";
import "./text.css";

const PREVIEW = 1_200;
const PART = 20_000;

interface Props {
  readonly text: string;
  /** Only a little of it. */
  readonly isPreview: boolean;
  /** The beginning is not here. */
  readonly isCut: boolean;
}

/** What a program printed, in its colours. Its end says how it went, so what is hidden is what came before. */
export const Printed = memo(function Printed({ text, isPreview, isCut }: Props) {
  const [parts, setParts] = useState(1);
  const length = isPreview ? PREVIEW : PART * parts;
  const shown = useMemo(() => ending(text, length), [text, length]);
  return (
    <div className="text-value">
      {(shown.isCut || isCut) && (
        <p className="printed-earlier">
          … earlier output is hidden
          {!isPreview && shown.isCut && <Button onClick={() => setParts(parts * 2)}>Show more</Button>}
        </p>
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <pre tabIndex={0}>
        <Spans of={shown.spans} />
      </pre>
    </div>
  );
});
