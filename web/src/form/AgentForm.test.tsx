import { cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, it, vi } from "vitest";
import { Composer } from "../chat/Composer";
import type { AgentInfo } from "../client/api";
import { installJsdomPolyfills } from "../testing/jsdomPolyfills";
import { useAgentForm } from "./AgentForm";

installJsdomPolyfills();
afterEach(() => {
  cleanup();
  localStorage.clear();
});

const writer: AgentInfo = {
  name: "writer",
  title: "Writer",
  description: "",
  framework: "langgraph",
  default: true,
  input_schema: {
    type: "object",
    properties: {
      topic: { title: "Topic", type: "string" },
      audience: { title: "Audience", type: "string", description: "Who reads it" },
      words: { title: "Words", type: "integer", default: 200 },
    },
    required: ["topic", "audience"],
  },
  question_key: "topic",
  context_schema: { type: "object", properties: { tone: { title: "Tone", enum: ["calm", "loud"] } } },
  context_from_request: true,
};
const { context_schema: _, ...formOnly } = { ...writer, question_key: "" };

function Page({ agent, isNew, onSend }: { agent: AgentInfo; isNew: boolean; onSend: () => void }) {
  return <Composer sessionId={null} form={useAgentForm(agent, isNew)} onSend={onSend} />;
}

function show(agent: AgentInfo, isNew = true) {
  const onSend = vi.fn();
  render(<Page agent={agent} isNew={isNew} onSend={onSend} />);
  return { onSend, user: userEvent.setup() };
}
const send = () => screen.getByRole("button", { name: "Send" });

// requirement: graph-input
it("a message is sent with the values of the form, which is then empty", async () => {
  const { onSend, user } = show(writer);
  await user.type(screen.getByLabelText(/^Audience/), "all");
  await user.click(screen.getByText("More input"));
  await user.type(screen.getByLabelText("Words"), "50");
  await user.click(screen.getByText("Settings of the agent"));
  await user.selectOptions(screen.getByLabelText("Tone"), "loud");
  await user.type(screen.getByLabelText("Message"), "bees{Enter}");
  const values = { input: { audience: "all", words: 50 }, context: { tone: "loud" } };
  expect(onSend).toHaveBeenCalledWith("bees", "wait", values);
  expect(screen.getByLabelText<HTMLTextAreaElement>(/^Audience/).value).toBe("");
});

it("a missing field is marked, described and focused, and nothing is sent", async () => {
  const { onSend, user } = show(writer);
  await user.type(screen.getByLabelText("Message"), "bees{Enter}");
  expect(onSend).not.toHaveBeenCalled();
  expect(screen.getByRole("alert").textContent).toBe("Fill in a value.");
  const field = screen.getByLabelText(/^Audience/);
  await vi.waitFor(() => expect(document.activeElement).toBe(field));
  expect(field.getAttribute("aria-invalid")).toBe("true");
  const described = field.getAttribute("aria-describedby")?.split(" ") ?? [];
  expect(described.map((id) => document.getElementById(id)?.textContent)).toEqual(["Who reads it", "Fill in a value."]);
  expect(screen.getByLabelText<HTMLTextAreaElement>("Message").value).toBe("bees");
});

it("a mistake in a field that is hidden shows it", async () => {
  const { user } = show(writer);
  await user.type(screen.getByLabelText(/^Audience/), "all");
  await user.click(screen.getByText("More input"));
  await user.type(screen.getByLabelText("Words"), "many");
  await user.click(screen.getByText("More input"));
  await user.type(screen.getByLabelText("Message"), "bees{Enter}");
  expect(screen.getByRole("alert").textContent).toBe("This is not a number.");
  expect(screen.getByText("More input").closest("details")?.open).toBe(true);
});

it("an agent that takes no question shows only its form", async () => {
  const { onSend, user } = show(formOnly);
  expect(screen.queryByLabelText("Message")).toBe(null);
  await user.type(screen.getByLabelText(/^Topic/), "bees");
  await user.type(screen.getByLabelText(/^Audience/), "all");
  await user.click(send());
  expect(onSend).toHaveBeenCalledWith("", "wait", { input: { topic: "bees", audience: "all" } });
});

it("nothing is required in a conversation that continues", async () => {
  const { onSend, user } = show(writer, false);
  await user.type(screen.getByLabelText("Message"), "ants{Enter}");
  expect(onSend).toHaveBeenCalledWith("ants", "wait", {});
});

it("an agent that takes only a question has no form", async () => {
  const { input_schema: _input, context_schema: _context, ...plain } = writer;
  const { onSend, user } = show(plain);
  expect(screen.queryByRole("group")).toBe(null);
  await user.type(screen.getByLabelText("Message"), "ants{Enter}");
  expect(onSend).toHaveBeenCalledWith("ants", "wait", {});
});
