import {
  Download,
  File,
  FileArchive,
  FileCode,
  FileImage,
  FileSpreadsheet,
  FileText,
  ImageOff,
  type LucideIcon,
} from "lucide-react";
import { memo, useState } from "react";
import { artifactUrl } from "../client/api";
import { formatBytes } from "../log/displayText";
import type { ArtifactItem } from "../log/viewModel";
import { escapeInvisible } from "../text/invisibleCharacters";
import { SafeLink } from "../text/SafeLink";
import type { Attachment } from "../wire/events";
import { type FileKind, kindOf } from "./fileKinds";
import "./files.css";

const ICONS: Record<FileKind, LucideIcon> = {
  image: FileImage,
  table: FileSpreadsheet,
  code: FileCode,
  text: FileText,
  archive: FileArchive,
  other: File,
};

export function FileIcon({ kind }: { kind: FileKind }) {
  const Icon = ICONS[kind];
  return <Icon className="files-icon" size={16} aria-hidden="true" />;
}

/** Shows a file name. Its text direction does not affect its neighbours, and its extension is never cut off. */
export function FileName({ name, mediaType }: { name: string; mediaType: string }) {
  const shown = escapeInvisible(name).replace(/\s+/g, " ").trim() || `unnamed ${mediaType.split("/", 1)[0] || "file"}`;
  const ending = /^(.+)(.{9})$/su.exec(shown);
  return (
    <bdi className="files-name" title={shown}>
      <span className="files-name-begin">{ending?.[1] ?? shown}</span>
      {ending?.[2] && <span className="files-name-end">{ending[2]}</span>}
    </bdi>
  );
}

/** A link that downloads an artifact. */
export function DownloadLink({ artifactId, name }: { artifactId: string; name: string }) {
  return (
    <a
      className="button button-quiet"
      href={artifactUrl(artifactId)}
      download=""
      aria-label={`Download ${name || "file"}`}
      title="Download"
    >
      <Download size={15} aria-hidden="true" />
    </a>
  );
}

/** An image artifact, in a box of fixed height, so that the layout does not shift when it is loaded. */
export const ImagePreview = memo(function ImagePreview({ artifactId, name }: { artifactId: string; name: string }) {
  const [state, setState] = useState<"loading" | "there" | "broken">("loading");
  if (state === "broken")
    return (
      <div className="files-picture files-picture-broken">
        <ImageOff size={16} aria-hidden="true" /> This image cannot be shown.
      </div>
    );
  return (
    <div className="files-picture" data-state={state}>
      <img
        src={artifactUrl(artifactId)}
        alt={escapeInvisible(name) || "Image"}
        loading="lazy"
        decoding="async"
        onLoad={() => setState("there")}
        onError={() => setState("broken")}
      />
    </div>
  );
});

/** The card of a file that an agent made, as the conversation shows it. */
export const FileCard = memo(function FileCard({ item }: { item: ArtifactItem }) {
  const kind = kindOf(item.mediaType, item.name);
  return (
    <div className="files-card">
      {kind === "image" && <ImagePreview artifactId={item.artifactId} name={item.name} />}
      <div className="files-card-line">
        <FileIcon kind={kind} />
        <FileName name={item.name} mediaType={item.mediaType} />
        <span className="files-size">{formatBytes(item.size)}</span>
        <DownloadLink artifactId={item.artifactId} name={item.name} />
      </div>
    </div>
  );
});

/** The card of a file that the user attached. An attached URL is only a link: nothing is fetched from other servers. */
export const AttachmentCard = memo(function AttachmentCard({ attachment }: { attachment: Attachment }) {
  const { name = "", media_type: mediaType, artifact_id: artifactId = "", url = "" } = attachment;
  const kind = kindOf(mediaType, name);
  return (
    <div className="files-card">
      {kind === "image" && artifactId !== "" && <ImagePreview artifactId={artifactId} name={name} />}
      <div className="files-card-line">
        <FileIcon kind={kind} />
        {(name !== "" || url === "") && <FileName name={name} mediaType={mediaType} />}
        {artifactId === "" && url !== "" && (
          <span className="ellipsis">
            <SafeLink href={url} label={url}>
              {escapeInvisible(url)}
            </SafeLink>
          </span>
        )}
        {artifactId !== "" && <DownloadLink artifactId={artifactId} name={name} />}
      </div>
    </div>
  );
});
