import { memo, useMemo } from "react";
import type { JsonValue, SourceLink } from "../wire/events";
import { escapeBidi } from "./invisibleCharacters";
import { JsonView } from "./JsonView";
import { Markdown } from "./Markdown";
import { SafeLink } from "./SafeLink";
import { hostname, safeUrl } from "./safeUrls";
import "./text.css";

function SourceLine({ source: { title, url } }: { source: SourceLink }) {
  if (!url) return <>{escapeBidi(title)}</>;
  const host = hostname(url);
  const label = escapeBidi(title || url);
  return (
    <>
      <SafeLink href={url} label={label}>
        {label}
      </SafeLink>
      {title && host && <span className="text-address"> — {host}</span>}
    </>
  );
}

/** Shows an answer as a document: title, content, and numbered sources to which citations such as `[1]` link. */
export const AnswerBody = memo(function AnswerBody({
  title,
  content,
  sources,
  streaming = false,
}: {
  title: string;
  content: JsonValue;
  sources: readonly SourceLink[];
  streaming?: boolean;
}) {
  const addresses = useMemo(() => sources.map((source) => safeUrl(source.url)), [sources]);
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
      {sources.length > 0 && (
        <section className="text-sources">
          <h3>Sources</h3>
          <ol>
            {sources.map((source, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the index identifies a source
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
