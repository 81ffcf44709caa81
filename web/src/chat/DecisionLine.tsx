import type { ApprovalItem } from "../log/view";
import { straight } from "../text/invisibleCharacters";
import { Arguments } from "./Arguments";
import { partsOf } from "./argumentParts";

const WORDS = { approve: "Approved", edit: "Approved with changes", reject: "Rejected" };

/** Who decided what about a question, in one line, and what was changed. */
export function Decided({ asked }: { asked: ApprovalItem }) {
  if (asked.decision === null) return <p className="decided">Waits for a decision.</p>;
  const by = asked.by === "" ? "" : ` by ${asked.by}`;
  const when = asked.decidedAt === null ? "" : ` at ${new Date(asked.decidedAt).toLocaleTimeString()}`;
  const { name, editedArgs } = asked;
  return (
    <>
      <p className="decided" data-decision={asked.decision}>
        {WORDS[asked.decision]}
        {by}
        {when}
        {asked.reason !== "" && `: ${straight(asked.reason)}`}
      </p>
      {editedArgs !== null && <Arguments parts={partsOf({ name, args: editedArgs, argsText: "", isPython: false })} />}
    </>
  );
}
