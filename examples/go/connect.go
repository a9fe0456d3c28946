package main

import (
	"context"
	"fmt"
	"net/url"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// connect returns a connection that sends the key with every call.
func connect(address, key string) (*grpc.ClientConn, error) {
	if key == "" {
		return nil, fmt.Errorf("set SVC_API_KEY to the key from the first start of Latchkey")
	}
	parsed, err := url.Parse(address)
	if err != nil || parsed.Port() == "" {
		return nil, fmt.Errorf("LATCHKEY_URL must be a URL with a port, such as http://localhost:8080")
	}
	transport := credentials.NewTLS(nil)
	if parsed.Scheme == "http" {
		transport = insecure.NewCredentials()
	}
	return grpc.NewClient(
		parsed.Host,
		grpc.WithTransportCredentials(transport),
		grpc.WithPerRPCCredentials(apiKey{key: key, needsTLS: parsed.Scheme == "https"}),
	)
}

type apiKey struct {
	key      string
	needsTLS bool
}

func (a apiKey) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"svc-api-key": a.key}, nil
}

// With an https URL, the key is never sent without TLS.
func (a apiKey) RequireTransportSecurity() bool {
	return a.needsTLS
}
