package perf

import (
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"

	"loadline.dev/shim/usage/profile"
	"loadline.dev/shim/usage/store"
)

const (
	// usageNamespace is where the profiles are.
	usageNamespace = "default"
	// workloadName is the workload of the pods that are measured.
	workloadName = "measured-pods"
	// workloads is how many profiles there are; pods have one of them.
	workloads = 2000
	// owner has pods be of this workload. scheduler_perf runs a garbage collector, which deletes pods of a workload that
	// does not exist, and leaves those of a kind alone that it does not know.
	owner = "metadata:\n  ownerReferences:\n  - {apiVersion: perf.loadline.dev/v1, kind: StatefulSet, name: " +
		workloadName + ", uid: 00000000-0000-0000-0000-000000000001, controller: true}\n"
)

// writeProfiles writes profiles as loadline usage would write them for so many workloads: of the last seven days, with
// another amount in each hour, none above the limit of a pod.
func writeProfiles(tCtx testContext) error {
	client, err := kubernetes.NewForConfig(tCtx.RESTConfig())
	if err != nil {
		return err
	}
	now := time.Now().Unix()
	profiles := make([]profile.Profile, workloads)
	for i := range profiles {
		p := &profiles[i]
		p.Workload = profile.Workload{Namespace: measuredNamespace, Kind: "StatefulSet", Name: fmt.Sprint("other-", i)}
		if i == 0 {
			p.Workload.Name = workloadName
		}
		for hour := range 24 {
			p.Day[profile.CPU][hour] = int64(50 + (hour*7+i)%24*6)
			p.Day[profile.Memory][hour] = int64(300+(hour*5+i)%24*20) << 20
		}
		p.Days, p.Samples, p.First, p.Last = 7, 7*24*12, now-7*86400, now
	}
	head := store.Head{Collected: now, Days: 7, Percent: 90}
	shards, leftOut := store.Encode(&head, profiles)
	if leftOut > 0 {
		return fmt.Errorf("%d profiles have no room", leftOut)
	}
	return store.Write(tCtx, client, usageNamespace, shards)
}
