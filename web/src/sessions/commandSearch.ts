import type { Command } from "../app/shortcuts";

/** The commands that have all the words, those that begin with the text first. Pure. */
export function matching(commands: readonly Command[], text: string): readonly Command[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return commands;
  const words = wanted.split(/\s+/);
  const fitting = commands.filter((command) => {
    const said = `${command.title} ${command.hint ?? ""}`.toLowerCase();
    return words.every((word) => said.includes(word));
  });
  const rank = (command: Command) => (command.title.toLowerCase().startsWith(wanted) ? 0 : 1);
  return fitting.toSorted((one, other) => rank(one) - rank(other));
}
