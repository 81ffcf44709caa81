import { ChevronDown, ChevronUp, Search } from "lucide-react";
import { type RefObject, useState } from "react";
import { Button } from "../parts/Button";

export interface Matches {
  readonly current: number;
  readonly count: number;
}

interface Props {
  readonly field: RefObject<HTMLInputElement | null>;
  readonly matches: Matches;
  readonly onFind: (text: string, direction: "typed" | "next" | "previous") => void;
}

/** A small field that finds text in the terminal. */
export function Find({ field, matches, onFind }: Props) {
  const [text, setText] = useState("");
  const look = (typed: string) => {
    setText(typed);
    onFind(typed, "typed");
  };
  return (
    <div className="terminal-find">
      <Search size={14} aria-hidden="true" />
      <input
        ref={field}
        type="text"
        aria-label="Find in the terminal"
        placeholder="Find"
        value={text}
        spellCheck={false}
        autoComplete="off"
        onChange={(event) => look(event.target.value)}
        onKeyDown={(event) => {
          event.stopPropagation();
          if (event.key === "Enter") onFind(text, event.shiftKey ? "previous" : "next");
          if (event.key === "Escape") look("");
        }}
      />
      <span className="terminal-matches" aria-live="polite">
        {text === "" ? "" : matches.count === 0 ? "none" : `${matches.current || "–"} of ${matches.count}`}
      </span>
      {text !== "" && (
        <>
          <Button
            look="quiet"
            aria-label="Previous match"
            title="Previous match"
            onClick={() => onFind(text, "previous")}
          >
            <ChevronUp size={14} />
          </Button>
          <Button look="quiet" aria-label="Next match" title="Next match" onClick={() => onFind(text, "next")}>
            <ChevronDown size={14} />
          </Button>
        </>
      )}
    </div>
  );
}
