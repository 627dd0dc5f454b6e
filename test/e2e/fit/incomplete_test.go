package fit

import (
	"math/rand/v2"
	"slices"
	"testing"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/view"
)

// An engine that has not got all objects of a kind may say that it cannot judge, but not guess: whatever it
// does judge is what upstream says, who knows them all.
func TestIncompleteViewsAreNotGuessedAbout(t *testing.T) {
	p := newPair(t, nil)
	judged, open := 0, 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 11))
		c := Generate(seed)
		told := c.Copy()
		var complete []loadlinev1.ObjectKind
		for _, kind := range allKinds {
			// In 1.36, where the gate is off, a driver that is not known has no wish.
			sure := kind == loadlinev1.ObjectKind_CSI_DRIVER && Minor() < 37
			if sure || r.IntN(3) == 0 {
				complete = append(complete, kind)
				continue
			}
			withhold(r, told, kind)
		}
		if err := p.engine.Load(t.Context(), told, complete...); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		got, err := p.engine.Fit(t.Context(), &Case{Cluster: told},
			&loadlinev1.IncomingPod{Pod: view.TrimIncomingPodForFilters(Admitted(c.Pod))}, p.options)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		want, err := p.upstream.Filter(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want.Nodes {
			g := got[w.Node]
			if g.Status == CannotBeJudged {
				open++
				continue
			}
			judged++
			if w.Status != CannotBeJudged && (g.Status == Fits) != (w.Status == Fits) {
				t.Errorf("seed %d, complete: %v\nkube-scheduler: %+v\nengine:         %+v\n%s",
					seed, complete, w, g, c.YAML())
			}
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d answers judged, %d not", judged, open)
	if judged < 5*open || open < 200 {
		t.Errorf("%d answers judged, %d not: too few of one of them", judged, open)
	}
}

// withhold takes away about half of the objects of a kind.
func withhold(r *rand.Rand, c *Cluster, kind loadlinev1.ObjectKind) {
	switch kind {
	case loadlinev1.ObjectKind_NAMESPACE:
		c.Namespaces = halfOf(r, c.Namespaces)
	case loadlinev1.ObjectKind_PERSISTENT_VOLUME:
		c.Volumes = halfOf(r, c.Volumes)
	case loadlinev1.ObjectKind_PERSISTENT_VOLUME_CLAIM:
		c.Claims = halfOf(r, c.Claims)
	case loadlinev1.ObjectKind_STORAGE_CLASS:
		c.Classes = halfOf(r, c.Classes)
	case loadlinev1.ObjectKind_CSI_NODE:
		c.CSINodes = halfOf(r, c.CSINodes)
	case loadlinev1.ObjectKind_CSI_DRIVER:
		c.CSIDrivers = halfOf(r, c.CSIDrivers)
	case loadlinev1.ObjectKind_DEVICE_CLASS:
		c.Devices = halfOf(r, c.Devices)
	}
}

func halfOf[T any](r *rand.Rand, list []T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(T) bool { return r.IntN(2) == 0 })
}
