import { visible } from "../text/invisibleCharacters";

/** A name as text. Its own direction must not turn what stands beside it, and its ending stays in sight. */
export function FileName({ name, mediaType }: { name: string; mediaType: string }) {
  const shown = visible(name).replace(/\s+/g, " ").trim() || `unnamed ${mediaType.split("/", 1)[0] || "file"}`;
  const ending = /^(.+)(.{9})$/su.exec(shown);
  return (
    <bdi className="files-name" title={shown}>
      <span className="files-name-begin">{ending?.[1] ?? shown}</span>
      {ending?.[2] && <span className="files-name-end">{ending[2]}</span>}
    </bdi>
  );
}
