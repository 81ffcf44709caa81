import { File, FileArchive, FileCode, FileImage, FileSpreadsheet, FileText, type LucideIcon } from "lucide-react";
import type { FileKind } from "./fileKinds";

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
