package main

import (
	"fmt"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
)

// explain formats an error: status and message, error code and field errors.
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
