import { marked } from "../log/filter";
import { useChat } from "./context";

/** A text with the words that the search looks for marked in it. */
export function Marked({ text }: { text: string }) {
  const { words } = useChat();
  if (words.length === 0) return text;
  let at = 0;
  return marked(text, words).map((part) => {
    const key = at;
    at += part.text.length;
    return part.hit ? <mark key={key}>{part.text}</mark> : <span key={key}>{part.text}</span>;
  });
}
