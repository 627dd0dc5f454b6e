package cli

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"loadline.dev/shim/internal/testing/enginetest"
)

const benchNodes, benchPods = 2000, 80000

// benchPod is a pod of a Deployment as an API server holds it: 3 KB, of which most say nothing about its load.
const benchPod = `
metadata:
  generateName: web-6d4cf56db6-
  namespace: shop
  creationTimestamp: "2026-11-20T11:50:00Z"
  labels: {app.kubernetes.io/name: web, app.kubernetes.io/part-of: shop, pod-template-hash: 6d4cf56db6}
  annotations: {prometheus.io/scrape: "true", prometheus.io/port: "9090", example.com/commit: 2b8e1d5c93c0c7e9a6b9}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-6d4cf56db6, uid: r, controller: true}]
spec:
  containers:
  - name: web
    image: registry.example/shop/web@sha256:5ef2e9c1a3b4d0c7f8e6a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0
    args: [--listen=:8080, --metrics=:9090, "--database=$(DATABASE)"]
    env:
    - {name: DATABASE, valueFrom: {secretKeyRef: {name: web, key: database}}}
    - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    ports: [{name: http, containerPort: 8080}, {name: metrics, containerPort: 9090}]
    resources: {requests: {cpu: 250m, memory: 512Mi}, limits: {cpu: "1", memory: 1Gi}}
    livenessProbe: {httpGet: {path: /healthz, port: http}, periodSeconds: 10, timeoutSeconds: 1, failureThreshold: 3}
    readinessProbe: {httpGet: {path: /readyz, port: http}, periodSeconds: 5, timeoutSeconds: 1, failureThreshold: 3}
    securityContext: {runAsNonRoot: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    volumeMounts:
    - {name: cache, mountPath: /cache}
    - {name: kube-api-access-7xk2p, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
  volumes:
  - {name: cache, emptyDir: {}}
  - name: kube-api-access-7xk2p
    projected:
      sources:
      - serviceAccountToken: {expirationSeconds: 3607, path: token}
      - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
  restartPolicy: Always
  schedulerName: default-scheduler
  serviceAccountName: web
  priority: 0
  tolerations:
  - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}
  - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 300}
status:
  phase: Running
  podIP: 10.1.2.3
  hostIP: 10.0.0.1
  startTime: "2026-11-20T11:50:01Z"
  conditions:
  - {type: PodScheduled, status: "True", lastTransitionTime: "2026-11-20T11:50:01Z"}
  - {type: Initialized, status: "True", lastTransitionTime: "2026-11-20T11:50:02Z"}
  - {type: Ready, status: "True", lastTransitionTime: "2026-11-20T11:50:09Z"}
  containerStatuses:
  - {name: web, ready: true, restartCount: 0, started: true, state: {running: {startedAt: "2026-11-20T11:50:03Z"}},
     image: registry.example/shop/web, imageID: registry.example/shop/web@sha256:5ef2e9c1a3b4d0c7f8e6a5b4c3d2e1f0}
`

// benchNode is a node with room for 40 such pods.
const benchNode = `
metadata: {labels: {kubernetes.io/arch: amd64, kubernetes.io/os: linux, node.kubernetes.io/instance-type: m5.4xlarge}}
status:
  capacity: {cpu: "16", memory: 64Gi, pods: "110"}
  allocatable: {cpu: "16", memory: 64Gi, pods: "110"}
  conditions: [{type: Ready, status: "True"}]
`

// benchObjects returns a node and a pod of the cluster.
func benchObjects(b *testing.B) (node v1.Node, pod v1.Pod) {
	b.Helper()
	err := errors.Join(yaml.UnmarshalStrict([]byte(benchNode), &node), yaml.UnmarshalStrict([]byte(benchPod), &pod))
	if err != nil {
		b.Fatal(err)
	}
	// A third of a pod says who set which of its fields.
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", Operation: "Update", APIVersion: "v1",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fmt.Sprintf(`{"f:spec":{"f:%01500d":{}}}`, 0))}}
	return node, pod
}

