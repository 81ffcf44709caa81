import { act, cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, it, vi } from "vitest";
import { type ApprovalDetails, api } from "../client/api";
import type { SessionStore } from "../client/sessionStore";
import type { ApprovalItem, Args } from "../log/viewModel";
import { installJsdomPolyfills } from "../testing/jsdomPolyfills";
import { TestChat } from "../testing/providers";
import { sampleRun } from "../testing/sampleRuns";
import type { JsonObject, JsonValue } from "../wire/events";
import { Approval, DecisionLine } from "./Approval";
import { ChatState } from "./chatContext";

installJsdomPolyfills();
afterEach(cleanup);

const decide = vi.fn();
const state = new ChatState();

function approvalItem(approvalId: string, args: Args, more: Partial<ApprovalItem> = {}): ApprovalItem {
  return {
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
    argsTruncation: null,
    decisions: ["approve", "edit", "reject"],
    question: "",
    answerSchema: null,
    argsSchema: null,
    expiresAt: null,
    decision: null,
    editedArgs: null,
    answered: false,
    reason: "",
    by: "",
    decidedAt: null,
    ...more,
  };
}

function show(approvalId: string, args: Args, isTruncated = false, more: Partial<ApprovalItem> = {}) {
  const run = sampleRun([1, { kind: "run_started", agent: "a", turn: 1 }]);
  const argsTruncation = isTruncated ? { size: 20_000, url: "" } : null;
  const approval = approvalItem(approvalId, args, { argsTruncation, ...more });
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

const argsSchema: JsonObject = {
  type: "object",
  properties: {
    path: { type: "string", title: "Path" },
    lines: { type: "integer", title: "Lines" },
    force: { type: "boolean", title: "Force", default: false },
  },
  required: ["path"],
};

it("arguments with a schema are edited in a form, which keeps what was typed", async () => {
  const args = { path: "a.md", lines: 3 };
  const { unmount } = show("f1", args, false, { argsSchema });
  await userEvent.click(button("Edit"));
  expect(screen.queryByLabelText("New arguments as JSON")).toBeNull();
  await userEvent.clear(screen.getByLabelText("Lines"));
  await userEvent.type(screen.getByLabelText("Lines"), "many");
  await userEvent.click(button("Approve with changes"));
  expect(screen.getByRole("alert").textContent).toBe("This is not a number.");
  unmount();
  show("f1", args, false, { argsSchema });
  expect(screen.getByLabelText<HTMLInputElement>("Lines").value).toBe("many");
  await userEvent.clear(screen.getByLabelText("Lines"));
  await userEvent.type(screen.getByLabelText("Lines"), "4{Enter}");
  expect(decide).toHaveBeenLastCalledWith(expect.anything(), "edit", { args: { path: "a.md", lines: 4 } });
});

it("arguments that their schema does not name are edited as JSON", async () => {
  show("f2", { path: "a.md", other: 1 }, false, { argsSchema });
  await userEvent.click(button("Edit"));
  expect(editor().value).toContain('"other": 1');
});

const ask = (approvalId: string, answerSchema: JsonObject, more: Partial<ApprovalItem> = {}) =>
  show(approvalId, { value: "Which one?" }, false, {
    name: "interrupt",
    question: "Which one?",
    answerSchema,
    ...more,
  });

it("a text question has a field, whose text is the answer", async () => {
  ask("q1", {});
  expect(screen.getByText("The agent asks a question")).toBeTruthy();
  expect(screen.getAllByText("Which one?")).toHaveLength(1);
  await userEvent.click(button("Send answer"));
  expect(screen.getByRole("alert").textContent).toBe("Fill in a value.");
  await userEvent.type(screen.getByLabelText("Your answer"), "the blue one");
  await userEvent.click(button("Send answer"));
  expect(decide).toHaveBeenLastCalledWith(expect.anything(), "respond", { answer: "the blue one" });
});

it("a question with options has a button for each, and keeps what was chosen", async () => {
  const options = { enum: ["red", "blue"] };
  const { unmount } = ask("q2", options, { args: { question: "Which one?", options: ["red", "blue"], why: "paint" } });
  expect(screen.queryByText(/"options"|options/)).toBeNull();
  expect(screen.getByText(/why/)).toBeTruthy();
  await userEvent.click(screen.getByLabelText("blue"));
  unmount();
  ask("q2", options);
  expect(screen.getByLabelText<HTMLInputElement>("blue").checked).toBe(true);
  await userEvent.click(button("Send answer"));
  expect(decide).toHaveBeenLastCalledWith(expect.anything(), "respond", { answer: "blue" });
});

it("a question with a schema has a form, and says which field is wrong", async () => {
  ask("q3", {
    type: "object",
    properties: {
      name: { type: "string", title: "Your name" },
      age: { type: "integer" },
      news: { type: "boolean", description: "By mail, once a month" },
      note: { anyOf: [{ type: "string" }, { type: "null" }], default: null },
    },
    required: ["name", "age", "news"],
  });
  await userEvent.type(screen.getByLabelText(/^Your name/), "Ada");
  await userEvent.type(screen.getByLabelText(/^age/), "many");
  await userEvent.click(screen.getByLabelText("No"));
  await userEvent.click(button("Send answer"));
  expect(screen.getByRole("alert").textContent).toBe("This is not a number.");
  await userEvent.clear(screen.getByLabelText(/^age/));
  await userEvent.type(screen.getByLabelText(/^age/), "36{Enter}");
  expect(decide).toHaveBeenLastCalledWith(expect.anything(), "respond", {
    answer: { name: "Ada", age: 36, news: false },
  });
});

it("a tool that takes an answer offers it beside the other decisions", async () => {
  show("q4", { to: "ann" }, false, { answerSchema: { type: "string" }, question: "Shall I?", decisions: ["approve"] });
  expect(screen.getByText("Approve write_file?")).toBeTruthy();
  expect(screen.getByText("Shall I?")).toBeTruthy();
  expect(screen.queryByRole("button", { name: "Edit" })).toBeNull();
  expect(screen.queryByLabelText("Your answer")).toBeNull();
  await userEvent.click(button("Answer"));
  await userEvent.type(screen.getByLabelText("Your answer"), "Ask Bob.");
  await userEvent.click(button("Send answer"));
  expect(decide).toHaveBeenLastCalledWith(expect.anything(), "respond", { answer: "Ask Bob." });
  await userEvent.click(button("Cancel"));
  await userEvent.click(button("Approve"));
  expect(decide).toHaveBeenLastCalledWith(expect.anything(), "approve");
});

it("a form that cannot be approved asks to answer", () => {
  show("q5", {}, false, { answerSchema: {}, decisions: ["edit", "reject"] });
  expect(screen.getByText("Answer write_file?")).toBeTruthy();
});

it.each<[JsonValue, string]>([
  ["Lyon", "Lyon"],
  [{ town: "Lyon" }, "town"],
])("an answered question shows the answer %j", (answer, shown) => {
  const { container } = render(
    <DecisionLine
      approval={approvalItem("q6", {}, { decision: "edit", answered: true, editedArgs: { value: answer } })}
    />,
  );
  expect(container.textContent).toContain("Answered");
  expect(container.textContent).toContain(shown);
});
