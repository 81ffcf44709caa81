import { memo, useMemo, useState } from "react";
import { Button } from "../ui/Button";
import type { JsonValue } from "../wire/events";
import { HighlightedCode } from "./HighlightedCode";
import { escapeInvisible } from "./invisibleCharacters";
import "./text.css";

const PART_LENGTH = 20_000;
const JSON_LIMIT = 500_000;

export interface Shown {
  readonly text: string;
  readonly language: "json" | "";
}

/** The text and language in which a value is shown. JSON is formatted, also inside a string; other strings stay. */
export function shownValue(value: JsonValue): Shown {
  if (typeof value !== "string") return { text: JSON.stringify(value, null, 2), language: "json" };
  const text = value.trim();
  // Does not parse JSON with long numbers, because JavaScript would round them.
  const isJson = text.length <= JSON_LIMIT && /^(?:\{[\s\S]*\}|\[[\s\S]*\])$/.test(text) && !/\d{16}/.test(text);
  if (isJson) {
    try {
      return { text: JSON.stringify(JSON.parse(text), null, 2), language: "json" };
    } catch {
      // Not valid JSON.
    }
  }
  return { text: value, language: "" };
}

/** The length of the shown part of a text: `length`, or one more if that would split a surrogate pair. */
function partEnd(text: string, length: number): number {
  const code = text.charCodeAt(length - 1);
  return code >= 0xd800 && code < 0xdc00 ? length + 1 : length;
}

/**
 * Shows arguments or a result of a tool, long ones in parts. With `isText`, a string is shown unchanged, even if it is
 * JSON.
 */
export const JsonView = memo(function JsonView({ value, isText = false }: { value: JsonValue; isText?: boolean }) {
  const { text, language } = useMemo(
    () => (isText && typeof value === "string" ? { text: value, language: "" } : shownValue(value)),
    [value, isText],
  );
  const [parts, setParts] = useState(1);
  const length = PART_LENGTH * parts;
  const part = text.length > length ? text.slice(0, partEnd(text, length)) : text;
  const rest = text.length - part.length;
  return (
    <div className="text-value">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <pre tabIndex={0}>{language ? <HighlightedCode code={part} language={language} /> : escapeInvisible(part)}</pre>
      {rest > 0 && (
        <div className="text-value-more">
          <Button onClick={() => setParts(parts * 2)}>Show more</Button>
          <span>{rest.toLocaleString("en")} more characters</span>
        </div>
      )}
    </div>
  );
});
