package tell

import (
	"context"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
)

// statusWriter writes the ConfigMap.
type statusWriter struct {
	client          kubernetes.Interface
	namespace, name string
}

// lastUpdated is the annotation of Cluster Autoscaler's ConfigMap.
const lastUpdated = "cluster-autoscaler.kubernetes.io/last-updated"

func (w *statusWriter) write(ctx context.Context, s *Status) error {
	text, err := yaml.Marshal(s)
	if err != nil {
		return err
	}
	maps := w.client.CoreV1().ConfigMaps(w.namespace)
	object := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.name,
		Annotations: map[string]string{lastUpdated: s.Time}},
		Data: map[string]string{"status": string(text)}}
	_, err = maps.Update(ctx, object, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = maps.Create(ctx, object, metav1.CreateOptions{})
	}
	return err
}
