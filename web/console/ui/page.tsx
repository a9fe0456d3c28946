import { type ReactNode, useEffect } from "react";

interface PageProps {
  readonly title: string;
  /** What stands beside the title: buttons, badges. */
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

/** A page with its title, which the tab shows as well. */
export function Page({ title, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Latchkey`;
  }, [title]);
  return (
    <div className="page">
      <header className="page-header">
        <h1>{title}</h1>
        {actions && <div className="actions">{actions}</div>}
      </header>
      {children}
    </div>
  );
}
