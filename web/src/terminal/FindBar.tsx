import { ChevronDown, ChevronUp, Search } from "lucide-react";
import { type RefObject, useState } from "react";
import { Button } from "../ui/Button";

interface Props {
  readonly field: RefObject<HTMLInputElement | null>;
  /** False if it is nowhere. */
  readonly onFind: (text: string, direction: "typed" | "next" | "previous") => boolean;
}

/** A small field that finds text in the terminal. */
export function Find({ field, onFind }: Props) {
  const [text, setText] = useState("");
  const [isFound, setFound] = useState(true);
  const look = (typed: string) => {
    setText(typed);
    setFound(onFind(typed, "typed"));
  };
  const go = (direction: "next" | "previous") => setFound(onFind(text, direction));
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
          if (event.key === "Enter") go(event.shiftKey ? "previous" : "next");
          if (event.key === "Escape") look("");
        }}
      />
      <span className="terminal-matches" aria-live="polite">
        {text !== "" && !isFound && "not found"}
      </span>
      {text !== "" && isFound && (
        <>
          <Button look="quiet" aria-label="Previous match" title="Previous match" onClick={() => go("previous")}>
            <ChevronUp size={14} />
          </Button>
          <Button look="quiet" aria-label="Next match" title="Next match" onClick={() => go("next")}>
            <ChevronDown size={14} />
          </Button>
        </>
      )}
    </div>
  );
}
