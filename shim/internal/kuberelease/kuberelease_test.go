package kuberelease

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/version"
)

type server struct {
	version string
	err     error
}

func (s server) ServerVersion() (*version.Info, error) {
	return &version.Info{GitVersion: s.version}, s.err
}

func TestOfServer(t *testing.T) {
	for text, want := range map[string]int32{"v1.36.3": 36, "v1.37.2-eks-5d4a308": 37, "v1.40.0-alpha.1+3f5": 40,
		"1.37": 37, "v2.0.0": 0, "v1.": 0, "v1.-4": 0, "": 0} {
		if got := OfServer(server{version: text}); got != want {
			t.Errorf("%q: got minor %d, want %d", text, got, want)
		}
	}
	if got := OfServer(server{"v1.37.2", errors.New("no answer")}); got != 0 {
		t.Errorf("without an answer: got minor %d, want 0", got)
	}
	if got := Meant(36, server{version: "v1.37.2"}); got != 36 {
		t.Errorf("given 36: got minor %d", got)
	}
	if got := Meant(0, server{version: "v1.37.2"}); got != 37 {
		t.Errorf("given none: got minor %d, want 37", got)
	}
}
