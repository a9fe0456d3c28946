package main

import (
	"fmt"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
)

// Prints the details of a failed call: its code and message, the stable reason,
// and the errors by field.
func explain(err error) string {
	failure := status.Convert(err)
	lines := []string{fmt.Sprintf("%s: %s", failure.Code(), failure.Message())}
	for _, detail := range failure.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			lines = append(lines, "  reason: "+strings.ToLower(detail.Reason))
		case *errdetails.BadRequest:
			for _, violation := range detail.FieldViolations {
				lines = append(lines, fmt.Sprintf("  %s: %s", violation.Field, violation.Description))
			}
		}
	}
	return strings.Join(lines, "\n")
}
