import { Button } from "../ui/Button";

export function NotFound({ onNew }: { onNew(): void }) {
  return (
    <div className="missing">
      <h2>There is no such conversation</h2>
      <p className="quiet">It was deleted, or the link is of another server or another user.</p>
      <Button variant="main" onClick={onNew}>
        New conversation
      </Button>
    </div>
  );
}
