// Validates the output of `helm template` against the Go types of the manifests. Fails on an unknown
// kind, an unknown or duplicate field, or a value of a wrong type.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	stream "k8s.io/apimachinery/pkg/util/yaml"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"
)

var types = map[string]func() any{
	"v1/ConfigMap":                            func() any { return &core.ConfigMap{} },
	"v1/PersistentVolumeClaim":                func() any { return &core.PersistentVolumeClaim{} },
	"v1/Secret":                               func() any { return &core.Secret{} },
	"v1/Service":                              func() any { return &core.Service{} },
	"v1/ServiceAccount":                       func() any { return &core.ServiceAccount{} },
	"apps/v1/Deployment":                      func() any { return &apps.Deployment{} },
	"autoscaling/v2/HorizontalPodAutoscaler":  func() any { return &autoscaling.HorizontalPodAutoscaler{} },
	"networking.k8s.io/v1/Ingress":            func() any { return &networking.Ingress{} },
	"networking.k8s.io/v1/NetworkPolicy":      func() any { return &networking.NetworkPolicy{} },
	"policy/v1/PodDisruptionBudget":           func() any { return &policy.PodDisruptionBudget{} },
	"gateway.networking.k8s.io/v1/HTTPRoute":  func() any { return &gateway.HTTPRoute{} },
	"monitoring.coreos.com/v1/PrometheusRule": func() any { return &monitoring.PrometheusRule{} },
	"monitoring.coreos.com/v1/ServiceMonitor": func() any { return &monitoring.ServiceMonitor{} },
}

func main() {
	count, err := checkAll(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%d manifests are valid\n", count)
}

func checkAll(input io.Reader) (int, error) {
	documents := stream.NewYAMLReader(bufio.NewReader(input))
	for count := 0; ; {
		document, err := documents.Read()
		switch {
		case errors.Is(err, io.EOF) && count == 0:
			return 0, errors.New("no manifest found")
		case errors.Is(err, io.EOF):
			return count, nil
		case err != nil:
			return count, err
		}
		isManifest, err := check(document)
		if err != nil {
			return count, err
		}
		if isManifest {
			count++
		}
	}
}

// check validates a document and reports whether it is a manifest. It may contain only comments.
func check(document []byte) (bool, error) {
	var kind meta.TypeMeta
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return false, err
	}
	if kind == (meta.TypeMeta{}) && isEmpty(document) {
		return false, nil
	}
	name := kind.APIVersion + "/" + kind.Kind
	newObject, ok := types[name]
	if !ok {
		return false, fmt.Errorf("unknown kind %s: add it to types in main.go", name)
	}
	if err := yaml.UnmarshalStrict(document, newObject()); err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	return true, nil
}

func isEmpty(document []byte) bool {
	text, err := yaml.YAMLToJSON(document)
	return err == nil && bytes.Equal(bytes.TrimSpace(text), []byte("null"))
}
