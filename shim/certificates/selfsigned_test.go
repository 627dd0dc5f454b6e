package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"loadline.dev/shim/internal/testing/certtest"
)

// handshake connects a client that trusts `roots` and calls the server `name`.
func handshake(t *testing.T, server *tls.Config, roots []byte, name string) error {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_ = conn.(*tls.Conn).Handshake() // the client tells how it went
	}()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(roots) {
		t.Fatal("no certificate in the file of the client")
	}
	conn, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{RootCAs: pool, ServerName: name})
	if err == nil {
		conn.Close()
	}
	return err
}

func TestSelfSignedPairIsTrustedByItselfAlone(t *testing.T) {
	cert, key, err := SelfSigned([]string{"gateway.kube-system.svc", "127.0.0.1", "::1"}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := SelfSigned([]string{"127.0.0.1"}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := Files{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key")}
	certtest.Write(t, files.Cert, cert)
	certtest.Write(t, files.Key, key)
	reloader, err := Load(files, time.Now, func(bool) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gateway.kube-system.svc", "127.0.0.1", "::1"} {
		if err := handshake(t, reloader.ServerConfig(), cert, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"elsewhere", "10.0.0.1"} {
		if err := handshake(t, reloader.ServerConfig(), cert, name); err == nil {
			t.Errorf("%s: not a name of the certificate, and yet trusted", name)
		}
	}
	if err := handshake(t, reloader.ServerConfig(), other, "127.0.0.1"); err == nil ||
		!strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("a client with another certificate: %v", err)
	}
}

func TestSelfSignedPairHasAnEnd(t *testing.T) {
	from := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	text, _, err := SelfSigned([]string{"x"}, from, 48*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	pair, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if want := from.Add(48 * time.Hour); !pair.NotAfter.Equal(want) {
		t.Errorf("ends at %v, want %v", pair.NotAfter, want)
	}
	if pair.IsCA {
		t.Error("the certificate of a server can sign others")
	}
}

func TestSelfSignedRefusals(t *testing.T) {
	for says, hosts := range map[string][]string{"no host": nil, "must not be empty": {"x", ""}} {
		if _, _, err := SelfSigned(hosts, time.Now(), time.Hour); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", hosts, err, says)
		}
	}
	if _, _, err := SelfSigned([]string{"x"}, time.Now(), 0); err == nil ||
		!strings.Contains(err.Error(), "must be positive") {
		t.Errorf("no lifetime: %v", err)
	}
}
