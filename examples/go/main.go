// A gRPC client in Go: call whoami, create an application, check its access,
// list its events and delete it.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	latchkey "example.com/latchkey-client/gen/latchkey/v1"
)

const callTimeout = 5 * time.Second

func main() {
	log.SetFlags(0)
	url := os.Getenv("LATCHKEY_URL")
	if url == "" {
		url = "http://localhost:8080"
	}
	connection, err := connect(url, os.Getenv("SVC_API_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	defer connection.Close()
	tour := tour{
		applications: latchkey.NewApplicationServiceClient(connection),
		access:       latchkey.NewAccessServiceClient(connection),
		events:       latchkey.NewEventServiceClient(connection),
	}
	if err := tour.run(context.Background()); err != nil {
		log.Fatal(explain(err))
	}
}

type tour struct {
	applications latchkey.ApplicationServiceClient
	access       latchkey.AccessServiceClient
	events       latchkey.EventServiceClient
}

func (t tour) run(ctx context.Context) error {
	if err := t.whoAmI(ctx); err != nil {
		return err
	}
	application, err := t.create(ctx)
	if err != nil {
		return err
	}
	// Clean up, even after an error.
	defer t.delete(ctx, application)
	if err := t.check(ctx, application); err != nil {
		return err
	}
	t.createInvalid(ctx)
	return t.listEvents(ctx, application)
}

func (t tour) whoAmI(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	self, err := t.access.WhoAmI(ctx, &latchkey.WhoAmIRequest{})
	if err != nil {
		return err
	}
	fmt.Printf("I am %s, a %s application.\n", self.Name, self.Type)
	return nil
}

func (t tour) create(ctx context.Context) (*latchkey.Application, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	container := "/pci/"
	application, err := t.applications.CreateApplication(ctx, &latchkey.CreateApplicationRequest{
		Name: "Go client",
		Type: "private",
		Rules: []*latchkey.AccessRule{{
			Priority:    1,
			Container:   &container,
			Transform:   "mask",
			Permissions: []string{"token:read"},
		}},
	})
	if err != nil {
		return nil, err
	}
	fmt.Printf("Created %s.\n", application.Name)
	return application, nil
}

func (t tour) check(ctx context.Context, application *latchkey.Application) error {
	for _, container := range []string{"/pci/", "/pii/"} {
		if err := t.checkIn(ctx, application, container); err != nil {
			return err
		}
	}
	return nil
}

func (t tour) checkIn(ctx context.Context, application *latchkey.Application, container string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	decision, err := t.access.CheckAccess(ctx, &latchkey.CheckAccessRequest{
		Principal:  &latchkey.CheckAccessRequest_Key{Key: application.GetKey()},
		Permission: "token:read",
		Token:      &latchkey.TokenReference{Container: &container},
	})
	if err != nil {
		return err
	}
	if decision.Allowed {
		fmt.Printf("Its key may read tokens in %s: %s.\n", container, decision.GetTransform())
	} else {
		fmt.Printf("Its key may not read tokens in %s: %s.\n", container, decision.GetReason())
	}
	return nil
}

// createInvalid sends an invalid request to show its error.
func (t tour) createInvalid(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := t.applications.CreateApplication(ctx, &latchkey.CreateApplicationRequest{
		Name: "Go client", Type: "secret", Permissions: []string{"token:read"},
	})
	fmt.Println(explain(err))
}

func (t tour) listEvents(ctx context.Context, application *latchkey.Application) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	events, err := t.events.ListEvents(ctx, &latchkey.ListEventsRequest{Target: &application.Id})
	if err != nil {
		return err
	}
	var kinds []string
	for _, event := range events.Data {
		kinds = append(kinds, event.Kind)
	}
	fmt.Printf("Events: %s.\n", strings.Join(kinds, ", "))
	return nil
}

func (t tour) delete(ctx context.Context, application *latchkey.Application) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if _, err := t.applications.DeleteApplication(ctx, &latchkey.DeleteApplicationRequest{Id: application.Id}); err != nil {
		log.Print(explain(err))
		return
	}
	fmt.Printf("Deleted %s.\n", application.Name)
}
