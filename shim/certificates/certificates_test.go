package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"loadline.dev/shim/internal/testing/certtest"
)

func filesIn(ca *certtest.Authority, dir string, serial int64) Files {
	cert, key := ca.WriteIn(dir, serial)
	return Files{Cert: cert, Key: key}
}

func serialOf(t *testing.T, config *tls.Config) int64 {
	t.Helper()
	cert, err := x509.ParseCertificate(config.Certificates[0].Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return cert.SerialNumber.Int64()
}

func TestChangedCertificatesAreReadAgain(t *testing.T) {
	ca, dir, now := certtest.New(t), t.TempDir(), time.Now()
	var reloads []bool
	c, err := Load(filesIn(ca, dir, 7), func() time.Time { return now },
		func(ok bool) { reloads = append(reloads, ok) })
	if err != nil {
		t.Fatal(err)
	}
	expect := func(serial int64, count int) {
		t.Helper()
		if got := serialOf(t, c.current()); got != serial || len(reloads) != count {
			t.Errorf("serial %d after reloads %v, want %d after %d", got, reloads, serial, count)
		}
	}
	expect(7, 0)
	filesIn(ca, dir, 8)
	expect(7, 0) // not before the interval has passed
	now = now.Add(ReloadInterval)
	expect(8, 1)
	now = now.Add(ReloadInterval)
	expect(8, 1) // nothing changed

	cert, _ := ca.Issue("gateway", 9)
	certtest.Write(t, c.files.Cert, cert) // the key is not there yet
	now = now.Add(ReloadInterval)
	expect(8, 2)
	certtest.Write(t, c.files.Cert, cert[:len(cert)/2])
	now = now.Add(ReloadInterval)
	expect(8, 3)
	os.Remove(c.files.Cert)
	now = now.Add(ReloadInterval)
	expect(8, 4)
	filesIn(ca, dir, 10)
	now = now.Add(ReloadInterval)
	expect(10, 5)
	if want := []bool{true, false, false, false, true}; !slices.Equal(reloads, want) {
		t.Errorf("reloads %v, want %v", reloads, want)
	}
}

func TestFilesThatCannotBeUsed(t *testing.T) {
	ca, dir := certtest.New(t), t.TempDir()
	good := filesIn(ca, dir, 1)
	other := filepath.Join(dir, "other.key")
	_, key := ca.Issue("x", 2)
	certtest.Write(t, other, key)
	text := filepath.Join(dir, "text")
	certtest.Write(t, text, []byte("not a certificate"))
	for says, files := range map[string]Files{
		"no such file":        {Cert: good.Cert, Key: filepath.Join(dir, "absent")},
		"does not match":      {Cert: good.Cert, Key: other},
		"tls.crt":             {Cert: good.Cert, Key: text},
		"holds no certificat": {Cert: good.Cert, Key: good.Key, ClientCA: text},
	} {
		_, err := Load(files, time.Now, func(bool) {})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", files, err, says)
		}
	}
}

// Only clients that are named, of those that an authority knows, may connect; a client without a certificate may ask
// for what needs none.
func TestClientsAreNamed(t *testing.T) {
	ca, dir := certtest.New(t), t.TempDir()
	files := filesIn(ca, dir, 1)
	files.ClientCA = filepath.Join(dir, "ca.crt")
	certtest.Write(t, files.ClientCA, ca.PEM)
	for _, c := range []struct {
		names  []string
		client string // its common name; it has localhost and 127.0.0.1 as well. Empty: it shows no certificate
		served bool
	}{
		{nil, "anybody", true}, {[]string{"system:kube-scheduler"}, "system:kube-scheduler", true},
		{[]string{"system:kube-scheduler"}, "anybody", false},
		{[]string{"system:kube-scheduler"}, "", true}, {[]string{"a", "localhost"}, "anybody", true},
		{[]string{"127.0.0.1"}, "anybody", true},
		{[]string{"system:kube"}, "system:kube-scheduler", false},
	} {
		files.ClientNames = c.names
		if err := files.Check(); err != nil {
			t.Fatal(err)
		}
		loaded, err := Load(files, time.Now, func(bool) {})
		if err != nil {
			t.Fatal(err)
		}
		config := &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost"}
		if c.client != "" {
			pair, err := tls.X509KeyPair(ca.Issue(c.client, 2))
			if err != nil {
				t.Fatal(err)
			}
			config.Certificates = []tls.Certificate{pair}
		}
		ours, theirs := net.Pipe()
		done := make(chan error, 1)
		go func() {
			client := tls.Client(theirs, config)
			_ = client.Handshake()
			_, _ = client.Read(make([]byte, 1)) // what the server thinks of it
			done <- client.Close()
		}()
		err = tls.Server(ours, loaded.ServerConfig()).Handshake()
		ours.Close()
		<-done
		if served := err == nil; served != c.served {
			t.Errorf("names %q, client %q: %v", c.names, c.client, err)
		}
	}
	if err := (Files{Cert: "c", Key: "k", ClientNames: []string{"a"}}).Check(); err == nil {
		t.Error("names without an authority are taken")
	}
}
