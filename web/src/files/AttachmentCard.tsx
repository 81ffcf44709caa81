import { memo } from "react";
import { visible } from "../text/invisibleCharacters";
import { SafeLink } from "../text/SafeLink";
import type { Attachment } from "../wire/events";
import { DownloadLink } from "./DownloadLink";
import { FileIcon } from "./FileIcon";
import { FileName } from "./FileName";
import { kindOf } from "./fileKinds";
import { Picture } from "./ImagePreview";
import "./files.css";

/** A file that the user sent. One that was only an address stays an address: nothing is fetched from elsewhere. */
export const AttachmentCard = memo(function AttachmentCard({ attachment }: { attachment: Attachment }) {
  const { name = "", media_type: mediaType, artifact_id: artifactId = "", url = "" } = attachment;
  const kind = kindOf(mediaType, name);
  return (
    <div className="files-card">
      {kind === "image" && artifactId !== "" && <Picture artifactId={artifactId} name={name} />}
      <div className="files-card-line">
        <FileIcon kind={kind} />
        {(name !== "" || url === "") && <FileName name={name} mediaType={mediaType} />}
        {artifactId === "" && url !== "" && (
          <span className="files-address">
            <SafeLink href={url} label={url}>
              {visible(url)}
            </SafeLink>
          </span>
        )}
        {artifactId !== "" && <DownloadLink artifactId={artifactId} name={name} />}
      </div>
    </div>
  );
});
