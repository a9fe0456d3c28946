import { useState } from "react";

export function KeyForm({ onKey }: { readonly onKey: (key: string) => void }) {
  const [typed, setTyped] = useState("");
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onKey(typed.trim());
      }}
    >
      <label>
        Key{" "}
        <input
          type="password"
          autoComplete="off"
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
        />
      </label>{" "}
      <button type="submit">Sign in</button>
    </form>
  );
}
