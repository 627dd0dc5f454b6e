package apiserver

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"loadline.dev/shim/autoscaler/cloud"
)

func TestOutcome(t *testing.T) {
	of := schema.GroupResource{Group: "example.com", Resource: "things"}
	no := errors.New("no")
	webhook := errors.New(`failed calling webhook "a.example.com": no service`)
	for name, c := range map[string]struct {
		err     error
		unknown bool
	}{
		"forbidden":        {apierrors.NewForbidden(of, "a", no), false},
		"changed since":    {apierrors.NewConflict(of, "a", no), false},
		"gone":             {apierrors.NewNotFound(of, "a"), false},
		"too many":         {apierrors.NewTooManyRequests("later", 1), false},
		"webhook":          {apierrors.NewInternalError(webhook), false},
		"etcd":             {apierrors.NewInternalError(errors.New("etcdserver: request timed out")), true},
		"timeout":          {apierrors.NewTimeoutError("took too long", 1), true},
		"server timeout":   {apierrors.NewServerTimeout(of, "update", 1), true},
		"a proxy's 503":    {apierrors.NewGenericServerResponse(503, "PUT", of, "a", "upstream reset", 0, true), true},
		"API server's 503": {apierrors.NewServiceUnavailable("shutting down"), true},
		"no answer":        {&http.MaxBytesError{}, true},
	} {
		// Callers say which object it was.
		if got := Outcome(fmt.Errorf("thing a: %w", c.err)); cloud.OutcomeUnknown(got) != c.unknown {
			t.Errorf("%s: %v", name, got)
		}
	}
	if err := Outcome(nil); err != nil {
		t.Error(err)
	}
}
