import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { ArtifactItem } from "../log/viewModel";
import { sampleRun, type TimedEvent } from "../testing/sampleRuns";
import { AttachmentCard, FileCard } from "./FileCard";
import { fetchText } from "./FilePreview";
import FilesPane from "./FilesPane";

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const file = (name: string, media_type: string, size = 9): TimedEvent[] => [
  [1, { kind: "tool_started", call_id: "c1", name: "write_file", args: {} }],
  [2, { kind: "artifact_made", artifact_id: "art/1", name, media_type, size, call_id: "c1" }],
];

function answering(body: BodyInit, status = 200) {
  const fetched = vi.fn<typeof fetch>(async () => new Response(body, { status }));
  vi.stubGlobal("fetch", fetched);
  return fetched;
}

describe("the files pane", () => {
  it("a text is fetched when it is expanded, and markup is shown as text", async () => {
    const fetched = answering("<script>alert(1)</script>");
    const run = sampleRun(...file("a.txt", "text/plain"), [
      3,
      { kind: "artifact_made", artifact_id: "b", name: "b.zip", media_type: "application/zip", size: 1 },
    ]);
    render(<FilesPane runs={[run]} onSelect={() => {}} />);
    expect(fetched).not.toHaveBeenCalled();
    expect(screen.queryByRole("button", { name: /b\.zip/ })).toBeNull();
    fireEvent.click(screen.getByRole("button", { name: /a\.txt/ }));
    expect(await screen.findByText("<script>alert(1)</script>")).toBeTruthy();
    expect(String(fetched.mock.calls[0]?.[0])).toMatch(/artifacts\/art%2F1$/);
    expect(document.querySelector("#root script, pre script")).toBeNull();
  });

  it("a CSV file is shown as a table", async () => {
    answering("name,sum\nNorth,12\n");
    render(<FilesPane runs={[sampleRun(...file("a.csv", "text/csv"))]} onSelect={() => {}} />);
    expect(await screen.findByRole("columnheader", { name: "sum" })).toBeTruthy();
    expect(screen.getByRole("cell", { name: "12" })).toBeTruthy();
  });

  it("a file that cannot be shown shows the reason", async () => {
    answering("", 404);
    render(<FilesPane runs={[sampleRun(...file("a.txt", "text/plain"))]} onSelect={() => {}} />);
    expect((await screen.findByRole("alert")).textContent).toBe("This file is no longer kept.");
  });

  it("a click on the maker selects its call", () => {
    answering("");
    const run = sampleRun(...file("a.txt", "text/plain"));
    const onSelect = vi.fn();
    render(<FilesPane runs={[run]} onSelect={onSelect} />);
    fireEvent.click(screen.getByRole("button", { name: "write_file" }));
    expect(onSelect).toHaveBeenCalledWith(run.items[0]);
  });

  it("an empty pane explains itself", () => {
    render(<FilesPane runs={[sampleRun()]} onSelect={() => {}} />);
    expect(screen.getByText(/No files yet/)).toBeTruthy();
  });
});

describe("file cards", () => {
  const artifact = (name: string, mediaType: string): ArtifactItem => ({
    kind: "artifact",
    key: "run/0",
    index: 0,
    agentId: "",
    at: 0,
    artifactId: "art_1",
    name,
    mediaType,
    size: 2048,
    callId: "",
  });

  it("an image of this server is shown with its name", () => {
    render(<FileCard item={artifact("a\u202egnp.exe", "image/png")} />);
    const image = screen.getByRole("img");
    expect(image.getAttribute("src")).toMatch(/\/artifacts\/art_1$/);
    expect(image.getAttribute("alt")).toBe("a⟨U+202E⟩gnp.exe");
    fireEvent.error(image);
    expect(screen.getByText(/cannot be shown/)).toBeTruthy();
    expect(screen.getByText("2.0 kB")).toBeTruthy();
  });

  it("a URL of the user is never fetched", () => {
    render(<AttachmentCard attachment={{ media_type: "image/png", url: "https://example.org/x.png" }} />);
    expect(screen.queryByRole("img")).toBeNull();
    expect(screen.getByRole("link").getAttribute("rel")).toContain("noopener");
    cleanup();
    render(<AttachmentCard attachment={{ media_type: "text/html", name: "bad", url: "javascript:alert(1)" }} />);
    expect(screen.queryByRole("link")).toBeNull();
  });
});

describe("fetchText", () => {
  const { signal } = new AbortController();

  it("a text that is too long or binary is refused", async () => {
    answering("0123456789");
    await expect(fetchText("a", signal, 9)).rejects.toThrow("too long");
    answering("a\0b");
    await expect(fetchText("a", signal)).rejects.toThrow("not a text file");
    answering("", 500);
    await expect(fetchText("a", signal)).rejects.toThrow("500");
  });

  it("a character split over two chunks is joined", async () => {
    const [one, two] = [new Uint8Array([0xc3]), new Uint8Array([0xa9])];
    const stream = new ReadableStream({
      start(control) {
        control.enqueue(one);
        control.enqueue(two);
        control.close();
      },
    });
    answering(stream);
    expect(await fetchText("a", signal)).toBe("é");
  });
});
