import { memo } from "react";
import type { TodosItem } from "../log/view";
import { straight } from "../text/invisibleCharacters";
import { StateIcon } from "../ui/StateIcon";
import type { TodoStatus } from "../wire/events";
import { useChat } from "./context";

/** What an agent has begun and not ticked is only running while the agent is. */
function stateOf(status: TodoStatus, list: TodosItem["state"]): "pending" | TodosItem["state"] {
  if (status === "completed") return "done";
  if (status === "pending" || list === "done") return "pending";
  return list;
}

/** The agent's list, as it stands now. */
export const Todos = memo(function Todos({ item }: { item: TodosItem }) {
  const { focus } = useChat();
  const done = item.todos.filter((todo) => todo.status === "completed").length;
  return (
    <section className={`todos ${focus === item.key ? "focused" : ""}`} aria-label="To do" data-item={item.key}>
      <p className="todos-count">
        {done} of {item.todos.length} done
      </p>
      <ul>
        {item.todos.map((todo, place) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the list is replaced as a whole, its places are what stays
          <li key={place} className={`todo todo-${todo.status}`}>
            <StateIcon state={stateOf(todo.status, item.state)} size={14} />
            <span>{straight(todo.content)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
});
