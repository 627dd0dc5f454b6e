package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// JobPods stand in for kubelets that run the pods of Jobs: each pod is a process of this machine, with the arguments,
// variables and ConfigMaps of its container. Pods need no node.
type JobPods struct {
	// Namespace is where the pods are; Program is run for each, as whoever has Kubeconfig.
	Namespace, Program, Kubeconfig string
	// AtOnce is how many run at a time.
	AtOnce int
	// Fate says what happens to the attempt, counted from 1, of a pod with this completion index; nil: it runs.
	Fate func(index string, attempt int) PodFate

	cluster  *Cluster
	slots    chan struct{}
	mu       sync.Mutex
	started  map[types.UID]bool // guarded by mu
	attempts map[string]int     // by index; guarded by mu
	ran      sync.WaitGroup
}

// PodFate is what happens to a pod.
type PodFate int

// Fates.
const (
	Runs    PodFate = iota
	Killed          // in the middle, by a signal: it has printed something
	Evicted         // in the same way, and the pod says that nobody is to blame
	Fails           // each time
)

// Start runs pods until the context ends.
func (p *JobPods) Start(ctx context.Context, cluster *Cluster) error {
	p.cluster, p.slots = cluster, make(chan struct{}, p.AtOnce)
	p.started, p.attempts = map[types.UID]bool{}, map[string]int{}
	handle := func(object any) {
		if pod, ok := object.(*v1.Pod); ok && pod.Status.Phase == v1.PodPending && pod.DeletionTimestamp == nil {
			p.begin(ctx, pod)
		}
	}
	source := cache.NewFilteredListWatchFromClient(cluster.Client.CoreV1().RESTClient(), "pods", p.Namespace,
		func(*metav1.ListOptions) {})
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: source, ObjectType: &v1.Pod{},
		ResyncPeriod: time.Second, Handler: cache.ResourceEventHandlerFuncs{AddFunc: handle,
			UpdateFunc: func(_, object any) { handle(object) }}})
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return ctx.Err()
	}
	return nil
}

// Wait waits for the processes, after the context has ended.
func (p *JobPods) Wait() { p.ran.Wait() }

func (p *JobPods) begin(ctx context.Context, pod *v1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started[pod.UID] {
		return
	}
	p.started[pod.UID] = true
	index := pod.Annotations["batch.kubernetes.io/job-completion-index"]
	p.attempts[index]++
	fate := Runs
	if p.Fate != nil {
		fate = p.Fate(index, p.attempts[index])
	}
	p.ran.Go(func() {
		select {
		case p.slots <- struct{}{}:
			defer func() { <-p.slots }()
		case <-ctx.Done():
			return
		}
		if err := p.run(ctx, pod, fate); err != nil && ctx.Err() == nil {
			p.cluster.log.printf("pod %s: %v", pod.Name, err)
		}
	})
}

func (p *JobPods) run(ctx context.Context, pod *v1.Pod, fate PodFate) error {
	if err := p.report(ctx, pod, v1.PodStatus{Phase: v1.PodRunning}); err != nil {
		return err
	}
	code := 1
	if fate != Fails {
		dir, err := os.MkdirTemp(p.cluster.Dir(), "pod")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		cmd, err := p.command(ctx, pod, dir)
		if err != nil {
			return err
		}
		if code, err = runUntil(cmd, fate); err != nil {
			return err
		}
	}
	status := v1.PodStatus{Phase: v1.PodSucceeded}
	if code != 0 {
		status.Phase = v1.PodFailed
	}
	if fate == Evicted {
		status.Conditions = []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionTrue,
			Reason: "EvictionByEvictionAPI", LastTransitionTime: metav1.Now()}}
	}
	status.ContainerStatuses = []v1.ContainerStatus{{Name: pod.Spec.Containers[0].Name,
		State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: int32(code), FinishedAt: metav1.Now()}}}}
	return p.report(ctx, pod, status)
}

// runUntil runs a process to its end, or until it has printed something and its fate is due.
func runUntil(cmd *exec.Cmd, fate PodFate) (code int, err error) {
	said := &firstWrite{happened: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := fork(cmd); err != nil {
		return 0, err
	}
	if fate == Killed || fate == Evicted {
		<-said.happened
		_ = cmd.Process.Kill()
	}
	err = cmd.Wait()
	if state := cmd.ProcessState; state != nil {
		if code = state.ExitCode(); code < 0 {
			code = 137
		}
		return code, nil
	}
	return 0, err
}

// firstWrite tells of the first write.
type firstWrite struct {
	once     sync.Once
	happened chan struct{}
}

func (f *firstWrite) Write(content []byte) (int, error) {
	f.once.Do(func() { close(f.happened) })
	return len(content), nil
}

// command is the process of a pod's container; what it mounts is in a folder.
func (p *JobPods) command(ctx context.Context, pod *v1.Pod, dir string) (*exec.Cmd, error) {
	container := pod.Spec.Containers[0]
	var args []string
	args = append(args, container.Args...)
	for _, mount := range container.VolumeMounts {
		for _, volume := range pod.Spec.Volumes {
			if volume.Name != mount.Name || volume.ConfigMap == nil {
				continue
			}
			if err := p.mount(ctx, volume.ConfigMap.Name, filepath.Join(dir, mount.Name)); err != nil {
				return nil, err
			}
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], mount.MountPath+"/", filepath.Join(dir, mount.Name)+"/")
			}
		}
	}
	cmd := exec.CommandContext(ctx, p.Program, args...)
	cmd.Env = []string{"KUBECONFIG=" + p.Kubeconfig, "LOADLINE_LIBRARY=" + os.Getenv("LOADLINE_LIBRARY"), "HOME=" + dir}
	for _, variable := range container.Env {
		value := variable.Value
		if variable.ValueFrom != nil {
			value = fieldOf(pod, variable.ValueFrom.FieldRef.FieldPath)
		}
		cmd.Env = append(cmd.Env, variable.Name+"="+value)
	}
	return cmd, nil
}

// fieldOf is the downward API.
func fieldOf(pod *v1.Pod, path string) string {
	key := func(of map[string]string) string {
		_, rest, _ := strings.Cut(path, "['")
		return of[strings.TrimSuffix(rest, "']")]
	}
	switch {
	case path == "metadata.namespace":
		return pod.Namespace
	case strings.HasPrefix(path, "metadata.labels["):
		return key(pod.Labels)
	case strings.HasPrefix(path, "metadata.annotations["):
		return key(pod.Annotations)
	}
	return ""
}

// mount writes the entries of a ConfigMap into a folder, once it is there.
func (p *JobPods) mount(ctx context.Context, name, dir string) error {
	for {
		object, err := p.cluster.Client.CoreV1().ConfigMaps(p.Namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) && ctx.Err() == nil {
			time.Sleep(pollInterval)
			continue
		}
		if err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for key, text := range object.Data {
			object.BinaryData = orMake(object.BinaryData)
			object.BinaryData[key] = []byte(text)
		}
		for key, content := range object.BinaryData {
			if err := os.WriteFile(filepath.Join(dir, key), content, 0o600); err != nil {
				return err
			}
		}
		return nil
	}
}

func orMake(data map[string][]byte) map[string][]byte {
	if data == nil {
		return map[string][]byte{}
	}
	return data
}

func (p *JobPods) report(ctx context.Context, pod *v1.Pod, status v1.PodStatus) error {
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	_, err = p.cluster.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("status %s: %w", status.Phase, err)
	}
	return nil
}
