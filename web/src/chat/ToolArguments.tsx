/** Shows the arguments of a tool call, split into code, short values and long texts. */

import { memo, type ReactNode } from "react";
import { type CodeCall, codeOf } from "../log/codeArguments";
import type { Args } from "../log/viewModel";
import { CodeBlock } from "../text/CodeBlock";
import { escapeInvisible } from "../text/invisibleCharacters";
import { JsonView } from "../text/JsonView";
import { languageName } from "../text/programmingLanguages";
import type { JsonObject, JsonValue } from "../wire/events";
import "./approval.css";

interface LongText {
  readonly name: string;
  readonly text: string;
  /** Language for highlighting; "" for prose. */
  readonly language: string;
}

interface ArgumentParts {
  readonly code: { readonly text: string; readonly language: string } | null;
  /** Values that are neither code nor long texts; null if there are none. */
  readonly values: Args | null;
  readonly texts: readonly LongText[];
}

export function splitArguments(call: CodeCall): ArgumentParts {
  const found = codeOf(call);
  const args = call.args ?? call.argsText;
  if (typeof args === "string") return { code: found, values: found === null && args !== "" ? args : null, texts: [] };
  const code = Object.values(args).includes(found?.text ?? null) ? found : null;
  const texts: LongText[] = [];
  const values: Record<string, JsonValue> = {};
  for (const [name, value] of Object.entries(args)) {
    if (code !== null && value === code.text) continue;
    if (typeof value === "string" && value.trim().includes("\n"))
      texts.push({ name, text: value, language: languageOf(args) });
    else values[name] = value;
  }
  return { code, values: Object.keys(values).length > 0 ? values : null, texts };
}

/** The language of a text that a call writes to a file, from the file's name; "" for prose. */
function languageOf(args: JsonObject): string {
  for (const key of ["path", "file_path", "filename", "file"]) {
    const ending = typeof args[key] === "string" ? /\.(\w+)$/.exec(args[key])?.[1] : undefined;
    const language = ending === undefined ? null : languageName(ending);
    if (language !== null && language !== "markdown") return language;
  }
  return "";
}

/** Length in characters above which code is shown without highlighting and in parts. */
const CODE_LIMIT = 100_000;

/** Shows the arguments of a call: highlighted code, then the element `head`, short values as JSON, and long texts. */
export const ToolArguments = memo(function ToolArguments({ parts, head }: { parts: ArgumentParts; head?: ReactNode }) {
  const { code, values, texts } = parts;
  return (
    <>
      {code !== null && <CodeBlock code={code.text} language={code.language} />}
      {(values !== null || texts.length > 0) && (
        <section className="part">
          {head}
          {values !== null && <JsonView value={values} />}
          {texts.map(({ name, text, language }) => (
            <div key={name} className="argument">
              <p className="argument-name">{escapeInvisible(name)}</p>
              {language !== "" && text.length <= CODE_LIMIT ? (
                <CodeBlock code={text} language={language} />
              ) : (
                <JsonView value={text} isText />
              )}
            </div>
          ))}
        </section>
      )}
    </>
  );
});