// benchPage returns the nodes or the pods from one number up to another.
func benchPage(node v1.Node, pod v1.Pod, path string, from, to int) runtime.Object {
	if path == "/api/v1/nodes" {
		list := &v1.NodeList{Items: make([]v1.Node, to-from)}
		for i := range list.Items {
			list.Items[i] = node
			list.Items[i].Name = fmt.Sprintf("node-%04d", from+i)
			list.Items[i].UID = types.UID(list.Items[i].Name)
		}
		return list
	}
	list := &v1.PodList{Items: make([]v1.Pod, to-from)}
	for i := range list.Items {
		list.Items[i] = pod
		list.Items[i].Name = fmt.Sprintf("web-6d4cf56db6-%05d", from+i)
		list.Items[i].UID = types.UID(list.Items[i].Name)
		list.Items[i].Spec.NodeName = fmt.Sprintf("node-%04d", (from+i)%benchNodes)
	}
	return list
}

// benchServer serves nodes and pods as an API server does: page by page, encoded for each request, and compressed. It
// counts the pages, and the bytes before compression.
func benchServer(b *testing.B, pages, sent *atomic.Int64) *httptest.Server {
	node, pod := benchObjects(b)
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	encoder := scheme.Codecs.EncoderForVersion(info.Serializer, v1.SchemeGroupVersion)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all := map[string]int{"/api/v1/nodes": benchNodes, "/api/v1/pods": benchPods}[r.URL.Path]
		if all == 0 {
			json.NewEncoder(w).Encode(map[string]string{"gitVersion": "v1.36.3"})
			return
		}
		pages.Add(1)
		from, limit := 0, all
		fmt.Sscan(r.URL.Query().Get("continue"), &from)
		fmt.Sscan(r.URL.Query().Get("limit"), &limit)
		to := min(from+limit, all)
		list := benchPage(node, pod, r.URL.Path, from, to)
		if to < all {
			list.(metav1.ListMetaAccessor).GetListMeta().SetContinue(fmt.Sprint(to))
		}
		var body bytes.Buffer
		if err := encoder.Encode(list, &body); err != nil {
			b.Error(err)
		}
		sent.Add(int64(body.Len()))
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Write(body.Bytes())
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		compressed, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
		defer compressed.Close()
		compressed.Write(body.Bytes())
	}))
	b.Cleanup(server.Close)
	return server
}

// cpuTime returns the CPU time that this process has taken.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// `top` of 2,000 nodes with 80,000 pods, beside a server that encodes and compresses each page in the same process.
func BenchmarkTop(b *testing.B) {
	b.Setenv("LOADLINE_LIBRARY", enginetest.Library(b))
	b.Setenv("KUBECONFIG", filepath.Join(b.TempDir(), "none"))
	var pages, sent atomic.Int64
	server := benchServer(b, &pages, &sent)
	before := cpuTime(b)
	for b.Loop() {
		pages.Store(0)
		sent.Store(0)
		var out, errs bytes.Buffer
		code := Run(b.Context(), []string{"loadline", "top", "--server", server.URL}, Streams{Out: &out, Err: &errs})
		_, end, _ := strings.Cut(out.String(), "\n\n")
		if want := "2000 nodes, 80000 pods, 0 of them pending.\n"; code != 0 || end != want {
			b.Fatalf("exit %d, %sgot %q, want %q", code, errs.String(), end, want)
		}
		if got, want := pages.Load(), int64((benchNodes+benchPods)/500); got != want {
			b.Fatalf("%d pages, want %d: a list of each kind", got, want)
		}
	}
	b.ReportMetric((cpuTime(b)-before).Seconds()/float64(b.N), "cpu-s/op")
	b.ReportMetric(float64(sent.Load())/benchPods, "B/pod")
}
