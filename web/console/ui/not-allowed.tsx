/** Says that a page is not for the key of the person, and what that would have to hold. */
export function NotAllowed({ permission }: { readonly permission: string }) {
  return (
    <p className="notice" data-tone="warning">
      <span>
        Your key may not do this: it does not hold <code>{permission}</code>.
      </span>
    </p>
  );
}
