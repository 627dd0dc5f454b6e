package karpenter

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/cloud"
)

// Lines of managedPool.
const (
	capacityLine = `{key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}`
	zoneLine     = `{key: topology.kubernetes.io/zone, operator: In, values: [z1]}`
	typeLine     = `{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large, m5.xlarge], minValues: 2}`
	archLine     = `{key: kubernetes.io/arch, operator: In, values: [amd64]}`
)

// requires replaces a line of managedPool by requirements, each "KEY OPERATOR VALUE ...".
func requires(line string, requirements ...string) string {
	var lines []string
	for _, text := range requirements {
		words := strings.Fields(text)
		lines = append(lines, fmt.Sprintf(`{key: %s, operator: %s, values: ["%s"]}`, words[0], words[1],
			strings.Join(words[2:], `", "`)))
		if len(words) == 2 {
			lines[len(lines)-1] = fmt.Sprintf(`{key: %s, operator: %s}`, words[0], words[1])
		}
	}
	return strings.Replace(managedPool, line, strings.Join(lines, "\n      - "), 1)
}

// labelled gives the template of managedPool a further label.
func labelled(key, value string) string {
	return strings.Replace(managedPool, "{team: a}", "{team: a, "+key+": "+value+"}", 1)
}

// grown returns the groups that can grow, without the name of the pool, and the problems of the others.
func (w *world) grown() (ids []string, problems string) {
	w.Helper()
	for id, g := range w.groups() {
		if g.Problem == nil {
			ids = append(ids, strings.TrimPrefix(id, "default/"))
		} else {
			problems += id + ": " + g.Problem.Error() + "\n"
		}
	}
	slices.Sort(ids)
	return ids, problems
}

const (
	large, xlarge = "m5.large/z1/", "m5.xlarge/z1/"
	gpu           = "karpenter.k8s.aws/instance-gpu-"
)

// Each operator of a requirement is honoured for each key by which groups differ, and all requirements of a key are,
// with the labels of the NodePool among them.
func TestRequirements(t *testing.T) {
	spots := []string{large + "spot", xlarge + "spot"}
	demand := []string{large + "on-demand", xlarge + "on-demand"}
	all := slices.Sorted(slices.Values(slices.Concat(demand, spots)))
	larges, xlarges := []string{large + "on-demand", large + "spot"}, []string{xlarge + "on-demand", xlarge + "spot"}
	gpus := []string{"g5.xlarge/z1/on-demand", "g5.xlarge/z1/spot"}
	const capacity, kind, zone = "karpenter.sh/capacity-type", "node.kubernetes.io/instance-type",
		"topology.kubernetes.io/zone"
	for _, c := range []struct {
		pool string
		want []string
	}{
		{requires(capacityLine, capacity+" NotIn on-demand"), spots},
		{requires(capacityLine, capacity+" NotIn spot"), demand},
		{requires(capacityLine, capacity+" Exists"), all},
		{requires(capacityLine, capacity+" In spot on-demand", capacity+" NotIn spot"), demand},
		{requires(capacityLine, capacity+" In reserved spot"), spots},
		{labelled(capacity, "spot"), spots},
		{requires(zoneLine, zone+" In z1 z2", zone+" NotIn z2"), all},
		{requires(typeLine, kind+" NotIn m5.large g5.xlarge"), xlarges},
		{requires(typeLine, kind+" In m5.large m5.xlarge", kind+" In m5.large"), larges},
		{labelled(kind, "m5.large"), larges},
		{requires(archLine, "kubernetes.io/arch NotIn arm64"), all},
		{requires(archLine, "kubernetes.io/os Exists"), all},
		{requires(typeLine, "karpenter.k8s.aws/instance-cpu Gt 2", gpu+"count DoesNotExist"), xlarges},
		{requires(typeLine, "karpenter.k8s.aws/instance-cpu Lte 2"), larges},
		{requires(typeLine, "karpenter.k8s.aws/instance-memory Lt 9000"), larges},
		{requires(typeLine, "karpenter.k8s.aws/instance-family In m5", "karpenter.k8s.aws/instance-size NotIn large"),
			xlarges},
		{requires(typeLine, gpu+"name Exists"), gpus},
		{requires(typeLine, gpu+"name In a10g"), gpus}, // the list does not name the GPU
		{requires(typeLine, gpu+"count Gt 0"), gpus},
		{requires(typeLine, gpu+"count Gte 1"), gpus},
		{requires(typeLine, gpu+"count Lt 8"), gpus}, // a node without the label meets no comparison
		{requires(typeLine, gpu+"manufacturer In nvidia"), gpus},
		{requires(typeLine, gpu+"count NotIn 1"), all},
		{requires(typeLine, "karpenter.k8s.aws/instance-hypervisor In nitro", gpu+"count DoesNotExist"), all},
	} {
		w := newWorld(t, c.pool)
		if ids, problems := w.grown(); !slices.Equal(ids, c.want) || problems != "" {
			t.Errorf("%s\ngroups %v, want %v, problems %s", c.pool, ids, c.want, problems)
		}
	}
}

