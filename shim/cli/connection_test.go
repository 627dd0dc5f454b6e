package cli

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"loadline.dev/shim/internal/testing/enginetest"
)

// Connections are made as kubectl makes them: by the same flags, under our name.
func TestConnectionFlags(t *testing.T) {
	var header http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header.Clone()
		http.Error(w, "no", http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	_, errs, code := run(t, "loadline", "", "top", "--server", server.URL,
		"--as", "jane", "--as-group", "dev", "--request-timeout", "5s")
	if code != 1 || header.Get("Impersonate-User") != "jane" || header.Get("Impersonate-Group") != "dev" {
		t.Errorf("exit %d: %s; asked with %v", code, errs, header)
	}
	if agent := header.Get("User-Agent"); !strings.HasPrefix(agent, "loadline/"+Version+" (") ||
		strings.Contains(agent, "$Format") {
		t.Errorf("user agent %q", agent)
	}
	var flags clusterFlags
	flags.flags = newClusterFlags()
	*flags.flags.APIServer = server.URL
	if config, err := flags.restConfig(); err != nil || config.QPS != -1 {
		t.Errorf("requests are limited: %+v (%v)", config, err)
	}
}

// Cluster Autoscaler's --kubernetes names another API server, for which the credentials of the kubeconfig stay. As
// there, --kubeconfig decides alone.
func TestAnotherAPIServer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	content := `{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
		"clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1"}}],
		"users": [{"name": "u", "user": {"token": "secret"}}]}`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	const other = "https://10.0.0.2:6443"
	for _, c := range []struct{ env, flag, kubernetes, host, token, warning string }{
		{file, "", "", "https://10.0.0.1", "secret", ""},
		{file, "", other, other, "secret", ""},
		{file, "", other + "/a/b", other + "/a/b", "secret", ""},
		{file, "", other + "?inClusterConfig=false", other, "secret", "credentials are those"},
		{file, "", "10.0.0.2", "https://10.0.0.1", "secret", "has no scheme"},
		{file + "none", "", other, other, "", ""},
		{file + "none", file, other, "https://10.0.0.1", "secret", "the API server is that of --kubeconfig"},
	} {
		t.Setenv("KUBECONFIG", c.env)
		flags := clusterFlags{flags: newClusterFlags()}
		*flags.flags.KubeConfig = c.flag
		warning, err := flags.follow(c.kubernetes)
		if err != nil || !strings.Contains(warning, c.warning) || (warning == "") != (c.warning == "") {
			t.Errorf("%s: said %q, want %q; error %v", c.kubernetes, warning, c.warning, err)
		}
		config, err := flags.restConfig()
		if err != nil || config.Host != c.host || config.BearerToken != c.token {
			t.Errorf("%+v: %v, error %v", c, config, err)
		}
	}
	var flags clusterFlags
	if _, err := flags.follow("http://a b"); err == nil {
		t.Error("what is no URL is taken")
	}
}

// The autoscaler asks the API server of --kubernetes, and no other.
func TestAutoscalerAsksAnotherAPIServer(t *testing.T) {
	asked := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
		http.Error(w, "no", http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := autoscalerCommand(t, "loadline")
	root := command.Root()
	root.SetArgs([]string{"autoscaler", "--cloud=none", "--decisions=slack", "--bind-address=", "--leader-elect=false",
		"--engine=" + enginetest.Address(t), "--kubernetes=" + server.URL, "--v=0"}) // all commands of the tests log alike
	ended := make(chan error, 1)
	go func() { ended <- root.ExecuteContext(ctx) }()
	select {
	case <-asked:
	case err := <-ended:
		t.Fatalf("ended before it asked: %v", err)
	}
	cancel()
	<-ended
}
