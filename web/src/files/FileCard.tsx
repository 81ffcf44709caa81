import { memo } from "react";
import { bytes } from "../log/plainText";
import type { ArtifactItem } from "../log/view";
import { DownloadLink } from "./DownloadLink";
import { FileIcon } from "./FileIcon";
import { FileName } from "./FileName";
import { kindOf } from "./fileKinds";
import { Picture } from "./ImagePreview";
import "./files.css";

/** A file that an agent made, in the conversation. */
export const FileCard = memo(function FileCard({ item }: { item: ArtifactItem }) {
  const kind = kindOf(item.mediaType, item.name);
  return (
    <div className="files-card">
      {kind === "image" && <Picture artifactId={item.artifactId} name={item.name} />}
      <div className="files-card-line">
        <FileIcon kind={kind} />
        <FileName name={item.name} mediaType={item.mediaType} />
        <span className="files-size">{bytes(item.size)}</span>
        <DownloadLink artifactId={item.artifactId} name={item.name} />
      </div>
    </div>
  );
});
