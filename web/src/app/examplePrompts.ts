/**
 * Example prompts for each built-in agent.
 *
 * They suit a real model. Some phrases ("an approval", "two helpers at once", "try an error") also select what
 * the understudy plays.
 */

interface Prompt {
  readonly text: string;
  /** The feature of Limelight that the prompt demonstrates. */
  readonly shows: string;
}

const APPROVED: Prompt = {
  text: "Write a note about kites and delete it again, with an approval",
  shows: "It asks you before it deletes",
};
const SAILORS = "How did clocks help sailors?";

const PROMPTS: Readonly<Record<string, readonly Prompt[]>> = {
  deep: [
    { text: "How do bees find their way to food?", shows: "A plan, files, a sub-agent that researches" },
    { text: "Ask two helpers at once about tides and lighthouses", shows: "Two sub-agents side by side" },
    APPROVED,
  ],
  agno: [
    { text: "Which rivers are the longest?", shows: "Finds and reads a file" },
    { text: "What is 48 * 17 + 5?", shows: "A calculator as a tool" },
    APPROVED,
  ],
  "agno-team": [
    { text: SAILORS, shows: "The leader delegates to a researcher" },
    { text: "Ask two helpers at once: what is 365 * 24?", shows: "Two members side by side" },
    { text: "Look up sourdough, and try an error on the way", shows: "A tool that fails" },
  ],
  react: [
    { text: SAILORS, shows: "Step by step: search, read, answer" },
    { text: "Why does sourdough rise? Write a long answer", shows: "A long answer as a document" },
    { text: "Look up tides, and try an error on the way", shows: "A tool that fails" },
  ],
  codact: [
    { text: "Add up 12, 19, 23 and 41 in Python", shows: "A plan, code, and what it prints" },
    { text: "Run a slow tool and print what it returns", shows: "The clock of a running step" },
    { text: "Look up bread, and try an error on the way", shows: "Code that fails, and why" },
  ],
  demo: [
    { text: "What do bees do in winter?", shows: "Todos, a sub-agent, a report as a file" },
    { text: "Report on lighthouses, after an approval", shows: "It asks you before it writes" },
    { text: "Look up rivers with a slow tool, and try an error", shows: "A tool that fails, and one that takes time" },
  ],
};

/** Example prompts for agents that are not built in. */
const ANY: readonly Prompt[] = [
  { text: "What can you do?", shows: "Its own words" },
  { text: "Which tools do you have? Try one of them", shows: "Arguments, result, duration" },
  { text: "Show me step by step how you work", shows: "Thoughts and steps as they come" },
];

export function promptsFor(agent: string): readonly Prompt[] {
  return Object.hasOwn(PROMPTS, agent) ? (PROMPTS[agent] ?? ANY) : ANY;
}
