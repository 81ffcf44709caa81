import { act, cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, it, vi } from "vitest";
import { type ApprovalDetails, api } from "../client/api";
import type { SessionStore } from "../client/sessionStore";
import type { ApprovalItem, Args } from "../log/viewModel";
import { installJsdomPolyfills } from "../testing/jsdomPolyfills";
import { TestChat } from "../testing/providers";
import { sampleRun } from "../testing/sampleRuns";
import { Approval } from "./Approval";
import { ChatState } from "./chatContext";

installJsdomPolyfills();
afterEach(cleanup);

const decide = vi.fn();
const state = new ChatState();

function show(approvalId: string, args: Args, isTruncated = false) {
  const run = sampleRun([1, { kind: "run_started", agent: "a", turn: 1 }]);
  const approval: ApprovalItem = {
    kind: "approval",
    key: "run_0/1",
    index: 1,
    agentId: "",
    at: 0,
    approvalId,
    callId: "c",
    name: "write_file",
    args,
    summary: "",
    language: "",
    codeKey: "",
    argsTruncation: isTruncated ? { size: 20_000, url: "" } : null,
    decisions: ["approve", "edit", "reject"],
    expiresAt: null,
    decision: null,
    editedArgs: null,
    reason: "",
    by: "",
    decidedAt: null,
  };
  return render(
    <TestChat store={{ decide } as unknown as SessionStore} state={state}>
      <Approval run={run} approval={approval} />
    </TestChat>,
  );
}

const button = (name: string) => screen.getByRole<HTMLButtonElement>("button", { name });
const editor = () => screen.getByLabelText<HTMLTextAreaElement>("New arguments as JSON");

it("a long text is shown with its line breaks", () => {
  const { container } = show("p1", { path: "a.md", content: '# One\n\nTwo "words"' });
  const texts = [...container.querySelectorAll("pre")].map((block) => block.textContent);
  expect(texts).toContain('# One\n\nTwo "words"');
  expect(screen.getByText("content")).toBeTruthy();
});

it("truncated arguments can be edited only after they are fetched", async () => {
  let arrive = (_whole: ApprovalDetails) => {};
  vi.spyOn(api, "approval").mockReturnValue(
    new Promise((resolve) => {
      arrive = resolve;
    }),
  );
  show("p2", '{"content": "be', true);
  expect(button("Edit").disabled).toBe(true);
  await act(async () => arrive({ args: { content: "beginning and end" }, edited_args: null, state: "requested" }));
  await userEvent.click(button("Edit"));
  expect(editor().value).toBe('{\n  "content": "beginning and end"\n}');
  expect(editor().rows).toBeGreaterThanOrEqual(8);
});

it("a failed fetch of truncated arguments shows an error and can be retried", async () => {
  const read = vi.spyOn(api, "approval").mockRejectedValueOnce(new Error("gone"));
  read.mockResolvedValueOnce({ args: { all: 1 }, edited_args: null, state: "requested" });
  show("p3", '{"al', true);
  expect(await screen.findByText(/The rest could not be read/)).toBeTruthy();
  expect(button("Edit").disabled).toBe(true);
  await userEvent.click(button("Try again"));
  await vi.waitFor(() => expect(button("Edit").disabled).toBe(false));
});

it("arguments that the server has not stored completely cannot be edited", async () => {
  const cut = { args: '{"content": "begin', edited_args: null, truncated: true, state: "requested" } as const;
  vi.spyOn(api, "approval").mockResolvedValue(cut);
  show("p5", '{"content": "be', true);
  expect(await screen.findByText(/The rest could not be read/)).toBeTruthy();
  expect(button("Edit").disabled).toBe(true);
});

it("a draft survives the unmount of its row", async () => {
  const first = show("p4", { a: 1 });
  await userEvent.click(button("Edit"));
  await userEvent.clear(editor());
  await userEvent.type(editor(), "half");
  first.unmount();
  show("p4", { a: 1 });
  expect(editor().value).toBe("half");
  await userEvent.click(button("Cancel"));
  await userEvent.click(button("Reject"));
  await userEvent.type(screen.getByLabelText(/Why not/), "too early");
  cleanup();
  show("p4", { a: 1 });
  await userEvent.click(button("Reject"));
  expect(decide).toHaveBeenCalledWith(expect.anything(), "reject", { reason: "too early" });
});
