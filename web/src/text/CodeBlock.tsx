import { memo } from "react";
import { CopyButton } from "../ui/CopyButton";
import { HighlightedCode } from "./HighlightedCode";
import { escapeInvisible } from "./invisibleCharacters";
import "./text.css";

/** Shows code with the name of its language and a copy button. */
export const CodeBlock = memo(function CodeBlock({ code, language }: { code: string; language: string }) {
  return (
    <figure className="text-code">
      <figcaption>
        <span>{escapeInvisible(language).slice(0, 40) || "text"}</span>
        <CopyButton text={code} label="Copy code" />
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <pre tabIndex={0}>
        <HighlightedCode code={code} language={language} />
      </pre>
    </figure>
  );
});
