/** Collects the files of a session, newest first. Pure. */

import type { ArtifactItem, RunView, ToolItem } from "../log/viewModel";

export interface FileVersion {
  readonly key: string;
  readonly name: string;
  readonly mediaType: string;
  /** Size in bytes; null if it is not known. */
  readonly size: number | null;
  readonly at: number;
  readonly turn: number;
  /** Id of the stored file; "" if the server does not store it. */
  readonly artifactId: string;
  /** URL that the user attached instead of a file; otherwise "". It is never fetched automatically. */
  readonly url: string;
  /** The item of a file that an agent made; null for an attachment of the user. */
  readonly item: ArtifactItem | null;
  readonly madeBy: ToolItem | null;
  readonly agent: string;
}

export interface FileGroup {
  readonly key: string;
  readonly newest: FileVersion;
  /** Earlier files of the same name, newest first. */
  readonly older: readonly FileVersion[];
}

export function filesOf(runs: readonly RunView[]): FileGroup[] {
  const groups = new Map<string, FileVersion[]>();
  for (const version of runs.flatMap(versionsOf)) {
    const key = version.name || version.key;
    const same = groups.get(key);
    if (same) same.push(version);
    else groups.set(key, [version]);
  }
  return [...groups.values()].flatMap(groupOf).sort((one, other) => other.newest.at - one.newest.at);
}

/** A key that changes when a run or a file is added, for memoizing `filesOf`. */
export function filesKey(runs: readonly RunView[]): string {
  return runs.map((run) => `${run.runId} ${run.attachments.length} ${artifactsOf(run).length}`).join();
}

function groupOf(versions: FileVersion[]): FileGroup[] {
  const [newest, ...older] = versions.toReversed();
  return newest === undefined ? [] : [{ key: newest.key, newest, older }];
}

function versionsOf(run: RunView): FileVersion[] {
  return [...attachedFiles(run), ...madeFiles(run)];
}

function attachedFiles(run: RunView): FileVersion[] {
  return run.attachments.map((attachment, index) => ({
    key: `${run.runId}/sent/${index}`,
    name: attachment.name ?? "",
    mediaType: attachment.media_type,
    size: null,
    at: run.startedAt,
    turn: run.turn,
    artifactId: attachment.artifact_id ?? "",
    url: attachment.url ?? "",
    item: null,
    madeBy: null,
    agent: "",
  }));
}

function madeFiles(run: RunView): FileVersion[] {
  const artifacts = artifactsOf(run);
  if (artifacts.length === 0) return [];
  const calls = new Map<string, ToolItem>();
  for (const item of run.items) if (item.kind === "tool") calls.set(item.callId, item);
  return artifacts.map((item) => ({
    key: item.key,
    name: item.name,
    mediaType: item.mediaType,
    size: item.size,
    at: item.at,
    turn: run.turn,
    artifactId: item.artifactId,
    url: "",
    item,
    madeBy: calls.get(item.callId) ?? null,
    agent: run.agents.get(item.agentId)?.label ?? "",
  }));
}

function artifactsOf(run: RunView): ArtifactItem[] {
  return run.items.filter((item) => item.kind === "artifact");
}
