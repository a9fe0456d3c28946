/** Names, one beside the other. */
export function Chips({ names }: { readonly names: readonly string[] }) {
  return (
    <ul className="chips">
      {names.map((name) => (
        <li key={name}>
          <code>{name}</code>
        </li>
      ))}
    </ul>
  );
}
