package kuberelease

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

type server struct {
	version string
	err     error
}

func (s server) ServerVersion() (*version.Info, error) {
	return &version.Info{GitVersion: s.version}, s.err
}

func TestMeant(t *testing.T) {
	for text, want := range map[string]int32{"v1.36.3": 36, "v1.37.2-eks-5d4a308": 37, "v1.40.0-alpha.1+3f5": 40,
		"1.37": 37, "v2.0.0": 0, "v1.": 0, "v1.-4": 0, "": 0} {
		if got := Meant(0, server{version: text}); got != want {
			t.Errorf("%q: got minor %d, want %d", text, got, want)
		}
	}
	if got := Meant(0, server{"v1.37.2", errors.New("no answer")}); got != 0 {
		t.Errorf("without an answer: got minor %d, want 0", got)
	}
	if got := Meant(36, server{version: "v1.37.2"}); got != 36 {
		t.Errorf("given 36: got minor %d", got)
	}
}

// lateServer answers with errors first, one by one.
type lateServer struct {
	errs  []error
	asked int
}

func (s *lateServer) ServerVersion() (*version.Info, error) {
	s.asked++
	if len(s.errs) == 0 {
		return &version.Info{GitVersion: "v1.37.2"}, nil
	}
	err := s.errs[0]
	s.errs = s.errs[1:]
	return nil, err
}

func TestAwaitAsksUntilTheServerAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("connection refused")
		late := &lateServer{errs: []error{down, down, down}}
		if got := Await(t.Context(), 0, late); got != 37 || late.asked != 4 {
			t.Errorf("got minor %d after %d questions, want 37 after 4", got, late.asked)
		}
		refuses := &lateServer{errs: []error{apierrors.NewForbidden(schema.GroupResource{}, "version", nil)}}
		if got := Await(t.Context(), 0, refuses); got != 0 || refuses.asked != 1 {
			t.Errorf("refused: got minor %d after %d questions, want 0 after 1", got, refuses.asked)
		}
		began := time.Now()
		gone := &lateServer{errs: slices.Repeat([]error{down}, 1000)}
		if got := Await(t.Context(), 0, gone); got != 0 || time.Since(began) > 2*time.Minute { // clock: of synctest
			t.Errorf("never an answer: got minor %d after %v, want 0 after a minute", got, time.Since(began))
		}
		given := &lateServer{errs: []error{down}}
		if got := Await(t.Context(), 36, given); got != 36 || given.asked != 0 {
			t.Errorf("given 36: got minor %d after %d questions, want 36 and none", got, given.asked)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if got := Await(ctx, 0, &lateServer{errs: []error{down, down}}); got != 0 {
			t.Errorf("context ended: got minor %d, want 0", got)
		}
	})
}
