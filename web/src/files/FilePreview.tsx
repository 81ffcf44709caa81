import { memo, useEffect, useMemo, useState } from "react";
import { artifactUrl } from "../client/api";
import { HighlightedCode } from "../text/HighlightedCode";
import { escapeInvisible } from "../text/invisibleCharacters";
import { CopyButton } from "../ui/CopyButton";
import { parseCsv } from "./csv";
import { ImagePreview } from "./FileCard";
import { kindOf, languageOf, MAX_SHOWN } from "./fileKinds";
import type { FileVersion } from "./sessionFiles";

class UnreadableFile extends Error {}

/** Fetches a text file, unless it is too long or binary. The size is checked while the file is read. */
export async function fetchText(artifactId: string, signal: AbortSignal, max = MAX_SHOWN): Promise<string> {
  const response = await fetch(artifactUrl(artifactId), { signal });
  if (response.status === 404) throw new UnreadableFile("This file is no longer kept.");
  if (!response.ok || response.body === null) throw new UnreadableFile(`The server answered ${response.status}.`);
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  let size = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    size += part.value.byteLength;
    if (size > max) {
      await reader.cancel();
      throw new UnreadableFile("This file is too long to be shown here.");
    }
    text += decoder.decode(part.value, { stream: true });
  }
  text += decoder.decode();
  if (text.includes("\0")) throw new UnreadableFile("This is not a text file.");
  return text;
}

type Loaded = { readonly text: string } | { readonly problem: string } | null;

/** Shows the content of a file: an image, a table, text, or why it cannot be shown. */
export const FilePreview = memo(function FilePreview({ file }: { file: FileVersion }) {
  const kind = kindOf(file.mediaType, file.name);
  if (kind === "image") return <ImagePreview artifactId={file.artifactId} name={file.name} />;
  return <TextPreview key={file.artifactId} file={file} isTable={kind === "table"} />;
});

function TextPreview({ file, isTable }: { file: FileVersion; isTable: boolean }) {
  const [loaded, setLoaded] = useState<Loaded>(null);
  useEffect(() => {
    const abort = new AbortController();
    fetchText(file.artifactId, abort.signal).then(
      (text) => setLoaded({ text }),
      (error: unknown) => {
        if (abort.signal.aborted) return;
        setLoaded({ problem: error instanceof UnreadableFile ? error.message : "The server cannot be reached." });
      },
    );
    return () => abort.abort();
  }, [file.artifactId]);
  if (loaded === null) return <p className="files-note">Loading …</p>;
  if ("problem" in loaded)
    return (
      <p className="files-note" role="alert">
        {loaded.problem}
      </p>
    );
  if (loaded.text === "") return <p className="files-note">This file is empty.</p>;
  return (
    <div className="files-preview">
      <div className="files-preview-copy">
        <CopyButton text={loaded.text} label="Copy the file's text" />
      </div>
      {isTable ? (
        <SheetTable text={loaded.text} />
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
        <section className="files-text" tabIndex={0} aria-label="Text of the file">
          <pre>
            <HighlightedCode code={loaded.text} language={languageOf(file.mediaType, file.name)} />
          </pre>
        </section>
      )}
    </div>
  );
}

function SheetTable({ text }: { text: string }) {
  const sheet = useMemo(() => parseCsv(text), [text]);
  const [head, ...body] = sheet.rows;
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section className="files-sheet" tabIndex={0} aria-label="Table of the file">
        <table>
          <thead>
            <tr>
              {head?.map((value, column) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: the index identifies a row or a cell of a sheet
                <th key={column} scope="col">
                  {escapeInvisible(value)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {body.map((row, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the index identifies a row or a cell of a sheet
              <tr key={index}>
                {row.map((value, column) => (
                  // biome-ignore lint/suspicious/noArrayIndexKey: the index identifies a row or a cell of a sheet
                  <td key={column} className={isNumber(value) ? "files-number" : undefined}>
                    {escapeInvisible(value)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {sheet.isTruncated && (
        <p className="files-note">The first {sheet.rows.length} rows. Download it for all of them.</p>
      )}
    </>
  );
}

function isNumber(value: string): boolean {
  return /^\s*[-+]?[\d.,]+\s*%?\s*$/.test(value);
}
