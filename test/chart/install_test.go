package chart

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/action"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"loadline.dev/test/e2e/harness"
)

const release, namespace = "loadline", "loadline-test"

// everything switches on all that is there.
func everything() values {
	return setter{on("scheduler", "extender", "expander", "autoscaler")}.with("autoscaler.mode", "act").
		with("autoscaler.despiteBudgets", true).
		with("monitoring", values{"serviceMonitor": true, "podMonitor": true, "rules": true, "dashboard": true}).values
}

// A real API server takes what the chart makes, changes it and reverts it, and nothing is left in the end.
func TestInstallUpgradeRollbackUninstall(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	cluster := startCluster(t, ctx)
	applyOperatorKinds(t, ctx, cluster)
	before := traces(t, ctx, cluster.Client)
	config := helm(t, cluster, namespace)
	c := load(t)

	install := action.NewInstall(config)
	install.ReleaseName, install.Namespace, install.CreateNamespace = release, namespace, true
	installed, err := install.RunWithContext(ctx, c, everything())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(installed.Info.Notes, "--grpc-expander-url=loadline-expander.loadline-test.svc:8889") {
		t.Errorf("the notes do not say how to ask the expander:\n%s", installed.Info.Notes)
	}
	weight := func() string { return configOf(t, ctx, cluster.Client) }
	if !strings.Contains(weight(), "weight: 1\n") {
		t.Errorf("configuration after the installation:\n%s", weight())
	}
	certificate := secret(t, ctx, cluster.Client)
	states := cluster.Client.CoreV1().ConfigMaps(namespace)
	written, err := states.Get(ctx, "loadline-autoscaler-state", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	written.BinaryData = map[string][]byte{"loop": []byte("bytes")} // as the autoscaler does
	if _, err := states.Update(ctx, written, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}

	upgrade := action.NewUpgrade(config)
	upgrade.Namespace, upgrade.ResetValues = namespace, true
	changed := setter{everything()}.with("scheduler.weight", 2).with("extender.enabled", false).values
	if _, err := upgrade.RunWithContext(ctx, release, c, changed); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(weight(), "weight: 2\n") {
		t.Errorf("configuration after the upgrade:\n%s", weight())
	}
	_, err = cluster.Client.AppsV1().DaemonSets(namespace).Get(ctx, "loadline-gateway", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("a component that was switched off is still there: error %v", err)
	}
	state, err := states.Get(ctx, written.Name, metav1.GetOptions{})
	if err != nil || string(state.BinaryData["loop"]) != "bytes" {
		t.Errorf("the state of the autoscaler after the upgrade: %v, error %v", state.BinaryData, err)
	}
	if again := secret(t, ctx, cluster.Client); again != certificate {
		t.Error("the upgrade made another certificate, which no autoscaler trusts")
	}

	rollback := action.NewRollback(config)
	if err := rollback.Run(release); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(weight(), "weight: 1\n") {
		t.Errorf("configuration after going back:\n%s", weight())
	}
	if _, err := cluster.Client.AppsV1().DaemonSets(namespace).Get(ctx, "loadline-gateway",
		metav1.GetOptions{}); err != nil {
		t.Errorf("the component is not back: %v", err)
	}

	if _, err := action.NewUninstall(config).Run(release); err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return slices.Equal(traces(t, ctx, cluster.Client), before), nil
	})
	if err != nil {
		t.Errorf("left behind: %q, before: %q", traces(t, ctx, cluster.Client), before)
	}
}

// Another component's release beside the first one, in a namespace of its own; and one of the same components under
// another name, in a namespace that is there already.
func TestSeveralReleases(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	cluster := startCluster(t, ctx)
	acting := setter{on("autoscaler")}.with("autoscaler.mode", "act")
	for _, r := range []struct {
		name, namespace string
		values          values
	}{
		{"one", "one", on("scheduler")}, {"two", "two", acting.values},
		{"three", "one", setter{on("scheduler", "autoscaler")}.with("autoscaler.mode", "act").
			with("autoscaler.createSlackNamespace", false).with("fullnameOverride", "blue").values},
	} {
		install := action.NewInstall(helm(t, cluster, r.namespace))
		install.ReleaseName, install.Namespace, install.CreateNamespace = r.name, r.namespace, true
		if _, err := install.RunWithContext(ctx, load(t), r.values); err != nil {
			t.Errorf("%s: %v", r.name, err)
		}
	}
}

func configOf(t *testing.T, ctx context.Context, client kubernetes.Interface) string {
	t.Helper()
	m, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, "loadline-scheduler", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return m.Data["scheduler-config.yaml"]
}

func secret(t *testing.T, ctx context.Context, client kubernetes.Interface) string {
	t.Helper()
	s, err := client.CoreV1().Secrets(namespace).Get(ctx, "loadline-expander", metav1.GetOptions{})
	if err != nil || len(s.Data["tls.crt"]) == 0 || len(s.Data["tls.key"]) == 0 {
		t.Fatalf("the certificate of the expander: error %v", err)
	}
	return string(s.Data["tls.crt"])
}

// applyOperatorKinds has the API server serve the kinds of the Prometheus operator, as the operator's release defines
// them: what does not fit them is refused.
func applyOperatorKinds(t *testing.T, ctx context.Context, cluster *harness.Cluster) {
	t.Helper()
	for _, kind := range []string{"podmonitors", "servicemonitors", "prometheusrules"} {
		file := "monitoring.coreos.com_" + kind + ".yaml"
		content, err := operatorFile(ctx, file)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := harness.Objects(content)
		if err != nil {
			t.Fatal(err)
		}
		if err := cluster.Apply(ctx, objects); err != nil {
			t.Fatal(err)
		}
	}
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		resources, err := cluster.Client.Discovery().ServerResourcesForGroupVersion("monitoring.coreos.com/v1")
		return err == nil && len(resources.APIResources) >= 3, nil
	})
	if err != nil {
		t.Fatal(errors.Join(errors.New("the kinds of the operator are not served"), err))
	}
}
