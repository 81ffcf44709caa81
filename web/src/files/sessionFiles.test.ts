import { describe, expect, it } from "vitest";
import { sampleSession } from "../testing/sampleRuns";
import type { AnyEvent } from "../wire/events";
import { parseCsv } from "./csv";
import { canShow, kindOf, languageOf } from "./fileKinds";
import { filesKey, filesOf } from "./sessionFiles";

const made = (artifact_id: string, name: string, call_id = ""): AnyEvent => ({
  kind: "artifact_made",
  artifact_id,
  name,
  media_type: "text/plain",
  size: 5,
  call_id,
});

const { runs } = sampleSession(
  [
    [
      0,
      {
        kind: "run_started",
        agent: "deep",
        turn: 1,
        attachments: [
          { media_type: "text/csv", name: "q1.csv", artifact_id: "sent" },
          { media_type: "image/png", url: "https://example.org/x.png" },
          { media_type: "image/png", url: "https://example.org/y.png" },
        ],
      },
    ],
    [1, { kind: "tool_started", call_id: "c1", name: "write_file", args: {} }],
    [2, made("one", "report.md", "c1")],
    [3, made("pic", "plot.png")],
    [4, { kind: "run_finished" }],
  ],
  [
    [9, { kind: "run_started", agent: "deep", turn: 2 }],
    [10, made("two", "report.md", "gone")],
    [11, made("csv", "q1.csv")],
  ],
);

describe("the files of a session", () => {
  it("are ordered newest first, with the versions of a name together", () => {
    const shown = filesOf(runs).map(({ newest, older }) => [newest.artifactId, ...older.map((one) => one.artifactId)]);
    expect(shown).toEqual([["csv", "sent"], ["two", "one"], ["pic"], [""], [""]]);
  });

  it("know their origin", () => {
    const versions = filesOf(runs).flatMap(({ newest, older }) => [newest, ...older]);
    const find = (artifactId: string) => versions.find((one) => one.artifactId === artifactId);
    expect(find("one")).toMatchObject({ madeBy: { name: "write_file" }, turn: 1, size: 5 });
    expect(find("two")).toMatchObject({ madeBy: null, agent: "deep", turn: 2 });
    expect(find("sent")).toMatchObject({ item: null, size: null });
  });

  it("have a key that changes only with them", () => {
    expect(filesKey(runs)).toBe(filesKey([...runs]));
    expect(filesKey(runs.slice(1))).not.toBe(filesKey(runs));
  });
});

describe("file kinds", () => {
  it.each([
    ["image/png", "a", "image"],
    ["image/svg+xml", "a.svg", "image"],
    ["image/tiff", "a.tiff", "other"],
    ["text/csv; charset=utf-8", "a", "table"],
    ["application/octet-stream", "a.csv", "table"],
    ["", "a.py", "code"],
    ["application/json", "a", "code"],
    ["text/x-python", "a", "code"],
    ["text/markdown", "a.md", "text"],
    ["text/html", "a.html", "code"],
    ["application/vnd.ms-excel", "a.csv", "other"],
    ["application/pdf", "a.py", "other"],
    ["application/zip", "a.zip", "archive"],
    ["application/octet-stream", "a.exe", "other"],
    ["text/plain", "constructor", "text"],
  ])("%s %s is %s", (mediaType, name, kind) => {
    expect(kindOf(mediaType, name)).toBe(kind);
  });

  it("a file is shown up to the size limit", () => {
    expect(canShow("code", 999_999)).toBe(true);
    expect(canShow("code", 1_000_001)).toBe(false);
    expect(canShow("text", null)).toBe(true);
    expect(canShow("image", 9e9)).toBe(true);
    expect(canShow("other", 1)).toBe(false);
    expect(languageOf("text/plain", "x.sql")).toBe("sql");
  });
});

describe("CSV", () => {
  it.each([
    [
      "a,b\n1,2\n",
      [
        ["a", "b"],
        ["1", "2"],
      ],
    ],
    [
      'a;"b;c"\r\n"x ""y""";\n',
      [
        ["a", "b;c"],
        ['x "y"', ""],
      ],
    ],
    ["\ufeffa\tb\n\n1\t2", [["a", "b"], [""], ["1", "2"]]],
    ['"open, to the end\nof it', [["open, to the end\nof it"]]],
    ["", []],
  ])("%j", (text, rows) => {
    expect(parseCsv(text)).toEqual({ rows, isTruncated: false });
  });

  it("rows and columns are limited", () => {
    const sheet = parseCsv("a,b,c\n".repeat(1000), ",", 10, 2);
    expect(sheet.rows).toHaveLength(10);
    expect(sheet.rows[0]).toEqual(["a", "b"]);
    expect(sheet.isTruncated).toBe(true);
  });
});
