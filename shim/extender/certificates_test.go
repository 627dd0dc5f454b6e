package extender

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// authority signs certificates for tests.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// issue returns a certificate with its key, as PEM.
func (a *authority) issue(name string, serial int64) (certPEM, keyPEM []byte) {
	a.t.Helper()
	key := newKey(a.t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}

// pool returns what trusts the authority.
func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// filesIn writes a certificate of the authority into a folder.
func (a *authority) filesIn(dir string, serial int64) CertificateFiles {
	a.t.Helper()
	files := CertificateFiles{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key")}
	cert, key := a.issue("gateway", serial)
	write(a.t, files.Cert, cert)
	write(a.t, files.Key, key)
	return files
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
	ca, dir, now := newAuthority(t), t.TempDir(), time.Now()
	var reloads []bool
	c, err := newCertificates(ca.filesIn(dir, 7), func() time.Time { return now }, func(ok bool) { reloads = append(reloads, ok) })
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
	ca.filesIn(dir, 8)
	expect(7, 0) // not before the interval has passed
	now = now.Add(reloadInterval)
	expect(8, 1)
	now = now.Add(reloadInterval)
	expect(8, 1) // nothing changed

	cert, _ := ca.issue("gateway", 9)
	write(t, c.files.Cert, cert) // the key is not there yet
	now = now.Add(reloadInterval)
	expect(8, 2)
	write(t, c.files.Cert, cert[:len(cert)/2])
	now = now.Add(reloadInterval)
	expect(8, 3)
	os.Remove(c.files.Cert)
	now = now.Add(reloadInterval)
	expect(8, 4)
	ca.filesIn(dir, 10)
	now = now.Add(reloadInterval)
	expect(10, 5)
	if want := []bool{true, false, false, false, true}; !slices.Equal(reloads, want) {
		t.Errorf("reloads %v, want %v", reloads, want)
	}
}

func TestCertificateFilesThatCannotBeUsed(t *testing.T) {
	ca, dir := newAuthority(t), t.TempDir()
	good := ca.filesIn(dir, 1)
	other := filepath.Join(dir, "other.key")
	_, key := ca.issue("x", 2)
	write(t, other, key)
	text := filepath.Join(dir, "text")
	write(t, text, []byte("not a certificate"))
	for says, files := range map[string]CertificateFiles{
		"no such file":        {Cert: good.Cert, Key: filepath.Join(dir, "absent")},
		"does not match":      {Cert: good.Cert, Key: other},
		"tls.crt":             {Cert: good.Cert, Key: text},
		"holds no certificat": {Cert: good.Cert, Key: good.Key, ClientCA: text},
	} {
		_, err := newCertificates(files, time.Now, func(bool) {})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", files, err, says)
		}
	}
}
