import { memo, useMemo } from "react";
import type { JsonValue } from "../wire/events";
import { type Source, sourceOf } from "./answerSources";
import { escapeBidi } from "./invisibleCharacters";
import { JsonView } from "./JsonView";
import { Markdown } from "./Markdown";
import { SafeLink } from "./SafeLink";
import { hostname, safeUrl } from "./urls";
import "./text.css";

function SourceLine({ source }: { source: Source }) {
  const { title, address } = source;
  if (!address) return <>{escapeBidi(title)}</>;
  const host = hostname(address);
  const label = escapeBidi(title || address);
  return (
    <>
      <SafeLink href={address} label={label}>
        {label}
      </SafeLink>
      {title && host && <span className="text-address"> — {host}</span>}
    </>
  );
}

/** An answer as a document: title, content, and numbered sources that citations such as `[1]` link to. */
export const AnswerBody = memo(function AnswerBody({
  title,
  content,
  sources,
  streaming = false,
}: {
  title: string;
  content: JsonValue;
  sources: readonly string[];
  streaming?: boolean;
}) {
  const listed = useMemo(() => sources.map(sourceOf), [sources]);
  const addresses = useMemo(() => listed.map((source) => safeUrl(source.address)), [listed]);
  return (
    <article className="text-answer">
      {title && (
        <h2 className="text-answer-title" dir="auto">
          {escapeBidi(title)}
        </h2>
      )}
      {typeof content === "string" ? (
        <Markdown text={content} streaming={streaming} sources={addresses} />
      ) : (
        <JsonView value={content} />
      )}
      {listed.length > 0 && (
        <section className="text-sources">
          <h3>Sources</h3>
          <ol>
            {listed.map((source, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: its number is its name
              <li key={index}>
                <SourceLine source={source} />
              </li>
            ))}
          </ol>
        </section>
      )}
    </article>
  );
});
