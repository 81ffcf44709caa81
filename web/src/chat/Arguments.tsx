import { memo, type ReactNode } from "react";
import { CodeBlock } from "../text/CodeBlock";
import { visible } from "../text/invisibleCharacters";
import { Value } from "../text/JsonValue";
import type { ArgumentParts } from "./argumentParts";
import "./approval.css";

/** Longer code comes in parts, as text. */
const CODE_LIMIT = 100_000;

/** What a call is given: code as code, texts as texts, the rest as JSON. `head` stands above all but the code. */
export const Arguments = memo(function Arguments({ parts, head }: { parts: ArgumentParts; head?: ReactNode }) {
  const { code, values, texts } = parts;
  return (
    <>
      {code !== null && <CodeBlock code={code.text} language={code.language} />}
      {(values !== null || texts.length > 0) && (
        <section className="part">
          {head}
          {values !== null && <Value value={values} />}
          {texts.map(({ name, text, language }) => (
            <div key={name} className="argument">
              <p className="argument-name">{visible(name)}</p>
              {language !== "" && text.length <= CODE_LIMIT ? (
                <CodeBlock code={text} language={language} />
              ) : (
                <Value value={text} isText />
              )}
            </div>
          ))}
        </section>
      )}
    </>
  );
});
