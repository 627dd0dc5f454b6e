package plan

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/testing/protocmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
)

// Ids are sent as they are if possible, and else as a hash: different ones stay different.
func TestToldID(t *testing.T) {
	long := strings.Repeat("x", mostIDBytes)
	for _, id := range []string{"", "aws:///us-east-1a/i-0123456789abcdef0", long} {
		if got := ToldID(id); got != id {
			t.Errorf("%q is told as %q", id, got)
		}
	}
	seen := map[string]string{}
	for _, id := range []string{long + "y", long + "z", "a b", "a\tb", "m\u00e4chine"} {
		got := ToldID(id)
		if !strings.HasPrefix(got, "sha256:") || len(got) != len("sha256:")+32 || seen[got] != "" {
			t.Errorf("%q is told as %q, %q too", id, got, seen[got])
		}
		seen[got] = id
	}
}

// Faults of machines are counted by cause: the cloud has none left, or something else is wrong.
func TestFaults(t *testing.T) {
	for _, class := range []int32{1, 99} {
		want := &loadlinev1.MachineFault{Code: "STOCK_OUT", Message: "none", OutOfResources: class == 1}
		got := machineMessage(&externalgrpc.Instance{Status: &externalgrpc.InstanceStatus{
			ErrorInfo: &externalgrpc.InstanceErrorInfo{ErrorCode: "STOCK_OUT", ErrorMessage: "none",
				InstanceErrorClass: class}}}).GetFault()
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("class %d: %s", class, diff)
		}
	}
	if got := machineMessage(&externalgrpc.Instance{Status: &externalgrpc.InstanceStatus{
		ErrorInfo: &externalgrpc.InstanceErrorInfo{}}}).GetFault(); got != nil {
		t.Errorf("without a code: %v", got)
	}
}

// Each question has the windows that hold, or come next, and what stays the same has none.
func TestMovesBeginInWindows(t *testing.T) {
	p := plannerOf(t, func(flags *pflag.FlagSet) {
		for _, window := range []string{"0 22 * * 1-5 6h", `"0 9,15 * * * 30m Europe/Berlin"`} {
			if err := flags.Set("replacement-windows", window); err != nil {
				t.Fatal(err)
			}
		}
	})
	at := func(hour, minute int) time.Time {
		return time.Date(2026, time.November, 26, hour, minute, 0, 0, time.UTC)
	}
	want := &loadlinev1.TimeWindows{Windows: []*loadlinev1.TimeWindow{
		{FromS: at(22, 0).Unix(), UntilS: at(28, 0).Unix()}, {FromS: at(14, 0).Unix(), UntilS: at(14, 30).Unix()}}}
	for _, now := range []time.Time{at(12, 0), at(14, 29)} {
		if diff := cmp.Diff(want, p.Consolidation(now).GetWindows(), protocmp.Transform()); diff != "" {
			t.Errorf("at %v: %s", now, diff)
		}
	}
	if p.Settings.GetConsolidation().GetWindows() != nil {
		t.Error("the settings have changed")
	}
	always := plannerOf(t, func(*pflag.FlagSet) {})
	if got := always.Consolidation(at(12, 0)).GetWindows(); got != nil {
		t.Errorf("without windows: %v", got)
	}
}

// A new leader that cannot read what there is continues without it after some attempts.
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

// A state that may not be created names the manifest that creates it.
func TestAMissingStateNamesItsManifest(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("create", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", errors.New("no right"))
	})
	for _, c := range []struct {
		options        config.Configuration
		name, manifest string
	}{{config.Default(), "loadline-autoscaler-state", "act"},
		{config.DropIn(), "cluster-autoscaler-state", "drop-in-act"}} {
		err := newStateStore(client, &c.options).write(t.Context(), []byte("bytes"))
		if !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), "ConfigMap kube-system/"+c.name+" is missing, "+
			"and may not be created: apply manifests/autoscaler/"+c.manifest+"/10-rbac.yaml") {
			t.Error(err)
		}
	}
}

// The chart creates the ConfigMap of the state, and Helm knows it by labels and annotations. They
// stay.
func TestStateKeepsWhatOthersAdd(t *testing.T) {
	options := config.Default()
	client := fake.NewClientset(&v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system",
		Name: StateName(&options), Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"},
		Annotations: map[string]string{"meta.helm.sh/release-name": "loadline"}}})
	maps := client.CoreV1().ConfigMaps("kube-system")
	s := newStateStore(client, &options)
	if got := s.read(t.Context()); got != nil {
		t.Errorf("the state of an empty ConfigMap is %q", got)
	}
	for _, state := range []string{"one", "two"} {
		if err := s.write(t.Context(), []byte(state)); err != nil {
			t.Fatal(err)
		}
		m, err := maps.Get(t.Context(), StateName(&options), metav1.GetOptions{})
		if err != nil || string(m.BinaryData[stateKey]) != state || len(m.BinaryData) != 1 ||
			m.Labels["app.kubernetes.io/managed-by"] != "Helm" || m.Annotations["meta.helm.sh/release-name"] != "loadline" {
			t.Errorf("after %s: %+v, error %v", state, m, err)
		}
	}
	if got := newStateStore(client, &options).read(t.Context()); string(got) != "two" {
		t.Errorf("the next leader reads %q", got)
	}
}