// A NodePool of which no group grows says why.
func TestPoolWithoutGroups(t *testing.T) {
	const capacity, zone = "karpenter.sh/capacity-type", "topology.kubernetes.io/zone"
	for _, c := range []struct{ pool, want string }{
		{requires(capacityLine, capacity+" In reserved"), capacity + " allow neither on-demand nor spot"},
		{requires(capacityLine, capacity+" DoesNotExist"), capacity + " allow neither"},
		{requires(capacityLine, capacity+" In spot", capacity+" NotIn spot"),
			"can meet its requirements and labels of " + capacity},
		{requires(zoneLine, zone+" In z1", zone+" In z2"), "can meet its requirements and labels of " + zone},
		{requires(zoneLine, zone+" DoesNotExist"), zone + " allow no zone"},
		{requires(archLine, "kubernetes.io/os In windows"), "none of the instance types whose shapes price lists state"},
		{requires(archLine, "kubernetes.io/arch DoesNotExist"), "none of the instance types"},
		{requires(typeLine, "karpenter.k8s.aws/instance-accelerator-name Exists"), "none of the instance types"},
		{requires(typeLine, "a/b Gt 5", "a/b Lt 6"), "can meet its requirements and labels of a/b"},
		{labelled(zone, "z9"), "can meet its requirements and labels of " + zone},
		{strings.Replace(managedPool, `"true"`, `"True"`, 1), `label loadline.dev/managed is "True": it must be "true"`},
		{strings.Replace(managedPool, `"true"`, `""`, 1), `label loadline.dev/managed is ""`},
	} {
		w := newWorld(t, c.pool)
		ids, problems := w.grown()
		if len(ids) > 0 ||
			!strings.HasPrefix(problems, "default/none: NodePool default") || !strings.Contains(problems, c.want) {
			t.Errorf("%s\ngroups %v, problems %q, want %q", c.pool, ids, problems, c.want)
		}
		if err := w.p.IncreaseSize(t.Context(), "default/none", 0, 1); err == nil || len(w.claims()) > 0 {
			t.Errorf("%d claims, error %v", len(w.claims()), err)
		}
	}
	w := newWorld(t, strings.Replace(managedPool, `"true"`, `"false"`, 1))
	if ids, problems := w.grown(); len(ids) > 0 || problems != "" {
		t.Errorf("groups %v, problems %q of a NodePool of Karpenter's", ids, problems)
	}
}

// Without a list that states shapes nothing can be planned, and each NodePool says so.
func TestNoShapes(t *testing.T) {
	w := newWorld(t, managedPool)
	p, err := New(DefaultOptions(), w.objects, []*loadlinev1.PriceCatalogue{{Name: "test",
		Csv: []byte("instance_type,on_demand_usd_per_hour\nm5.large,0.1\n")}})
	if err != nil {
		t.Fatal(err)
	}
	w.p = p
	if ids, problems := w.grown(); len(ids) > 0 || !strings.Contains(problems, "no price list states the shapes") {
		t.Errorf("groups %v, problems %q", ids, problems)
	}
}

