import { cleanup, fireEvent, render, screen, within } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Item, RunView } from "../log/viewModel";
import { goldenSession, onlyRun, sampleRun, sampleSession } from "../testing/sampleRuns";
import TimelinePane from "./TimelinePane";
import { TIMELINE_SHORTCUTS } from "./timelineShortcuts";

const SIZE = { width: 600, height: 600 };

/** A ResizeObserver that reports a size, for the virtual list. */
class Observer {
  constructor(private readonly tell: ResizeObserverCallback) {}
  observe(target: Element): void {
    const height = target.classList.contains("timeline-scroll") ? SIZE.height : 28;
    this.tell(
      [{ target, contentRect: { ...SIZE, height } } as unknown as ResizeObserverEntry],
      this as unknown as ResizeObserver,
    );
  }
  unobserve(): void {}
  disconnect(): void {}
}

beforeEach(() => {
  vi.stubGlobal("ResizeObserver", Observer);
  // The virtual list uses the window of its document.
  Object.assign(document.defaultView ?? {}, { ResizeObserver: Observer });
  Element.prototype.scrollTo = () => {};
  vi.spyOn(HTMLElement.prototype, "clientWidth", "get").mockReturnValue(SIZE.width);
  vi.spyOn(HTMLElement.prototype, "offsetParent", "get").mockReturnValue(document.body);
});

afterEach(cleanup);

function show(run: RunView, more: { runs?: readonly RunView[]; focus?: Item | null } = {}) {
  const onSelect = vi.fn();
  const onSelectRun = vi.fn();
  render(
    <TimelinePane
      runs={more.runs ?? [run]}
      run={run}
      focus={more.focus ?? null}
      onSelect={onSelect}
      onSelectRun={onSelectRun}
    />,
  );
  return { onSelect, onSelectRun };
}

const names = () => screen.getAllByRole("treeitem").map((row) => row.textContent ?? "");
const itemNamed = (run: RunView, callId: string) =>
  run.items.find((item) => item.kind === "tool" && item.callId === callId) ?? null;

describe("the timeline", () => {
  it("has no duration for a call without a visible result", async () => {
    show(onlyRun(goldenSession("unseen_result")));
    await screen.findByText("send_mail");
    expect(names().some((text) => /send_mail.*begins at \d+ ms, no result seen$/.test(text))).toBe(true);
  });

  it("shows each row with its level, and the table of agents", async () => {
    show(onlyRun(goldenSession("sub_agents")));
    await screen.findByText("readurl");
    expect(names().some((text) => text.includes("readurl") && text.includes("begins at 30 ms, took 3 ms"))).toBe(true);
    expect(screen.getAllByRole("treeitem")[5]?.getAttribute("aria-level")).toBe("5");
    const table = screen.getByRole("table");
    expect(within(table).getAllByRole("row")).toHaveLength(6);
    expect(within(table).getByText("reader")).toBeTruthy();
  });

  it("selects the row that is clicked or chosen by keys", async () => {
    const run = onlyRun(goldenSession("sub_agents"));
    const { onSelect, onSelectRun } = show(run);
    const tree = screen.getByRole("tree");
    fireEvent.click(await screen.findByText("readurl"));
    expect(onSelect).toHaveBeenLastCalledWith(itemNamed(run, "c3"));
    fireEvent.keyDown(tree, { key: "Home" });
    fireEvent.keyDown(tree, { key: "Enter" });
    expect(onSelectRun).toHaveBeenCalledWith(run);
    fireEvent.keyDown(tree, { key: "ArrowDown" });
    fireEvent.keyDown(tree, { key: "Enter" });
    expect(onSelect).toHaveBeenLastCalledWith(itemNamed(run, "c1"));
  });

  it("handles each key that the list of shortcuts names", () => {
    show(onlyRun(goldenSession("sub_agents")));
    const names: Record<string, string> = {
      up: "ArrowUp",
      down: "ArrowDown",
      left: "ArrowLeft",
      right: "ArrowRight",
      pageup: "PageUp",
      pagedown: "PageDown",
      home: "Home",
      end: "End",
      enter: "Enter",
      plus: "+",
    };
    for (const { keys } of TIMELINE_SHORTCUTS) {
      const isIgnored = fireEvent.keyDown(screen.getByRole("tree"), { key: names[keys] ?? keys });
      expect(isIgnored, keys).toBe(false);
    }
    expect(fireEvent.keyDown(screen.getByRole("tree"), { key: "x" })).toBe(true);
  });

  it("marks the row that is selected elsewhere", () => {
    const run = onlyRun(goldenSession("sub_agents"));
    show(run, { focus: itemNamed(run, "c3") });
    const [picked] = screen.getAllByRole("treeitem", { selected: true });
    expect(picked?.textContent).toContain("readurl");
    expect(screen.getByRole("tree").getAttribute("aria-activedescendant")).toBe(picked?.id);
  });

  it("selects another turn", () => {
    const { runs } = sampleSession(
      [[0, { kind: "run_started", agent: "a", input: "first", turn: 1 }]],
      [[9, { kind: "run_started", agent: "a", input: "second", turn: 2 }]],
    );
    const [first, second] = runs;
    if (!first || !second) throw new Error("two runs");
    const { onSelectRun } = show(second, { runs });
    fireEvent.change(screen.getByLabelText("Turn"), { target: { value: "0" } });
    expect(onSelectRun).toHaveBeenCalledWith(first);
  });

  it("explains itself while it is empty", () => {
    show(sampleRun());
    expect(screen.getByText(/Nothing has happened yet/)).toBeTruthy();
    expect(screen.queryByRole("tree")).toBeNull();
  });

  it("shows markup and hidden characters in names as text", async () => {
    show(
      sampleRun(
        [
          0,
          {
            kind: "tool_started",
            call_id: "c",
            name: "<img src=x onerror=alert(1)>",
            args: { path: "a\u202egpj.exe" },
            summary: "a\u202egpj.exe",
          },
        ],
        [1, { kind: "tool_finished", call_id: "c", result: "" }],
      ),
    );
    expect(await screen.findByText("<img src=x onerror=alert(1)>")).toBeTruthy();
    expect(document.querySelector("img")).toBeNull();
    expect(screen.getByText("a⟨U+202E⟩gpj.exe")).toBeTruthy();
  });

  it("mounts few of many rows", async () => {
    const many = Array.from({ length: 5000 }, (_, at) => [at, { kind: "step_started", number: at }] as const);
    show(sampleRun(...many));
    await screen.findByText("Step 3");
    expect(screen.getAllByRole("treeitem").length).toBeLessThan(200);
  });
});
