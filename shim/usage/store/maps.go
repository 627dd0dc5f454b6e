package store

import (
	"context"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"loadline.dev/shim/usage/profile"
)

// Write writes shards, and deletes the ConfigMaps of those that there were beyond them. Each can be read without the
// others, so that a writer that ends in between leaves older profiles and none that are wrong. Two that write at a time
// do no harm either: the last one is read.
func Write(ctx context.Context, client kubernetes.Interface, namespace string, shards [][]byte) error {
	configMaps := client.CoreV1().ConfigMaps(namespace)
	for i := range Shards {
		if i >= len(shards) {
			if err := configMaps.Delete(ctx, Name(i), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
			continue
		}
		if err := writeShard(ctx, configMaps, Name(i), shards[i]); err != nil {
			return err
		}
	}
	return nil
}

// writeShard writes one shard. Labels and annotations that others have added stay.
func writeShard(ctx context.Context, configMaps typedv1.ConfigMapInterface, name string, shard []byte) error {
	object, err := configMaps.Get(ctx, name, metav1.GetOptions{})
	isNew := apierrors.IsNotFound(err)
	if isNew {
		object, err = &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil
	}
	if err != nil {
		return err
	}
	metav1.SetMetaDataLabel(&object.ObjectMeta, "app.kubernetes.io/name", "loadline-usage")
	metav1.SetMetaDataLabel(&object.ObjectMeta, "app.kubernetes.io/part-of", "loadline")
	object.BinaryData = map[string][]byte{Key: shard}
	if isNew {
		_, err = configMaps.Create(ctx, object, metav1.CreateOptions{})
		return err
	}
	object.ResourceVersion = "" // the last writer counts
	_, err = configMaps.Update(ctx, object, metav1.UpdateOptions{})
	return err
}

// Read reads what is written; problems name shards that cannot be read, which count as not there.
func Read(ctx context.Context, client kubernetes.Interface, namespace string) (head Head, profiles []profile.Profile,
	problems []string, err error) {
	var all [Shards]shard
	for i := range Shards {
		object, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, Name(i), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return Head{}, nil, nil, err
		}
		if all[i] = read(object); all[i].problem != "" {
			problems = append(problems, all[i].problem)
		}
	}
	head, profiles = merge(all[:])
	return head, profiles, problems, nil
}

// shard is what a ConfigMap says.
type shard struct {
	head     Head
	profiles []profile.Profile
	problem  string // why it cannot be read
	there    bool
}

func read(object *v1.ConfigMap) shard {
	head, profiles, err := Decode(object.BinaryData[Key])
	if err != nil {
		return shard{problem: fmt.Sprintf("ConfigMap %s/%s: %v", object.Namespace, object.Name, err), there: true}
	}
	return shard{head: head, profiles: profiles, there: true}
}

// merge returns the profiles of all shards, in the order of the workloads. Of a workload that two shards tell of, while
// they are being written, the newer one counts. The head is that of the newest shard.
func merge(shards []shard) (head Head, profiles []profile.Profile) {
	newest := slices.Clone(shards)
	slices.SortStableFunc(newest, func(a, b shard) int { return int(a.head.Collected - b.head.Collected) })
	byWorkload := map[profile.Workload]profile.Profile{}
	for _, s := range newest {
		if s.there && s.problem == "" {
			head = s.head
		}
		for _, p := range s.profiles {
			byWorkload[p.Workload] = p
		}
	}
	return head, slices.SortedFunc(maps.Values(byWorkload),
		func(a, b profile.Profile) int { return a.Workload.Compare(b.Workload) })
}