// The bound of groups is shared: every NodePool has an instance type if that is possible, one that needs fewer leaves
// the rest to others, and one for which nothing is left says so. There are never more groups than may be.
func TestPoolsShareTheBound(t *testing.T) {
	pools := func(count int, zones string) (all []string) {
		for i := range count {
			all = append(all, strings.Replace(strings.Replace(managedPool, "name: default",
				fmt.Sprintf("name: p%02d", i), 1), "[z1]", zones, 1))
		}
		return all
	}
	single := strings.Replace(requires(capacityLine, "karpenter.sh/capacity-type In spot"), "name: default", "name: one",
		1)
	for _, c := range []struct {
		pools         []string
		most          int
		grow, without int // groups, and pools without
	}{
		{pools(60, "[z1, z2, z3]"), 300, 50 * 6, 10},
		{pools(60, "[z1, z2, z3]"), 360, 60 * 6, 0},
		{pools(2, "[z1]"), 7, 6, 0},
		{append(pools(1, "[z1]"), single), 6, 6, 0},
		{append(pools(1, "[z1, z2, z3]"), single), 6, 2, 1},
		{pools(1, "[z1]"), 1, 0, 1},
	} {
		w := newWorld(t, c.pools...)
		w.p.options.MaxGroups = c.most
		ids, problems := w.grown()
		without := strings.Count(problems, "raise --karpenter-max-groups")
		if len(ids) != c.grow || without != c.without || strings.Count(problems, "\n") != without {
			t.Errorf("%d pools, at most %d groups: %d groups, %d pools without, want %d and %d\n%s", len(c.pools), c.most,
				len(ids), without, c.grow, c.without, problems)
		}
	}
	w := newWorld(t, pools(251, "[z1]")...)
	w.p.options.MaxGroups = cloud.MaxGroups
	if all := w.groups(); len(all) > cloud.MaxGroups {
		t.Errorf("%d groups", len(all))
	}
}

// Nodes that are there can still be removed where their NodePool has become one that does not grow.
func TestNodesOfAPoolThatDoesNotGrow(t *testing.T) {
	w := newWorld(t, managedPool)
	w.grow(small, 0, 1)
	w.register(w.claims()[0].Name)
	w.replacePool(requires(capacityLine, "karpenter.sh/capacity-type In reserved"))
	w.expect(small, "1 of 1, aws RUNNING")
	if got := w.group("default/none"); !strings.Contains(got, "allow neither on-demand nor spot") {
		t.Errorf("group %s", got)
	}
	if err := w.p.DeleteNodes(t.Context(), small, machine("aws:///"+w.claims()[0].Name)); err != nil {
		t.Error(err)
	}
}

// A limit of a resource that there is not would limit nothing. The NodePool does not grow, and says why.
func TestLimitsThatLimitNothing(t *testing.T) {
	for limits, want := range map[string]string{
		"cores=4":         `"cores" is no resource`,
		"CPU=4":           `"CPU" is no resource`,
		"gpu=4":           `"gpu" is no resource`,
		"cpu=4,cpu=400":   "cpu occurs twice",
		"cpu=4;memory=3":  `"cpu=4;memory=3" is not`,
		"nvidia.com/=1":   `"nvidia.com/" is no resource`,
		"nodes=-1":        `"nodes=-1" is not`,
		"cpu=4, memory =": `"memory =" is not`,
	} {
		w := newWorld(t, strings.Replace(managedPool, "uid: pool-uid", "annotations: {loadline.dev/limits: '"+limits+"'}", 1))
		g := w.groups()[small]
		if g.Problem == nil || g.Max != 0 || !strings.HasPrefix(g.Problem.Error(),
			"NodePool default: annotation loadline.dev/limits: ") || !strings.Contains(g.Problem.Error(), want) {
			t.Errorf("%s: problem %v, max %d, want %q", limits, g.Problem, g.Max, want)
		}
		if err := w.p.IncreaseSize(t.Context(), small, 0, 1); err == nil || len(w.claims()) > 0 {
			t.Errorf("%s: %d claims, error %v", limits, len(w.claims()), err)
		}
	}
	for limits, want := range map[string]int{"cpu = 4, nodes=1": 1, "nvidia.com/gpu=1,hugepages-2Mi=0": 1000,
		"ephemeral-storage=1Ti,pods=58": 2} {
		w := newWorld(t, strings.Replace(managedPool, "uid: pool-uid", "annotations: {loadline.dev/limits: '"+limits+"'}", 1))
		if g := w.groups()[small]; g.Problem != nil || g.Max != want {
			t.Errorf("%s: problem %v, max %d, want %d", limits, g.Problem, g.Max, want)
		}
	}
}
