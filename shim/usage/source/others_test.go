package source

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"loadline.dev/shim/usage/profile"
)

// someOwners know one pod.
type someOwners struct{}

func (someOwners) During(context.Context, int64, int64, *Outcome) (func(Pod) (Owned, bool), error) {
	return func(pod Pod) (Owned, bool) {
		web := profile.Workload{Namespace: "shop", Kind: "Deployment", Name: "web"}
		return Owned{web, [profile.Resources]int64{0, 1 << 22}}, pod == Pod{"shop", "web-1"}
	}, nil
}

// metricsServer answers with one item per text, each the containers of a pod.
func metricsServer(t *testing.T, answer *string) *MetricsAPI {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != metricsPath {
			t.Errorf("asked for %s", r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, *answer)
	}))
	t.Cleanup(server.Close)
	client, err := rest.RESTClientFor(&rest.Config{Host: server.URL, APIPath: "/apis", ContentConfig: rest.ContentConfig{
		GroupVersion: &schema.GroupVersion{Group: "metrics.k8s.io", Version: "v1beta1"}, NegotiatedSerializer: scheme.Codecs}})
	if err != nil {
		t.Fatal(err)
	}
	return NewMetricsAPI(client, someOwners{})
}

// metricsOf is the answer about one pod.
func metricsOf(pod string, seconds int64, containers ...string) string {
	return fmt.Sprintf(`{"metadata":{"namespace":"shop","name":"%s"},"timestamp":%q,"containers":[%s]}`, pod,
		time.Unix(seconds, 0).UTC().Format(time.RFC3339), strings.Join(containers, ","))
}

func TestMetricsAPI(t *testing.T) {
	use := func(cpu, memory string) string { return fmt.Sprintf(`{"usage":{"cpu":%q,"memory":%q}}`, cpu, memory) }
	good := taken{"Deployment shop/web 0 +30 251", "Deployment shop/web 1 +30 3145728",
		"Deployment shop/web 1 +30 <= 4194304"}
	tests := []struct {
		name    string
		items   []string
		want    taken
		dropped map[Reason]int64
	}{
		// 250m and 123456n, which is less than a millicore and counts as one; 1 MiB and 2 MiB.
		{"TheSumOfContainers", []string{metricsOf("web-1", testFrom+30, use("250m", "1Mi"), use("123456n", "2048Ki"))}, good, nil},
		{"Negative", []string{metricsOf("web-1", testFrom+30, use("-1", "3Mi"))}, nil, map[Reason]int64{Negative: 1}},
		{"Absurd", []string{metricsOf("web-1", testFrom+30, use("1e30", "9E"))}, nil, map[Reason]int64{Absurd: 2}},
		{"NoQuantity", []string{metricsOf("web-1", testFrom+30, use("NaN", strings.Repeat("1", 1000)))}, nil,
			map[Reason]int64{Unreadable: 2}},
		{"NoContainer", []string{metricsOf("web-1", testFrom+30)}, nil, map[Reason]int64{Unreadable: 2}},
		{"Old", []string{metricsOf("web-1", testFrom-1, use("1", "1"))}, nil, map[Reason]int64{OutsideWindow: 2}},
		{"NoOwner", []string{metricsOf("web-2", testFrom, use("1", "1"))}, nil, map[Reason]int64{NoOwner: 2}},
		{"HostileName", []string{metricsOf(`\u001b[2J`, testFrom, use("1", "1"))}, nil, map[Reason]int64{BadName: 2}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			answer := `{"items":[` + strings.Join(test.items, ",") + `]}`
			m := metricsServer(t, &answer)
			var got taken
			out, err := m.Collect(context.Background(), testFrom, testTo, got.sink)
			if test.name == "Negative" { // its memory is well
				test.want = good[1:]
			}
			if err != nil || !slices.Equal(got, test.want) || !maps.Equal(out.Dropped, test.dropped) {
				t.Errorf("samples %q, dropped %v, %v;\nwant %q, %v", got, out.Dropped, err, test.want, test.dropped)
			}
			got = nil
			if _, err := m.Collect(context.Background(), testFrom, testTo, got.sink); err != nil || len(got) > 0 {
				t.Errorf("the same samples were taken twice: %q, %v", got, err)
			}
		})
	}
}

func TestMetricsAPIThatFails(t *testing.T) {
	for name, answer := range map[string]string{"NoJSON": "<html>", "TooLarge": `{"items":[` + strings.Repeat(" ", 5000) + `]}`,
		"ATextForATime": `{"items":[{"timestamp":"soon"}]}`} {
		t.Run(name, func(t *testing.T) {
			m := metricsServer(t, &answer)
			m.most = 4096
			var got taken
			if out, err := m.Collect(context.Background(), testFrom, testTo, got.sink); err == nil || len(got) > 0 || out.Samples > 0 {
				t.Errorf("%d samples, %v", len(got), err)
			}
		})
	}
}

