import { ChevronRight, FolderOpen } from "lucide-react";
import { memo, useId, useMemo, useState } from "react";
import { formatBytes, plural } from "../log/displayText";
import type { Item, RunView } from "../log/viewModel";
import { escapeInvisible } from "../text/invisibleCharacters";
import { SafeLink } from "../text/SafeLink";
import { Button } from "../ui/Button";
import { DownloadLink, FileIcon, FileName } from "./FileCard";
import { FilePreview } from "./FilePreview";
import { canShow, kindOf } from "./fileKinds";
import { type FileGroup, type FileVersion, filesKey, filesOf } from "./sessionFiles";
import "./files.css";

interface FileRowProps {
  readonly file: FileVersion;
  readonly onSelect: (item: Item) => void;
  readonly isOpenAtFirst?: boolean;
}

/** The row of one file: its name, its origin and its content. */
const FileRow = memo(function FileRow({ file, onSelect, isOpenAtFirst = false }: FileRowProps) {
  const [isOpen, setOpen] = useState(isOpenAtFirst);
  const id = useId();
  const kind = kindOf(file.mediaType, file.name);
  const isShown = file.artifactId !== "" && canShow(kind, file.size);
  const title = (
    <>
      <FileIcon kind={kind} />
      <FileName name={file.name} mediaType={file.mediaType} />
    </>
  );
  return (
    <>
      <div className="files-row">
        {isShown ? (
          <button
            type="button"
            className="files-open"
            aria-expanded={isOpen}
            aria-controls={isOpen ? id : undefined}
            onClick={() => setOpen(!isOpen)}
          >
            <ChevronRight className="chevron" size={14} aria-hidden="true" />
            {title}
          </button>
        ) : (
          <span className="files-open files-closed">{title}</span>
        )}
        {file.size !== null && <span className="files-size">{formatBytes(file.size)}</span>}
        {file.artifactId !== "" && <DownloadLink artifactId={file.artifactId} name={file.name} />}
      </div>
      <div className="files-origin">
        <Origin file={file} onSelect={onSelect} />
        <time dateTime={new Date(file.at).toISOString()} title={new Date(file.at).toLocaleString()}>
          {new Date(file.at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })}
        </time>
      </div>
      {isOpen && isShown && (
        <div id={id} className="files-body">
          <FilePreview file={file} />
        </div>
      )}
    </>
  );
});

function Origin({ file, onSelect }: { file: FileVersion; onSelect: (item: Item) => void }) {
  const { item, madeBy, agent, url } = file;
  if (item === null)
    return url !== "" && file.artifactId === "" ? (
      <span className="ellipsis">
        sent by you as{" "}
        <SafeLink href={url} label={url}>
          {escapeInvisible(url)}
        </SafeLink>
      </span>
    ) : (
      <span>sent by you</span>
    );
  return (
    <span>
      made by{" "}
      <Button variant="quiet" className="files-maker" title="Show in the chat" onClick={() => onSelect(madeBy ?? item)}>
        {escapeInvisible(madeBy?.name || agent || "the agent")}
      </Button>
    </span>
  );
}

interface Props {
  readonly runs: readonly RunView[];
  readonly onSelect: (item: Item) => void;
}

/** The files pane: all files of a session that agents made or the user attached. */
const FilesPane = memo(function FilesPane({ runs, onSelect }: Props) {
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
            <FileRow file={group.newest} onSelect={onSelect} isOpenAtFirst={groups.length === 1 || isPicture(group)} />
            {group.older.length > 0 && (
              <details className="files-older">
                <summary>{plural(group.older.length, "earlier version")}</summary>
                <ul className="files-list">
                  {group.older.map((file) => (
                    <li key={file.key}>
                      <FileRow file={file} onSelect={onSelect} />
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

/** Returns the files of the runs. The list is built again only when a file is added, not with each token. */
function useGroups(runs: readonly RunView[]): readonly FileGroup[] {
  const key = filesKey(runs);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key changes with the files
  return useMemo(() => filesOf(runs), [key]);
}

export default FilesPane;
