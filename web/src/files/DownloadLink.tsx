import { Download } from "lucide-react";
import { artifactAddress } from "../wire/api";

/** The server sends it as something to save, and never as a page. */
export function DownloadLink({ artifactId, name }: { artifactId: string; name: string }) {
  return (
    <a
      className="button button-quiet"
      href={artifactAddress(artifactId)}
      download=""
      aria-label={`Download ${name || "file"}`}
      title="Download"
    >
      <Download size={15} aria-hidden="true" />
    </a>
  );
}
