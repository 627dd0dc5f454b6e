package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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
