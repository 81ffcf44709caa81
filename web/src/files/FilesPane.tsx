import { FolderOpen } from "lucide-react";
import { memo, useMemo } from "react";
import { plural } from "../log/plainText";
import type { Item, RunView } from "../log/view";
import { FileRow } from "./FileRow";
import { kindOf } from "./fileKinds";
import { type FileGroup, filesKey, filesOf } from "./files";
import "./files.css";

interface Props {
  readonly runs: readonly RunView[];
  readonly onPick: (item: Item) => void;
}

/** Everything that came out of the session as a file, and what was put into it. */
const FilesPane = memo(function FilesPane({ runs, onPick }: Props) {
  const groups = useGroups(runs);
  if (groups.length === 0)
    return (
      <section className="files files-empty" aria-label="Files">
        <FolderOpen size={22} aria-hidden="true" />
        <p>No files yet. What agents make and what you attach appears here.</p>
      </section>
    );
  return (
    <section className="files" aria-label="Files">
      <ul className="files-list">
        {groups.map((group) => (
          <li key={group.key}>
            <FileRow file={group.newest} onPick={onPick} isOpenAtFirst={groups.length === 1 || isPicture(group)} />
            {group.older.length > 0 && (
              <details className="files-older">
                <summary>{plural(group.older.length, "earlier version")}</summary>
                <ul className="files-list">
                  {group.older.map((file) => (
                    <li key={file.key}>
                      <FileRow file={file} onPick={onPick} />
                    </li>
                  ))}
                </ul>
              </details>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
});

function isPicture({ newest }: FileGroup): boolean {
  return newest.item !== null && kindOf(newest.mediaType, newest.name) === "image";
}

/** Runs change with each token; the list only with a file. */
function useGroups(runs: readonly RunView[]): readonly FileGroup[] {
  const key = filesKey(runs);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key says when the files are others
  return useMemo(() => filesOf(runs), [key]);
}

export default FilesPane;
