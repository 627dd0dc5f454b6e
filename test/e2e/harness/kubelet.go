package harness

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// runKubelet replaces the kubelets of all nodes until the context ends: a bound pod becomes Running and Ready, and one
// that is to be deleted is gone at once. What fails is tried again at the next event or resync. Pods of some namespaces
// are left alone.
func runKubelet(ctx context.Context, client kubernetes.Interface, except []string, log Logf) error {
	bound := fields.OneTermNotEqualSelector("spec.nodeName", "")
	for _, namespace := range except {
		bound = fields.AndSelectors(bound, fields.OneTermNotEqualSelector("metadata.namespace", namespace))
	}
	source := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, bound)
	var busy errgroup.Group
	busy.SetLimit(creators)
	var started sync.Map // UIDs: among many pods, news of one is late
	handle := func(object any) {
		pod, ok := object.(*v1.Pod)
		if !ok || pod.DeletionTimestamp == nil && pod.Status.Phase != v1.PodPending {
			return
		}
		if _, known := started.Load(pod.UID); known && pod.DeletionTimestamp == nil {
			return
		}
		busy.Go(func() error {
			err := serve(ctx, client, pod)
			switch {
			case err != nil && ctx.Err() == nil:
				log.printf("stand-in for the kubelets: pod %s/%s: %v", pod.Namespace, pod.Name, err)
			case pod.DeletionTimestamp != nil:
				started.Delete(pod.UID)
			case err == nil:
				started.Store(pod.UID, true)
			}
			return nil
		})
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: source,
		ObjectType:    &v1.Pod{},
		ResyncPeriod:  time.Second, // the retry of what failed
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    handle,
			UpdateFunc: func(_, object any) { handle(object) },
		},
	})
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return errors.Join(errors.New("the stand-in for the kubelets gets no list of pods"), ctx.Err())
	}
	return nil
}

const runningStatus = `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`

func serve(ctx context.Context, client kubernetes.Interface, pod *v1.Pod) error {
	pods := client.CoreV1().Pods(pod.Namespace)
	var err error
	if pod.DeletionTimestamp != nil {
		err = pods.Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	} else {
		_, err = pods.Patch(ctx, pod.Name, types.StrategicMergePatchType, []byte(runningStatus),
			metav1.PatchOptions{}, "status")
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // somebody was faster
	}
	return err
}
