package plan

import (
	"bytes"
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"loadline.dev/shim/autoscaler/config"
)

// stateStore keeps what the engine remembers of machines and groups in a ConfigMap, for the next leader. The bytes are
// the engine's: nobody else reads them.
type stateStore struct {
	client          kubernetes.Interface
	namespace, name string
	manifest        string // the one that creates the ConfigMap
	written         []byte
	// seen is the ConfigMap as it was last seen, without the bytes; nil: there was none. What others have added to it
	// stays, such as the labels and annotations by which Helm knows it.
	seen *v1.ConfigMap
}

const (
	// stateKey is that of the bytes in the ConfigMap.
	stateKey = "loop"
	// stateTries is how often a new leader tries to read it, stateRetry how long it waits in between: leaders change
	// where the API server begins anew, and to forget who had a node costs more than a minute.
	stateTries = 60
	stateRetry = time.Second
)

// newStateStore returns the store of an autoscaler: each lease has its own.
func newStateStore(client kubernetes.Interface, c *config.Configuration) *stateStore {
	return &stateStore{client: client, namespace: c.Namespace, name: StateName(c), manifest: stateManifest(c)}
}

// StateName returns the name of the ConfigMap with the state.
func StateName(c *config.Configuration) string { return c.LeaderElection.ResourceName + "-state" }

// stateManifest returns the manifest that creates the ConfigMap.
func stateManifest(c *config.Configuration) string {
	if c.LeaderElection.ResourceName == config.UpstreamLease {
		return "manifests/autoscaler/drop-in-act/10-rbac.yaml"
	}
	return "manifests/autoscaler/act/10-rbac.yaml"
}

// read returns what an earlier leader has written; nil: nothing, or nobody knows. All times begin anew then.
func (s *stateStore) read(ctx context.Context) []byte {
	for try := 1; ; try++ {
		err := s.find(ctx)
		if err == nil {
			return s.written
		}
		if try == stateTries || ctx.Err() != nil || apierrors.IsForbidden(err) {
			klog.ErrorS(err, "The state that an earlier leader stored cannot be read: all timers restart")
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(stateRetry):
		}
	}
}

// find looks what there is.
func (s *stateStore) find(ctx context.Context) error {
	object, err := s.client.CoreV1().ConfigMaps(s.namespace).Get(ctx, s.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		s.seen, s.written = nil, nil
		return nil
	}
	if err != nil {
		return err
	}
	s.saw(object, object.BinaryData[stateKey])
	return nil
}

func (s *stateStore) saw(object *v1.ConfigMap, written []byte) {
	object.BinaryData = nil
	s.seen, s.written = object, written
}

// write writes a state that has changed. What somebody else has written meanwhile is looked at, and written over the
// next time: who leads knows best.
func (s *stateStore) write(ctx context.Context, state []byte) error {
	if bytes.Equal(state, s.written) {
		return nil
	}
	maps := s.client.CoreV1().ConfigMaps(s.namespace)
	content := map[string][]byte{stateKey: state}
	var object *v1.ConfigMap
	var err error
	if s.seen != nil {
		object = s.seen.DeepCopy()
		object.BinaryData = content
		object, err = maps.Update(ctx, object, metav1.UpdateOptions{})
	} else {
		object = &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.name}, BinaryData: content}
		object, err = maps.Create(ctx, object, metav1.CreateOptions{})
		err = WhyMissing(err, "ConfigMap", s.namespace, s.name, s.manifest)
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		if findErr := s.find(ctx); findErr != nil {
			return findErr
		}
		return err
	}
	if err == nil {
		s.saw(object, state)
	}
	return err
}

// WhyMissing says of an object that is not there and may not be created which manifest creates it: a rule for create
// cannot name an object, so that there is no such right. Other errors stay as they are.
func WhyMissing(err error, kind, namespace, name, manifest string) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	return fmt.Errorf("%s %s/%s is missing, and may not be created: apply %s, which creates it (a release of the chart "+
		"does too): %w", kind, namespace, name, manifest, err)
}

// Keep writes what the engine remembers, where that is ours to do.
func (p *Planner) Keep(ctx context.Context) error {
	if p.Config.Mode != config.Act || p.Fleet.State == nil {
		return nil
	}
	return p.store.write(ctx, p.Fleet.State)
}

// Recall starts from the memory of an earlier leader.
func (p *Planner) Recall(ctx context.Context) {
	if p.Config.Mode == config.Act {
		p.Fleet.State = p.store.read(ctx)
	}
}
