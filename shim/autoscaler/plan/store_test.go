package plan

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"loadline.dev/shim/autoscaler/config"
)

// A new leader that cannot read what there is goes on without it after some attempts.
func TestAStateThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system",
			Name: "loadline-autoscaler-state"}, BinaryData: map[string][]byte{"loop": []byte("bytes")}})
		fails := 0
		client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			fails--
			return fails >= 0, nil, errors.New("not now")
		})
		options := config.Default()
		for _, c := range []struct {
			fails int
			want  string
		}{{0, "bytes"}, {stateTries - 1, "bytes"}, {stateTries, ""}} {
			fails = c.fails
			if got := newStateStore(client, &options).read(context.Background()); string(got) != c.want {
				t.Errorf("after %d failures: %q, want %q", c.fails, got, c.want)
			}
		}
	})
}
