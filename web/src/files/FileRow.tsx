import { ChevronRight } from "lucide-react";
import { memo, useId, useState } from "react";
import { bytes } from "../log/plainText";
import type { Item } from "../log/view";
import { visible } from "../text/invisibleCharacters";
import { SafeLink } from "../text/SafeLink";
import { Button } from "../ui/Button";
import { DownloadLink } from "./DownloadLink";
import { FileIcon } from "./FileIcon";
import { FileName } from "./FileName";
import { Preview } from "./FilePreview";
import { canShow, kindOf } from "./fileKinds";
import type { FileVersion } from "./files";

interface Props {
  readonly file: FileVersion;
  readonly onPick: (item: Item) => void;
  readonly isOpenAtFirst?: boolean;
}

/** One file: what it is, where it came from, and what is in it. */
export const FileRow = memo(function FileRow({ file, onPick, isOpenAtFirst = false }: Props) {
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
            <ChevronRight className="files-chevron" size={14} aria-hidden="true" />
            {title}
          </button>
        ) : (
          <span className="files-open files-closed">{title}</span>
        )}
        {file.size !== null && <span className="files-size">{bytes(file.size)}</span>}
        {file.artifactId !== "" && <DownloadLink artifactId={file.artifactId} name={file.name} />}
      </div>
      <div className="files-origin">
        <Origin file={file} onPick={onPick} />
        <time dateTime={new Date(file.at).toISOString()} title={new Date(file.at).toLocaleString()}>
          {new Date(file.at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })}
        </time>
      </div>
      {isOpen && isShown && (
        <div id={id} className="files-body">
          <Preview file={file} />
        </div>
      )}
    </>
  );
});

function Origin({ file, onPick }: { file: FileVersion; onPick: (item: Item) => void }) {
  const { item, madeBy, agent, url } = file;
  if (item === null)
    return url !== "" && file.artifactId === "" ? (
      <span className="files-address">
        sent by you as{" "}
        <SafeLink href={url} label={url}>
          {visible(url)}
        </SafeLink>
      </span>
    ) : (
      <span>sent by you</span>
    );
  return (
    <span>
      made by{" "}
      <Button look="quiet" className="files-maker" title="Show in the chat" onClick={() => onPick(madeBy ?? item)}>
        {visible(madeBy?.name || agent || "the agent")}
      </Button>
    </span>
  );
}