func TestOwnersByTheAPI(t *testing.T) {
	controls := true
	limited := func(cpu, memory string) v1.Container {
		return v1.Container{Name: "a", Resources: v1.ResourceRequirements{Limits: v1.ResourceList{
			v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory)}}}
	}
	pod := func(name, kind, owner, hash string, containers ...v1.Container) *v1.Pod {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"a": "b"},
			Annotations: map[string]string{"c": "d"}}, Spec: v1.PodSpec{Containers: containers}}
		if hash != "" {
			p.Labels[templateHash] = hash
		}
		if kind != "" {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "Other", Name: "x"}, {Kind: kind, Name: owner, Controller: &controls}}
		}
		return p
	}
	web := pod("web-1", "ReplicaSet", "web-abc", "abc", limited("1500m", "1Gi"), limited("250m", "1Ki"))
	owners, err := FollowOwners(t.Context(), fake.NewClientset(web, pod("bare", "", "", ""),
		pod("job-1", "Job", "report-29384756", "")))
	if err != nil {
		t.Fatal(err)
	}
	var find func(Pod) (Owned, bool)
	for deadline := time.Now().Add(10 * time.Second); find == nil && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		find, err = owners.During(t.Context(), testFrom, testTo, new(Outcome))
	}
	if find == nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"web-1": "Deployment shop/web [1750 1073742848]",
		"job-1": "CronJob shop/report [0 0]", "bare": "", "gone": ""} {
		got, found := find(Pod{"shop", name})
		if text := fmt.Sprint(got.Workload, got.Limits); found != (want != "") || found && text != want {
			t.Errorf("%s is of %v, want %q", name, text, want)
		}
	}
	kept, _ := keepOwned(web)
	if k := kept.(*ownedPod); k.Annotations != nil || k.Labels != nil || k.OwnerReferences != nil {
		t.Errorf("kept %+v", k)
	}
}

func TestFile(t *testing.T) {
	head := "name,kind,namespace,time,cpu_milli,memory_bytes,pod\n"
	tests := []struct {
		name, content string
		want          taken
		dropped       map[Reason]int64
		err           string
	}{
		{"Both", head + "web,Deployment,shop,1795003200,250,1000,web-1\nweb,Deployment,shop,2026-11-18T12:05:00Z,,7,web-1\n",
			taken{"Deployment shop/web 0 +0 250", "Deployment shop/web 1 +0 1000", "Deployment shop/web 1 +300 7"}, nil, ""},
		{"Odd", head + "web,Deployment,shop,1795003200,NaN,-1,\nweb,Deployment,shop,1795003199,1,x,\n", nil,
			map[Reason]int64{NotFinite: 1, Negative: 1, OutsideWindow: 2}, ""},
		{"Limits", strings.Replace(head, "pod", "cpu_limit_milli", 1) + "web,Deployment,shop,1795003200,250,7,500\n" +
			"web,Deployment,shop,1795003200,250,7,\n" + "web,Deployment,shop,1795003200,250,7,-1\n",
			slices.Concat(taken{"Deployment shop/web 0 +0 250", "Deployment shop/web 0 +0 <= 500"},
				slices.Repeat(taken{"Deployment shop/web 1 +0 7", "Deployment shop/web 0 +0 250"}, 2),
				taken{"Deployment shop/web 1 +0 7"}), nil, ""},
		{"ATime", head + "web,Deployment,shop,noon,1,1,\n", nil, nil, `record 1: time: "noon" is neither`},
		{"AName", head + "web,Deployment,shop,1,1,1,\n" + "a/b,Deployment,shop,1,1,1,\n", nil, nil, `record 2: "shop", "Deployment", "a/b"`},
		{"NoColumn", "name,kind,time,cpu_milli\n", nil, nil, `no column "namespace"`},
		{"NoAmount", "name,kind,namespace,time\n", nil, nil, "neither a column cpu_milli nor"},
		{"Nothing", "", nil, nil, "it is empty"},
		{"AShortLine", head + "web\n", nil, nil, "wrong number of fields"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			file := File{Path: filepath.Join(t.TempDir(), "use.csv"), Now: time.Unix(testTo, 0)}
			if err := os.WriteFile(file.Path, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			var got taken
			out, err := file.Collect(context.Background(), testFrom, testTo, got.sink)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) || len(got) > 0 {
					t.Errorf("%d samples, %v; want %q", len(got), err, test.err)
				}
				return
			}
			if err != nil || !slices.Equal(got, test.want) || !maps.Equal(out.Dropped, test.dropped) {
				t.Errorf("samples %q, dropped %v, %v;\nwant %q, %v", got, out.Dropped, err, test.want, test.dropped)
			}
		})
	}
}

func TestParquet(t *testing.T) {
	type row struct {
		Pod       string    `parquet:"pod"`
		Time      time.Time `parquet:"time,timestamp(microsecond)"`
		Namespace string    `parquet:"namespace"`
		Kind      string    `parquet:"kind,dict"`
		Name      string    `parquet:"name"`
		CPU       float64   `parquet:"cpu_milli"`
		Memory    *int64    `parquet:"memory_bytes,optional"`
	}
	memory := int64(1000)
	path := filepath.Join(t.TempDir(), "use.parquet")
	if err := parquet.WriteFile(path, []row{{"web-1", time.Unix(testFrom, 0), "shop", "Deployment", "web", 250, &memory},
		{"web-1", time.Unix(testFrom+300, 0), "shop", "Deployment", "web", 0.5, nil}}); err != nil {
		t.Fatal(err)
	}
	var got taken
	want := taken{"Deployment shop/web 0 +0 250", "Deployment shop/web 1 +0 1000", "Deployment shop/web 0 +300 1"}
	if _, err := (File{Path: path, Now: time.Unix(testTo, 0)}).Collect(context.Background(), testFrom, testTo,
		got.sink); err != nil || !slices.Equal(got, want) {
		t.Errorf("samples %q, %v", got, err)
	}
	if newest, err := (File{Path: path, Now: time.Unix(testTo, 0)}).Newest(); err != nil || newest != testFrom+300 {
		t.Errorf("the newest is of %d, %v", newest-testFrom, err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := range whole { // each byte, one after another, is another
		broken := slices.Clone(whole)
		broken[at] ^= 0x55
		if err := os.WriteFile(path, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _ = File{Path: path, Now: time.Unix(testTo, 0)}.Collect(context.Background(), testFrom, testTo, got.sink)
	}
}
