import { argsText } from "../log/readable";
import type { ApprovalItem } from "../log/view";
import { straight, visible } from "../text/visible";

const WORDS = { approve: "Approved", edit: "Approved with changes", reject: "Rejected" };

/** Who decided what about a question, in one line. */
export function Decided({ asked }: { asked: ApprovalItem }) {
  if (asked.decision === null) return <p className="decided">Waits for a decision.</p>;
  const by = asked.by === "" ? "" : ` by ${asked.by}`;
  const when = asked.decidedAt === null ? "" : ` at ${new Date(asked.decidedAt).toLocaleTimeString()}`;
  return (
    <p className="decided" data-decision={asked.decision}>
      {WORDS[asked.decision]}
      {by}
      {when}
      {asked.reason !== "" && `: ${straight(asked.reason)}`}
      {asked.editedArgs !== null && <code className="decided-args">{visible(argsText(asked.editedArgs))}</code>}
    </p>
  );
}
