package e2e

import (
	"context"
	"math"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/pflag"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"loadline.dev/shim/autoscaler"
	"loadline.dev/shim/autoscaler/act/drain"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/engine"
)

// wallClock is a clock that can be set.
type wallClock struct {
	began time.Time
	ahead atomic.Int64 // nanoseconds
}

func (c *wallClock) clock() autoscaler.Clock {
	return autoscaler.Clock{Now: func() time.Time { return time.Now().Round(0).Add(c.set()) },
		Passed: func() time.Duration { return time.Since(c.began) }}
}

func (c *wallClock) set() time.Duration { return time.Duration(c.ahead.Load()) }

// runHere runs the autoscaler in the test, until that ends.
func (s *scaled) runHere(clock autoscaler.Clock) {
	s.t.Helper()
	flags := pflag.NewFlagSet("autoscaler", pflag.ContinueOnError)
	settings := config.AddFlags(flags, false)
	must := func(err error) {
		s.t.Helper()
		if err != nil {
			s.t.Fatal(err)
		}
	}
	must(flags.Parse(append(s.arguments("autoscaler", config.Act), "--bind-address=")))
	options, _, err := settings.Configuration(s.config())
	must(err)
	rest, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	must(err)
	rest.QPS, rest.Burst = float32(options.KubeClientQPS), options.KubeClientBurst
	client, err := kubernetes.NewForConfig(rest)
	must(err)
	objects, err := dynamic.NewForConfig(rest)
	must(err)
	conn, err := engine.Open(options.Engine)
	must(err)
	cloud, err := cloud.Open(options.CloudProvider.Options)
	must(err)
	a := autoscaler.New(&options, &config.Loaded{}, conn, client, objects, cloud, "test")
	a.Clock = clock
	ctx, stop := context.WithCancel(s.ctx)
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	s.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
		conn.Close()
		cloud.Close()
	})
}

// The wall clock is set an hour ahead while nodes wait for their removal, and later an hour back: each waits as long as
// it has to, by the time that passes, and then it is removed. Invariant D7.
func TestWallClockIsSet(t *testing.T) {
	t.Parallel()
	const unneeded = 12 * time.Second
	s := newScaled(t, config.Act, true, "--scale-down-unneeded-time="+unneeded.String())
	clock := &wallClock{began: time.Now()}
	s.runHere(clock.clock())
	ahead := time.Duration(0) // of the plans, against the time in which the test runs
	for i, c := range []struct {
		name string
		set  time.Duration
	}{{"ahead", time.Hour}, {"back", 0}, {"not at all", 0}} {
		if i > 0 {
			if err := s.cloud.Grow("pool", 3); err != nil {
				t.Fatal(err)
			}
			s.wait("more nodes", func() bool { return len(s.nodes()) == s.cloud.Target("pool") })
		}
		nodes := len(s.nodes())
		s.wait("nodes that wait to go", func() bool { return slices.ContainsFunc(s.nodes(), waitsToGo) })
		clock.ahead.Store(int64(c.set))
		shortest := time.Duration(math.MaxInt64)
		s.wait("nodes to go", func() bool {
			for _, node := range s.nodes() {
				if mark, ours := drain.MarkOf(&node); ours {
					shortest = min(shortest, time.Since(time.Unix(mark.Since, 0).Add(-ahead)))
				}
			}
			return len(s.nodes()) < nodes
		})
		t.Logf("set %s: the first node went after %v", c.name, shortest)
		if shortest < unneeded {
			t.Errorf("set %s: a node went after %v, want at least %v", c.name, shortest, unneeded)
		}
		s.waitSettled()
		ahead = c.set
		s.wait("plans to follow the clock",
			func() bool { return (s.planned().Sub(time.Now()) - ahead).Abs() < time.Minute })
	}
	s.check()
}

var statusTime = regexp.MustCompile(`(?m)^time: "?([^"\n]+)"?$`)

// planned returns the time of the last plan.
func (s *scaled) planned() time.Time {
	s.t.Helper()
	found := statusTime.FindStringSubmatch(s.status())
	if found == nil {
		s.t.Fatalf("the status tells no time: %s", s.status())
	}
	at, err := time.Parse(time.RFC3339, found[1])
	if err != nil {
		s.t.Fatal(err)
	}
	return at
}

// waitsToGo says whether a node is marked as one that may go, but does not go yet.
func waitsToGo(node v1.Node) bool {
	return drain.HasTaint(&node, drain.SoftTaint)
}
