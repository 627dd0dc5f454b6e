package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"loadline.dev/shim/usage/profile"
)

// names returns the workloads of profiles and what they use.
func names(profiles []profile.Profile) (out []string) {
	for _, p := range profiles {
		out = append(out, fmt.Sprintf("%s %d", p.Workload.Name, p.Day[profile.CPU][0]))
	}
	return out
}

// encoded returns the shards of profiles that use an amount, collected at a time; at least as many as count.
func encoded(collected, amount int64, count int, workloads ...string) (shards [][]byte) {
	var profiles []profile.Profile
	for _, name := range workloads {
		profiles = append(profiles, flat("shop", name, 1, amount))
	}
	head := Head{Collected: collected, Days: 7, Percent: 90}
	for range count - 1 {
		more, _ := Encode(&head, profiles[:1])
		shards, profiles = append(shards, more...), profiles[1:]
	}
	more, _ := Encode(&head, profiles)
	return append(shards, more...)
}

func TestWritesAndReads(t *testing.T) {
	client, ctx := fake.NewClientset(), t.Context()
	expect := func(want []string, wantProblems int) {
		t.Helper()
		_, got, problems, err := Read(ctx, client, "ll")
		if err != nil || !slices.Equal(names(got), want) || len(problems) != wantProblems {
			t.Errorf("%q, problems %q, %v; want %q", names(got), problems, err, want)
		}
	}
	expect(nil, 0)
	if err := Write(ctx, client, "ll", encoded(10, 5, 3, "a", "b", "c")); err != nil {
		t.Fatal(err)
	}
	expect([]string{"a 5", "b 5", "c 5"}, 0)
	if err := Write(ctx, client, "ll", encoded(20, 7, 2, "a", "b")); err != nil {
		t.Fatal(err)
	}
	expect([]string{"a 7", "b 7"}, 0)
	// The second shard cannot be written: what is there stays, and the newer of two counts.
	client.PrependReactor("update", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.(clienttesting.UpdateAction).GetObject().(*v1.ConfigMap).Name == Name(1) {
			return true, nil, errors.New("no")
		}
		return false, nil, nil
	})
	if err := Write(ctx, client, "ll", encoded(30, 9, 2, "b", "c")); err == nil {
		t.Error("no error")
	}
	expect([]string{"b 9"}, 0)
	if err := Write(ctx, client, "ll", encoded(5, 3, 2, "b", "c")); err == nil {
		t.Error("no error")
	}
	expect([]string{"b 7"}, 0)
	broken := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ll", Name: Name(0)}}
	if err := client.Tracker().Update(v1.SchemeGroupVersion.WithResource("configmaps"), broken, "ll"); err != nil {
		t.Fatal(err)
	}
	expect([]string{"b 7"}, 1)
}

func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, ctx := fake.NewClientset(), t.Context()
		var mu sync.Mutex
		var got, told []string
		calls := 0
		Follow(ctx, client, "ll", func(profiles []profile.Profile) {
			mu.Lock()
			defer mu.Unlock()
			got = names(profiles)
			calls++
		}, func(problem string) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, problem)
		})
		expect := func(wait time.Duration, want []string, wantCalls int, wantTold ...string) {
			t.Helper()
			time.Sleep(wait)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(got, want) || calls != wantCalls {
				t.Errorf("%q in %d calls, want %q in %d", got, calls, want, wantCalls)
			}
			ok := len(told) == len(wantTold)
			for i := range told {
				ok = ok && strings.Contains(told[i], wantTold[i]) && (told[i] == "") == (wantTold[i] == "")
			}
			if !ok {
				t.Errorf("told %q, want %q", told, wantTold)
			}
			told = nil
		}
		expect(10*time.Second, nil, 0, "there is no ConfigMap ll/loadline-usage-0")
		if err := Write(ctx, client, "ll", encoded(time.Now().Unix(), 5, 2, "a", "b")); err != nil {
			t.Fatal(err)
		}
		expect(3*time.Second, []string{"a 5", "b 5"}, 1, "")
		expect(25*time.Hour, []string{"a 5", "b 5"}, 1, "are from 2000-01-01T00:00:10Z")
		broken := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ll", Name: Name(0)},
			BinaryData: map[string][]byte{Key: []byte("x")}}
		if err := client.Tracker().Update(v1.SchemeGroupVersion.WithResource("configmaps"), broken, "ll"); err != nil {
			t.Fatal(err)
		}
		expect(3*time.Second, []string{"b 5"}, 2, "ConfigMap ll/loadline-usage-0: it does not begin")
		other := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ll", Name: "other"}}
		if _, err := client.CoreV1().ConfigMaps("ll").Create(ctx, other, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		expect(time.Hour, []string{"b 5"}, 2)
		for i := range 2 {
			if err := client.CoreV1().ConfigMaps("ll").Delete(ctx, Name(i), metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		expect(3*time.Second, nil, 3, "there is no ConfigMap")
	})
}

// Labels and annotations that others add to the ConfigMaps stay, and ours return.
func TestKeepsWhatOthersAdd(t *testing.T) {
	client, ctx := fake.NewClientset(), t.Context()
	if err := Write(ctx, client, "ll", encoded(10, 5, 1, "a")); err != nil {
		t.Fatal(err)
	}
	m, err := client.CoreV1().ConfigMaps("ll").Get(ctx, Name(0), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m.Labels, m.Annotations = map[string]string{"team": "a"}, map[string]string{"theirs": "b"}
	if _, err := client.CoreV1().ConfigMaps("ll").Update(ctx, m, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := Write(ctx, client, "ll", encoded(20, 7, 1, "a")); err != nil {
		t.Fatal(err)
	}
	m, err = client.CoreV1().ConfigMaps("ll").Get(ctx, Name(0), metav1.GetOptions{})
	if err != nil || m.Labels["team"] != "a" || m.Annotations["theirs"] != "b" ||
		m.Labels["app.kubernetes.io/part-of"] != "loadline" {
		t.Errorf("%+v, error %v", m, err)
	}
	if _, got, _, err := Read(ctx, client, "ll"); err != nil || !slices.Equal(names(got), []string{"a 7"}) {
		t.Errorf("%q, error %v", names(got), err)
	}
}
