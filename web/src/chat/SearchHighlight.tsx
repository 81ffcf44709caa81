import { marked } from "../log/filter";
import { visible } from "../text/invisibleCharacters";
import { useChat } from "./context";

/** A text with the words that the search looks for marked in it. */
export function Marked({ text }: { text: string }) {
  const { words } = useChat();
  const shown = visible(text);
  if (words.length === 0) return shown;
  let at = 0;
  return marked(shown, words).map((part) => {
    const key = at;
    at += part.text.length;
    return part.hit ? <mark key={key}>{part.text}</mark> : <span key={key}>{part.text}</span>;
  });
}
