import { Compass } from "lucide-react";
import { StrictMode, Suspense } from "react";
import { createRoot } from "react-dom/client";
import { Redirect, Route, Router, Switch } from "wouter";
import { applyTheme } from "../common/theme.js";
import { NewKeyProvider } from "./applications/new-key.js";
import { UnstoredKeysProvider } from "./bulk/unstored-keys.js";
import { home } from "./shell/pages.js";
import { Shell } from "./shell/shell.js";
import { RequireSignIn } from "./sign-in/sign-in.js";
import { ButtonLink } from "./ui/buttons.js";
import { EmptyState } from "./ui/display.js";
import { lazyComponent } from "./ui/lazy.js";
import { guardedNavigate } from "./ui/leave-guard.js";
import { OutageNotice } from "./ui/outage.js";
import { Page, PageSkeleton } from "./ui/page.js";
import { RateLimitNotice } from "./ui/rate-limit-notice.js";
import "../common/fonts.css";
import "../common/tokens.css";
import "../common/base.css";
import "./styles/controls.css";
import "./styles/display.css";
import "./styles/overlays.css";
import "./styles/table.css";
import "./styles/layout.css";
import "./access-check/access-check.css";
import "./activity/activity.css";
import "./applications/application-page.css";
import "./applications/form/form.css";
import "./applications/key-samples.css";
import "./bulk/bulk.css";
import "./lists/lists.css";
import "./me-page.css";
import "./overview/overview.css";
import "./rules/rules.css";
import "./sessions/try/try.css";

const OverviewPage = lazyComponent(() => import("./overview/overview-page.js"));
const ApplicationsPage = lazyComponent(() => import("./applications/applications-page.js"));
const ApplicationPage = lazyComponent(() => import("./applications/application-page.js"));
const NewApplicationPage = lazyComponent(() => import("./applications/new-application-page.js"));
const SessionsPage = lazyComponent(() => import("./sessions/sessions-page.js"));
const TrySessionPage = lazyComponent(() => import("./sessions/try-session-page.js"));
const AccessCheckPage = lazyComponent(() => import("./access-check/access-check-page.js"));
const ActivityPage = lazyComponent(() => import("./activity/activity-page.js"));
const MePage = lazyComponent(() => import("./me-page.js"));

function App() {
  return (
    <Router base="/console" aroundNav={guardedNavigate}>
      <OutageNotice />
      <RateLimitNotice />
      <NewKeyProvider>
        <UnstoredKeysProvider>
          <RequireSignIn home={home}>
            <Shell>
              <Suspense fallback={<PageSkeleton />}>
                <Switch>
                  <Route path="/applications" component={ApplicationsPage} />
                  <Route path="/applications/new" component={NewApplicationPage} />
                  <Route path="/applications/:id">
                    {({ id }) => <ApplicationPage key={id} id={id} />}
                  </Route>
                  <Route path="/sessions" component={SessionsPage} />
                  <Route path="/sessions/try" component={TrySessionPage} />
                  <Route path="/why" component={AccessCheckPage} />
                  <Route path="/activity/:id?">{({ id }) => <ActivityPage id={id} />}</Route>
                  <Route path="/me" component={MePage} />
                  <Route path={home} component={OverviewPage} />
                  <Route path="/">
                    <Redirect to={home} replace />
                  </Route>
                  <Route>
                    <Page title="Page not found">
                      <EmptyState
                        icon={Compass}
                        title="There is no page at this address"
                        action={<ButtonLink href={home}>Go to the start page</ButtonLink>}
                      >
                        The address may be mistyped, or the page has moved.
                      </EmptyState>
                    </Page>
                  </Route>
                </Switch>
              </Suspense>
            </Shell>
          </RequireSignIn>
        </UnstoredKeysProvider>
      </NewKeyProvider>
    </Router>
  );
}

applyTheme();
createRoot(document.getElementById("root") as HTMLElement).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
